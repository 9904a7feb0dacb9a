from __future__ import annotations

import pytest

from logscan.judge import compare
from logscan.model import NumericPath, Operand

FP8_CHANNEL = Operand("fp8_e4m3", 8, "channel")
FP8_TOKEN = Operand("fp8_e4m3", 8, "token", dynamic=True)
FP8_TENSOR = Operand("fp8_e4m3", 8, "tensor", dynamic=True)
FP8_UNNAMED = Operand("fp8_e4m3", 8, None, dynamic=True)
FP8_G128 = Operand("fp8_e4m3", 8, "group", 128, dynamic=True)
FP8_BLOCK = Operand("fp8_e4m3", 8, "block", block=(128, 128))
INT8_TOKEN = Operand("int8", 8, "token", dynamic=True)
INT4_G32, INT4_G128 = Operand("int4", 4, "group", 32), Operand("int4", 4, "group", 128)
NVFP4 = Operand("fp4_e2m1", 4, "tensor_group", 16, scale_dtype="fp8_e4m3")
BF16 = Operand("bf16", 16)

W8A8_TOKEN = NumericPath(FP8_CHANNEL, FP8_TOKEN, "quantized")
W8A16 = NumericPath(FP8_CHANNEL)
W4A4 = NumericPath(NVFP4, NVFP4, "quantized")
W8A8_TENSOR = NumericPath(FP8_CHANNEL, FP8_TENSOR, "quantized")
W8A8_UNNAMED = NumericPath(FP8_CHANNEL, FP8_UNNAMED, "quantized")
BLOCK_G128, BLOCK_TOKEN = NumericPath(FP8_BLOCK, FP8_G128, "quantized"), NumericPath(FP8_BLOCK, FP8_TOKEN, "quantized")
W4A8_INT, W4A8_FP8 = NumericPath(INT4_G128, INT8_TOKEN, "quantized"), NumericPath(INT4_G128, FP8_TOKEN, "quantized")
W4A16 = NumericPath(NVFP4)


@pytest.mark.parametrize(
    ("wanted", "ran", "compute", "kinds"),
    [
        (W8A8_TOKEN, W8A8_TOKEN, "native", ()),
        (W8A8_TOKEN, W8A16, "weight-only", ("weight-only",)),
        (W8A8_TOKEN, W8A8_TENSOR, "native", ("coarser-scales",)),
        (W8A8_UNNAMED, W8A8_TENSOR, "native", ()),
        (W8A8_TENSOR, W8A8_TOKEN, "native", ()),
        (BLOCK_G128, BLOCK_TOKEN, "native", ("coarser-scales",)),
        (BLOCK_TOKEN, BLOCK_G128, "native", ()),
        (W4A4, W4A16, "weight-only", ("weight-only",)),
        (W4A4, NumericPath(NVFP4, FP8_TOKEN, "quantized"), "native", ("type-changed",)),
        (W4A4, W4A4, "emulated", ("emulated",)),
        (W4A16, W4A16, "weight-only", ()),
        (W4A16, W4A4, "native", ("fewer-bits",)),
        (NumericPath(NVFP4, None, "unspecified"), W4A16, "weight-only", ()),
        (NumericPath(NVFP4, None, "unspecified"), W4A4, "native", ()),
        (NumericPath(INT4_G32), NumericPath(INT4_G128), "weight-only", ("coarser-scales",)),
        (NumericPath(INT4_G128), NumericPath(INT4_G32), "weight-only", ()),
        (W8A8_TOKEN, NumericPath(None), "native", ("ignored",)),
        (W8A8_TOKEN, NumericPath(BF16), "native", ("ignored",)),
        (W4A8_INT, W4A8_FP8, "native", ("type-changed",)),
        (W8A8_TOKEN, NumericPath(FP8_CHANNEL, None, "unspecified"), "native", ()),
    ],
)  # fmt: skip
def test_kinds(wanted: NumericPath, ran: NumericPath, compute: str, kinds: tuple[str, ...]) -> None:
    assert compare.kinds(wanted, ran, compute) == kinds


@pytest.mark.parametrize(
    ("wanted", "ran", "kinds"),
    [
        (FP8_TENSOR, FP8_TENSOR, ()),
        (FP8_TENSOR, BF16, ("ignored",)),
        (BF16, FP8_TENSOR, ("fewer-bits",)),
        (BF16, BF16, ()),
        (FP8_TENSOR, NVFP4, ("fewer-bits",)),
        (NVFP4, FP8_TENSOR, ("type-changed",)),
        (Operand("fp8_e5m2", 8), Operand("fp8_e4m3", 8), ("type-changed",)),
    ],
)
def test_kv_kinds(wanted: Operand, ran: Operand, kinds: tuple[str, ...]) -> None:
    assert compare.kv_kinds(wanted, ran) == kinds
