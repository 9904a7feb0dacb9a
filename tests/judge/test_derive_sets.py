"""Variables and flags, lines that are not true, sets of outcomes, and other methods."""

from __future__ import annotations

from typing import Any

import pytest
from orders import (
    ALL,
    BLOCK,
    CHANNEL_TOKEN,
    CT,
    DYNAMIC,
    FP8,
    INT8,
    KV_FP8,
    MXFP4,
    NVFP4,
    STATIC,
    TOKEN,
    W4A16,
    machine,
    only,
    order,
    outcomes,
    ran,
)

from logscan.judge.derive import derive, distrusted, outcomes_with
from logscan.judge.knowledge import tables
from logscan.model import Machine, NumericPath, Operand, Order

# ---------------------------------------------------------------- variables and flags (S15, S17)


def test_batch_invariance_computes_in_16_bit_but_for_the_exempt_kernels() -> None:
    on: dict[str, Any] = {"VLLM_BATCH_INVARIANT": "1"}
    for release, compute in (
        ("0.11.1", "emulated"),
        ("0.21.0", "emulated"),
        ("0.22.0", "native"),
        ("0.31.0", "native"),
    ):
        assert only(release, order("fp8", DYNAMIC), machine(90, have=(), **on)).compute == compute
    assert only("0.11.0", order("fp8", DYNAMIC), machine(90, have=(), **on)).compute == "native"
    assert only("0.32.0", order("fp8", DYNAMIC), machine(89, (12, 3), (), **on)).compute == "emulated"


def test_a_disabled_kernel_is_passed_over() -> None:
    off: dict[str, Any] = {"VLLM_DISABLED_KERNELS": "CutlassFP8ScaledMMLinearKernel"}
    assert (
        ran(only("0.30.0", order(CT, CHANNEL_TOKEN), machine(90, have=(), **off)))
        == "ChannelWiseTorchFP8ScaledMMLinearKernel:token"
    )


def test_forcing_marlin_worked_until_0_28() -> None:
    force: dict[str, Any] = {"VLLM_TEST_FORCE_FP8_MARLIN": "1"}
    assert ran(only("0.28.0", order("fp8", DYNAMIC), machine(90, have=(), **force))).endswith(":A16")
    assert ran(only("0.29.0", order("fp8", DYNAMIC), machine(90, have=(), **force))).endswith(":token")


def test_a_variable_nobody_named_is_reported_as_taken_for_unset() -> None:
    assert "env.VLLM_BATCH_INVARIANT" in only("0.30.0", order("fp8", DYNAMIC), machine(90, have=())).unset


@pytest.mark.parametrize(
    ("release", "backend", "sm", "expected"),
    [
        ("0.21.0", "marlin", 100, "FlashInferCutlassNvFp4LinearKernel:tensor_group"),  # the flag is not read yet
        ("0.22.0", "marlin", 100, "MarlinNvFp4LinearKernel:A16"),
        ("0.30.0", "marlin", 100, "MarlinNvFp4LinearKernel:A16"),
        ("0.27.1", "machete", 100, "refused: Failed to find a kernel that can implement the NVFP4 linear layer."),
        ("0.28.0", "machete", 100, "FlashInferCuteDslNvFp4LinearKernel:tensor_group"),
    ],
)
def test_linear_backend(release: str, backend: str, sm: int, expected: str) -> None:
    assert ran(only(release, order(CT, NVFP4, flags={"linear_backend": backend}), machine(sm, have=ALL))) == expected


# ---------------------------------------------------------------- lines that are not true


def test_a_line_is_distrusted_by_release_and_hardware() -> None:
    fields = {"kernel": "CutlassFP8ScaledMMLinearKernel", "layer": "Fp8LinearMethod"}

    def doubt(release: str, sm: int | None, numeric: NumericPath = DYNAMIC) -> Any:
        found = distrusted("vllm.linear.selected", fields, order("fp8", numeric), machine(sm), (release,), tables())
        return found[0] if isinstance(found, tuple) else found

    assert doubt("0.18.1", 80) == "selected-cutlass-while-marlin"
    assert doubt("0.18.1", 90) is None
    assert doubt("0.18.1", None) == "maybe"
    assert doubt("0.19.0", 80) is None
    assert doubt("0.19.0", 90, BLOCK) == "selected-before-block"
    assert doubt("0.20.0", 90, BLOCK) is None
    assert doubt("0.29.0", 80) == "selected-cutlass-fp8-will-crash"
    assert doubt("0.31.0", 80) is None
    assert distrusted("vllm.other", fields, order("fp8", DYNAMIC), machine(80), "0.18.1", tables()) is None


def test_a_named_kernel_may_leave_several_outcomes() -> None:
    found = outcomes_with("HummingNvFp4LinearKernel", order(CT, NVFP4), machine(90, have=ALL), ("0.32.0",), tables())
    assert {o.numeric.input for o in found if o.numeric} == {None, TOKEN}
    assert outcomes_with("NoSuchKernel", order(CT, NVFP4), machine(90), ("0.32.0",), tables()) == ()


def test_what_a_named_kernel_makes_of_the_promise() -> None:
    def named(kernel: str, sm: int | None = None, cuda: Any = None) -> Any:
        return outcomes_with(kernel, order("fp8", DYNAMIC), machine(sm, cuda), ("0.30.0",), tables())

    (marlin,) = named("MarlinFP8ScaledMMLinearKernel")
    assert (marlin.numeric, marlin.compute) == (NumericPath(FP8["tensor"], None, "none"), "weight-only")
    cutlass = named("CutlassFP8ScaledMMLinearKernel")  # 0.15–0.30: the gate that chose the granularity is not known
    assert {o.numeric.input.strategy for o in cutlass} == {"token", "tensor"}
    assert {o.numeric.input for o in named("CutlassFP8ScaledMMLinearKernel", 90, (12, 8))} == {TOKEN}
    assert named("NoSuchKernel") == ()
    mxfp4 = order("mxfp4", NumericPath(MXFP4), "moe")
    backend = outcomes_with("FLASHINFER_TRTLLM_MXFP4_BF16", mxfp4, machine(100), ("0.30.0",), tables())
    assert {o.compute for o in backend} == {"weight-only"}


# ---------------------------------------------------------------- sets


def test_nothing_is_guessed_where_no_row_speaks() -> None:
    assert outcomes("0.4.0", order(CT, CHANNEL_TOKEN), machine()) == ()
    assert outcomes("0.30.0", order("aqlm", W4A16), machine()) == ()
    assert derive(order(CT, CHANNEL_TOKEN), machine(), ("0.30.0", "0.4.0"), tables()) == ()


def test_outcomes_are_united_over_releases() -> None:
    found = derive(order("fp8", BLOCK), machine(89, have=()), ("0.28.0", "0.29.0"), tables())
    assert {o.kernel: o.releases for o in found} == {
        "TritonFp8BlockScaledMMKernel": ("0.28.0",),
        "MarlinFP8ScaledMMLinearKernel": ("0.29.0",),
    }


def test_an_unknown_toolkit_splits_ada_and_not_blackwell() -> None:
    ada = outcomes("0.31.0", order("fp8", DYNAMIC), machine(89, None, ()))
    assert {ran(o).partition(":")[2]: o.assumed["cuda"] for o in ada} == {
        "token": "12.4 12.6 12.8 12.9 13.0",
        "tensor": "12.1 12.3",
    }
    assert len(outcomes("0.31.0", order("fp8", BLOCK), machine(120, None, ()))) == 1


def test_nothing_at_all_is_known() -> None:
    found = derive(order(CT, CHANNEL_TOKEN), Machine(), ("0.31.0",), tables())
    assert {"platform", "sm"} <= {atom for o in found for atom in o.assumed}
    assert {o.numeric.input is None for o in found if o.numeric} == {True, False}


# ---------------------------------------------------------------- other methods and older releases


@pytest.mark.parametrize(
    ("release", "expected"), [("0.8.3", "token"), ("0.8.4", "tensor"), ("0.9.1", "tensor"), ("0.9.2", "token")]
)
def test_quark_per_token_ran_per_tensor_for_three_releases(release: str, expected: str) -> None:
    assert ran(only(release, order("quark", CHANNEL_TOKEN), machine(90, (12, 4), ()))).endswith(f":{expected}")


def test_quark_fp8_has_no_way_out_below_sm_89() -> None:
    assert (
        only("0.30.0", order("quark", CHANNEL_TOKEN), machine(80, have=())).refusal
        == "No quark compatible scheme was found."
    )


def test_w4a8_integers_ran_as_fp8_on_hopper_until_0_30() -> None:
    numeric = NumericPath(Operand("int4", 4, "group", 128), Operand("int8", 8, "token", dynamic=True), "quantized")
    for release in ("0.10.2", "0.30.0"):
        outcome = only(release, order(CT, numeric), machine(90, have=ALL))
        assert outcome.kernel == "CutlassW4A8LinearKernel"
        assert outcome.numeric and outcome.numeric.input and outcome.numeric.input.dtype == "fp8_e4m3"
    assert {o.kernel for o in outcomes("0.31.0", order(CT, numeric), machine(90, have=ALL))} == {"humming.wna8-int"}


def test_experts_before_the_oracles_keep_the_name_to_themselves() -> None:
    outcome = only("0.11.0", order("fp8", BLOCK, "moe"), machine(90, have=ALL))
    assert outcome.kernel is None and outcome.numeric == BLOCK
    assert ran(only("0.11.0", order("fp8", BLOCK, "moe"), machine(80, have=ALL))) == "MARLIN:A16"


def test_a_cache_off_cuda_is_stored_as_asked() -> None:
    asked = order("none", None, "kv_cache", flags={"kv_cache_dtype": "fp8"})
    (outcome,) = derive(asked, Machine("cpu"), ("0.32.0",), tables())
    assert outcome.kernel is None and outcome.numeric and outcome.numeric.weights == KV_FP8
    assert derive(order("none", None, "attention"), Machine("cpu"), ("0.32.0",), tables()) == ()


def test_the_cpu_builds_keep_their_promises_or_say_why_not() -> None:
    def cpu(release: str, asked: Order) -> set[str]:
        return {ran(o) + ("!" if o.crashes else "") for o in derive(asked, Machine("cpu"), (release,), tables())}

    assert cpu("0.28.0", order(CT, CHANNEL_TOKEN)) == {"ChannelWiseTorchFP8ScaledMMLinearKernel:token"}
    assert cpu("0.28.0", order(CT, INT8)) >= {"CPUInt8ScaledMMLinearKernel:token"}
    assert cpu("0.32.0", order("awq", W4A16)) >= {"CPUWNA16LinearKernel:A16"}
    assert cpu("0.28.0", order("fp8", STATIC)) == {"PerTensorTorchFP8ScaledMMLinearKernel:tensor-static!"}
    assert "refused: Failed to find a kernel that can implement the ScaledMM linear layer." in cpu(
        "0.28.0", order("fp8", BLOCK)
    )
    assert cpu("0.32.0", order(CT, NVFP4)) == {
        "refused: Failed to find a kernel that can implement the NVFP4 linear layer."
    }
