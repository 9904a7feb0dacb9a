"""Which of a promise's groups a log line can belong to, by the layer class, scheme or GEMM name that it prints.

A name tells the weights' format, sometimes the activations', never the layer. A scheme that keeps activations 16-bit
also serves groups that promise more (compressed-tensors falls back to `W8A16Fp8` below SM89), so only names that say
"quantized activations" exclude weight-only groups. Source: vLLM 0.10–0.33, class names under
model_executor/layers/quantization and the `Selected … for …`, `Using … for …` lines that print them.
"""

from __future__ import annotations

import re
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

    name: str  # regex, the whole name
    weights: frozenset[str] | None = None  # format words of labels.format_word
    activations: frozenset[str] | None = None  # likewise; frozenset() = 16-bit only
    quantized: bool | None = None  # True: not a weight-only group
    strategy: str | None = None  # of the weights


SERVED: tuple[Served, ...] = (
    Served(r"CompressedTensorsW8A8Fp8\w*|QuarkW8A8Fp8(?:MoEMethod)?", _FP8, _FP8, True),
    Served(r"QuarkW8A8Fp8PerBlock", _FP8, _FP8, True, "block"),
    Served(r"CompressedTensorsW8A16Fp8\w*", _FP8),
    Served(r"(?:CompressedTensors|Quark)W8A8Int8\w*", frozenset({"INT8"}), frozenset({"INT8"}), True),
    Served(r"CompressedTensorsW4A8Fp8\w*", _INT4, frozenset({"INT8", "FP8"}), True),
    Served(r"CompressedTensorsW4A8Int8?(?:MoEMethod)?", _INT4, frozenset({"INT8"}), True),
    Served(r"CompressedTensorsWNA8Int", _INT, frozenset({"INT8"}), True),
    Served(r"CompressedTensorsWNA8O8Int", _INT),
    Served(r"CompressedTensorsWNA4Int", _INT, _INT4, True),
    Served(r"CompressedTensors(?:WNA16|W4A16Sparse24|W4A16Flydsl|EmbeddingWNA16)\w*", _INT, frozenset()),
    Served(r"CompressedTensorsW4A(?:16Fp4|4Fp4|4Nvfp4\w*|4MoeMethod)", _NVFP4),  # W4A4Fp4 has a use_a16 of its own
    Served(r"CompressedTensorsW4A(?:4|8|16)Mxfp4\w*", _MXFP4),
    Served(r"(?:CompressedTensors|Quark)W8A8Mxfp8\w*|ModelOptMxFp8\w*|INCMxfp8\w*", frozenset({"MXFP8"})),
    Served(r"QuarkNVFP4|QuarkNvfp4\w*", _NVFP4),
    Served(r"QuarkOCP_MX\w*|QuarkW4A4MX\w*", frozenset({"MXFP4", "MXFP6", "MXFP8"})),
    Served(r"QuarkW4A8_MXFP4_FP8", _MXFP4, frozenset({"FP8"}), True),
    Served(r"QuarkW4A16Int4\w*", _INT4, frozenset()),
    Served(r"QuarkW4A8Fp8\w*", _INT4, frozenset({"FP8"}), True),
    Served(r"Fp8(?:Linear|MoE)Method|(?:FBGEMM|PTPC)Fp8LinearMethod|INCFp8\w*", _FP8),
    Served(r"ModelOptFp8(?:Linear|MoE)Method", _FP8, _FP8, True, "tensor"),
    Served(r"ModelOptFp8PcPtLinearMethod", _FP8, _FP8, True, "channel"),
    Served(r"ModelOptFp8PbWoLinearMethod|ModelOptBlockQuant\w*", _FP8, None, None, "block"),
    Served(r"ModelOptNvFp4W4A16LinearMethod", _NVFP4, frozenset()),
    Served(r"ModelOptNvFp4\w*", _NVFP4),
    Served(r"(?:Auto)?AWQ\w*Method|(?:Auto)?GPTQ\w*Method|INC(?:XPU)?W\w*Scheme|MoeWNA16Method|HQQMarlinMethod", _INT),
    Served(r"\w*Mxfp4MoEMethod|INCMxfp4\w*", _MXFP4),
    Served(r"NVFP4 GEMM|FP4", _NVFP4),
    Served(r"MXFP4 GEMM", _MXFP4),
    Served(r"MXFP6 GEMM", frozenset({"MXFP6"})),
    Served(r"MXFP8 GEMM", frozenset({"MXFP8"})),
    Served(r"mixed-precision linear", _INT),
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
    return next((row for row in SERVED if re.fullmatch(row.name, name, re.A)), None)


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
