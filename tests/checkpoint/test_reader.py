"""Paths as people give them: files, model directories, caches of symlinks, and everything that is none of these."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from logscan.checkpoint import CheckpointError, read_promise
from logscan.checkpoint.file import MAX_BYTES
from logscan.checkpoint.reader import read_checkpoint
from logscan.model import InputError

ROOT = {"model_type": "llama", "torch_dtype": "bfloat16"}
INLINE = {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": "NVFP4", "ignore": ["lm_head"]}


def sidecar(algo: str | None, kv: str | None = None, **more: Any) -> dict[str, Any]:
    return {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": algo, "kv_cache_quant_algo": kv, **more}}


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def refusal(path: Path | str) -> str:
    with pytest.raises(CheckpointError) as error:
        read_promise(path)
    assert isinstance(error.value, InputError)
    return error.value.code


def codes(path: Path, engine: str | None = None) -> list[str]:
    return [note.code for note in read_promise(path, engine=engine).notes]


def test_a_file_and_its_directory_read_the_same(tmp_path: Path) -> None:
    config = write(tmp_path / "config.json", {**ROOT, "quantization_config": INLINE})
    assert read_promise(config) == read_promise(tmp_path) == read_promise(str(tmp_path))
    assert read_promise(config).source == "config.json#quantization_config"


def test_directory_prefers_config_then_params_then_sidecar(tmp_path: Path) -> None:
    write(tmp_path / "hf_quant_config.json", sidecar("FP8"))
    assert read_promise(tmp_path).label == "W8A8-FP8 per-tensor/per-tensor-static"
    write(tmp_path / "params.json", {"dim": 8, "n_layers": 1})
    assert read_promise(tmp_path).source == "params.json"
    write(tmp_path / "config.json", {**ROOT, "quantization_config": INLINE})
    assert read_promise(tmp_path).label.startswith("W4A4-NVFP4")


def test_what_is_no_readable_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "none.json") == "E_OPEN"
    assert refusal("a\0b") == "E_OPEN"
    assert refusal(tmp_path) == "E_DIR_EMPTY"
    (tmp_path / "config.json").mkdir()
    assert refusal(tmp_path) == "E_DIR"
    (tmp_path / "config.json").rmdir()
    (tmp_path / "config.json").symlink_to(tmp_path / "blob")
    assert refusal(tmp_path) == refusal(tmp_path / "config.json") == "E_DANGLING"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert refusal(tmp_path / "loop") == "E_OPEN"
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "E_NOT_FILE"
    assert refusal("/dev/zero") == "E_NOT_FILE"


def test_huge_files_are_refused_before_they_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "config.json", "{}")
    os.truncate(path, MAX_BYTES + 1)
    assert refusal(path) == "E_HUGE"


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="Linux only")
def test_files_that_fail_while_they_are_read() -> None:
    assert refusal("/proc/self/mem") in ("E_OPEN", "E_EMPTY")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(tmp_path: Path) -> None:
    path = write(tmp_path / "config.json", ROOT)
    path.chmod(0)
    assert refusal(path) == "E_OPEN"


def test_messages_name_the_file_and_cannot_steer_a_terminal(tmp_path: Path) -> None:
    path = write(tmp_path / "a\x1b[2J\nb.json", "[]")
    with pytest.raises(CheckpointError) as error:
        read_promise(path)
    assert str(error.value) == f"{tmp_path}/a\\x1b[2J\\nb.json: E_TYPE: top level is a list, expected an object"


def cache(tmp_path: Path, *commits: str, main: str | None = None) -> Path:
    """A Hugging Face cache directory: snapshots of symlinks to blobs."""
    repo = tmp_path / "models--org--name"
    for number, commit in enumerate(commits):
        blob = write(repo / "blobs" / f"{number}", {**ROOT, "torch_dtype": "float16" if number else "bfloat16"})
        snapshot = repo / "snapshots" / commit
        snapshot.mkdir(parents=True)
        (snapshot / "config.json").symlink_to(os.path.relpath(blob, snapshot))
    if main is not None:
        write(repo / "refs" / "main", main)
    return repo


def test_snapshots_of_symlinks(tmp_path: Path) -> None:
    repo = cache(tmp_path, "aaa")
    assert read_promise(repo).label == "BF16"
    assert read_promise(repo / "snapshots" / "aaa").label == "BF16"
    assert read_promise(repo / "snapshots" / "aaa" / "config.json").label == "BF16"


def test_the_snapshot_that_refs_main_names(tmp_path: Path) -> None:
    assert read_promise(cache(tmp_path / "1", "aaa", "bbb", main="bbb\n")).label == "FP16"
    assert read_promise(cache(tmp_path / "2", "aaa", "bbb", main="aaa")).label == "BF16"


def test_several_snapshots_and_no_ref_are_listed(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="2 snapshots and no refs/main; give one of them: aaa, bbb"):
        read_promise(cache(tmp_path / "1", "aaa", "bbb"))
    assert refusal(cache(tmp_path / "2", "aaa", "bbb", main="../../etc")) == "E_DIR_EMPTY"
    repo = cache(tmp_path / "3")
    (repo / "snapshots").mkdir(parents=True)
    assert refusal(repo) == "E_DIR_EMPTY"


def both(tmp_path: Path, inline: dict[str, Any] | None, beside: object) -> Path:
    write(tmp_path / "config.json", ROOT if inline is None else {**ROOT, "quantization_config": inline})
    write(tmp_path / "hf_quant_config.json", beside)
    return tmp_path


def test_two_promises_that_agree(tmp_path: Path) -> None:
    path = both(tmp_path, INLINE, sidecar("NVFP4", "NVFP4", group_size=16, exclude_modules=["x"]))
    assert read_checkpoint(path).readings == {}
    assert codes(path) == []


@pytest.mark.parametrize(
    ("engine", "kv"),
    [
        (None, "NVFP4"),
        ("vllm", "NVFP4"),
        ("vllm==0.31.0", "NVFP4"),
        ("sglang>=0.5", "NVFP4"),
        ("trtllm", "FP8"),
        ("tensorrt_llm==1.0", "FP8"),
        ("TensorRT-LLM", "FP8"),
        ("other", "NVFP4"),
    ],
)
def test_two_promises_that_disagree(tmp_path: Path, engine: str | None, kv: str) -> None:
    path = both(tmp_path, INLINE, sidecar("NVFP4", "FP8", group_size=16))
    promise = read_promise(path, engine=engine)
    assert promise.label.split("+KV-")[1].startswith(kv)
    assert codes(path, engine) == ["N_SIDECAR_DISAGREES"]
    assert promise.source == ("config.json#quantization_config" if kv == "NVFP4" else "hf_quant_config.json")


def test_a_sidecar_without_an_algorithm_is_no_second_promise(tmp_path: Path) -> None:
    assert read_checkpoint(both(tmp_path, INLINE, sidecar(None, "FP8"))).readings == {}


def test_sidecar_only(tmp_path: Path) -> None:
    path = both(tmp_path, None, sidecar("NVFP4", "FP8", group_size=16))
    promise = read_promise(path)
    assert promise.label == "W4A4-NVFP4 g16 +KV-FP8 per-tensor-static"
    assert (promise.model_type, promise.model_dtype) == ("llama", "bfloat16")
    assert codes(path) == ["N_SIDECAR"]


def test_algorithms_that_vllm_does_not_take_from_a_sidecar(tmp_path: Path) -> None:
    assert codes(both(tmp_path, None, sidecar("MXFP8"))) == ["N_SIDECAR", "N_SIDECAR_ALGO"]
    assert codes(both(tmp_path, None, sidecar("FP8"))) == ["N_SIDECAR"]


def test_layers_that_only_the_sidecar_lists(tmp_path: Path) -> None:
    layers = {"a.q_proj": {"quant_algo": "FP8"}, "a.up_proj": {"quant_algo": "NVFP4", "group_size": 16}}
    mixed = {**INLINE, "quant_algo": "MIXED_PRECISION"}
    path = both(tmp_path, mixed, sidecar("MIXED_PRECISION", "FP8", quantized_layers=layers))
    promise = read_promise(path)
    fp8 = "W8A8-FP8 per-tensor/per-tensor-static"
    assert promise.label == f"MIXED({fp8} + W4A4-NVFP4 g16) +KV-NVFP4 g16-local"
    assert codes(path) == ["N_SIDECAR"]
    assert codes(both(tmp_path, mixed, sidecar("MIXED_PRECISION", "NVFP4"))) == ["N_MIXED_NO_LAYERS"]


def test_a_broken_sidecar_is_a_remark_beside_a_promise_and_a_refusal_without_one(tmp_path: Path) -> None:
    path = both(tmp_path, INLINE, "{")
    assert codes(path) == ["N_SIDECAR_UNREADABLE"]
    with pytest.raises(CheckpointError, match="hf_quant_config.json: E_JSON: "):
        read_promise(both(tmp_path, None, "{"))


def test_remarks_on_the_file_come_first(tmp_path: Path) -> None:
    block = {"quant_method": "fp8", "activation_scheme": "dynamic"}
    path = write(tmp_path / "config.json", "\ufeff" + json.dumps({**ROOT, "quantization_config": block}))
    assert codes(path) == ["N_BOM", "N_ACT_GRAN_UNSPECIFIED"]
