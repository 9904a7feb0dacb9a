"""Headers of tensor files: what is stored, and where that contradicts the promise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from logscan.checkpoint.reader import read_checkpoint
from logscan.checkpoint.tensors import MAX_HEADER, read_tensors

ROOT = {"model_type": "llama", "torch_dtype": "bfloat16"}
FP8 = {"quant_method": "fp8", "activation_scheme": "static", "kv_cache_scheme": "static"}
STORED = {
    "model.layers.0.self_attn.q_proj.weight": "F8_E4M3",
    "model.layers.0.self_attn.q_proj.weight_scale": "F32",
    "model.layers.0.self_attn.q_proj.input_scale": "F32",
    "model.layers.0.self_attn.k_scale": "F32",
    "model.norm.weight": "BF16",
}


def header(tensors: dict[str, str]) -> bytes:
    entries: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    entries |= {name: {"dtype": dtype, "shape": [1], "data_offsets": [0, 4]} for name, dtype in tensors.items()}
    text = json.dumps(entries).encode()
    return len(text).to_bytes(8, "little") + text


def model(tmp_path: Path, block: dict[str, Any] | None, *files: dict[str, str]) -> Path:
    (tmp_path / "config.json").write_text(json.dumps({**ROOT, **({"quantization_config": block} if block else {})}))
    for number, tensors in enumerate(files):
        (tmp_path / f"model-{number}.safetensors").write_bytes(header(tensors) + b"data")
    return tmp_path


def contradictions(path: Path) -> list[str]:
    promise = read_checkpoint(path, tensors=True).promise
    return [note.message for note in promise.notes if note.code == "N_CONTRADICTED"]


def without(*parts: str) -> dict[str, str]:
    return {name: dtype for name, dtype in STORED.items() if not any(part in name for part in parts)}


def test_what_is_stored(tmp_path: Path) -> None:
    held = read_tensors(model(tmp_path, FP8, STORED, {"lm_head.weight": "BF16"}))
    assert held is not None
    assert held._asdict() == {
        "files": 2,
        "tensors": 6,
        "dtypes": {"F32": 3, "BF16": 2, "F8_E4M3": 1},
        "weight_scales": 1,
        "input_scales": 1,
        "kv_scales": 1,
        "complete": True,
    }


def test_nothing_stored_and_nothing_asked(tmp_path: Path) -> None:
    assert read_tensors(model(tmp_path, FP8)) is None
    assert read_tensors(tmp_path / "none") is None
    assert read_checkpoint(model(tmp_path, FP8, STORED)).tensors is None
    assert read_checkpoint(tmp_path / "config.json", tensors=True).tensors is None


def test_tensors_that_bear_the_promise_out(tmp_path: Path) -> None:
    assert contradictions(model(tmp_path, FP8, STORED)) == []


@pytest.mark.parametrize(
    ("block", "tensors", "message"),
    [
        (FP8, without("input_scale"), "static activation scales, and no input scale"),
        (FP8, without("k_scale"), "no k or v scale is stored: engines use 1.0"),
        (FP8, {**STORED, "model.layers.0.self_attn.q_proj.weight": "BF16"}, "no tensor is stored in such a type"),
        (None, STORED, "no quantization is promised, but the weights are stored quantized"),
        ({"quant_method": "gptq", "bits": 4}, {"a.qweight": "BF16"}, "no tensor is stored in such a type"),
    ],
)
def test_contradictions(tmp_path: Path, block: dict[str, Any] | None, tensors: dict[str, str], message: str) -> None:
    (found,) = contradictions(model(tmp_path, block, tensors))
    assert message in found


@pytest.mark.parametrize(
    ("block", "tensors"),
    [
        ({**FP8, "activation_scheme": "dynamic", "kv_cache_scheme": None}, without("input_scale", "k_scale")),
        ({"quant_method": "gptq", "bits": 4}, {"a.qweight": "I32"}),
        ({"quant_method": "mxfp4"}, {"a.experts.w": "U8", "b": "BF16"}),
        (None, {"a": "BF16", "b": "F32", "rotary": "I64"}),
    ],
)
def test_no_contradiction(tmp_path: Path, block: dict[str, Any] | None, tensors: dict[str, str]) -> None:
    assert contradictions(model(tmp_path, block, tensors)) == []


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"\x05",
        (1 << 62).to_bytes(8, "little"),
        (MAX_HEADER + 1).to_bytes(8, "little"),
        (50).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"[]",
        (4).to_bytes(8, "little") + b"\xff\xfe\x00\x00",
        (200_000).to_bytes(8, "little") + b'{"a":' * 40_000,
    ],
)
def test_absences_prove_nothing_when_a_header_cannot_be_read(tmp_path: Path, broken: bytes) -> None:
    path = model(tmp_path, FP8, without("input_scale", "k_scale"))
    assert len(contradictions(path)) == 2
    (path / "model-9.safetensors").write_bytes(broken)
    held = read_tensors(path)
    assert held is not None and not held.complete and held.tensors == 3
    assert contradictions(path) == []


def test_an_index_that_lists_more_than_is_there(tmp_path: Path) -> None:
    path = model(tmp_path, FP8, without("k_scale"))
    index = path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(without("k_scale"), "../../../etc/passwd")}))
    assert len(contradictions(path)) == 1
    index.write_text(json.dumps({"weight_map": dict.fromkeys(STORED, "model-1.safetensors")}))
    assert contradictions(path) == []
    index.write_text("{")
    assert contradictions(path) == []


def test_entries_that_are_no_tensors_are_passed_over(tmp_path: Path) -> None:
    text = json.dumps({"a": 1, "b": {"dtype": 5}, "c": {"dtype": "x" * 99}, "d": {"dtype": "BF16"}}).encode()
    (tmp_path / "x.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)
    held = read_tensors(tmp_path)
    assert held is not None and held.dtypes == {"BF16": 1}
