"""Which of a promise's groups a log line can belong to, by the layer class, scheme or GEMM name that it prints.

A name tells the weights' format, sometimes the activations', never the layer. A scheme that keeps activations 16-bit
also serves groups that promise more (compressed-tensors falls back to `W8A16Fp8` below SM89), so only names that say
"quantized activations" exclude weight-only groups. Source: vLLM 0.10–0.33, class names under
model_executor/layers/quantization and the `Selected … for …`, `Using … for …` lines that print them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from logscan.labels import format_word
from logscan.model import Group, Promise

_FP8 = frozenset({"FP8", "FP8e5m2"})
_INT = frozenset({"INT2", "INT3", "INT4", "INT5", "INT6", "INT7", "INT8"})
_INT4 = frozenset({"INT4"})
_NVFP4 = frozenset({"NVFP4"})
_MXFP4 = frozenset({"MXFP4"})


class Served(NamedTuple):
    """What a layer or scheme name can serve; None leaves the axis open."""

    names: str  # whole names, apart by `|`; `*` stands for letters, digits and `_`
    weights: frozenset[str] | None = None  # format words of labels.format_word
    activations: frozenset[str] | None = None  # likewise; frozenset() = 16-bit only
    quantized: bool | None = None  # True: not a weight-only group
    strategy: str | None = None  # of the weights


SERVED: tuple[Served, ...] = (
    Served("CompressedTensorsW8A8Fp8*|QuarkW8A8Fp8|QuarkW8A8Fp8MoEMethod", _FP8, _FP8, True),
    Served("QuarkW8A8Fp8PerBlock", _FP8, _FP8, True, "block"),
    Served("CompressedTensorsW8A16Fp8*", _FP8),
    Served("CompressedTensorsW8A8Int8*|QuarkW8A8Int8*", frozenset({"INT8"}), frozenset({"INT8"}), True),
    Served("CompressedTensorsW4A8Fp8*", _INT4, frozenset({"INT8", "FP8"}), True),
    Served(
        "CompressedTensorsW4A8Int|CompressedTensorsW4A8Int8|CompressedTensorsW4A8IntMoEMethod"
        "|CompressedTensorsW4A8Int8MoEMethod",
        _INT4,
        frozenset({"INT8"}),
        True,
    ),
    Served("CompressedTensorsWNA8Int", _INT, frozenset({"INT8"}), True),
    Served("CompressedTensorsWNA8O8Int", _INT),
    Served("CompressedTensorsWNA4Int", _INT, _INT4, True),
    Served(
        "CompressedTensorsWNA16*|CompressedTensorsW4A16Sparse24*|CompressedTensorsW4A16Flydsl*"
        "|CompressedTensorsEmbeddingWNA16*",
        _INT,
        frozenset(),
    ),
    # W4A4Fp4 has a use_a16 of its own
    Served(
        "CompressedTensorsW4A16Fp4|CompressedTensorsW4A4Fp4|CompressedTensorsW4A4Nvfp4*|CompressedTensorsW4A4MoeMethod",
        _NVFP4,
    ),
    Served("CompressedTensorsW4A4Mxfp4*|CompressedTensorsW4A8Mxfp4*|CompressedTensorsW4A16Mxfp4*", _MXFP4),
    Served("CompressedTensorsW8A8Mxfp8*|QuarkW8A8Mxfp8*|ModelOptMxFp8*|INCMxfp8*", frozenset({"MXFP8"})),
    Served("QuarkNVFP4|QuarkNvfp4*", _NVFP4),
    Served("QuarkOCP_MX*|QuarkW4A4MX*", frozenset({"MXFP4", "MXFP6", "MXFP8"})),
    Served("QuarkW4A8_MXFP4_FP8", _MXFP4, frozenset({"FP8"}), True),
    Served("QuarkW4A16Int4*", _INT4, frozenset()),
    Served("QuarkW4A8Fp8*", _INT4, frozenset({"FP8"}), True),
    Served("Fp8LinearMethod|Fp8MoEMethod|FBGEMMFp8LinearMethod|PTPCFp8LinearMethod|INCFp8*", _FP8),
    Served("ModelOptFp8LinearMethod|ModelOptFp8MoEMethod", _FP8, _FP8, True, "tensor"),
    Served("ModelOptFp8PcPtLinearMethod", _FP8, _FP8, True, "channel"),
    Served("ModelOptFp8PbWoLinearMethod|ModelOptBlockQuant*", _FP8, None, None, "block"),
    Served("ModelOptNvFp4W4A16LinearMethod", _NVFP4, frozenset()),
    Served("ModelOptNvFp4*", _NVFP4),
    Served(
        "AWQ*Method|AutoAWQ*Method|GPTQ*Method|AutoGPTQ*Method|INCW*Scheme|INCXPUW*Scheme|MoeWNA16Method"
        "|HQQMarlinMethod",
        _INT,
    ),
    Served("*Mxfp4MoEMethod|INCMxfp4*", _MXFP4),
    Served("NVFP4 GEMM|FP4", _NVFP4),
    Served("MXFP4 GEMM", _MXFP4),
    Served("MXFP6 GEMM", frozenset({"MXFP6"})),
    Served("MXFP8 GEMM", frozenset({"MXFP8"})),
    Served("mixed-precision linear", _INT),
)


def groups_for(promise: Promise, layer_class: str, path: str | None = None) -> tuple[Group, ...]:
    """The groups of `promise` that a line naming `layer_class` can be about; a name that tells nothing keeps them all.

    `path`: `linear` `moe` `attention` narrows to the groups that speak there: experts have their own groups, else the
    generic ones. Empty when the name contradicts every group.
    """
    groups = tuple(g for g in promise.groups if _on_path(promise, g, path))
    row = served(layer_class)
    return groups if row is None else tuple(g for g in groups if _fits(g, row))


def contradicts(promise: Promise, layer_class: str) -> bool:
    """Whether a name tells a format of the weights that no group of `promise` has."""
    row = served(layer_class)
    if row is None or row.weights is None:
        return False
    formats = {format_word(g.numeric.weights) for g in promise.groups if g.numeric.weights is not None}
    return bool(formats) and not formats & row.weights


@lru_cache(maxsize=256)
def served(layer_class: str) -> Served | None:
    """The row of a layer, scheme or GEMM name; None for bare layer classes (`QKVParallelLinear`) and unknown names."""
    name = layer_class.strip()
    return next((row for row in SERVED if any(_is(name, known) for known in row.names.split("|"))), None)


def _is(name: str, known: str) -> bool:
    """Whether a name is a known one. (Thirty regexes would take longer to compile than the rest of a judgement.)"""
    head, star, tail = known.partition("*")
    if not star:
        return name == known
    between = name[len(head) : len(name) - len(tail)]
    whole = name.startswith(head) and name.endswith(tail) and len(name) >= len(head) + len(tail)
    return whole and between.isascii() and (not between or f"_{between}".isidentifier())


def _on_path(promise: Promise, group: Group, path: str | None) -> bool:
    if path in (None, "kv_cache"):
        return True
    if path == "moe":
        own = any(g.scope == "moe_experts" for g in promise.groups)
        return group.scope == ("moe_experts" if own else "linear")
    return group.scope == path


def _fits(group: Group, row: Served) -> bool:
    weights, inputs = group.numeric.weights, group.numeric.input
    claim = group.numeric.input_claim
    if row.weights is not None and (weights is None or format_word(weights) not in row.weights):
        return False
    if row.strategy is not None and weights is not None and weights.strategy not in (None, row.strategy):
        return False
    if row.quantized and claim == "none":
        return False
    if row.activations is None or claim == "unspecified":
        return True
    word = format_word(inputs) if inputs is not None and claim == "quantized" else None
    return word in row.activations if row.activations else word is None
