"""What SGLang and TensorRT-LLM will run, before a log exists."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from logscan import expect
from logscan.model import InputError
from logscan.report.forecast import render

PLAIN: dict[str, Any] = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"}
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}
BLOCK = {**FP8, "weight_block_size": [128, 128]}
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4", "config_groups": {}, "ignore": ["lm_head"]}
CT = {
    "quant_method": "compressed-tensors",
    "format": "nvfp4-pack-quantized",
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
            "input_activations": {
                "num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "dynamic": "local"
            },
        }
    },
}  # fmt: skip


def linear(tmp_path: Path, config: dict[str, Any] | None, gpu: str, engine: str, **given: Any) -> dict[str, Any]:
    (tmp_path / "config.json").write_text(json.dumps({**PLAIN, "quantization_config": config} if config else PLAIN))
    document: dict[str, Any] = expect(str(tmp_path / "config.json"), gpu, engine, **given)  # type: ignore[assignment]
    (row,) = [r for r in document["paths"] if r["path"] == "linear"]
    return row


@pytest.mark.parametrize(
    ("config", "gpu", "engine", "verdict", "kinds", "printed"),
    [
        (NVFP4, "H100", "sglang==0.5.13", "downgraded", ["weight-only"], []),
        (NVFP4, "H100", "sglang==0.5.12", "not-served", [], []),
        (NVFP4, "B200", "sglang==0.5.13", "kept", [], []),
        (CT, "H100", "sglang==0.5.22", "downgraded", ["weight-only"], ["sglang.marlin.nvfp4"]),
        (CT, "H100", "sglang==0.5.21", "not-served", [], []),
        (CT, "RTX 5090", "sglang==0.5.21", "kept", [], []),
        (FP8, "A100", "sglang==0.5.1", "downgraded", ["weight-only"], ["sglang.marlin.fp8"]),
        (FP8, "A100", "sglang==0.4.10", "unproven", [], []),
        (FP8, "T4", "sglang==0.5.1", "not-served", [], []),
        (FP8, "L40S", "sglang==0.5.1", "kept", [], []),
        (FP8, "RTX 5090", "sglang==0.5.19", "kept", [], []),
        (FP8, "RTX 5090", "sglang==0.5.20", "unproven", [], []),
        (BLOCK, "H100", "sglang==0.5.23", "kept", [], []),
        (BLOCK, "H100", "trtllm==1.2.0", "kept", [], []),
        (BLOCK, "B200", "trtllm==1.2.0", "kept", ["rescaled"], []),
        (BLOCK, "L40S", "trtllm==1.2.0", "unproven", [], []),
        (FP8, "H100", "trtllm==1.2.0", "unproven", [], []),
        (NVFP4, "B200", "trtllm==1.2.0", "kept", [], []),
        (NVFP4, "H100", "trtllm==1.2.0", "unproven", [], []),
    ],
)
def test_what_will_run(
    tmp_path: Path, config: dict[str, Any], gpu: str, engine: str, verdict: str, kinds: list[str], printed: list[str]
) -> None:
    row = linear(tmp_path, config, gpu, engine)
    assert (row["verdict"], row["kinds"]) == (verdict, kinds)
    assert [p["pattern"] for p in row["prints"] if p["pattern"]] == printed


@pytest.mark.parametrize(
    ("cuda", "verdict", "kinds"), [("12.4", "kept", []), ("12.1", "downgraded", ["coarser-scales"])]
)
def test_online_fp8_follows_the_toolkit_on_ada(tmp_path: Path, cuda: str, verdict: str, kinds: list[str]) -> None:
    row = linear(tmp_path, None, "L40S", "sglang==0.5.13", cuda=cuda, flags={"quantization": "fp8"})
    assert (row["verdict"], row["kinds"]) == (verdict, kinds)
    if kinds:
        assert (row["against"], row["cause"]) == ("default", "build")


@pytest.mark.parametrize(
    ("gpu", "backend", "verdict"),
    [
        ("B200", "marlin", "downgraded"),
        ("B200", "flashinfer_cutlass", "kept"),
        ("H100", "flashinfer_cutlass", "not-served"),
    ],
)
def test_a_backend_that_is_asked_for(tmp_path: Path, gpu: str, backend: str, verdict: str) -> None:
    row = linear(tmp_path, NVFP4, gpu, "sglang==0.5.13", flags={"linear_backend": backend})
    assert row["verdict"] == verdict
    if backend == "marlin":
        assert row["cause"] == "request"


def test_a_range_of_releases_shows_where_it_turns(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**PLAIN, "quantization_config": NVFP4}))
    document: dict[str, Any] = expect(str(tmp_path), "H100", "sglang==0.5.12..0.5.13")  # type: ignore[assignment]
    verdicts = {r["engine"]: r["verdict"] for r in document["releases"]}
    assert verdicts["sglang==0.5.12"] == "not-served" and verdicts["sglang==0.5.13"] == "downgraded"


def test_an_unknown_release_names_the_newest(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(PLAIN))
    with pytest.raises(InputError, match="sglang"):
        expect(str(tmp_path), "H100", "sglang==x")


NATIVE = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "torch_dtype": "bfloat16",
    "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"},
}


@pytest.mark.parametrize(
    ("gpu", "untrue"), [("A100", "selected-cutlass-while-marlin"), ("L40S", None)], ids=["marlin runs", "cutlass runs"]
)
def test_a_line_that_will_not_be_true_is_marked(tmp_path: Path, gpu: str, untrue: str | None) -> None:
    (tmp_path / "config.json").write_text(json.dumps(NATIVE))
    document = expect(str(tmp_path / "config.json"), gpu=gpu, engine="vllm==0.16.0")
    (row,) = [r for r in document["paths"] if r["path"] == "linear"]
    prints = {p["pattern"]: p["distrusted_by"] for p in row["prints"]}
    assert prints["vllm.linear.selected"] == untrue
    text = render(dict(document), width=200)
    assert ("printed, and not true" in text) == (untrue is not None)


def test_what_cannot_be_told_says_what_to_do_and_does_not_promise_silence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(NATIVE))
    document = expect(str(tmp_path / "config.json"), gpu="L40S", engine="vllm==0.16.0")
    text = render(dict(document), width=200)
    assert "nothing in the log will say so" not in text
    assert "no-cuda" in text and "Give --cuda" in text
