"""Outcomes of experts, KV caches and attention on both sides of every boundary."""

from __future__ import annotations

from typing import Any

import pytest
from orders import (
    ALL,
    BLOCK,
    CHANNEL_TOKEN,
    CT,
    DYNAMIC,
    KV_FP8,
    MO,
    MXFP4,
    NVFP4,
    STATIC,
    W4A16,
    machine,
    only,
    order,
    outcomes,
    ran,
)

from logscan.model import Machine, NumericPath, Operand, Order

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
