"""torchao: one config object (`_type`, `_data`), or one for each module name.

Source: torchao/quantization/quant_api.py 0.10–0.18 (defaults of each class), torchao/core/config.py for the encoding;
transformers TorchAoConfig for the older string form (`quant_type`, `quant_type_kwargs`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.errors import CheckpointError, kind_of, show
from logscan.checkpoint.fields import Node, pair
from logscan.checkpoint.operands import fp8, group, integer, mxfp4, mxfp8, nvfp4, quantized, weight_only
from logscan.checkpoint.targets import check_regexes, scope_of
from logscan.model import Matcher, NumericPath, Operand

MAX_MODULES = 1_000_000
_MX = {"float8_e4m3fn": mxfp8, "float4_e2m1fn_x2": mxfp4, "fp4_e2m1": mxfp4}
_DTYPE = re.compile(r"u?int([1-8])")


def _int4_weight_only(c: Node) -> NumericPath:
    return weight_only(integer(4, _size(c, 128), False))


def _int8_weight_only(c: Node) -> NumericPath:
    if c.has("granularity"):
        return weight_only(Operand("int8", 8, *_granularity(c.raw("granularity"), c.at("granularity"))))
    return weight_only(integer(8, _size(c, -1)))


def _int8_int8(dynamic: bool) -> Callable[[Node], NumericPath]:
    def path(c: Node) -> NumericPath:
        inputs, weights = _both_granularities(c, "channel")
        act = Operand("int8", 8, _activation(inputs), symmetric=_symmetric(c, "act_mapping_type"), dynamic=dynamic)
        return quantized(Operand("int8", 8, weights), act)

    return path


def _int8_int4(c: Node) -> NumericPath:
    act = Operand("int8", 8, "token", symmetric=_symmetric(c, "act_mapping_type", False), dynamic=True)
    return quantized(integer(4, _size(c, 32), _symmetric(c, "mapping_type")), act)


def _int8_intx(c: Node) -> NumericPath:
    bits = _intx(c, "weight_dtype", 8)
    weights = _weight(bits, c, "weight_granularity", ("group", 32), _symmetric(c, "weight_mapping_type"))
    return quantized(
        weights, Operand("int8", 8, "token", symmetric=_symmetric(c, "act_mapping_type", False), dynamic=True)
    )


def _intx_weight_only(c: Node) -> NumericPath:
    bits = _intx(c, "weight_dtype", 8)
    return weight_only(_weight(bits, c, "granularity", ("channel", None), _symmetric(c, "mapping_type")))


def _uintx_weight_only(c: Node) -> NumericPath:
    """Older: `dtype` uint1–7 in groups of 64; newer (gemlite): `bit_width` 4 or 8 in groups of 128."""
    bits = c.integer("bit_width") or _intx(c, "dtype", 4)
    symmetric = c.has("bit_width") and bits == 8
    return weight_only(integer(bits, _size(c, 128 if not c.has("dtype") else 64), symmetric))


def _fp8_weight_only(c: Node) -> NumericPath:
    return weight_only(fp8("channel", dtype=_float8(c, "weight_dtype")))


def _fp8_fp8(dynamic: bool) -> Callable[[Node], NumericPath]:
    def path(c: Node) -> NumericPath:
        inputs, weights = _both_granularities(c, "tensor")
        ub = c.number("activation_value_ub")
        if weights == "block":
            return quantized(fp8("block", block=(128, 128)), fp8("group", dynamic, group=128, ub=ub))
        act = fp8(_activation(inputs), dynamic, ub=ub, dtype=_float8(c, "activation_dtype"))
        return quantized(fp8(weights, dtype=_float8(c, "weight_dtype")), act)

    return path


def _fp8_int4(c: Node) -> NumericPath:
    return quantized(integer(4, _size(c, 128)), fp8("token", True))


def _fp8_semi_sparse(c: Node) -> NumericPath:
    return quantized(fp8("channel"), fp8("token", True))


def _mx_mx(c: Node) -> NumericPath:
    weights = _MX.get(_torch(c.raw("weight_dtype")) or "float8_e4m3fn", mxfp8)
    inputs = _MX.get(_torch(c.raw("activation_dtype")) or "float8_e4m3fn", mxfp8)
    return quantized(weights(False), inputs(True))


def _nvfp4(c: Node) -> NumericPath:
    if c.raw("mm_config") in ("WEIGHT_ONLY", "weight_only"):
        return weight_only(nvfp4())
    return quantized(nvfp4(), nvfp4("local"))


def _fpx(c: Node) -> NumericPath:
    exponent, mantissa = c.integer("ebits") or 3, c.integer("mbits") or 2
    bits = 1 + exponent + mantissa
    return weight_only(Operand(f"fp{bits}_e{exponent}m{mantissa}", bits, "channel"))


def _nf4(c: Node) -> NumericPath:
    return weight_only(Operand("nf4", 4, "group", c.integer("block_size") or 64))


TYPES: dict[str, Callable[[Node], NumericPath]] = {
    "Int4WeightOnlyConfig": _int4_weight_only,
    "PrototypeInt4WeightOnlyConfig": _int4_weight_only,
    "Int8WeightOnlyConfig": _int8_weight_only,
    "Int8DynamicActivationInt8WeightConfig": _int8_int8(True),
    "Int8StaticActivationInt8WeightConfig": _int8_int8(False),
    "Int8DynamicActivationInt4WeightConfig": _int8_int4,
    "Int8DynamicActivationIntxWeightConfig": _int8_intx,
    "IntxWeightOnlyConfig": _intx_weight_only,
    "UIntXWeightOnlyConfig": _uintx_weight_only,
    "UIntxWeightOnlyConfig": _uintx_weight_only,
    "GemliteUIntXWeightOnlyConfig": _uintx_weight_only,
    "Float8WeightOnlyConfig": _fp8_weight_only,
    "Float8DynamicActivationFloat8WeightConfig": _fp8_fp8(True),
    "Float8StaticActivationFloat8WeightConfig": _fp8_fp8(False),
    "Float8DynamicActivationFloat8SemiSparseWeightConfig": _fp8_semi_sparse,
    "Float8DynamicActivationInt4WeightConfig": _fp8_int4,
    "MXDynamicActivationMXWeightConfig": _mx_mx,
    "MXFPInferenceConfig": _mx_mx,
    "NVFP4DynamicActivationNVFP4WeightConfig": _nvfp4,
    "NVFP4InferenceConfig": _nvfp4,
    "NVFP4WeightOnlyConfig": lambda c: weight_only(nvfp4()),
    "FPXWeightOnlyConfig": _fpx,
    "NF4WeightOnlyConfig": _nf4,
}
STRINGS: dict[str, str] = {
    "int4_weight_only": "Int4WeightOnlyConfig",
    "int4wo": "Int4WeightOnlyConfig",
    "int8_weight_only": "Int8WeightOnlyConfig",
    "int8wo": "Int8WeightOnlyConfig",
    "int8_dynamic_activation_int8_weight": "Int8DynamicActivationInt8WeightConfig",
    "int8dq": "Int8DynamicActivationInt8WeightConfig",
    "int8_dynamic_activation_int4_weight": "Int8DynamicActivationInt4WeightConfig",
    "uintx_weight_only": "UIntXWeightOnlyConfig",
    "float8_weight_only": "Float8WeightOnlyConfig",
    "float8wo": "Float8WeightOnlyConfig",
    "float8_dynamic_activation_float8_weight": "Float8DynamicActivationFloat8WeightConfig",
    "float8dq": "Float8DynamicActivationFloat8WeightConfig",
    "float8_static_activation_float8_weight": "Float8StaticActivationFloat8WeightConfig",
    "fpx_weight_only": "FPXWeightOnlyConfig",
}
MAPS = ("FqnToConfig", "ModuleFqnToConfig", "AOPerModuleConfig")


def read(block: Node, model: Node) -> Draft:
    """`quant_method: torchao`. Skipped modules are whole components of a dotted name."""
    draft = Draft("torchao")
    draft.skip("component", block.strings("modules_to_not_convert"))
    block.need("quant_type")
    kind = block.raw("quant_type")
    if isinstance(kind, str):
        name = STRINGS.get(kind, kind)
        _one(name, block.node("quant_type_kwargs") or Node({}, block.at("quant_type_kwargs")), draft)
        return draft
    if not isinstance(kind, dict):
        raise CheckpointError("E_TYPE", f"{block.at('quant_type')} must be an object or a string, got {kind_of(kind)}")
    outer = Node(kind, block.at("quant_type"))
    config = outer.node("default") or outer
    config.need("_type")
    _config(config, draft)
    if block.flag("include_input_output_embeddings"):
        draft.note("N_EMBEDDINGS", "input and output embeddings are quantized too")
    return draft


def _config(config: Node, draft: Draft) -> None:
    name = config.text("_type") or ""
    data = config.node("_data") or Node({}, config.at("_data"))
    if name not in MAPS:
        _one(name, data, draft)
        return
    modules = data.node("fqn_to_config", "module_fqn_to_config")
    if modules is None:
        raise CheckpointError("E_KEY", f"{data.at('module_fqn_to_config')} is missing")
    if len(modules.value) > MAX_MODULES:
        raise CheckpointError("E_HUGE", f"{modules.path} names more than {MAX_MODULES:,} modules")
    _modules(modules, draft)


def _modules(modules: Node, draft: Draft) -> None:
    """Module names, `re:` patterns and `_default`; null leaves a module unquantized. Equal configs are one group."""
    found: dict[NumericPath, tuple[str, list[Matcher]]] = {}
    for key in modules:
        target = _target(key)
        config = modules.node(key)
        if config is None:
            draft.ignore.append(target)
            continue
        config.need("_type")
        name = config.text("_type") or ""
        numeric = _numeric(name, config.node("_data") or Node({}, config.at("_data")))
        found.setdefault(numeric, (name, []))[1].append(target)
    check_regexes(modules.path, [*draft.ignore, *(t for _, targets in found.values() for t in targets)])
    for number, (numeric, (name, targets)) in enumerate(found.items()):
        draft.groups.append(group(f"group_{number}", numeric, targets, scope=scope_of(targets), algo=name))


def _target(key: str) -> Matcher:
    if key == "_default":
        return Matcher("class", "Linear")
    return Matcher("regex", key[3:]) if key.startswith("re:") else Matcher("name", key)


def _one(name: str, data: Node, draft: Draft) -> None:
    draft.algo = name
    draft.groups.append(group("default", _numeric(name, data), algo=name))
    if "SemiSparse" in name:
        draft.sparsity = {"sparsity_structure": "2:4"}


def _numeric(name: str, data: Node) -> NumericPath:
    if name not in TYPES:
        from difflib import get_close_matches

        near = get_close_matches(name[:100], [*TYPES, *MAPS, *STRINGS], 1)
        hint = f"; did the writer mean {near[0]}?" if near else ""
        raise CheckpointError("E_ALGO", f"torchao config {show(name)} is not known{hint}")
    return TYPES[name](data)


def _size(c: Node, default: int) -> int:
    size = c.integer("group_size")
    return default if size is None else size


def _symmetric(c: Node, key: str, default: bool = True) -> bool:
    """`mapping_type` is an enum: {"_type": "MappingType", "_data": "SYMMETRIC"}, or its bare name."""
    word = _data(c.raw(key))
    return default if not isinstance(word, str) else not word.upper().startswith("ASYMMETRIC")


def _data(value: Any) -> Any:
    return value.get("_data") if isinstance(value, dict) and "_data" in value else value


def _torch(value: Any) -> str | None:
    word = _data(value)
    return word.removeprefix("torch.") if isinstance(word, str) else None


def _float8(c: Node, key: str) -> str:
    return "fp8_e5m2" if "e5m2" in (_torch(c.raw(key)) or "") else "fp8_e4m3"


def _intx(c: Node, key: str, default: int) -> int:
    word = _torch(c.raw(key))
    if word is None:
        return default
    found = _DTYPE.fullmatch(word)
    if found is None:
        raise CheckpointError("E_VALUE", f"{c.at(key)} is {show(word)}; expected int1 … int8")
    return int(found[1])


def _weight(bits: int, c: Node, key: str, default: tuple[str, int | None], symmetric: bool) -> Operand:
    strategy, size = _granularity(c.raw(key), c.at(key)) if c.has(key) else default
    return Operand(f"int{bits}", bits, strategy, size, None, symmetric)


def _granularity(value: Any, path: str) -> tuple[str, int | None]:
    """A Granularity object as (strategy, group size): PerTensor, PerRow and PerAxis (a weight's channels), PerGroup."""
    name = value.get("_type") if isinstance(value, dict) else value
    data = value.get("_data") if isinstance(value, dict) else None
    node = Node(data if isinstance(data, dict) else {}, path)
    if name in ("PerTensor", "PerRow", "PerAxis", "PerToken", "per_tensor", "per_row"):
        return ("tensor" if name in ("PerTensor", "per_tensor") else "channel"), None
    if name == "PerGroup":
        size = node.integer("group_size")
        if not size or size < 1:
            raise CheckpointError("E_VALUE", f"{path}: PerGroup needs group_size > 0")
        return "group", size
    if name == "PerBlock":
        rows, columns = pair(node.raw("block_size"), f"{path}.block_size")
        return ("group", columns) if rows == 1 else ("block", None)
    raise CheckpointError("E_VALUE", f"{path} is {show(name)}; known: PerTensor, PerRow, PerAxis, PerGroup, PerBlock")


def _both_granularities(c: Node, default: str) -> tuple[str, str]:
    """(activations, weights): one granularity stands for both, a list names activations first."""
    value = _data(c.raw("granularity")) if isinstance(c.raw("granularity"), list) else c.raw("granularity")
    if value is None:
        return default, default
    path = c.at("granularity")
    if isinstance(value, list):
        if len(value) != 2:
            raise CheckpointError("E_VALUE", f"{path} must name activations and weights")
        return _granularity(value[0], path)[0], _granularity(value[1], path)[0]
    found = _granularity(value, path)[0]
    return found, found


def _activation(strategy: str) -> str:
    return "token" if strategy == "channel" else strategy
