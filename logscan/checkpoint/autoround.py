"""AutoRound (Intel): one scheme for all blocks, overrides for named layers, activations in `act_*`.

Source: auto_round/schemes.py and export/export_to_autoround 0.5–0.16; vLLM model_executor/layers/quantization/inc.
"""

from __future__ import annotations

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.errors import CheckpointError, show
from logscan.checkpoint.fields import Node, pair
from logscan.checkpoint.operands import MX_GROUP, group, grouping, nvfp4
from logscan.checkpoint.targets import check_regexes, scope_of
from logscan.model import Matcher, NumericPath, Operand

MAX_LAYERS = 1_000_000
_KEYS = (
    "bits",
    "group_size",
    "sym",
    "data_type",
    "act_bits",
    "act_group_size",
    "act_sym",
    "act_data_type",
    "act_dynamic",
)
_MX = {4: "fp4_e2m1", 6: "fp6_e3m2", 8: "fp8_e4m3"}
_REGEX_MARKS = frozenset(r"*+?^$()[]{}|\\")


def read(block: Node, model: Node) -> Draft:
    """`quant_method: auto-round` (vLLM's `inc`)."""
    draft = Draft("auto-round", producer=_producer(block))
    block.need("bits")
    everywhere = _numeric(block)
    if everywhere is not None:
        draft.groups.append(group("blocks", everywhere, storage=block.text("packing_format")))
    _extra(block, everywhere, draft)
    if _raw_method(block) == "intel/auto-round":
        draft.note("N_OLD_NAME", "quant_method `intel/auto-round` is an old writer's; vLLM only knows `auto-round`")
    return draft


def _raw_method(block: Node) -> str:
    return (block.text("quant_method") or "").lower()


def _producer(block: Node) -> str | None:
    version = block.raw("autoround_version")
    return f"auto-round {show(version)[1:-1]}" if isinstance(version, str) else None


def _extra(block: Node, everywhere: NumericPath | None, draft: Draft) -> None:
    """`extra_config`: layers (or regexes) whose keys override the block's; 16 bits leaves a layer unquantized."""
    extra = block.node("extra_config")
    if extra is None:
        return
    if len(extra.value) > MAX_LAYERS:
        raise CheckpointError("E_HUGE", f"{extra.path} names more than {MAX_LAYERS:,} layers")
    base = {key: block.value[key] for key in _KEYS if block.value.get(key) is not None}
    found: dict[NumericPath, list[Matcher]] = {}
    for name in extra:
        layer = extra.node(name)
        if layer is None:
            continue
        target = Matcher("regex" if _REGEX_MARKS & set(name) else "name", name)
        overrides = {key: layer.value[key] for key in _KEYS if layer.value.get(key) is not None}
        numeric = _numeric(Node({**base, **overrides}, layer.path))
        if numeric is None:
            draft.ignore.append(target)
        elif numeric != everywhere:
            found.setdefault(numeric, []).append(target)
    for number, (numeric, targets) in enumerate(found.items()):
        draft.groups.append(group(f"extra_{number}", numeric, targets, scope=scope_of(targets)))
    check_regexes(extra.path, [*draft.ignore, *(t for targets in found.values() for t in targets)])


def _numeric(scheme: Node) -> NumericPath | None:
    weights = _operand(scheme, "")
    if weights is None:
        return None
    inputs = _operand(scheme, "act_")
    return NumericPath(weights, inputs, "quantized" if inputs else "none")


def _operand(scheme: Node, prefix: str) -> Operand | None:
    """Weights (`""`) or activations (`"act_"`); None where they stay 16-bit."""
    bits = scheme.integer(f"{prefix}bits")
    if bits is None or bits >= 16:
        return None
    word = (scheme.text(f"{prefix}data_type") or scheme.text("data_type") or "int").lower()
    size = scheme.raw(f"{prefix}group_size") if scheme.has(f"{prefix}group_size") else scheme.raw("group_size")
    dynamic = bool(prefix) and scheme.flag(f"{prefix}dynamic") is not False
    if word.startswith(("nv_fp", "nvfp")):
        return nvfp4("local" if prefix else False)
    if word.startswith("mx_"):
        dtype = f"int{bits}" if word.startswith("mx_int") else _MX.get(bits)
        if dtype is None:
            raise CheckpointError("E_VALUE", f"{scheme.at(prefix + 'bits')} is {bits} with data_type {show(word)}")
        return Operand(dtype, bits, "group", MX_GROUP, None, True, dynamic, "e8m0")
    return _scaled(scheme, prefix, word, bits, size, dynamic)


def _scaled(scheme: Node, prefix: str, word: str, bits: int, size: object, dynamic: bool) -> Operand:
    dtype = _dtype(scheme, prefix, word, bits)
    symmetric = (
        scheme.flag(f"{prefix}sym") is not False if scheme.has(f"{prefix}sym") else scheme.flag("sym") is not False
    )
    if word.startswith("fp"):
        symmetric = True
    if isinstance(size, list):
        block = pair(size, scheme.at(f"{prefix}group_size"))
        return Operand(dtype, bits, "block", None, block, symmetric, dynamic)
    number = scheme.integer(f"{prefix}group_size" if scheme.has(f"{prefix}group_size") else "group_size")
    strategy, grouped = grouping(number, scheme.at(f"{prefix}group_size"))
    if prefix and strategy == "channel":
        strategy = "token"
    return Operand(dtype, bits, strategy, grouped, None, symmetric, dynamic)


def _dtype(scheme: Node, prefix: str, word: str, bits: int) -> str:
    if word.startswith("int") and 1 <= bits <= 8:
        return f"int{bits}"
    if word.startswith("fp") and bits == 8:
        return "fp8_e5m2" if "e5m2" in word else "fp8_e4m3"
    raise CheckpointError("E_VALUE", f"{scheme.at(prefix + 'data_type')} is {show(word)} with {bits} bits")
