"""The one change that keeps an order, nearest cause first."""

from __future__ import annotations

from typing import Any

from logscan.judge.flips import Flip, flips, serves
from logscan.judge.knowledge import tables
from logscan.model import Machine, NumericPath, Operand, Order, Outcome

TOKEN = Operand("fp8_e4m3", 8, "token", dynamic=True)
FP8 = NumericPath(Operand("fp8_e4m3", 8, "channel"), TOKEN, "quantized")
FP4 = NumericPath(
    Operand("fp4_e2m1", 4, "tensor_group", 16, scale_dtype="fp8_e4m3"),
    Operand("fp4_e2m1", 4, "tensor_group", 16, dynamic="local", scale_dtype="fp8_e4m3"),
    "quantized",
)
NONE = {"flashinfer": False, "humming": False, "deep_gemm": False}


def found(order: Order, on: Machine, release: str, wanted: Any, known: tuple[str, ...] = ()) -> list[Flip]:
    return list(flips(order, on, (release,), tables(), wanted, known))


def test_an_ampere_needs_another_gpu() -> None:
    order = Order("linear", "g", "compressed-tensors", FP8)
    first, *_ = found(order, Machine("cuda", "A100", 80, None, (13, 0), NONE), "0.30.0", FP8)
    assert first == Flip("hardware", "sm", "80", "89 90 100 103 110 120 121")


def test_a_flag_comes_before_the_gpu() -> None:
    order = Order("linear", "g", "compressed-tensors", FP4, flags={"linear_backend": "marlin", "dtype": "auto"})
    first, *_ = found(order, Machine("cuda", "B200", 100, None, (13, 0), NONE), "0.30.0", FP4)
    assert first == Flip("request", "flag.linear_backend", "marlin", "not given")


def test_a_variable_is_a_request_too() -> None:
    order = Order("linear", "g", "compressed-tensors", FP8)
    forced = Machine("cuda", "H100", 90, None, (13, 0), NONE, {"VLLM_TEST_FORCE_FP8_MARLIN": "1"})
    assert found(order, forced, "0.20.0", FP8)[0] == Flip("request", "env.VLLM_TEST_FORCE_FP8_MARLIN", "1", "unset")


def test_a_release_that_chose_otherwise() -> None:
    block = NumericPath(
        Operand("fp8_e4m3", 8, "block", block=(128, 128)),
        Operand("fp8_e4m3", 8, "group", 128, dynamic=True),
        "quantized",
    )
    ada = Machine("cuda", "L40S", 89, None, (13, 0), NONE)
    flipped = found(Order("linear", "g", "fp8", block), ada, "0.29.0", block, ("0.27.1", "0.28.0", "0.29.0", "0.30.0"))
    assert Flip("version", "engine", "0.29.0", "0.27.1 0.28.0") in flipped


def test_a_toolkit_that_opens_the_gate() -> None:
    native = NumericPath(Operand("fp8_e4m3", 8, "tensor"), Operand("fp8_e4m3", 8, None, dynamic=True), "quantized")
    token = NumericPath(Operand("fp8_e4m3", 8, "tensor"), TOKEN, "quantized")
    old = Machine("cuda", "L4", 89, None, (12, 3), NONE)
    flipped = found(Order("linear", "g", "fp8", native), old, "0.31.0", token)
    assert Flip("build", "cuda", "12.3", "12.4 12.6 12.8 12.9 13.0") in flipped


def test_nothing_restores_what_the_engine_never_does() -> None:
    order = Order("linear", "g", "compressed-tensors", NumericPath(Operand("int4", 4, "group", 128)))
    assert found(order, Machine("cuda", "H100", 90, None, (13, 0), NONE), "0.30.0", FP8) == []


def test_what_serves() -> None:
    def outcome(numeric: NumericPath | None, compute: str = "native", refusal: str | None = None) -> Outcome:
        return Outcome("linear", "K", numeric, compute, refusal=refusal)

    weight_only = NumericPath(FP8.weights, None, "none")
    assert serves(outcome(FP8), FP8)
    assert not serves(outcome(FP8, "emulated"), FP8)
    assert not serves(outcome(FP8, refusal="no"), FP8)
    assert not serves(outcome(weight_only, "weight-only"), FP8)
    assert serves(outcome(weight_only, "weight-only"), weight_only)
    assert not serves(outcome(FP8), weight_only)
    assert serves(outcome(weight_only), NumericPath(FP8.weights, None, "unspecified"))
    tensor = NumericPath(FP8.weights, TOKEN._replace(strategy="tensor"), "quantized")
    assert not serves(outcome(tensor), FP8) and serves(outcome(FP8), tensor)
    assert serves(outcome(None), lambda o: o.kernel == "K")
