"""compressed-tensors (llm-compressor): groups of schemes, each with targets.

Source: compressed_tensors/quantization/quant_{config,scheme,args}.py 0.5–0.20; strategies inferred as
`QuantizationArgs.validate_model_after` does. `format` is how the bytes are packed, never a claim about the GEMM.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.errors import CheckpointError, kind_of, show
from logscan.checkpoint.fields import Node, pair
from logscan.checkpoint.operands import (
    MX_GROUP,
    fp8,
    group,
    integer,
    kv,
    mx,
    mxfp4,
    mxfp8,
    nvfp4,
    quantized,
    weight_only,
)
from logscan.checkpoint.targets import check_regexes, matcher, scope_of
from logscan.model import Group, NumericPath, Operand

MAX_GROUPS = 100_000
_STRATEGIES = {s: s for s in ("tensor", "channel", "group", "block", "token", "tensor_group", "attn_head")}
_TYPES = {"int": "int", "float": "float"}
_FLOATS = {4: "fp4_e2m1", 6: "fp6_e2m3", 8: "fp8_e4m3"}
_SCALES = {"uint8": "e8m0", "float8_e8m0fnu": "e8m0", "float8_e4m3fn": "fp8_e4m3", "float32": "fp32"}


def _token(bits: int, kind: str, symmetric: bool = True) -> Operand:
    dtype = _FLOATS[bits] if kind == "float" else f"int{bits}"
    return Operand(dtype, bits, "token", symmetric=symmetric, dynamic=True)


def _wna16(bits: int, group_size: int, symmetric: bool = True) -> Callable[[], NumericPath]:
    return lambda: weight_only(integer(bits, group_size, symmetric))


def _int(bits: int, activation: int) -> Callable[[], NumericPath]:
    return lambda: quantized(integer(bits, 128), _token(activation, "int"))


_INT8 = Operand("int8", 8, "channel")
_GROUP_FP8 = fp8("group", True, group=128)
PRESETS: dict[str, Callable[[], NumericPath]] = {
    "UNQUANTIZED": lambda: NumericPath(None),
    "FP8": lambda: quantized(fp8("tensor"), fp8("tensor")),
    "FP8_DYNAMIC": lambda: quantized(fp8("channel"), fp8("token", True)),
    "FP8_BLOCK": lambda: quantized(fp8("block", block=(128, 128)), _GROUP_FP8),
    "W8A8": lambda: quantized(_INT8, _token(8, "int")),
    "INT8": lambda: quantized(_INT8, _token(8, "int")),
    **{
        f"W{bits}A{activation}": _int(bits, activation)
        for activation in (4, 8)
        for bits in range(2, min(activation, 7) + 1)
    },
    "W4AFP8": lambda: quantized(integer(4, 128), _token(8, "float")),
    "W4A16_ASYM": _wna16(4, 128, False),
    **{f"W{bits}A16": _wna16(bits, 128) for bits in range(2, 9)},
    "NVFP4": lambda: quantized(nvfp4(), nvfp4("local")),
    "NVFP4A16": lambda: weight_only(nvfp4()),
    "MXFP4": lambda: quantized(mxfp4(), mxfp4(True)),
    "MXFP4A16": lambda: weight_only(mxfp4()),
    "MXFP4XFP8": lambda: quantized(mxfp4(), _GROUP_FP8),
    "MXFP6A16": lambda: weight_only(mx("fp6_e2m3", 6)),
    "MXFP6A8": lambda: quantized(mx("fp6_e2m3", 6), mxfp8(True)),
    "MXFP8": lambda: quantized(mxfp8(), mxfp8(True)),
    "MXFP8A16": lambda: weight_only(mxfp8()),
}


def read(block: Node, model: Node) -> Draft:
    """A `quantization_config` (or `compression_config`) of compressed-tensors."""
    draft = Draft("compressed-tensors", status=block.text("quantization_status"))
    draft.ignore = [matcher(name) for name in block.strings("ignore")]
    check_regexes(block.at("ignore"), draft.ignore)
    if not block.has("config_groups", "kv_cache_scheme", "sparsity_config"):
        block.need("config_groups")
    draft.groups = _groups(block, draft)
    draft.kv = _kv(block)
    _clashes(draft)
    _sparsity(block, draft)
    _transforms(block, draft)
    return draft


def _groups(block: Node, draft: Draft) -> list[Group]:
    groups = block.node("config_groups")
    if groups is None:
        return []
    if len(groups.value) > MAX_GROUPS:
        raise CheckpointError("E_HUGE", f"{groups.path} holds more than {MAX_GROUPS:,} groups")
    form = block.text("format")
    found = (_group(name, groups, form, draft) for name in groups)
    return [g for g in found if g is not None]


def _group(name: str, groups: Node, form: str | None, draft: Draft) -> Group | None:
    if isinstance(groups.value[name], (list, str)):
        return _preset(name, groups, draft)
    scheme = groups.node(name)
    if scheme is None:
        raise CheckpointError("E_TYPE", f"{groups.at(name)} must be an object, got null")
    scheme.need("targets")
    targets = [matcher(t) for t in scheme.strings("targets")]
    check_regexes(scheme.at("targets"), targets)
    form = scheme.text("format") or form
    stored = scheme.node("weights")
    weights = _args(stored, form)
    if stored is not None and stored.raw("actorder") in ("group", "dynamic", True):
        draft.note("N_ACT_ORDER", "act-order with groups (actorder: group), which vLLM refuses from 0.30 on")
    inputs = _args(scheme.node("input_activations"), form, activation=True)
    output = _args(scheme.node("output_activations"), form, activation=True)
    if output is not None:
        draft.note("N_OUTPUT_ACTIVATIONS", f"{show(name)} also promises quantized outputs")
    if weights is None and inputs is None:
        draft.note("N_EMPTY_GROUP", f"{show(name)} quantizes neither weights nor input activations")
        return None
    numeric = NumericPath(weights, inputs, "quantized" if inputs else "none")
    return group(name, numeric, targets, scope=scope_of(targets), storage=form, output=output)


def _preset(name: str, groups: Node, draft: Draft) -> Group | None:
    if name.upper() not in PRESETS:
        raise CheckpointError("E_VALUE", f"{groups.at(name)} is a list, but {show(name)} is no preset scheme")
    numeric = PRESETS[name.upper()]()
    targets = [matcher(t) for t in groups.strings(name)]
    check_regexes(groups.at(name), targets)
    draft.note("N_PRESET", f"{name.upper()} is written by its preset name, which the library expands and vLLM does not")
    return group(name, numeric, targets, scope=scope_of(targets)) if numeric.weights else None


def _args(args: Node | None, form: str | None, activation: bool = False) -> Operand | None:
    """A QuantizationArgs object as an operand; None where it says 16 bits or nothing."""
    if args is None:
        return None
    bits = args.integer("num_bits")
    bits = 8 if bits is None else bits
    kind = args.choice("type", _TYPES) or "int"
    if bits >= 16:
        return None
    dtype = _dtype(bits, kind, args)
    size, dynamic = args.integer("group_size"), _dynamic(args)
    strategy = args.choice("strategy", _STRATEGIES) or ("tensor" if not size else "channel" if size == -1 else "group")
    if strategy == "channel" and activation:
        strategy = "token" if dynamic is True else strategy
    if strategy in ("group", "tensor_group") and (size is None or size <= 0):
        raise CheckpointError("E_VALUE", f"{args.path}: strategy {strategy} needs group_size > 0")
    block = None
    if strategy == "block":
        args.need("block_structure")
        block = pair(args.raw("block_structure"), args.at("block_structure"))
    symmetric = args.flag("symmetric") is not False
    grouped = size if strategy in ("group", "tensor_group") else None
    scale = _scale(args, form, dtype, strategy, grouped)
    return Operand(dtype, bits, strategy, grouped, block, symmetric, dynamic, scale)


def _dtype(bits: int, kind: str, args: Node) -> str:
    if kind == "float" and bits in _FLOATS:
        return _FLOATS[bits]
    if kind == "int" and 1 <= bits <= 8:
        return f"int{bits}"
    raise CheckpointError("E_VALUE", f"{args.at('num_bits')} is {bits} with type {kind}")


def _dynamic(args: Node) -> Any:
    value = args.raw("dynamic")
    if isinstance(value, str):
        return args.choice("dynamic", {"local": "local", "true": True, "false": False})
    return bool(args.flag("dynamic"))


def _scale(args: Node, form: str | None, dtype: str, strategy: str, size: int | None) -> str | None:
    """The scales' type: as named, else as the format implies (e8m0 for floats in groups of 32, as vLLM reads them)."""
    word = args.raw("scale_dtype")
    named = _SCALES.get(word.lower().removeprefix("torch.")) if isinstance(word, str) else None
    if named is None and strategy == "tensor_group":
        return "fp8_e4m3"
    is_mx = dtype == "fp4_e2m1" or (dtype.startswith("fp") and (form or "").startswith("mx"))
    return "e8m0" if named is None and strategy == "group" and size == MX_GROUP and is_mx else named


def _kv(block: Node) -> Any:
    scheme = block.raw("kv_cache_scheme")
    if scheme is None:
        return None
    if not isinstance(scheme, dict):
        raise CheckpointError("E_TYPE", f"{block.at('kv_cache_scheme')} must be an object, got {kind_of(scheme)}")
    operand = _args(Node(scheme, block.at("kv_cache_scheme")), None)
    return kv(operand) if operand else None


def _clashes(draft: Draft) -> None:
    owner: dict[str, str] = {}
    for found in draft.groups:
        for target in found.targets:
            first = owner.setdefault(f"{target.kind}:{target.value}", found.name)
            if first != found.name:
                draft.note(
                    "N_TARGET_CLASH",
                    f"{show(target.value)} is a target of {show(first)} and of {show(found.name)}; vLLM keeps the last",
                )


def _sparsity(block: Node, draft: Draft) -> None:
    sparsity = block.node("sparsity_config")
    if sparsity is None or not sparsity.value:
        return
    facts = {key: sparsity.raw(key) for key in ("format", "sparsity_structure", "global_sparsity") if sparsity.has(key)}
    draft.sparsity = {key: value for key, value in facts.items() if isinstance(value, (str, int, float))}
    if sparsity.text("format") not in (None, "dense"):
        draft.note("N_SPARSITY", f"weights are stored sparse ({show(sparsity.text('format'))})")


def _transforms(block: Node, draft: Draft) -> None:
    transform = block.node("transform_config")
    groups = transform.node("config_groups") if transform else None
    if groups is None:
        return
    for name in groups:
        scheme = groups.node(name)
        kind = scheme.text("type") if scheme else None
        draft.transforms.append(f"{show(name)[1:-1]}:{show(kind or 'unknown')[1:-1]}")
    if draft.transforms:
        draft.note(
            "N_TRANSFORMS", "weights are stored rotated; the promise holds only where the engine applies the transforms"
        )
