"""A miss of the fused context kernels: one deviation, its cause, and a severity by consequence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from logscan.catalogue import kinds
from logscan.judge.fmha import Fallback, fallback, lost_fp8, unfused
from logscan.model import Boot, Promise, Row

Read = Callable[[str], tuple[Boot, ...]]
BANNER = "[TensorRT-LLM] TensorRT-LLM version: 1.0.0\n"
FEATURES = (
    "[12/20/2025-04:20:19] [TRT-LLM] [I] ATTENTION RUNTIME FEATURES:  AttentionRuntimeFeatures("
    "chunked_prefill={chunked}, cache_reuse={reuse}, has_speculative_draft_tokens={draft}, chunk_size=8192)\n"
)
PARAMETERS = (
    "[TensorRT-LLM][WARNING] Fall back to unfused MHA for dataType = bf16, dataTypeKv = bf16, dataTypeOut = bf16, "
    "forceFp32Acc = false, attentionMaskType = causal, attentionInputLayout = {layout}, isSPadded = false, "
    "numQHeads = 64, numKvHeads = 8, numTokensPerBlock = 32, headSize = 96, headSizeV = 96, tpSize = 1 in sm_{sm}.\n"
)
OLD = (
    "[TensorRT-LLM][WARNING] Fall back to unfused MHA for data_type = bf16, head_size = 64, head_size_V = 0, "
    "attention_mask_type = causal, attention_input_layout = {layout}, num_tokens_per_block = 64, alibi = false, "
    "attn_logit_softcapping_scale = false in sm_{sm}.\n"
)
HEAD = "[TensorRT-LLM][WARNING] Fall back to unfused MHA because of unsupported head size 128 in sm_{sm}.\n"
PROBE = """\
[TensorRT-LLM][WARNING] FMHA kernels are not found with these parameters:
  S                     : 0
  D                     : 64
  AttentionMaskType     : 1
  AttentionInputLayout  : {layout}
  Hash                  : 0x0000000200800c00

Available kernel functions:
{kernels}
[TensorRT-LLM][WARNING] FMHA Kernel doesn't exist for mFixedParams:
"""
KERNEL = "  Meta[12]:\n    S                     : 0\n    AttentionInputLayout  : 0\n"
REFUSED = (
    "  what():  [TensorRT-LLM][ERROR] Assertion failed: FP8 FMHA cannot be enabled because Context FMHA is not "
    "supported. (/src/tensorrt_llm/cpp/tensorrt_llm/common/attentionOp.cpp:2109)\n"
)


def _features(chunked: bool = False, reuse: bool = False, draft: bool = False) -> str:
    return FEATURES.format(chunked=chunked, reuse=reuse, draft=draft)


def _fallback(read: Read, text: str, sm: int | None = None) -> Fallback:
    (boot,) = read(BANNER + text)
    found = fallback(boot, sm)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "reuse", "severity"),
    [
        pytest.param(PARAMETERS.format(layout="packed_qkv", sm=120), "off", "medium", id="packed"),
        pytest.param(OLD.format(layout="packed_qkv", sm=120), "off", "medium", id="packed, older wording"),
        pytest.param(
            _features(reuse=True) + PARAMETERS.format(layout="packed_qkv", sm=120), "off", "medium", id="packed, reuse"
        ),
        pytest.param(PARAMETERS.format(layout="q_paged_kv", sm=103), "unknown", "high", id="paged, nothing printed"),
        pytest.param(
            _features(reuse=True) + PARAMETERS.format(layout="q_paged_kv", sm=103), "on", "critical", id="reuse"
        ),
        pytest.param(
            _features(chunked=True) + PARAMETERS.format(layout="q_paged_kv", sm=103),
            "on",
            "critical",
            id="chunked prefill",
        ),
        pytest.param(
            _features(draft=True) + PARAMETERS.format(layout="q_paged_kv", sm=103), "on", "critical", id="draft tokens"
        ),
        pytest.param(
            _features() + PARAMETERS.format(layout="q_paged_kv", sm=103), "off", "medium", id="paged, all off"
        ),
        pytest.param(HEAD.format(sm=75), "unknown", "high", id="no layout"),
        pytest.param(
            PARAMETERS.format(layout="packed_qkv", sm=103) + PARAMETERS.format(layout="q_paged_kv", sm=103),
            "unknown",
            "high",
            id="one layer of two is paged",
        ),
        pytest.param(PROBE.format(layout=2, kernels=""), "unknown", "high", id="the look-up alone, paged"),
        pytest.param(PROBE.format(layout=0, kernels=""), "off", "medium", id="the look-up alone, packed"),
    ],
)
def test_severity_follows_who_reads_a_cached_prefix(read: Read, text: str, reuse: str, severity: str) -> None:
    found = _fallback(read, text)
    assert found.reuse == reuse
    assert kinds()["unfused"].severity_for("attention", against="default", reuse=found.reuse) == severity


def test_a_gate_that_turns_reuse_off_comes_after_the_wish(read: Read) -> None:
    gate = "[12/20/2025-04:20:20] [TRT-LLM] [W] Disabling block reuse for FLASHINFER backend\n"
    text = _features(reuse=True) + PARAMETERS.format(layout="q_paged_kv", sm=103)
    assert _fallback(read, text).reuse == "on"
    assert _fallback(read, text + gate).reuse == "off"


def test_reuse_is_read_from_the_dump_of_arguments(read: Read) -> None:
    dump = (
        "[01/20/2026-04:20:19] [TRT-LLM] [RANK 0] [I] LLM Args:\n"
        "model='/m' backend='pytorch' kv_cache_config=KvCacheConfig(enable_block_reuse={}, dtype='auto') "
        "enable_chunked_prefill=False\n"
    )
    text = PARAMETERS.format(layout="q_paged_kv", sm=103)
    assert _fallback(read, dump.format(True) + text).reuse == "on"
    assert _fallback(read, dump.format(False) + text).reuse == "unknown"  # draft tokens are not in the dump


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (HEAD.format(sm=75), "hardware"),
        (HEAD.format(sm=87), "hardware"),
        (PARAMETERS.format(layout="packed_qkv", sm=120), "version"),
        (PROBE.format(layout=2, kernels="") + PARAMETERS.format(layout="q_paged_kv", sm=80), "build"),
        (PROBE.format(layout=2, kernels=KERNEL) + PARAMETERS.format(layout="q_paged_kv", sm=80), "version"),
        ("[TensorRT-LLM][WARNING] Fall back to unfused MHA because of relative position embedding.\n", "checkpoint"),
        ("[TensorRT-LLM][WARNING] Alibi is not supported for FMHA on Volta.\n", "hardware"),
    ],
)
def test_cause(read: Read, text: str, cause: str) -> None:
    assert _fallback(read, text).cause == cause


def test_the_gpu_that_was_given_helps_where_the_log_names_none(read: Read) -> None:
    text = "[TensorRT-LLM][WARNING] FMHA Kernel doesn't exist for mFixedParams:\n"
    assert _fallback(read, text).cause == "unknown"
    assert _fallback(read, text, sm=75).cause == "hardware"


def test_three_records_of_one_miss_are_one_deviation(read: Read) -> None:
    text = (PROBE.format(layout=2, kernels="") + PARAMETERS.format(layout="q_paged_kv", sm=80)) * 3
    found = _fallback(read, text)
    assert len(found.facts) == 3  # the fallback's own records only
    assert not found.derived


def test_a_miss_whose_fallback_is_cut_off_is_derived(read: Read) -> None:
    (boot,) = read(BANNER + PROBE.format(layout=2, kernels=""))
    row = unfused(Row("attention", "", "unproven"), boot)
    assert (row.verdict, row.authority, row.kinds, row.reuse) == ("downgraded", "derived", ("unfused",), "unknown")


def test_a_boot_without_a_miss_keeps_its_row(read: Read) -> None:
    (boot,) = read(BANNER + _features(reuse=True))
    row = Row("attention", "", "no-promise")
    assert unfused(row, boot) is row


def test_fp8_attention_after_a_miss_is_refused(read: Read) -> None:
    text = PARAMETERS.format(layout="q_paged_kv", sm=120)
    (kept_on,) = read(BANNER + text)
    (died,) = read(BANNER + text + REFUSED)
    before, after = (unfused(Row("attention", "", "unproven"), b) for b in (kept_on, died))
    assert (before.verdict, after.verdict) == ("downgraded", "not-served")
    assert "FP8 FMHA cannot be enabled" in (after.refusal or "")
    assert (kept_on.status, died.status) == ("incomplete", "failed")


def test_the_wording_with_braces_is_the_encoders(read: Read) -> None:
    text = "[TensorRT-LLM][WARNING] Fall back to unfused MHA because of unsupported head size 64 in sm_{75}.\n"
    (boot,) = read(BANNER + text)
    assert fallback(boot) is None
    found = fallback(boot, component="encoder")
    assert found is not None and found.cause == "hardware"


FP8_OFF = (
    "[05/04/2025-10:58:17] [TRT-LLM] [I] Set use_fp8_context_fmha to False.\n"
    "[05/04/2025-10:58:17] [TRT-LLM] [W] FP8 Context FMHA is disabled because it must be used together with the fp8 "
    "quantization workflow.\n"
)


@pytest.mark.parametrize(
    ("promise", "lost"),
    [
        (None, 0),
        (Promise("none", "BF16"), 0),
        (Promise("awq", "W4A16-INT4 g128", algo="W4A16_AWQ"), 0),
        (Promise("modelopt", "W8A8-FP8", algo="FP8"), 1),
        (Promise("fp8", "W8A8-FP8"), 1),
    ],
)
def test_fp8_context_attention_is_lost_on_an_fp8_checkpoint_only(read: Read, promise: Any, lost: int) -> None:
    (boot,) = read(BANNER + FP8_OFF)
    assert len(lost_fp8(boot, promise)) == lost
    assert fallback(boot) is None  # the fused 16-bit kernel still runs


def test_the_promise_that_the_log_prints_counts_too(read: Read) -> None:
    algo = "[05/04/2025-10:58:16] [TRT-LLM] [I] Setting quant_algo=FP8 from HF quant config.\n"
    (boot,) = read(BANNER + algo + FP8_OFF)
    assert len(lost_fp8(boot, None)) == 1


def test_the_same_two_words_of_another_library_are_not_about_attention(read: Read) -> None:
    ours = "Error in function 'TllmGenFmhaRunner' at /x/trtllm/fmha/fmhaRunner.cuh:30: Unsupported architecture\n"
    theirs = "RuntimeError: Assertion error (/deepgemm/csrc/apis/attention.hpp:210): Unsupported architecture\n"
    (boot,) = read(BANNER + ours)
    (other,) = read(BANNER + theirs)
    assert [f.name for f in boot.facts if f.name.endswith(".refused")] == ["attention.refused"]
    assert not [f for f in other.facts if f.name.endswith(".refused")]
