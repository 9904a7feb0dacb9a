"""Outcomes of orders on both sides of every boundary: releases, capabilities, toolkits, packages, variables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from logscan.judge.derive import default_numeric, derive, distrusted, outcomes_with, ran_with
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


# ---------------------------------------------------------------- experts


@pytest.mark.parametrize(
    ("release", "method", "numeric", "sm", "have", "expected"),
    [
        ("0.15.0", "fp8", DYNAMIC, 90, (), "MARLIN:A16"),
        ("0.15.1", "fp8", DYNAMIC, 90, (), "TRITON:tensor"),
        ("0.30.0", "fp8", DYNAMIC, 80, (), "MARLIN:A16"),
        ("0.30.0", "fp8", DYNAMIC, 89, (), "TRITON:tensor"),
        ("0.30.0", "fp8", BLOCK, 90, ALL, "TRITON:group"),
        ("0.16.0", "fp8", BLOCK, 90, ALL, "FLASHINFER_CUTLASS:group"),
        ("0.23.0", "fp8", BLOCK, 120, ALL, "TRITON:group"),
        ("0.24.0", "fp8", BLOCK, 120, ALL, "DEEPGEMM:group"),
        ("0.30.0", CT, CHANNEL_TOKEN, 100, (), "VLLM_CUTLASS:token"),
        ("0.24.0", CT, CHANNEL_TOKEN, 120, (), "TRITON:token"),
        ("0.30.0", CT, NVFP4, 90, ALL, "MARLIN:A16"),
        ("0.15.0", CT, NVFP4, 120, ALL, "VLLM_CUTLASS:tensor_group"),
        ("0.15.1", CT, NVFP4, 120, ALL, "FLASHINFER_CUTLASS:tensor_group"),
        ("0.20.2", CT, NVFP4, 110, ALL, "FLASHINFER_CUTLASS:tensor_group"),
        ("0.21.0", CT, NVFP4, 110, ALL, "VLLM_CUTLASS:tensor_group"),
        ("0.30.0", "mxfp4", NumericPath(MXFP4, None, "unspecified"), 120, ALL, "MARLIN:A16"),
        ("0.30.0", "mxfp4", NumericPath(MXFP4, None, "unspecified"), 90, ALL, "TRITON_KERNELS:A16"),
        ("0.30.0", CT, NumericPath(MXFP4), 100, (), "VLLM_CUTLASS:group"),  # W4A16 promised, W4A4 runs
        ("0.31.0", "awq", W4A16, 90, ALL, "MARLIN:A16"),
        ("0.32.0", "awq", W4A16, 90, ALL, "HUMMING:A16"),
    ],
)
def test_experts(release: str, method: str, numeric: NumericPath, sm: int, have: Any, expected: str) -> None:
    assert ran(only(release, order(method, numeric, "moe"), machine(sm, have=have))) == expected


def test_lora_sends_fp8_experts_to_triton_without_a_choice_until_0_19() -> None:
    asked = order(CT, STATIC, "moe", traits={"lora": True})
    assert ran(only("0.19.1", asked, machine(90, have=ALL))) == "TRITON:tensor-static"
    assert ran(only("0.20.0", asked, machine(90, have=ALL))) == "FLASHINFER_CUTLASS:tensor-static"


def test_cutlass_experts_on_sm_12x_were_chosen_without_a_kernel_until_0_23() -> None:
    assert only("0.23.0", order(CT, CHANNEL_TOKEN, "moe"), machine(120, have=())).crashes
    assert not only("0.24.0", order(CT, CHANNEL_TOKEN, "moe"), machine(120, have=())).crashes


@pytest.mark.parametrize(
    ("backend", "sm", "expected"),
    [
        ("marlin", 120, "MARLIN:A16"),
        ("triton", 80, "refused: FP8 MoE backend TRITON does not support the deployment configuration"),
        ("cutlass", 120, "refused: vLLM CUTLASS FP8 MoE backend is disabled for this configuration."),
        ("conch", 90, "refused: moe_backend='conch' is not supported for FP8 MoE."),
    ],
)
def test_an_explicit_moe_backend(backend: str, sm: int, expected: str) -> None:
    asked = order("fp8", DYNAMIC, "moe", flags={"moe_backend": backend})
    assert ran(only("0.32.0", asked, machine(sm, have=ALL))) == expected


# ---------------------------------------------------------------- KV cache and attention (runtime §5)


def stored(release: str, asked: Order, on: Machine) -> str:
    outcome = only(release, asked, on)
    if outcome.refusal:
        return f"refused: {outcome.refusal}"
    assert outcome.numeric is not None and outcome.numeric.weights is not None
    return f"{outcome.numeric.weights.dtype} {outcome.kernel} {outcome.compute}"


@pytest.mark.parametrize(
    ("release", "flag", "expected"),
    [
        ("0.15.0", "bfloat16", "fp8_e4m3 FLASH_ATTN native"),  # the scheme beats the explicit flag
        ("0.21.0", "bfloat16", "fp8_e4m3 FLASH_ATTN native"),
        ("0.22.0", "bfloat16", "bf16 FLASH_ATTN native"),
        ("0.22.0", None, "fp8_e4m3 FLASH_ATTN native"),
        ("0.21.0", "fp8_e5m2", "fp8_e4m3 FLASH_ATTN native"),  # turned into fp8 before it could be refused
        ("0.22.0", "fp8_e5m2", "refused: fp8_e5m2 kv-cache is not supported with fp8 checkpoints."),
    ],
)
def test_a_compressed_tensors_kv_scheme_against_the_flag(release: str, flag: str | None, expected: str) -> None:
    flags = {"kv_cache_dtype": flag} if flag else {}
    asked = order(CT, NumericPath(KV_FP8), "kv_cache", kv=KV_FP8, flags=flags)
    assert stored(release, asked, machine(90, have=())) == expected


@pytest.mark.parametrize(("release", "dtype"), [("0.13.0", "bf16"), ("0.15.0", "fp8_e4m3")])
def test_a_modelopt_kv_promise_was_ignored_until_0_13(release: str, dtype: str) -> None:
    asked = order(MO, NumericPath(KV_FP8), "kv_cache", kv=KV_FP8)
    outcome = only(release, asked, machine(90, have=()))
    assert outcome.numeric is not None and outcome.numeric.weights is not None
    assert outcome.numeric.weights.dtype == dtype


@pytest.mark.parametrize(
    ("release", "expected"), [("0.19.1", "bf16 FLASHINFER native"), ("0.21.0", "fp4_e2m1 FLASHINFER native")]
)
def test_a_modelopt_nvfp4_kv_promise(release: str, expected: str) -> None:
    promised = Operand("fp4_e2m1", 4, "tensor_group", 16, dynamic="local", scale_dtype="fp8_e4m3")
    assert (
        stored(release, order(MO, NumericPath(promised), "kv_cache", kv=promised), machine(100, have=ALL)) == expected
    )


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("0.19.1", "refused: 1 validation error for CacheConfig"),
        ("0.20.2", "refused: No valid attention backend found for cuda with AttentionSelectorConfig("),
        ("0.22.1", "refused: the nvfp4 KV cache forces trtllm-gen kernels"),
        ("0.24.0", "refused: --kv-cache-dtype nvfp4 requires sm100f, please try a different dtype or remove"),
        ("0.25.0", "refused: No valid attention backend found for cuda with AttentionSelectorConfig("),
        ("0.31.0", "refused: No valid attention backend found for cuda with AttentionSelectorConfig("),
        ("0.32.0", "fp4_e2m1 FLASHINFER storage-only"),
    ],
)
def test_an_nvfp4_kv_cache_on_sm_120_by_release(release: str, expected: str) -> None:
    asked = order("none", None, "kv_cache", flags={"kv_cache_dtype": "nvfp4"})
    assert stored(release, asked, machine(120, have=ALL)).startswith(expected)


@pytest.mark.parametrize(
    ("sm", "have", "expected"),
    [
        (90, ALL, "fp8_e4m3 FLASH_ATTN native"),
        (89, ALL, "fp8_e4m3 FLASHINFER storage-only"),  # nothing says so before 0.25
        (120, ALL, "fp8_e4m3 FLASHINFER storage-only"),
        (100, ALL, "fp8_e4m3 FLASHINFER native"),
        (89, (), "fp8_e4m3 TRITON_ATTN native"),
        (80, (), "refused: FP8 KV cache is not supported by the Triton attention backend on"),
    ],
)
def test_an_fp8_kv_cache_is_computed_or_only_stored(sm: int, have: Any, expected: str) -> None:
    asked = order("none", None, "kv_cache", flags={"kv_cache_dtype": "fp8"})
    assert stored("0.24.0", asked, machine(sm, have=have)) == expected


def test_flash_attention_takes_fp8_on_sm_100_from_0_27() -> None:
    asked = order("none", None, "attention", flags={"kv_cache_dtype": "fp8"})
    assert only("0.26.0", asked, machine(100, have=())).kernel == "TRITON_ATTN"
    assert only("0.27.0", asked, machine(100, have=())).kernel == "FLASH_ATTN"


@pytest.mark.parametrize("name", ["FLASHINFER", "flashinfer", "AttentionBackendEnum.FLASHINFER"])
def test_an_explicit_attention_backend(name: str) -> None:
    asked = order("none", None, "attention", flags={"attention_backend": name})
    assert only("0.30.0", asked, machine(90, have=ALL)).kernel == "FLASHINFER"
    assert only("0.30.0", asked, machine(90, have=())).refusal is not None


@pytest.mark.parametrize(
    ("release", "sm", "expected"),
    [
        ("0.30.0", 80, "TRITON_ATTN"),
        ("0.30.0", 90, "FLASH_ATTN"),
        ("0.19.1", 100, "FLASHINFER"),
        ("0.27.1", 120, "TRITON_ATTN"),
        ("0.28.0", 120, "FLASHINFER"),
    ],
)  # fmt: skip
def test_attention_sinks_leave_few_backends(release: str, sm: int, expected: str) -> None:
    asked = order("none", None, "attention", traits={"sinks": True})
    assert only(release, asked, machine(sm, have=ALL)).kernel == expected


@pytest.mark.parametrize(
    ("release", "sm", "kv", "expected"),
    [
        ("0.30.0", 90, "auto", "FLASH_ATTN_MLA"),
        ("0.30.0", 90, "fp8", "FLASHMLA"),
        ("0.30.0", 100, "auto", "FLASHINFER_MLA"),
        ("0.30.0", 120, "auto", "TRITON_MLA"),
        ("0.18.0", 80, "fp8", "TRITON_MLA"),
    ],
)
def test_latent_attention(release: str, sm: int, kv: str, expected: str) -> None:
    flags = {} if kv == "auto" else {"kv_cache_dtype": kv}
    asked = order("none", None, "attention", traits={"mla": True}, flags=flags)
    assert only(release, asked, machine(sm, have=ALL)).kernel == expected


def test_latent_attention_with_an_fp8_cache_on_ampere() -> None:
    asked = order("none", None, "attention", traits={"mla": True}, flags={"kv_cache_dtype": "fp8"})
    assert only("0.17.1", asked, machine(80, have=())).refusal is not None  # no backend takes it
    assert only("0.25.0", asked, machine(80, have=())).refusal is None
    assert only("0.26.0", asked, machine(80, have=())).refusal == "FP8 KV cache is not supported by the Triton"


def test_sparse_latent_attention_is_not_guessed() -> None:
    asked = order("none", None, "attention", traits={"mla": True, "index_topk": 2048})
    assert outcomes("0.30.0", asked, machine(90, have=ALL)) == ()


def test_fa3_was_handed_every_quantized_cache_in_0_20_and_0_21() -> None:
    asked = order("none", None, "kv_cache", flags={"kv_cache_dtype": "int8_per_token_head"})
    assert only("0.21.0", asked, machine(90, have=())).crashes
    assert only("0.22.0", asked, machine(90, have=())).kernel == "TRITON_ATTN"


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
        return ran_with(kernel, order("fp8", DYNAMIC), machine(sm, cuda), ("0.30.0",), tables())

    numeric, compute = named("MarlinFP8ScaledMMLinearKernel")
    assert (numeric, compute) == (NumericPath(FP8["tensor"], None, "none"), "weight-only")
    numeric, _ = named("CutlassFP8ScaledMMLinearKernel")  # 0.15–0.30: the gate that chose the granularity is not known
    assert numeric.input.strategy is None and numeric.input.dtype == "fp8_e4m3"
    assert named("CutlassFP8ScaledMMLinearKernel", 90, (12, 8))[0].input == TOKEN
    assert named("NoSuchKernel") is None
    backend = ran_with(
        "FLASHINFER_TRTLLM_MXFP4_BF16", order("mxfp4", NumericPath(MXFP4), "moe"), machine(100), ("0.30.0",), tables()
    )
    assert backend is not None and backend[1] == "weight-only"


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
