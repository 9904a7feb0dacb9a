"""Verdicts of SGLang's and TensorRT-LLM's boots, from the log to the document."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logscan import triage

Judge = Callable[..., dict[str, Any]]
SGL = "[2026-09-30 14:27:37] server_args=ServerArgs(model_path='org/model', quantization=None, kv_cache_dtype='{kv}')\n"
SGL_READY = "[2026-09-30 14:28:40] The server is fired up and ready to roll!\n"
TRT = "[TensorRT-LLM] TensorRT-LLM version: {}\n"
PY = "[12/20/2025-04:20:19] [TRT-LLM] [{}] {}\n"
CPP = "[TensorRT-LLM][INFO] Number of tokens per block: 32.\n"
TRT_READY = "INFO:     Application startup complete.\n"
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}
BLOCK = {**FP8, "weight_block_size": [128, 128]}
MODELOPT = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
NVFP4 = {
    "producer": {"name": "modelopt"},
    "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "NVFP4", "group_size": 16},
}
PLAIN: dict[str, Any] = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"}


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """The first boot of a document: `judge(log, quantization_config or sidecar, gpu=…)`."""

    def of(
        log: str, config: dict[str, Any] | None = None, plain: dict[str, Any] = PLAIN, **given: Any
    ) -> dict[str, Any]:
        path = tmp_path / "boot.log"
        path.write_text(log)
        if config is not None:
            sidecar = "producer" in config
            ckpt = tmp_path / ("hf_quant_config.json" if sidecar else "config.json")
            whole = plain if not config else {**plain, "quantization_config": config}
            ckpt.write_text(json.dumps(config if sidecar else whole))
            given["ckpt"] = str(ckpt)
        boot: dict[str, Any] = triage(str(path), **given)["logs"][0]["boots"][0]
        return boot

    return of


def row(boot: dict[str, Any], path: str) -> dict[str, Any]:
    (found,) = [r for r in boot["paths"] if r["path"] == path]
    return found


def codes(boot: dict[str, Any]) -> list[str]:
    return [f["code"] for f in boot["findings"]]


# ---------------------------------------------------------------- SGLang: derived where it prints nothing


@pytest.mark.parametrize(
    ("version", "gpu", "verdict", "kinds"),
    [
        ("0.5.13", "H100", "downgraded", ["weight-only"]),
        ("0.5.13", "A100", "downgraded", ["weight-only"]),
        ("0.5.13", "B200", "kept", []),
        ("0.5.13", "RTX 5090", "kept", []),
        ("0.5.12", "B200", "kept", []),
    ],
)
def test_nvfp4_below_sm100_runs_weight_only_and_no_line_says_so(
    judge: Judge, version: str, gpu: str, verdict: str, kinds: list[str]
) -> None:
    boot = judge(SGL.format(kv="auto") + SGL_READY, NVFP4, gpu=gpu, engine=f"sglang=={version}")
    found = row(boot, "linear")
    assert (found["verdict"], found["kinds"]) == (verdict, kinds)
    assert found["authority"] == "derived"
    assert found["visibility"] == ("silent" if kinds else None)


def test_without_a_gpu_the_same_checkpoint_is_unproven(judge: Judge) -> None:
    found = row(judge(SGL.format(kv="auto") + SGL_READY, NVFP4, engine="sglang==0.5.13"), "linear")
    assert (found["verdict"], found["reasons"]) == ("unproven", ["no-gpu"])


def test_a_release_that_was_not_read_is_unproven(judge: Judge) -> None:
    found = row(judge(SGL.format(kv="auto") + SGL_READY, FP8, gpu="A100", engine="sglang==0.4.6"), "linear")
    assert found["verdict"] == "unproven"


def test_an_undated_log_says_that_the_release_decides(judge: Judge) -> None:
    found = row(judge(SGL.format(kv="auto") + SGL_READY, FP8, gpu="A100"), "linear")
    assert found["verdict"] == "unproven" and "version-ambiguous" in found["reasons"]
    dated = SGL.format(kv="auto") + "[2026-09-30 14:27:52] Using KV cache dtype: torch.bfloat16\n" + SGL_READY
    assert row(judge(dated, FP8, gpu="H100"), "linear")["verdict"] == "kept"


MARLIN = (
    "[2026-09-30 14:27:50] Your GPU does not have native support for FP8 computation but FP8 quantization is being "
    "used. Weight-only FP8 compression will be used leveraging the Marlin kernel. This may degrade performance for "
    "compute-heavy workloads.\n"
)


@pytest.mark.parametrize(("gpu", "verdict"), [("A100", "downgraded"), ("L40S", "kept"), ("H100", "kept")])
def test_fp8_on_cards_without_it_runs_weight_only(judge: Judge, gpu: str, verdict: str) -> None:
    line = MARLIN if verdict == "downgraded" else ""
    found = row(judge(SGL.format(kv="auto") + line + SGL_READY, FP8, gpu=gpu, engine="sglang==0.5.14"), "linear")
    assert found["verdict"] == verdict
    assert found["visibility"] == ("warned" if line else None)


def test_a_variable_forces_marlin_on_a_card_that_has_fp8(judge: Judge) -> None:
    given = {"gpu": "H100", "engine": "sglang==0.5.14", "env": {"SGLANG_FORCE_FP8_MARLIN": "1"}}
    found = row(judge(SGL.format(kv="auto") + MARLIN + SGL_READY, FP8, **given), "linear")
    assert (found["verdict"], found["cause"]) == ("downgraded", "request")


# ---------------------------------------------------------------- SGLang: the KV cache

ALLOCATED = "[2026-09-30 14:28:00] KV Cache is allocated. dtype: torch.{}, #tokens: 9, K size: 1.0 GB, V size: 1.0 GB\n"
DROPPED = "[2026-09-30 14:27:59] Parameter model.layers.0.self_attn.k_scale not found in params_dict\n"
UNSCALED = (
    "[2026-09-30 14:27:59] Using FP8 KV cache but no scaling factors provided. Defaulting to scaling factors of 1.0. "
    "This may lead to less accurate results!\n"
)


@pytest.mark.parametrize(
    ("asked", "lines", "config", "verdict", "kinds"),
    [
        pytest.param("fp8_e4m3", ALLOCATED.format("float8_e4m3fn"), {}, "kept", [], id="asked and given"),
        pytest.param(
            "fp8_e4m3", UNSCALED + ALLOCATED.format("float8_e4m3fn"), {}, "kept", ["uncalibrated"], id="scale 1.0"
        ),
        pytest.param("fp8_e4m3", ALLOCATED.format("bfloat16"), {}, "downgraded", ["ignored"], id="asked, not given"),
        pytest.param("fp8_e4m3", ALLOCATED.format("float8_e5m2"), {}, "downgraded", ["type-changed"], id="another FP8"),
        pytest.param("auto", ALLOCATED.format("bfloat16"), {}, "no-promise", [], id="nothing asked"),
        pytest.param("auto", ALLOCATED.format("bfloat16"), MODELOPT, "downgraded", ["ignored"], id="promise dropped"),
        pytest.param("auto", ALLOCATED.format("float8_e4m3fn"), MODELOPT, "kept", [], id="promise kept"),
        pytest.param("auto", ALLOCATED.format("bfloat16"), NVFP4, "downgraded", ["ignored"], id="NVFP4 is not heard"),
        pytest.param("auto", DROPPED + ALLOCATED.format("bfloat16"), None, "downgraded", ["ignored"], id="its scales"),
        pytest.param(
            "auto", DROPPED + ALLOCATED.format("float8_e4m3fn"), MODELOPT, "downgraded", ["uncalibrated"], id="unloaded"
        ),
    ],
)
def test_what_the_cache_was_allocated_in_decides(
    judge: Judge, asked: str, lines: str, config: dict[str, Any] | None, verdict: str, kinds: list[str]
) -> None:
    boot = judge(SGL.format(kv=asked) + lines + SGL_READY, config, gpu="H100", engine="sglang==0.5.14")
    found = row(boot, "kv_cache")
    assert (found["verdict"], found["kinds"]) == (verdict, kinds)


@pytest.mark.parametrize(("version", "verdict"), [("0.5.3", "kept"), ("0.5.2", "downgraded")])
def test_a_modelopt_promise_is_heard_from_0_5_3_on(judge: Judge, version: str, verdict: str) -> None:
    found = row(judge(SGL.format(kv="auto") + SGL_READY, MODELOPT, gpu="H100", engine=f"sglang=={version}"), "kv_cache")
    assert (found["verdict"], found["authority"]) == (verdict, "derived")


def test_fp4_that_falls_back_is_not_given(judge: Judge) -> None:
    line = (
        "[2026-09-30 14:27:59] --kv-cache-dtype falls back to 'auto' because this torch version does not support "
        "torch.float4_e2m1fn_x2\n"
    )
    given = {"gpu": "B200", "engine": "sglang==0.5.6"}
    before, after = (judge(SGL.format(kv="fp4_e2m1") + x + SGL_READY, {}, **given) for x in ("", line))
    assert row(before, "kv_cache")["verdict"] == "unproven"
    found = row(after, "kv_cache")
    assert (found["verdict"], found["kinds"], found["against"]) == ("downgraded", ["ignored"], "request")


# ---------------------------------------------------------------- single lines


def test_a_method_that_the_card_is_refused_for_is_not_served(judge: Judge) -> None:
    lines = (
        "[2026-09-30 14:27:52] Scheduler hit an exception: Traceback (most recent call last):\n"
        '  File "/x/sglang/srt/model_loader/loader.py", line 1, in _get_quantization_config\n'
        "ValueError: The quantization method modelopt_fp4 is not supported for the current GPU. Minimum capability: "
        "100. Current capability: 90.\n"
    )
    boot = judge(SGL.format(kv="auto") + lines, NVFP4, gpu="H100", engine="sglang==0.5.12")
    assert (boot["status"], row(boot, "linear")["verdict"]) == ("failed", "not-served")
    assert {"LS100", "LS505"} <= set(codes(boot))


def test_experts_of_another_type_are_told(judge: Judge) -> None:
    line = "[2026-09-30 14:27:50] Dequantized FP4 expert weights to FP8.\n"
    config = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    given = {"gpu": "H100", "engine": "sglang==0.5.16"}
    before, after = (judge(SGL.format(kv="auto") + x + SGL_READY, config, **given) for x in ("", line))
    assert row(before, "moe")["verdict"] == "unproven"
    assert (row(after, "moe")["verdict"], row(after, "moe")["kinds"]) == ("downgraded", ["type-changed"])
    assert "LS204" in codes(after)


def test_scales_that_are_rounded_anew_are_told_and_move_nothing(judge: Judge) -> None:
    line = (
        "[2026-09-30 14:27:50] DeepGemm is enabled but the scale_fmt of checkpoint is not ue8m0. This might cause "
        "accuracy degradation on Blackwell.\n"
    )
    given = {"gpu": "B200", "engine": "sglang==0.5.10"}
    plain, noted = (judge(SGL.format(kv="auto") + x + SGL_READY, BLOCK, **given) for x in ("", line))
    assert row(plain, "linear")["kinds"] == [] and "LS110" not in codes(plain)
    assert (row(noted, "linear")["verdict"], row(noted, "linear")["kinds"]) == ("kept", ["rescaled"])
    assert "LS110" in codes(noted)


def test_a_backend_that_was_replaced_is_told(judge: Judge) -> None:
    line = (
        "[2026-09-30 14:27:50] mxfp8 quantization supports only ['cutlass', 'flashinfer_trtllm'] backends. "
        "Overriding 'triton'.\n"
    )
    assert "LS208" in codes(judge(SGL.format(kv="auto") + line + SGL_READY, engine="sglang==0.5.16"))


def test_an_algorithm_that_does_not_exist_is_told(judge: Judge) -> None:
    line = PY.format("W", "Unsupported quant algo: W4A4, supported algos: dict_keys(['W4A16_MXFP4'])")
    assert "LS601" in codes(judge(TRT.format("1.1.0") + line + TRT_READY))


def test_a_quantization_that_pytorch_ignores_is_told(judge: Judge) -> None:
    line = PY.format(
        "W", "QuantConfig for pytorch backend is ignored. You can load quantized model with hf_quant_config"
    )
    assert "LS601" in codes(judge(TRT.format("0.20.0") + line + TRT_READY))


def test_two_files_of_the_checkpoint_that_disagree_are_told(judge: Judge) -> None:
    lines = PY.format("W", "Inline 'config.json.quantization_config' diverges from 'hf_quant_config.json':")
    lines += "  - kv_cache_quant_algo: file='FP8', inline=None\n"
    boot = judge(TRT.format("1.3.0rc25") + lines + TRT_READY)
    (found,) = [f for f in boot["findings"] if f["code"] == "LS702"]
    assert "hf_quant_config.json" in found["message"]


# ---------------------------------------------------------------- TensorRT-LLM

QUANT = PY.format("I", "Setting quant_algo={} from HF quant config.") + PY.format(
    "I", "Setting kv_cache_quant_algo={} from HF quant config."
)
AUTO = PY.format("I", 'KV cache quantization set to "auto". Using checkpoint KV quantization.')


@pytest.mark.parametrize(
    ("gpu", "linear", "kv"),
    [("H100", "kept", "kept"), ("L40S", "kept", "kept"), ("A100", "unproven", "kept")],
)
def test_the_promise_that_the_log_prints_is_the_yardstick(judge: Judge, gpu: str, linear: str, kv: str) -> None:
    boot = judge(TRT.format("0.20.0") + QUANT.format("FP8", "FP8") + AUTO + CPP + TRT_READY, gpu=gpu)
    assert (boot["promise"]["authority"], boot["promise"]["label"][:8]) == ("logged", "W8A8-FP8")
    assert [row(boot, p)["verdict"] for p in ("linear", "kv_cache")] == [linear, kv]


def test_a_checkpoint_that_the_log_contradicts_is_told(judge: Judge) -> None:
    log = TRT.format("1.2.0") + QUANT.format("NVFP4", "FP8") + AUTO + CPP + TRT_READY
    agreed, wrong = judge(log, NVFP4, gpu="B200"), judge(log, MODELOPT, gpu="B200")
    assert "LS701" not in codes(agreed)
    assert "LS701" in codes(wrong) and row(wrong, "linear")["reasons"] == ["checkpoint-mismatch"]
    assert wrong["promise"]["authority"] == "given"


def test_an_algorithm_without_its_layers_contradicts_nothing(judge: Judge) -> None:
    log = TRT.format("1.2.0") + QUANT.format("MIXED_PRECISION", "FP8") + AUTO + CPP + TRT_READY
    assert "LS701" not in codes(judge(log, NVFP4, gpu="B200"))


@pytest.mark.parametrize(("gpu", "kinds"), [("H100", []), ("B200", ["rescaled"]), ("RTX 5090", ["rescaled"])])
def test_block_scales_are_rounded_on_blackwell_without_a_line(judge: Judge, gpu: str, kinds: list[str]) -> None:
    found = row(judge(TRT.format("1.2.0") + AUTO + CPP + TRT_READY, BLOCK, gpu=gpu), "linear")
    assert (found["verdict"], found["kinds"]) == ("kept", kinds)


@pytest.mark.parametrize(("gpu", "ran"), [("H100", "W4A16"), ("B200", "W4A8")])
def test_gpt_oss_leaves_its_activations_to_the_engine(judge: Judge, gpu: str, ran: str) -> None:
    config = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    boot = judge(TRT.format("1.2.0") + AUTO + CPP + TRT_READY, config, gpu=gpu)
    found = row(boot, "moe")
    assert (found["verdict"], found["promised"][:5]) == ("kept", "W4A?-")
    assert found["ran"].split("-")[0] == ran


def test_a_dtype_that_beats_the_checkpoints_is_the_request(judge: Judge) -> None:
    line = PY.format(
        "W", 'Overriding checkpoint KV cache quantization "NVFP4" with llm_args.KvCacheConfig.dtype="fp8".'
    )
    found = row(judge(TRT.format("1.3.0rc25") + line + CPP + TRT_READY, NVFP4, gpu="B200"), "kv_cache")
    assert (found["requested"], found["against"], found["verdict"]) == ("FP8", "request", "kept")
    assert found["promised"].startswith("NVFP4")


def test_a_cache_scheme_that_is_not_read_leaves_16_bits(judge: Judge) -> None:
    line = PY.format("W", "Unrecognized 'kv_cache_scheme' {'type': 'float'}; KV-cache quant disabled.")
    log = TRT.format("1.3.0rc25") + "{}" + CPP + TRT_READY
    before, after = (judge(log.replace("{}", x), MODELOPT, gpu="H100") for x in ("", line))
    assert row(before, "kv_cache")["verdict"] == "kept"
    assert (row(after, "kv_cache")["verdict"], row(after, "kv_cache")["kinds"]) == ("downgraded", ["ignored"])


SM120 = "RuntimeError: [TensorRT-LLM][ERROR] Assertion failed: mFP8ContextFMHA must enable if FP4 KV cache is enabled\n"


@pytest.mark.parametrize(("line", "verdict"), [("", "unproven"), (SM120, "not-served")])
def test_an_nvfp4_cache_on_sm120(judge: Judge, line: str, verdict: str) -> None:
    end = "" if line else TRT_READY
    boot = judge(TRT.format("1.2.0") + QUANT.format("NVFP4", "NVFP4") + AUTO + CPP + line + end, gpu="RTX 5090")
    assert row(boot, "kv_cache")["verdict"] == verdict
    assert boot["status"] == ("failed" if line else "ready")


# ---------------------------------------------------------------- context attention

UNFUSED = (
    "[TensorRT-LLM][WARNING] Fall back to unfused MHA for dataType = bf16, dataTypeKv = bf16, dataTypeOut = bf16, "
    "forceFp32Acc = false, attentionMaskType = causal, attentionInputLayout = {}, isSPadded = false, numQHeads = 64, "
    "numKvHeads = 8, numTokensPerBlock = 32, headSize = 96, headSizeV = 96, tpSize = 1 in sm_120.\n"
)
FEATURES = PY.format(
    "I",
    "ATTENTION RUNTIME FEATURES:  AttentionRuntimeFeatures(chunked_prefill={}, cache_reuse={}, "
    "has_speculative_draft_tokens=False, chunk_size=8192)",
)


@pytest.mark.parametrize(
    ("features", "layout", "severity"),
    [
        pytest.param("", "packed_qkv", "medium", id="plain"),
        pytest.param(FEATURES.format(True, False), "q_paged_kv", "critical", id="chunked prefill"),
        pytest.param(FEATURES.format(False, True), "q_paged_kv", "critical", id="reuse"),
        pytest.param(FEATURES.format(False, False), "q_paged_kv", "medium", id="neither"),
        pytest.param("", "q_paged_kv", "high", id="not told"),
    ],
)
def test_unfused_attention_by_consequence(judge: Judge, features: str, layout: str, severity: str) -> None:
    boot = judge(TRT.format("1.1.0") + features + UNFUSED.format(layout) + TRT_READY)
    (found,) = [f for f in boot["findings"] if f["code"] == "LS307"]
    assert (found["severity"], row(boot, "attention")["verdict"]) == (severity, "downgraded")


FP8_OFF = PY.format(
    "W", "FP8 Context FMHA is disabled because it must be used together with the fp8 quantization workflow."
)


@pytest.mark.parametrize(("config", "told"), [({}, False), (MODELOPT, True), (None, False)])
def test_fp8_attention_is_lost_on_an_fp8_checkpoint_only(
    judge: Judge, config: dict[str, Any] | None, told: bool
) -> None:
    boot = judge(TRT.format("0.20.0") + FP8_OFF + TRT_READY, config)
    assert ("LS308" in codes(boot)) is told
    assert row(boot, "attention")["verdict"] in ("no-promise", "unproven")


def test_the_same_two_words_of_deepgemm_are_not_about_attention(judge: Judge) -> None:
    log = "RuntimeError: Assertion error (/deepgemm/csrc/apis/attention.hpp:210): Unsupported architecture\n"
    boot = judge(TRT.format("1.1.0") + log)
    assert row(boot, "attention")["verdict"] != "not-served" and not {"LS300", "LS307"} & set(codes(boot))


# ---------------------------------------------------------------- absence needs a level


@pytest.mark.parametrize(
    ("lines", "hidden"),
    [
        (AUTO + CPP, False),
        (CPP, True),
        (AUTO, True),
        (PY.format("E", "x") + CPP, True),
    ],
)
def test_a_silent_logger_is_a_reason(judge: Judge, lines: str, hidden: bool) -> None:
    found = row(judge(TRT.format("1.2.0") + lines + TRT_READY, NVFP4, gpu="H100"), "linear")
    assert found["verdict"] == "unproven" and ("log-level" in found["reasons"]) is hidden


# ---------------------------------------------------------------- SGLang: values that nobody has read


SGL_ASKED = SGL.replace(")\n", ", {})\n")


@pytest.mark.parametrize(
    ("asked", "path", "verdict"),
    [
        ("fp8_gemm_runner_backend='triton'", "linear", "kept"),
        ("fp8_gemm_runner_backend='theirs'", "linear", "unproven"),
        ("load_format='fastsafetensors'", "linear", "kept"),
        ("load_format='flash_rl'", "linear", "unproven"),
        ("moe_runner_backend='theirs'", "linear", "kept"),
        ("moe_runner_backend='flashinfer_trtllm'", "moe", "kept"),
        ("moe_runner_backend='lora_marlin'", "moe", "unproven"),
        ("moe_runner_backend='marlin'", "moe", "unproven"),
        ("load_format='bitsandbytes'", "moe", "unproven"),
    ],
)
def test_a_backend_that_no_table_knows_keeps_nothing(judge: Judge, asked: str, path: str, verdict: str) -> None:
    plain = {**PLAIN, "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_experts": 128}
    log = SGL_ASKED.format(asked, kv="auto") + SGL_READY
    found = row(judge(log, BLOCK, plain=plain, gpu="H100", cuda="12.8", engine="sglang==0.5.20"), path)
    assert found["verdict"] == verdict
    assert verdict == "kept" or "='marlin'" in asked or found["reasons"] == ["unknown-kernel"]


@pytest.mark.parametrize("config", [{}, MODELOPT], ids=["unquantized", "promised"])
def test_a_cache_dtype_that_no_table_knows_is_unproven(judge: Judge, config: dict[str, Any]) -> None:
    given = {"gpu": "H100", "engine": "sglang==0.5.20"}
    assert row(judge(SGL.format(kv="fp9") + SGL_READY, config, **given), "kv_cache")["verdict"] == "unproven"
    shown = ALLOCATED.format("float8_e4m3fn")
    assert row(judge(SGL.format(kv="fp9") + shown + SGL_READY, config, **given), "kv_cache")["verdict"] == "unproven"
