"""Orders, machines and outcomes for tests of the tables, in few words."""

from __future__ import annotations

from typing import Any

from logscan.judge.derive import derive
from logscan.judge.knowledge import tables
from logscan.model import Machine, NumericPath, Operand, Order, Outcome

FP8 = {"tensor": Operand("fp8_e4m3", 8, "tensor"), "channel": Operand("fp8_e4m3", 8, "channel")}
TOKEN = Operand("fp8_e4m3", 8, "token", dynamic=True)
TENSOR_DYNAMIC = Operand("fp8_e4m3", 8, "tensor", dynamic=True)
BLOCK = NumericPath(
    Operand("fp8_e4m3", 8, "block", block=(128, 128)), Operand("fp8_e4m3", 8, "group", 128, dynamic=True), "quantized"
)
DYNAMIC = NumericPath(FP8["tensor"], Operand("fp8_e4m3", 8, None, dynamic=True), "quantized")  # native: no granularity
STATIC = NumericPath(FP8["tensor"], FP8["tensor"], "quantized")
CHANNEL_TOKEN = NumericPath(FP8["channel"], TOKEN, "quantized")
NVFP4 = NumericPath(
    Operand("fp4_e2m1", 4, "tensor_group", 16, scale_dtype="fp8_e4m3"),
    Operand("fp4_e2m1", 4, "tensor_group", 16, dynamic="local", scale_dtype="fp8_e4m3"),
    "quantized",
)
MXFP4 = Operand("fp4_e2m1", 4, "group", 32, scale_dtype="e8m0")
MXFP8 = Operand("fp8_e4m3", 8, "group", 32, scale_dtype="e8m0")
MX_IN = {"mxfp4": MXFP4._replace(dynamic=True), "mxfp8": MXFP8._replace(dynamic=True)}
INT8 = NumericPath(Operand("int8", 8, "channel"), Operand("int8", 8, "token", dynamic=True), "quantized")
W4A16 = NumericPath(Operand("int4", 4, "group", 128))
KV_FP8 = Operand("fp8_e4m3", 8, "tensor")
CT, MO = "compressed-tensors", "modelopt"
ALL = ("flashinfer", "deep_gemm", "humming")
NOT_SUPPORTED = "The quantization method modelopt is not supported for the current GPU."


def order(method: str, numeric: NumericPath | None, path: Any = "linear", **more: Any) -> Order:
    return Order(path, more.pop("group", "group_0"), method, numeric, **more)


def machine(sm: int | None = 90, cuda: tuple[int, int] | None = (13, 0), have: Any = None, **env: str) -> Machine:
    names = (
        "flashinfer",
        "deep_gemm",
        "humming",
        "b12x",
        "conch",
        "fbgemm_gpu",
        "quark",
        "bitblas",
        "aiter",
        "tokenspeed_mla",
    )
    packages = {} if have is None else {p: p in have for p in names}
    return Machine("cuda", None, sm, None, cuda, packages, env)


def outcomes(release: str, ordered: Order, on: Machine) -> tuple[Outcome, ...]:
    return derive(ordered, on, (release,), tables())


def only(release: str, ordered: Order, on: Machine) -> Outcome:
    found = outcomes(release, ordered, on)
    assert len(found) == 1, [(o.kernel, dict(o.assumed)) for o in found]
    return found[0]


def ran(outcome: Outcome) -> str:
    """`kernel:activations`, activations as `A16`, `token`, `tensor`, `tensor-static`, `g128` …"""
    if outcome.numeric is None:
        return f"refused: {outcome.refusal}"
    i = outcome.numeric.input
    acts = "A16" if i is None else i.strategy or "?"
    return f"{outcome.kernel}:{acts}" + ("-static" if i is not None and i.dynamic is False else "")
