"""SGLang and TensorRT-LLM logs that lie, lack their head, or name what nobody knows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logscan

Doc = dict[str, Any]
Judge = Callable[..., Doc]
MODEL: Doc = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"}
FP8: Doc = {**MODEL, "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}}
NVFP4: Doc = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "NVFP4", "group_size": 16}}
FP8_KV: Doc = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}
READY = "[2026-09-30 14:28:40] The server is fired up and ready to roll!\n"


def line(text: str) -> str:
    return f"[2026-09-30 14:27:50] {text}\n"


def head(more: str = "", quantization: str = "None", kv: str = "auto") -> str:
    order = f"model_path='org/model', quantization={quantization}, kv_cache_dtype='{kv}'{more}"
    return f"[2026-09-30 14:27:37] server_args=ServerArgs({order})\n"


@pytest.fixture
def judged(tmp_path: Path) -> Judge:
    def run(text: str, config: Doc | None = None, gpu: str = "H100", engine: str = "sglang==0.5.14") -> Doc:
        (tmp_path / "boot.log").write_text(text)
        given: Doc = {"gpu": gpu, "engine": engine}
        if config is not None:
            (tmp_path / "config.json").write_text(json.dumps(config))
            given["ckpt"] = str(tmp_path / "config.json")
        (boot,) = logscan.triage(tmp_path / "boot.log", **given)["logs"][0]["boots"]
        return dict(boot)

    return run


def of(boot: Doc, path: str = "linear") -> tuple[str, list[str]]:
    (row,) = [r for r in boot["paths"] if r["path"] == path]
    return row["verdict"], row["reasons"]


def test_what_was_asked_for_must_be_seen(judged: Judge) -> None:
    assert of(judged(head() + READY, FP8)) == ("kept", [])
    assert of(judged(READY, FP8)) == ("unproven", ["head-missing"])
    assert of(judged(READY, FP8, gpu="A100")) == ("unproven", ["head-missing"])
    assert of(judged(READY, FP8_KV, engine="sglang==0.5.2"), "kv_cache")[0] == "unproven"


@pytest.mark.parametrize("method", ["w8a8_int8", "awq", "gptq_marlin", "modelopt_fp4", "mxfp4", "foobar"])
def test_a_method_that_the_checkpoint_is_not_of(judged: Judge, method: str) -> None:
    boot = judged(head(quantization=f"'{method}'") + READY, FP8)
    assert of(boot) == ("unproven", ["checkpoint-mismatch"])
    assert "LS701" in [f["code"] for f in boot["findings"]]


def test_the_checkpoints_own_method_may_be_asked_for(judged: Judge) -> None:
    assert of(judged(head(quantization="'fp8'") + READY, FP8))[0] == "kept"


@pytest.mark.parametrize("dtype", ["torch.foo", "torch.int8"])
def test_a_cache_allocated_in_a_type_that_nobody_knows(judged: Judge, dtype: str) -> None:
    said = line(f"KV Cache is allocated. dtype: {dtype}, #tokens: 9, K size: 1.0 GB, V size: 1.0 GB")
    assert of(judged(head(kv="fp8_e4m3") + said + READY, MODEL), "kv_cache")[0] == "unproven"


def test_a_device_that_the_log_denies(judged: Judge) -> None:
    boot = judged(head(", device='cpu'") + READY, FP8)
    assert of(boot)[0] == "unproven"
    assert "LS704" in [f["code"] for f in boot["findings"]]


def test_algorithms_of_two_models_promise_nothing(judged: Judge) -> None:
    took = "[TensorRT-LLM] TensorRT-LLM version: 1.2.0\n"
    for algo in ("FP8", "NVFP4"):
        took += f"[09/30/2026-14:27:50] [TRT-LLM] [I] Setting quant_algo={algo} from HF quant config.\n"
    boot = judged(took, None, gpu="B200", engine="trtllm==1.2.0")
    assert "kept" not in [r["verdict"] for r in boot["paths"]]


def test_an_algorithm_of_another_name_is_another_checkpoints(judged: Judge) -> None:
    took = "[TensorRT-LLM] TensorRT-LLM version: 1.2.0\n"
    took += "[09/30/2026-14:27:50] [TRT-LLM] [I] Setting quant_algo=FOOBAR from HF quant config.\n"
    boot = judged(took, NVFP4, gpu="B200", engine="trtllm==1.2.0")
    assert "LS701" in [f["code"] for f in boot["findings"]]
    assert "kept" not in [r["verdict"] for r in boot["paths"]]


def test_a_warning_that_is_not_there_denies_what_would_print_it(judged: Judge) -> None:
    """SGLang prints no levels; Marlin's warning is missing, so the GPU that was given is not the one that ran."""
    loaded = line("Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=30 GB, mem usage=8 GB.")
    assert of(judged(head(", log_level='info'") + loaded + READY, FP8, gpu="A100"))[0] == "unproven"
