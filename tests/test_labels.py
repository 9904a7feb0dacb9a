"""The grammar of labels, word for word."""

from __future__ import annotations

from typing import Any

import pytest

from logscan.labels import format_word, join_labels, kv_label, operand_label, path_label, promise_label
from logscan.model import Group, KVPromise, NumericPath, Operand

FP8 = Operand("fp8_e4m3", 8, "channel")
TOKEN = Operand("fp8_e4m3", 8, "token", dynamic=True)
TENSOR = Operand("fp8_e4m3", 8, "tensor")
NVFP4 = Operand("fp4_e2m1", 4, "tensor_group", 16, scale_dtype="fp8_e4m3")
MXFP4 = Operand("fp4_e2m1", 4, "group", 32, scale_dtype="e8m0")
MXFP8 = Operand("fp8_e4m3", 8, "group", 32, scale_dtype="e8m0")
INT4 = Operand("int4", 4, "group", 128)
BF16 = Operand("bf16", 16)


def changed(operand: Operand, **fields: Any) -> Operand:
    return operand._replace(**fields)


PATHS = {
    "W8A16-FP8 per-channel": NumericPath(FP8),
    "W8A8-FP8 per-channel/per-token-dynamic": NumericPath(FP8, TOKEN, "quantized"),
    "W8A8-FP8 per-tensor/per-tensor-static": NumericPath(TENSOR, TENSOR, "quantized"),
    "W8A8-FP8 per-tensor/per-tensor-dynamic": NumericPath(TENSOR, changed(TENSOR, dynamic=True), "quantized"),
    "W8A8-FP8 per-tensor/unspecified-dynamic": NumericPath(TENSOR, changed(TOKEN, strategy=None), "quantized"),
    "W8A8-FP8 per-tensor/per-token-unspecified": NumericPath(TENSOR, changed(TOKEN, dynamic=None), "quantized"),
    "W8A8-FP8 block128x64/g64-dynamic": NumericPath(
        changed(FP8, strategy="block", block=(128, 64)), changed(TOKEN, strategy="group", group_size=64), "quantized"
    ),
    "W8A8-FP8e5m2-FP8 per-tensor/per-tensor-static": NumericPath(
        changed(TENSOR, dtype="fp8_e5m2"), TENSOR, "quantized"
    ),
    "W8A16-FP8": NumericPath(changed(FP8, strategy=None)),
    "W4A16-INT4 g128": NumericPath(INT4),
    "W4A16-INT4 g128 asym": NumericPath(changed(INT4, symmetric=False)),
    "W4A8-INT4-FP8 g128/per-token-dynamic": NumericPath(INT4, TOKEN, "quantized"),
    "W4A8-INT4-INT8 g128/per-token-dynamic asym": NumericPath(
        INT4, Operand("int8", 8, "token", symmetric=False, dynamic=True), "quantized"
    ),
    "W4A16-NVFP4 g16": NumericPath(NVFP4),
    "W4A4-NVFP4 g16": NumericPath(NVFP4, changed(NVFP4, dynamic="local"), "quantized"),
    "W4A4-NVFP4 g16/g16-static": NumericPath(NVFP4, NVFP4, "quantized"),
    "W4A4-NVFP4 g16/g32-local": NumericPath(NVFP4, changed(NVFP4, dynamic="local", group_size=32), "quantized"),
    "W4A8-NVFP4-FP8 g16/per-tensor-static": NumericPath(NVFP4, TENSOR, "quantized"),
    "W4A?-MXFP4 g32": NumericPath(MXFP4, None, "unspecified"),
    "W4A4-MXFP4 g32": NumericPath(MXFP4, changed(MXFP4, dynamic=True), "quantized"),
    "W4A8-MXFP4-MXFP8 g32/g32-dynamic": NumericPath(MXFP4, changed(MXFP8, dynamic=True), "quantized"),
    "W8A8-MXFP8 g32": NumericPath(MXFP8, changed(MXFP8, dynamic=True), "quantized"),
    "W8A8-MXFP8 g32/g32-static": NumericPath(MXFP8, MXFP8, "quantized"),
    "W6A16-MXFP6 g32": NumericPath(changed(MXFP4, dtype="fp6_e2m3", bits=6)),
    "W4A16-FP4 g64": NumericPath(changed(MXFP4, group_size=64)),
    "W1.58A8-TERNARY-INT8 per-tensor/per-token-dynamic": NumericPath(
        Operand("ternary", 1.58, "tensor"), Operand("int8", 8, "token", dynamic=True), "quantized"
    ),
    "W1.33A16-CB g6": NumericPath(Operand("codebook", 8 / 6, "group", 6)),
    "W4A16-NF4 g64": NumericPath(Operand("nf4", 4, "group", 64)),
    "W16A8-FP8 per-head-static": NumericPath(None, changed(TENSOR, strategy="attn_head"), "quantized"),
    "BF16": NumericPath(BF16),
    "FP16": NumericPath(Operand("fp16", 16)),
    "FP32": NumericPath(Operand("fp32", 32)),
    "UNQUANTIZED": NumericPath(None),
}


@pytest.mark.parametrize("label", PATHS)
def test_path_label(label: str) -> None:
    assert path_label(PATHS[label]) == label


def test_every_axis_shows_in_the_label() -> None:
    assert len({path_label(p) for p in PATHS.values()}) == len(PATHS)


def test_an_input_without_the_claim_is_not_written() -> None:
    assert path_label(NumericPath(FP8, TOKEN, "none")) == "W8A16-FP8 per-channel"
    assert path_label(NumericPath(FP8, None, "quantized")) == "W8A?-FP8 per-channel"


@pytest.mark.parametrize(
    ("operand", "label"),
    [
        (TENSOR, "FP8 per-tensor-static"),
        (changed(TENSOR, strategy="attn_head"), "FP8 per-head-static"),
        (changed(TENSOR, dynamic=True), "FP8 per-tensor-dynamic"),
        (changed(NVFP4, dynamic="local"), "NVFP4 g16-local"),
        (Operand("int8", 8, "tensor", symmetric=False), "INT8 per-tensor-static asym"),
        (Operand("fp8_e5m2", 8, None, dynamic=None), "FP8e5m2"),
        (Operand("fp8_e4m3", 8, None, dynamic=False), "FP8 unspecified-static"),
        (BF16, "BF16"),
    ],
)
def test_kv_label(operand: Operand, label: str) -> None:
    assert kv_label(operand) == operand_label(operand) == label


def test_format_word_tells_mx_from_plain_groups() -> None:
    assert format_word(MXFP8) == "MXFP8"
    assert format_word(changed(MXFP8, scale_dtype=None)) == "FP8"
    assert format_word(changed(MXFP8, group_size=128)) == "FP8"
    assert format_word(changed(MXFP4, dtype="int4")) == "MXINT4"


def group(name: str, numeric: NumericPath) -> Group:
    return Group(name, "linear", (), numeric, path_label(numeric))


def test_promise_label() -> None:
    fp8, nvfp4, int4 = (group(str(n), NumericPath(o)) for n, o in enumerate((FP8, NVFP4, INT4)))
    kv = KVPromise(TENSOR, kv_label(TENSOR))
    assert promise_label([fp8], None) == "W8A16-FP8 per-channel"
    assert promise_label([fp8, fp8], kv) == "W8A16-FP8 per-channel +KV-FP8 per-tensor-static"
    assert promise_label([nvfp4, fp8, nvfp4], None) == "MIXED(W4A16-NVFP4 g16 + W8A16-FP8 per-channel)"
    assert promise_label([], kv) == "UNQUANTIZED +KV-FP8 per-tensor-static"
    assert promise_label([], None, "BF16") == "BF16"
    assert promise_label([fp8, nvfp4, int4], None).count(" + ") == 2


def test_more_than_three_groups_are_counted() -> None:
    assert join_labels("abc") == "MIXED(a + b + c)"
    assert join_labels("abcabd") == "MIXED(a + b + c + 1 more)"
    assert join_labels("abcdef", "FP8") == "MIXED(a + b + c + 3 more) +KV-FP8"
