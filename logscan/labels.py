"""The one grammar of labels: how a numeric path is written, be it asked, promised or run.

```
promise := group | "MIXED(" group " + " group … ")" [" +KV-" kv]      at most three distinct groups, then "N more"
group   := "W" bits "A" (bits | "16" | "?") "-" FMT ["-" AFMT] " " wgran [" asym"] ["/" agran "-" dyn [" asym"]]
wgran   := per-tensor | per-channel | gN | blockNxK
agran   := per-tensor | per-token | gN | per-head | unspecified
dyn     := static | dynamic | local | unspecified
kv      := FMT " " agran "-" dyn
```

A 16-bit path is `BF16`, `FP16` or `FP32`. The activation part is left out where it is the format's own partner
(NVFP4 with locally scaled NVFP4, MXFP4 with MXFP4 …).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logscan.model import Group, KVPromise, NumericPath, Operand

MIXED_LAYERS_NOT_LISTED = "MIXED(layers not listed)"
UNQUANTIZED = "UNQUANTIZED"
SIXTEEN_BIT = {"bf16": "BF16", "fp16": "FP16", "fp32": "FP32"}

_SHOWN_GROUPS = 3
_FORMATS = {
    "fp8_e4m3": "FP8",
    "fp8_e5m2": "FP8e5m2",
    "fp6_e2m3": "FP6",
    "fp6_e3m2": "FP6",
    "fp4_e2m1": "FP4",
    "codebook": "CB",
}
_MX = {
    "fp8_e4m3": "MXFP8",
    "fp8_e5m2": "MXFP8",
    "fp6_e2m3": "MXFP6",
    "fp6_e3m2": "MXFP6",
    "fp4_e2m1": "MXFP4",
    "int8": "MXINT8",
    "int4": "MXINT4",
}
_DYNAMIC = {True: "dynamic", False: "static", "local": "local", None: "unspecified"}
_STRATEGIES = {
    "tensor": "per-tensor",
    "channel": "per-channel",
    "token": "per-token",
    "attn_head": "per-head",
    None: "unspecified",
}


def format_word(operand: Operand) -> str:
    """`FP8`, `INT4`, `NVFP4`, `MXFP4` …: the number format and its scaling recipe, without granularity."""
    if operand.dtype == "fp4_e2m1" and operand.strategy == "tensor_group":
        return "NVFP4"
    if operand.strategy == "group" and operand.group_size == 32 and operand.scale_dtype == "e8m0":
        return _MX.get(operand.dtype, operand.dtype.upper())
    return _FORMATS.get(operand.dtype, operand.dtype.upper())


def granularity_word(operand: Operand) -> str:
    """`per-tensor`, `per-channel`, `per-token`, `per-head`, `g128`, `block128x128` or `unspecified`."""
    if operand.strategy in ("group", "tensor_group"):
        return f"g{operand.group_size}" if operand.group_size else "unspecified"
    if operand.strategy == "block":
        return f"block{operand.block[0]}x{operand.block[1]}" if operand.block else "unspecified"
    return _STRATEGIES.get(operand.strategy, str(operand.strategy))


def operand_label(operand: Operand) -> str:
    """One operand by itself, as in `FP8 per-token-dynamic` or `INT4 g128-static asym`."""
    if operand.dtype in SIXTEEN_BIT:
        return SIXTEEN_BIT[operand.dtype]
    if operand.strategy is None and operand.dynamic is None:
        return format_word(operand)
    return f"{format_word(operand)} {_scaling(operand)}"


def kv_label(operand: Operand) -> str:
    """The KV cache: `FP8 per-tensor-static`, `NVFP4 g16-local`, `BF16`; just `FP8` where only the type was named."""
    return operand_label(operand)


def path_label(path: NumericPath) -> str:
    """Weights and activations of one path: `W8A8-FP8 per-channel/per-token-dynamic`, `W4A16-NVFP4 g16`, `BF16`."""
    weights, inputs = path.weights, path.input if path.input_claim == "quantized" else None
    if weights is None:
        return f"W16A{_bits(inputs.bits)}-{operand_label(inputs)}" if inputs else UNQUANTIZED
    if weights.dtype in SIXTEEN_BIT and inputs is None:
        return SIXTEEN_BIT[weights.dtype]
    activation = _bits(inputs.bits) if inputs else {"none": "16"}.get(path.input_claim, "?")
    head = f"W{_bits(weights.bits)}A{activation}-{format_word(weights)}"
    if inputs and format_word(inputs) != format_word(weights):
        head += f"-{format_word(inputs)}"
    where = granularity_word(weights) + _asym(weights)
    if inputs and not _is_own_partner(weights, inputs):
        where += f"/{_scaling(inputs)}"
    elif weights.strategy is None and weights.symmetric is not False:
        return head
    return f"{head} {where}"


def promise_label(groups: Sequence[Group], kv: KVPromise | None, unquantized: str = UNQUANTIZED) -> str:
    """The whole promise; `unquantized` is the word for a promise without groups (`BF16` where nothing is quantized)."""
    return join_labels((g.label for g in groups), kv.label if kv else None, unquantized)


def join_labels(labels: Iterable[str], kv: str | None = None, unquantized: str = UNQUANTIZED) -> str:
    """Distinct group labels in order of appearance as one promise label."""
    distinct = list(dict.fromkeys(labels))
    if len(distinct) > 1:
        more = [f"{len(distinct) - _SHOWN_GROUPS} more"] if len(distinct) > _SHOWN_GROUPS else []
        body = f"MIXED({' + '.join(distinct[:_SHOWN_GROUPS] + more)})"
    else:
        body = distinct[0] if distinct else unquantized
    return f"{body} +KV-{kv}" if kv else body


def _scaling(operand: Operand) -> str:
    return f"{granularity_word(operand)}-{_DYNAMIC[operand.dynamic]}{_asym(operand)}"


def _asym(operand: Operand) -> str:
    return " asym" if operand.symmetric is False else ""


def _bits(bits: float) -> str:
    return f"{round(bits, 2):g}"


def _is_own_partner(weights: Operand, inputs: Operand) -> bool:
    word = format_word(weights)
    if not word.startswith(("NVFP4", "MX")) or format_word(inputs) != word or inputs.group_size != weights.group_size:
        return False
    return inputs.dynamic == ("local" if word == "NVFP4" else True)
