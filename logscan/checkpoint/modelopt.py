"""NVIDIA ModelOpt: `hf_quant_config.json`, and the inline block that newer exports put into config.json.

`quant_algo` decides. The `config_groups` beside it contradict it (NVFP4 activations written `dynamic: false`, W4A8_AWQ
weights written as float), so they serve only for targets and to tell weight-only exports.
Source: modelopt/torch/export/{quant_utils,convert_hf_config}.py 0.19–0.47; tensorrt_llm QuantAlgo.
"""

from __future__ import annotations

from collections.abc import Callable

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.errors import CheckpointError, kind_of, show
from logscan.checkpoint.fields import Node
from logscan.checkpoint.operands import (
    NVFP4_GROUP,
    Scope,
    fp8,
    group,
    int8_token,
    integer,
    kv,
    mxfp4,
    mxfp8,
    nvfp4,
    quantized,
    unspecified,
    weight_only,
)
from logscan.checkpoint.targets import check_regexes, glob, matcher, scope_of
from logscan.labels import MIXED_LAYERS_NOT_LISTED
from logscan.model import Group, KVPromise, Matcher, NumericPath, Operand

MAX_LAYERS = 1_000_000
_BLOCK = (128, 128)
_INT8_TENSOR = Operand("int8", 8, "tensor")
_INT8 = Operand("int8", 8, "channel")
_Key = tuple[str, int | None, bool, Scope]  # algo, group size, asymmetric, scope

Algo = Callable[[int | None, bool], NumericPath]  # (group_size as named, asymmetric) → path
ALGOS: dict[str, Algo] = {
    "FP8": lambda g, z: quantized(fp8("tensor"), fp8("tensor")),
    "FP8_PER_CHANNEL_PER_TOKEN": lambda g, z: quantized(fp8("channel"), fp8("token", True)),
    "FP8_PB_WO": lambda g, z: weight_only(fp8("block", block=_BLOCK)),
    "FP8_BLOCK_SCALES": lambda g, z: quantized(fp8("block", block=_BLOCK), fp8("group", True, group=128)),
    "FP8_PB_REAL": lambda g, z: quantized(fp8("block", block=_BLOCK), fp8("group", True, group=128)),
    "NVFP4": lambda g, z: quantized(nvfp4(group=g or NVFP4_GROUP), nvfp4("local", g or NVFP4_GROUP)),
    "NVFP4_AWQ": lambda g, z: quantized(nvfp4(group=g or NVFP4_GROUP), nvfp4("local", g or NVFP4_GROUP)),
    "NVFP4_SVD": lambda g, z: quantized(nvfp4(group=g or NVFP4_GROUP), nvfp4("local", g or NVFP4_GROUP)),
    "W4A16_NVFP4": lambda g, z: weight_only(nvfp4(group=g or NVFP4_GROUP)),
    "W4A8_NVFP4_FP8": lambda g, z: quantized(nvfp4(group=g or 32), fp8("tensor")),
    "W4A8_MXFP4_FP8": lambda g, z: quantized(mxfp4(), fp8("tensor")),
    "W4A8_MXFP4_MXFP8": lambda g, z: quantized(mxfp4(), mxfp8(True)),
    "W4A16_MXFP4": lambda g, z: weight_only(mxfp4()),
    "MXFP4": lambda g, z: unspecified(mxfp4()),  # written for weight-only and for W4A4 exports alike
    "MXFP8": lambda g, z: quantized(mxfp8(), mxfp8(True)),
    "W4A16_AWQ": lambda g, z: weight_only(integer(4, g or 128, not z)),
    "W4A8_AWQ": lambda g, z: quantized(integer(4, g or 128, not z), fp8("tensor")),
    "W4A16_GPTQ": lambda g, z: weight_only(integer(4, g or 128, not z)),
    "W8A16_GPTQ": lambda g, z: weight_only(integer(8, g or 128, not z)),
    "W4A8_QSERVE_PER_GROUP": lambda g, z: quantized(integer(4, g or 128, False), int8_token()),
    "W4A8_QSERVE_PER_CHANNEL": lambda g, z: quantized(integer(4, -1, False), int8_token()),
    "W4A16": lambda g, z: weight_only(integer(4, g)),
    "W8A16": lambda g, z: weight_only(integer(8, g)),
    "INT8_WO": lambda g, z: weight_only(_INT8),
    "INT4_WO": lambda g, z: weight_only(integer(4, g)),
    "INT8": lambda g, z: quantized(_INT8, _INT8_TENSOR),
    "INT8_SQ": lambda g, z: quantized(_INT8, _INT8_TENSOR),
    "W8A8_SQ_PER_CHANNEL": lambda g, z: quantized(_INT8, _INT8_TENSOR),
    "W8A8_SQ_PER_TENSOR_PLUGIN": lambda g, z: quantized(_INT8_TENSOR, _INT8_TENSOR),
    "W8A8_SQ_PER_CHANNEL_PER_TOKEN_PLUGIN": lambda g, z: quantized(_INT8, int8_token()),
    "W8A8_SQ_PER_CHANNEL_PER_TENSOR_PLUGIN": lambda g, z: quantized(_INT8, _INT8_TENSOR),
    "W8A8_SQ_PER_TENSOR_PER_TOKEN_PLUGIN": lambda g, z: quantized(_INT8_TENSOR, int8_token()),
    "FP8_PER_CHANNEL_PER_TOKEN_DYNAMIC": lambda g, z: quantized(fp8("channel"), fp8("token", True)),
    "FP8_ROWWISE": lambda g, z: quantized(fp8("channel"), fp8("token", True)),
}
NO_ALGO = ("NO_QUANT", "UNQUANTIZED", "NONE", "")
MIXED = "MIXED_PRECISION"
KV_ALGOS: dict[str, Callable[[], Operand]] = {
    "FP8": lambda: fp8("tensor"),
    "STATIC": lambda: fp8("tensor"),
    "INT8": lambda: _INT8_TENSOR,
    "NVFP4": lambda: nvfp4("local"),
    "NVFP4_AFFINE": lambda: nvfp4("local"),
    "NVFP4_ROTATE": lambda: nvfp4("local"),
}


def read(block: Node, model: Node) -> Draft:
    """An inline block (`quant_method: modelopt`) or a sidecar's content, whose facts sit under `quantization`."""
    outer, inner = block, block.node("quantization") or block
    producer = outer.node("producer") or inner.node("producer")
    draft = Draft("modelopt", producer=_producer(producer))
    facts = _merged(inner, outer)
    skipped = facts.strings("exclude_modules", "ignore", "ignored_layers", "modules_to_not_convert")
    draft.ignore = [glob(name) for name in skipped]
    check_regexes(facts.at("exclude_modules"), draft.ignore)
    algo = (facts.text("quant_algo") or "").upper()
    draft.algo = algo or None
    draft.kv = _kv(facts, draft)
    if algo == MIXED:
        _mixed(facts, draft)
    elif algo not in NO_ALGO:
        draft.groups = _uniform(algo, facts, draft)
    elif draft.kv is None and not facts.has("quant_algo") and not outer.has("quantization", "kv_cache_scheme"):
        raise CheckpointError("E_KEY", f"{facts.at('quant_algo')} is missing")
    if facts.flag("pre_quant_scale") or algo in ("NVFP4_AWQ", "W4A16_AWQ", "W4A8_AWQ"):
        draft.note("N_PRE_QUANT_SCALE", "activations are multiplied by a per-channel smoothing scale before the GEMM")
    if algo == "FP8_PB_WO":
        draft.note(
            "N_PB_WO", "weight-only by its name; vLLM and TensorRT-LLM run it with FP8 activations in groups of 128"
        )
    return draft


def _merged(inner: Node, outer: Node) -> Node:
    """The facts, from `quantization` first; exports are known that put some keys beside it."""
    if inner is outer:
        return inner
    return Node({**outer.value, **{k: v for k, v in inner.value.items() if v is not None}}, inner.path)


def _producer(node: Node | None) -> str | None:
    if node is None:
        return None
    return (
        " ".join(show(part)[1:-1] for part in (node.text("name"), node.raw("version")) if isinstance(part, str)) or None
    )


def _uniform(algo: str, facts: Node, draft: Draft) -> list[Group]:
    numeric = _numeric(algo, facts)
    groups = facts.node("config_groups")
    schemes = [s for name in groups if (s := groups.node(name))] if groups else []
    if (
        algo.startswith("NVFP4")
        and schemes
        and all(s.has("weights") and not s.has("input_activations") for s in schemes)
    ):
        numeric = weight_only(numeric.weights) if numeric.weights else numeric
        draft.note("N_WEIGHT_ONLY_GROUPS", "no group quantizes activations, though quant_algo says so: weight-only")
    targets = [matcher(t) for s in schemes for t in s.strings("targets")]
    check_regexes(facts.at("config_groups"), targets)
    return [group("group_0", numeric, targets, scope=scope_of(targets), algo=algo)]


def _numeric(algo: str, facts: Node) -> NumericPath:
    if algo not in ALGOS:
        raise CheckpointError(
            "E_ALGO", f"{facts.at('quant_algo')} is {show(algo)}, which is no ModelOpt algorithm known here"
        )
    return ALGOS[algo](_group_size(facts), bool(facts.flag("has_zero_point")))


def _group_size(facts: Node) -> int | None:
    size = facts.integer("group_size")
    if size is not None and (size < -1 or size > 1 << 20):
        raise CheckpointError("E_VALUE", f"{facts.at('group_size')} is {size}")
    return None if size in (0, None) else size


def _mixed(facts: Node, draft: Draft) -> None:
    """MIXED_PRECISION: `quantized_layers` names every quantized layer; what it does not name is not quantized."""
    layers = facts.node("quantized_layers")
    if layers is None or not layers.value:
        draft.note(
            "N_MIXED_NO_LAYERS", "MIXED_PRECISION without quantized_layers: which layer promises what is not said"
        )
        draft.label = MIXED_LAYERS_NOT_LISTED
        return
    if len(layers.value) > MAX_LAYERS:
        raise CheckpointError("E_HUGE", f"{layers.path} lists more than {MAX_LAYERS:,} layers")
    found: dict[_Key, list[Matcher]] = {}
    paths: dict[_Key, NumericPath] = {}
    for name in layers:
        layer = layers.node(name)
        algo = ((layer.text("quant_algo") if layer else None) or "").upper()
        if layer is None or algo in NO_ALGO:
            draft.ignore.append(Matcher("name", name))
            continue
        key = (algo, layer.integer("group_size"), bool(layer.flag("has_zero_point")), scope_of([name]))
        if key not in paths:
            paths[key] = _numeric(algo, layer)
            found[key] = []
        found[key].append(Matcher("name", name))
    for number, (key, names) in enumerate(found.items()):
        scope = scope_of(names[:1])
        draft.groups.append(group(f"group_{number}", paths[key], names, scope=scope, algo=key[0]))


def _kv(facts: Node, draft: Draft) -> KVPromise | None:
    """`kv_cache_quant_algo` (sidecar), or `kv_cache_scheme`: an object for FP8, a bare word for the others."""
    key = facts.first("kv_cache_quant_algo", "kv_cache_scheme")
    value = facts.raw(key)
    if value is None:
        return None
    if isinstance(value, dict):
        scheme = Node(value, facts.at(key))
        bits, kind = scheme.integer("num_bits"), scheme.text("type")
        dynamic = scheme.flag("dynamic")
        if bits in (None, 8) and kind in (None, "float"):
            return kv(fp8("tensor", bool(dynamic)))
        if bits == 4 and kind == "float":
            return kv(nvfp4("local"))
        if kind == "int" and bits in (4, 8):
            return kv(Operand(f"int{bits}", bits, "tensor", dynamic=bool(dynamic)))
        raise CheckpointError("E_VALUE", f"{scheme.path} has num_bits {bits} and type {show(kind)}")
    if not isinstance(value, str):
        raise CheckpointError("E_TYPE", f"{facts.at(key)} must be an object or a string, got {kind_of(value)}")
    word = value.upper()
    if word in NO_ALGO:
        return None
    if word not in KV_ALGOS:
        raise CheckpointError("E_ALGO", f"{facts.at(key)} is {show(value)}; known: {', '.join(KV_ALGOS)}")
    return kv(KV_ALGOS[word]())


def read_nvfp4(block: Node, model: Node) -> Draft:
    """transformers' own `quant_method: nvfp4`: the weights are named, the activations are not."""
    draft = Draft("nvfp4")
    draft.skip("substring", block.strings("modules_to_not_convert", "exclude_modules", "ignore"))
    draft.groups = [group("linear", unspecified(nvfp4(group=_group_size(block) or NVFP4_GROUP)))]
    return draft
