"""Outcomes of linear orders on both sides of every boundary: releases, capabilities, toolkits, packages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from orders import (
    ALL,
    BLOCK,
    CHANNEL_TOKEN,
    CT,
    DYNAMIC,
    INT8,
    MO,
    MX_IN,
    MXFP4,
    MXFP8,
    NOT_SUPPORTED,
    NVFP4,
    STATIC,
    TENSOR_DYNAMIC,
    TOKEN,
    W4A16,
    machine,
    only,
    order,
    outcomes,
    ran,
)

from logscan.judge.derive import default_numeric, derive
from logscan.judge.knowledge import tables
from logscan.model import Machine, NumericPath, Operand

# ---------------------------------------------------------------- the granularity of native fp8 (S1, S2)


@pytest.mark.parametrize(
    ("release", "sm", "cuda", "expected"),
    [
        ("0.6.6", 90, (12, 4), "Fp8LinearOp.cutlass:tensor"),
        ("0.7.0", 90, (12, 4), "Fp8LinearOp.cutlass:token"),
        ("0.14.1", 89, (12, 3), "Fp8LinearOp.torch:tensor"),
        ("0.14.1", 89, (12, 4), "Fp8LinearOp.cutlass:token"),
        ("0.14.1", 90, (11, 8), "Fp8LinearOp.torch:tensor"),
        ("0.14.1", 90, (12, 0), "Fp8LinearOp.cutlass:token"),
        ("0.15.0", 89, (12, 3), "CutlassFP8ScaledMMLinearKernel:tensor"),
        ("0.30.0", 89, (12, 3), "CutlassFP8ScaledMMLinearKernel:tensor"),
        ("0.31.0", 89, (12, 3), "PerTensorTorchFP8ScaledMMLinearKernel:tensor"),
        ("0.33.0", 89, (12, 4), "CutlassFP8ScaledMMLinearKernel:token"),
        ("0.33.0", 120, (13, 0), "CutlassFP8ScaledMMLinearKernel:token"),
    ],
)
@pytest.mark.parametrize("online", [False, True])
def test_native_dynamic_is_per_token_where_cutlass_can(
    release: str, sm: int, cuda: tuple[int, int], expected: str, online: bool
) -> None:
    flags = {"quantization": "fp8"} if online else {}
    asked = order("fp8", DYNAMIC, group="" if online else "g", flags=flags)
    assert ran(only(release, asked, machine(sm, cuda, ()))) == expected


@pytest.mark.parametrize(("platform", "gfx"), [("rocm", "gfx942"), ("cpu", None)])
def test_off_cuda_native_dynamic_is_per_tensor(platform: str, gfx: str | None) -> None:
    found = derive(order("fp8", DYNAMIC), Machine(platform, gfx=gfx), ("0.30.0",), tables())
    assert {o.numeric.input.strategy for o in found if o.numeric and o.numeric.input} == {"tensor"}


def test_xpu_never_quantizes_the_activations_of_native_fp8() -> None:
    for release in ("0.14.1", "0.16.0", "0.24.0", "0.25.0", "0.33.0"):
        assert {
            o.numeric.input for o in derive(order("fp8", DYNAMIC), Machine("xpu"), (release,), tables()) if o.numeric
        } == {None}


def test_the_default_yardstick_is_the_open_gate() -> None:
    def default(release: str, method: str, numeric: NumericPath, path: str = "linear") -> Operand | None:
        found = default_numeric(order(method, numeric, path), machine(80), (release,), tables())
        return found.input if found else None

    assert default("0.6.6", "fp8", DYNAMIC) == TENSOR_DYNAMIC
    assert default("0.7.0", "fp8", DYNAMIC) == TOKEN
    assert default("0.33.0", "fp8", DYNAMIC) == TOKEN
    assert default("0.30.0", "fp8", DYNAMIC, "moe") == TENSOR_DYNAMIC
    assert default("0.30.0", "fp8", STATIC) is None
    assert default("0.30.0", CT, CHANNEL_TOKEN) is None
    assert default_numeric(order("fp8", DYNAMIC), machine(90), ("0.6.6", "0.7.0"), tables()) is None


# ---------------------------------------------------------------- below sm_89 (S3, S4, S11, S13, S25)


@pytest.mark.parametrize(
    ("release", "have", "expected", "lines"),
    [
        ("0.5.4", (), "MarlinFP8ScaledMMLinearKernel:A16", ["vllm.marlin.fp8"]),
        ("0.15.0", (), "MarlinFP8ScaledMMLinearKernel:A16", ["vllm.marlin.fp8"]),
        ("0.24.0", ALL, "MarlinFP8ScaledMMLinearKernel:A16", ["vllm.marlin.fp8"]),
        ("0.25.0", (), "HummingFP8ScaledMMLinearKernel:A16", []),  # 0.25–0.27 never asked whether it is installed
        ("0.27.1", (), "HummingFP8ScaledMMLinearKernel:A16", []),
        ("0.28.0", (), "MarlinFP8ScaledMMLinearKernel:A16", ["vllm.marlin.fp8"]),
        ("0.28.0", ALL, "HummingFP8ScaledMMLinearKernel:A16", []),
        ("0.33.0", ALL, "HummingFP8ScaledMMLinearKernel:A16", []),
    ],
)
def test_compressed_tensors_fp8_on_ampere(release: str, have: tuple[str, ...], expected: str, lines: list[str]) -> None:
    outcome = only(release, order(CT, CHANNEL_TOKEN), machine(80, have=have))
    assert ran(outcome) == expected
    assert [p.pattern for p in outcome.prints] == lines
    assert outcome.layer == "CompressedTensorsW8A16Fp8"


def test_the_scheme_switch_is_at_sm_89() -> None:
    assert ran(only("0.30.0", order(CT, CHANNEL_TOKEN), machine(89, have=()))).endswith(":token")
    assert ran(only("0.30.0", order(CT, STATIC), machine(88, have=()))).endswith(":A16")


def test_without_knowing_the_packages_all_outcomes_agree() -> None:
    found = outcomes("0.30.0", order(CT, CHANNEL_TOKEN), machine(80))
    assert {o.kernel: dict(o.assumed) for o in found} == {
        "HummingFP8ScaledMMLinearKernel": {"pkg.humming": True},
        "MarlinFP8ScaledMMLinearKernel": {"pkg.humming": False},
    }
    assert {o.numeric.input for o in found if o.numeric} == {None}


def test_without_knowing_the_gpu_the_capability_splits_them() -> None:
    found = outcomes("0.30.0", order(CT, CHANNEL_TOKEN), machine(None, have=()))
    by_kernel = {o.kernel: o.assumed["sm"] for o in found}
    assert by_kernel == {
        "MarlinFP8ScaledMMLinearKernel": "75 80 86 87",
        "CutlassFP8ScaledMMLinearKernel": "89 90 100 103 110 120 121",
    }
    assert tables().reason("sm") == "no-gpu" and tables().reason("cuda") == "no-cuda"


@pytest.mark.parametrize(
    ("release", "selected", "crashes"),
    [
        ("0.14.1", None, False),
        ("0.15.0", "CutlassFP8ScaledMMLinearKernel", False),  # printed, not true
        ("0.18.1", "CutlassFP8ScaledMMLinearKernel", False),
        ("0.19.0", "MarlinFP8ScaledMMLinearKernel", False),
        ("0.28.0", "MarlinFP8ScaledMMLinearKernel", False),
        ("0.29.0", "CutlassFP8ScaledMMLinearKernel", True),  # selected, and no kernel for it
        ("0.30.0", "CutlassFP8ScaledMMLinearKernel", True),
        ("0.31.0", "MarlinFP8ScaledMMLinearKernel", False),
    ],
)
def test_native_fp8_on_ampere(release: str, selected: str | None, crashes: bool) -> None:
    outcome = only(release, order("fp8", DYNAMIC), machine(80, have=()))
    said = [p.text for p in outcome.prints if p.text.startswith("Selected")]
    assert said == ([f"Selected {selected} for Fp8LinearMethod"] if selected else [])
    assert outcome.crashes is crashes
    assert crashes or (outcome.kernel, outcome.numeric and outcome.numeric.input) == (
        "MarlinFP8ScaledMMLinearKernel",
        None,
    )


def test_static_scales_are_dropped_where_marlin_runs() -> None:
    assert ran(only("0.31.0", order("fp8", STATIC), machine(80, have=()))).endswith(":A16")
    assert ran(only("0.31.0", order("fp8", STATIC), machine(89, have=()))).endswith(":tensor-static")


@pytest.mark.parametrize(
    ("release", "sm", "expected"),
    [
        ("0.26.0", 80, f"refused: {NOT_SUPPORTED} Minimum capability: 89. Current capability: 80."),
        ("0.27.0", 80, "MarlinFP8ScaledMMLinearKernel:A16"),
        ("0.27.0", 75, f"refused: {NOT_SUPPORTED} Minimum capability: 80. Current capability: 75."),
        ("0.26.0", 89, "CutlassFP8ScaledMMLinearKernel:token"),
    ],
)  # fmt: skip
def test_modelopt_per_channel_per_token(release: str, sm: int, expected: str) -> None:
    asked = order(MO, CHANNEL_TOKEN, algo="FP8_PER_CHANNEL_PER_TOKEN")
    assert ran(only(release, asked, machine(sm, have=()))) == expected


def test_modelopt_names_the_layer_class_from_0_30() -> None:
    def said(release: str) -> list[str]:
        return [p.text for p in only(release, order(MO, STATIC, algo="FP8"), machine(90, have=())).prints]

    assert said("0.29.0") == ["Selected CutlassFP8ScaledMMLinearKernel for ModelOptFp8LinearMethod"]
    assert "Selected CutlassFP8ScaledMMLinearKernel for QKVParallelLinear" in said("0.30.0")


# ---------------------------------------------------------------- blocks (S10, S14)


@pytest.mark.parametrize(
    ("release", "sm", "cuda", "have", "expected"),
    [
        ("0.28.0", 89, (13, 0), ALL, "TritonFp8BlockScaledMMKernel:group"),
        ("0.29.0", 89, (13, 0), ALL, "MarlinFP8ScaledMMLinearKernel:A16"),
        ("0.33.0", 89, (13, 0), (), "MarlinFP8ScaledMMLinearKernel:A16"),
        ("0.28.0", 80, (13, 0), (), "MarlinFP8ScaledMMLinearKernel:A16"),
        ("0.32.0", 120, (12, 8), (), "CutlassFp8BlockScaledMMKernel:group"),
        ("0.32.0", 120, (12, 6), (), "MarlinFP8ScaledMMLinearKernel:A16"),
        ("0.23.0", 120, (13, 0), ("deep_gemm",), "CutlassFp8BlockScaledMMKernel:group"),
        ("0.24.0", 120, (13, 0), ("deep_gemm",), "DeepGemmFp8BlockScaledMMKernel:group"),
        ("0.32.0", 90, (13, 0), ALL, "FlashInferFp8DeepGEMMDynamicBlockScaledKernel:group"),
        ("0.32.0", 90, (13, 0), ("deep_gemm",), "DeepGemmFp8BlockScaledMMKernel:group"),
        ("0.32.0", 90, (12, 3), (), "CutlassFp8BlockScaledMMKernel:group"),
        ("0.19.1", 90, (13, 0), (), "W8A8BlockFp8LinearOp.cutlass:group"),
        ("0.9.1", 90, (12, 8), ("deep_gemm",), "W8A8BlockFp8LinearOp.cutlass:group"),
        ("0.8.5", 80, (12, 4), (), "W8A8BlockFp8LinearOp.triton:group"),
        ("0.9.0", 80, (12, 8), (), "MarlinFP8ScaledMMLinearKernel:A16"),
    ],
)
def test_blocks(release: str, sm: int, cuda: tuple[int, int], have: tuple[str, ...], expected: str) -> None:
    assert ran(only(release, order("fp8", BLOCK), machine(sm, cuda, have))) == expected


def test_deepgemm_re_rounds_scales_unless_it_is_told_not_to() -> None:
    asked, on = order("fp8", BLOCK), machine(100, have=("deep_gemm",))
    assert "deepgemm.ue8m0" in only("0.30.0", asked, on).because
    assert (
        "deepgemm.ue8m0"
        not in only("0.30.0", asked, machine(100, have=("deep_gemm",), VLLM_USE_DEEP_GEMM_E8M0="0")).because
    )
    assert "deepgemm.ue8m0" not in only("0.30.0", asked, machine(100, have=())).because


@pytest.mark.parametrize(("release", "refused"), [("0.15.1", True), ("0.16.0", False)])
def test_compressed_tensors_blocks_below_sm_89(release: str, refused: bool) -> None:
    outcome = only(release, order(CT, BLOCK), machine(80, have=()))
    assert (outcome.refusal is not None) is refused
    if refused:
        assert outcome.refusal == "Unsupported weight strategy=block, supported strategies are [channel, tensor]"


# ---------------------------------------------------------------- 4 bits, MX formats, integers (S5–S9, S16, S23)


@pytest.mark.parametrize(
    ("release", "sm", "have", "expected"),
    [
        ("0.16.0", 90, (), "NvFp4LinearBackend.MARLIN:A16"),
        ("0.16.0", 100, (), "NvFp4LinearBackend.VLLM_CUTLASS:tensor_group"),
        ("0.31.0", 90, ALL, "MarlinNvFp4LinearKernel:A16"),
        ("0.20.0", 100, ALL, "FlashInferCutlassNvFp4LinearKernel:tensor_group"),
        ("0.24.0", 100, ALL, "FlashInferCuteDslNvFp4LinearKernel:tensor_group"),
        ("0.24.0", 120, ALL, "FlashInferCutlassNvFp4LinearKernel:tensor_group"),
        ("0.24.0", 110, (), "CutlassNvFp4LinearKernel:tensor_group"),
    ],
)
@pytest.mark.parametrize("method", [CT, MO])
def test_nvfp4(release: str, sm: int, have: tuple[str, ...], expected: str, method: str) -> None:
    assert ran(only(release, order(method, NVFP4, algo="NVFP4"), machine(sm, have=have))) == expected


def test_humming_takes_nvfp4_on_hopper_from_0_32_and_more_than_4_bits_remain() -> None:
    found = outcomes("0.32.0", order(CT, NVFP4), machine(90, have=ALL))
    assert {o.kernel for o in found} == {"HummingNvFp4LinearKernel"}
    assert {ran(o).partition(":")[2] for o in found} == {"A16", "token"}
    assert ran(only("0.30.0", order(CT, NVFP4, flags={"linear_backend": "humming"}), machine(90, have=ALL))).endswith(
        ":A16"
    )


@pytest.mark.parametrize(
    ("release", "promised", "sm", "have", "expected"),
    [
        ("0.17.1", "A4", 100, ALL, "CompressedTensorsW4A16Mxfp4:A16"),
        ("0.21.0", "A4", 100, ALL, "CompressedTensorsW4A16Mxfp4:A16"),
        ("0.22.0", "A4", 100, ALL, "FlashInferMxFp4LinearKernel:group"),
        ("0.22.0", "A4", 90, ALL, "MarlinMxFp4LinearKernel:A16"),
        ("0.21.0", "A16", 100, ALL, "CompressedTensorsW4A16Mxfp4:A16"),
        ("0.22.0", "A16", 100, ALL, "FlashInferMxFp4LinearKernel:group"),  # fewer bits than promised
    ],
)
def test_compressed_tensors_mxfp4(release: str, promised: str, sm: int, have: Any, expected: str) -> None:
    numeric = NumericPath(MXFP4, MX_IN["mxfp4"], "quantized") if promised == "A4" else NumericPath(MXFP4)
    assert ran(only(release, order(CT, numeric), machine(sm, have=have))) == expected


def test_mxfp4_weight_only_lines_come_and_go() -> None:
    asked = order(CT, NumericPath(MXFP4, MX_IN["mxfp4"], "quantized"))

    def levels(release: str) -> list[str]:
        return [p.level for p in only(release, asked, machine(80, have=())).prints]

    assert levels("0.17.1") == ["WARNING"]
    assert levels("0.18.0") == levels("0.21.0") == []
    assert levels("0.22.0") == levels("0.26.0") == ["INFO"]
    assert levels("0.27.0") == ["INFO", "WARNING"]


def test_mxfp8_loses_its_activations_without_a_warning() -> None:
    asked = order(MO, NumericPath(MXFP8, MX_IN["mxfp8"], "quantized"), algo="MXFP8")
    outcome = only("0.30.0", asked, machine(90, have=()))
    assert ran(outcome) == "MarlinMxfp8LinearKernel:A16" and [p.level for p in outcome.prints] == ["INFO"]
    assert ran(only("0.30.0", asked, machine(100, have=ALL))).endswith(":group")
    rocm = derive(asked, Machine("rocm", gfx="gfx942"), ("0.30.0",), tables())
    assert [(o.kernel, o.compute) for o in rocm] == [("EmulationMxfp8LinearKernel", "emulated")]
    assert derive(asked, Machine("rocm", gfx="gfx950"), ("0.30.0",), tables())[0].compute == "native"


def test_int8_is_selected_on_blackwell_and_cannot_run() -> None:
    assert not only("0.30.0", order(CT, INT8), machine(90, have=())).crashes
    assert only("0.30.0", order(CT, INT8), machine(100, have=())).crashes
    assert only("0.30.0", order(CT, INT8), machine(120, have=())).crashes


@pytest.mark.parametrize(
    ("release", "method", "sm", "flags", "expected"),
    [
        ("0.18.1", "awq", 80, {}, "awq_marlin"),
        ("0.19.0", "awq", 80, {}, "MarlinLinearKernel"),
        ("0.23.0", "awq", 80, {"quantization": "awq"}, "awq_gemm"),
        ("0.24.0", "awq", 80, {"quantization": "awq"}, "MarlinLinearKernel"),
        ("0.21.0", "gptq", 80, {"quantization": "gptq"}, "gptq_gemm"),
        ("0.22.0", "gptq", 80, {"quantization": "gptq"}, "MarlinLinearKernel"),
        ("0.30.0", "gptq", 90, {}, "MacheteLinearKernel"),
        ("0.30.0", CT, 100, {}, "MarlinLinearKernel"),
    ],
)
def test_integer_weights(release: str, method: str, sm: int, flags: Mapping[str, str], expected: str) -> None:
    assert ran(only(release, order(method, W4A16, flags=flags), machine(sm, have=()))) == f"{expected}:A16"


def test_marlin_input_dtype_quantizes_what_was_promised_16_bit() -> None:
    assert ran(only("0.12.0", order(CT, W4A16), machine(80, have=(), VLLM_MARLIN_INPUT_DTYPE="int8"))).endswith(
        ":token"
    )
    assert ran(only("0.11.2", order(CT, W4A16), machine(80, have=(), VLLM_MARLIN_INPUT_DTYPE="int8"))).endswith(":A16")
    assert ran(only("0.12.0", order(CT, W4A16), machine(80, have=()))).endswith(":A16")


def test_shorthands_for_experts_leave_the_dense_linears_alone() -> None:
    outcome = only("0.30.0", order("nvfp4_per_token", NVFP4), machine(100, have=()))
    assert outcome.numeric == NumericPath(None) and outcome.layer == "UnquantizedLinearMethod"


def test_gptoss_dense_linears_are_not_quantized() -> None:
    assert only("0.30.0", order("mxfp4", NumericPath(MXFP4)), machine(90, have=())).numeric == NumericPath(None)
