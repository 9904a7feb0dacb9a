"""AMD Quark: a global scheme, schemes for layer patterns and layer types, and exclusions.

Quark's words: `per_channel` on activations is per token; a list of two specs is quantized in two stages (fp8 then int4:
INT4 is what is stored; fp4 in groups of 16 then an fp8 scale: NVFP4); `scale_format: e8m0`: groups of 32 are MX.
Source: vLLM model_executor/layers/quantization/quark/quark.py, utils/ocp_mx_utils.py; quark.torch QTensorConfig.
"""

from __future__ import annotations

from collections.abc import Iterator

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.errors import CheckpointError, kind_of, show
from logscan.checkpoint.fields import Node, pair
from logscan.checkpoint.operands import MX_GROUP, NVFP4_GROUP, group, kv, nvfp4
from logscan.checkpoint.targets import check_regexes, glob, scope_of
from logscan.model import Group, KVPromise, Matcher, NumericPath, Operand

MAX_PATTERNS = 100_000
_DTYPES: dict[str, tuple[str, float]] = {
    "fp8_e4m3": ("fp8_e4m3", 8),
    "fp8_e5m2": ("fp8_e5m2", 8),
    "fp6_e2m3": ("fp6_e2m3", 6),
    "fp6_e3m2": ("fp6_e3m2", 6),
    "fp4": ("fp4_e2m1", 4),
    "fp4_e2m1": ("fp4_e2m1", 4),
    **{f"{sign}int{bits}": (f"int{bits}", bits) for sign in ("", "u") for bits in range(2, 9)},
}
_PLAIN = ("float16", "bfloat16", "float32", "fp16", "bf16")
_SCHEMES = {
    "per_tensor": "tensor",
    "per_channel": "channel",
    "per_group": "group",
    "per_block": "block",
    "per_token": "token",
}


def read(block: Node, model: Node) -> Draft:
    """`quant_method: quark`."""
    draft = Draft("quark", producer=_producer(block))
    draft.ignore = [glob(name) for name in block.strings("exclude", "exclude_layers")]
    check_regexes(block.at("exclude"), draft.ignore)
    if not block.has("global_quant_config", "layer_quant_config", "layer_type_quant_config"):
        block.need("global_quant_config")
    everywhere = _scheme(block.node("global_quant_config"))
    if everywhere is not None:
        draft.groups.append(group("global", everywhere))
    draft.groups += _types(block, everywhere)
    draft.groups += _layers(block, everywhere, draft)
    draft.kv = _kv(block, draft)
    if not block.has("export"):
        draft.note("N_NO_EXPORT", "no `export` object: vLLM refuses such a Quark config")
    return draft


def _producer(block: Node) -> str | None:
    version = block.raw("version")
    return f"quark {show(version)[1:-1]}" if isinstance(version, str) else None


def _layers(block: Node, everywhere: NumericPath | None, draft: Draft) -> list[Group]:
    """Patterns whose scheme differs from the global one; patterns without any scheme are exclusions."""
    found: list[Group] = []
    for pattern, scheme in _patterns(block.node("layer_quant_config")):
        numeric = _scheme(scheme)
        if numeric is None:
            if everywhere is not None and not scheme.has("output_tensors"):
                draft.ignore.append(glob(pattern))
        elif numeric != everywhere:
            target = glob(pattern)
            found.append(group(pattern, numeric, (target,), scope=scope_of((target,))))
    check_regexes(block.at("layer_quant_config"), [t for g in found for t in g.targets])
    return found


def _types(block: Node, everywhere: NumericPath | None) -> list[Group]:
    schemes = ((name, _scheme(scheme)) for name, scheme in _patterns(block.node("layer_type_quant_config")))
    return [group(name, n, (Matcher("class", name),)) for name, n in schemes if n is not None and n != everywhere]


def _patterns(node: Node | None) -> Iterator[tuple[str, Node]]:
    if node is None:
        return
    if len(node.value) > MAX_PATTERNS:
        raise CheckpointError("E_HUGE", f"{node.path} holds more than {MAX_PATTERNS:,} patterns")
    for name in node:
        scheme = node.node(name)
        if scheme is not None:
            yield name, scheme


def _scheme(scheme: Node | None) -> NumericPath | None:
    """`weight` and `input_tensors`; None where neither is quantized."""
    if scheme is None:
        return None
    weights, inputs = _spec(scheme, "weight"), _spec(scheme, "input_tensors", activation=True)
    if weights is None and inputs is None:
        return None
    return NumericPath(weights, inputs, "quantized" if inputs else "none")


def _spec(scheme: Node, key: str, activation: bool = False) -> Operand | None:
    value = scheme.raw(key)
    if isinstance(value, list):
        stages = [s for n, item in enumerate(value) if (s := _stage(item, f"{scheme.at(key)}[{n}]", activation))]
        return _staged(stages)
    return _stage(value, scheme.at(key), activation)


def _staged(stages: list[Operand]) -> Operand | None:
    """Several stages as one operand: NVFP4 where FP4 groups come first, else what is stored, the last."""
    if len(stages) > 1 and stages[0].dtype == "fp4_e2m1" and stages[0].strategy == "group":
        return nvfp4("local" if stages[0].dynamic else False, stages[0].group_size or NVFP4_GROUP)
    return stages[-1] if stages else None


def _stage(value: object, path: str, activation: bool) -> Operand | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise CheckpointError("E_TYPE", f"{path} must be an object, got {kind_of(value)}")
    spec = Node(value, path)
    spec.need("dtype")
    word = (spec.text("dtype") or "").lower()
    if word in _PLAIN:
        return None
    if word == "mx":
        word = (spec.text("mx_element_dtype") or "").lower()
        dtype, bits = _dtype(word, spec)
        return Operand(dtype, bits, "group", MX_GROUP, None, True, bool(spec.flag("is_dynamic")), "e8m0")
    element = word.removeprefix("mx") if word.startswith("mxfp") else word
    dtype, bits = _dtype(element, spec)
    strategy = spec.choice("qscheme", _SCHEMES)
    symmetric = not (word.startswith("uint") or spec.flag("symmetric") is False)
    dynamic = bool(spec.flag("is_dynamic"))
    is_e8m0 = (
        word.startswith("mxfp") or spec.raw("scale_format") == "e8m0" or spec.raw("scale_type") == "float8_e8m0fnu"
    )
    scale = "e8m0" if is_e8m0 else None
    if activation and strategy == "channel":
        strategy = "token"
    if strategy == "block":
        return _blocks(spec, dtype, bits, symmetric, dynamic, scale)
    size = spec.integer("group_size") if strategy == "group" else None
    if strategy == "group" and not (size and size > 0):
        raise CheckpointError("E_VALUE", f"{path}: per_group needs group_size > 0")
    return Operand(dtype, bits, strategy, size, None, symmetric, dynamic, scale)


def _dtype(word: str, spec: Node) -> tuple[str, float]:
    if word not in _DTYPES:
        raise CheckpointError("E_VALUE", f"{spec.at('dtype')} is {show(word)}; known: {', '.join(_DTYPES)}")
    return _DTYPES[word]


def _blocks(spec: Node, dtype: str, bits: float, symmetric: bool, dynamic: bool, scale: str | None) -> Operand:
    """`per_block`: 2-D blocks; rows of 32 with e8m0 scales are MXFP8 in another spelling."""
    spec.need("block_size")
    rows, columns = pair(spec.raw("block_size"), spec.at("block_size"))
    if scale == "e8m0" and columns == MX_GROUP:
        return Operand(dtype, bits, "group", MX_GROUP, None, True, dynamic, scale)
    return Operand(dtype, bits, "block", None, (rows, columns), symmetric, dynamic, scale)


def _kv(block: Node, draft: Draft) -> KVPromise | None:
    """The KV promise: the outputs of the layers in `export.kv_cache_group`, or the newer `kv_cache_quant_config`."""
    export = block.node("export")
    named = export.strings("kv_cache_group") if export else ()
    sources = [block.node("layer_quant_config")] if named else []
    for source in (*sources, block.node("kv_cache_quant_config")):
        for _, scheme in _patterns(source):
            operand = _spec(scheme, "output_tensors")
            if operand is not None:
                draft.note(
                    "N_KV_NOT_APPLIED",
                    "vLLM never makes a Quark KV promise the KV cache dtype; ask with --kv-cache-dtype",
                )
                return kv(operand)
    if named:
        draft.note("N_KV_NO_SCHEME", "export.kv_cache_group names layers whose outputs have no scheme")
    return None
