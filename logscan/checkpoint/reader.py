"""A path as people give it → the promise that an engine reads there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from logscan.checkpoint.errors import CheckpointError, printable, show
from logscan.checkpoint.file import read_json
from logscan.checkpoint.locate import Files, locate
from logscan.checkpoint.normalise import normalise, with_notes
from logscan.labels import MIXED_LAYERS_NOT_LISTED, promise_label
from logscan.model import Note, Promise, replace

if TYPE_CHECKING:
    from logscan.checkpoint.tensors import Tensors

MAX_PATH = 500
# vLLM transformers_utils/model_arch_config_convertor.py:_normalize_quantization_config; inline it reads more of them
VLLM_SIDECAR_ALGOS = ("FP8", "FP8_PER_CHANNEL_PER_TOKEN", "FP8_PB_WO", "NVFP4", "MIXED_PRECISION")


class Checkpoint(NamedTuple):
    """What was read at a path: the promise, and what each engine reads where a directory holds two."""

    promise: Promise
    readings: Mapping[str, Promise] = {}  # vllm sglang trtllm; empty where all read the same
    tensors: Tensors | None = None  # of a directory that holds tensor files, where they were asked for


def read_promise(path: str | os.PathLike[str], *, engine: str | None = None) -> Promise:
    """The promise at `path`: a config.json, hf_quant_config.json or params.json, or a directory with one.

    A directory may be a model's, a HF snapshot (of symlinks) or a HF cache repository (`models--org--name`).
    `engine` (`vllm`, `sglang`, `trtllm`, a version may follow) decides between two promises in one directory:
    TensorRT-LLM reads the sidecar, the others config.json. Raises CheckpointError, which carries `.code` (`E_…`).
    """
    checkpoint = read_checkpoint(path)
    return checkpoint.readings.get(_engine_name(engine), checkpoint.promise)


def read_checkpoint(path: str | os.PathLike[str], *, tensors: bool = False) -> Checkpoint:
    """The promise at `path` with all that its directory adds. Raises CheckpointError.

    `tensors`: also compare it with the headers of the tensor files there (seconds for a very large checkpoint).
    """
    shown = os.fspath(path)
    try:
        files = locate(Path(shown))
        checkpoint = _read(files)
        if not tensors or files.directory is None:
            return checkpoint
        from logscan.checkpoint.tensors import contradictions, read_tensors

        held = read_tensors(files.directory)
        promise = with_notes(checkpoint.promise, (), contradictions(checkpoint.promise, held))
        return replace(checkpoint, promise=promise, tensors=held)
    except CheckpointError as error:
        raise error.at(printable(shown, MAX_PATH)) from None


def _engine_name(engine: str | None) -> str:
    name = "".join(c for c in (engine or "vllm").split("=")[0].split("<")[0].split(">")[0].lower() if c.isalnum())
    return "trtllm" if name in ("trtllm", "tensorrtllm") else name


def _read(files: Files) -> Checkpoint:
    config, notes = _load(files.main)
    inline = _normal(files.main, config, notes)
    if files.sidecar is None:
        return Checkpoint(inline)
    try:
        sidecar, notes = _load(files.sidecar)
        beside = _normal(files.sidecar, config, notes, sidecar)
    except CheckpointError as error:
        if inline.method == "none":
            raise
        return Checkpoint(_add(inline, "N_SIDECAR_UNREADABLE", f"{files.sidecar.name}: {error.code}: {error.detail}"))
    return _sidecar_only(beside) if inline.method == "none" else _both(inline, beside)


def _sidecar_only(beside: Promise) -> Checkpoint:
    beside = _add(beside, "N_SIDECAR", "config.json has no quantization block; all engines read hf_quant_config.json")
    if beside.algo is not None and beside.algo not in VLLM_SIDECAR_ALGOS:
        beside = _add(beside, "N_SIDECAR_ALGO", f"vLLM refuses {show(beside.algo)} from hf_quant_config.json")
    return Checkpoint(beside)


def _both(inline: Promise, beside: Promise) -> Checkpoint:
    if not inline.groups and inline.label.startswith(MIXED_LAYERS_NOT_LISTED) and beside.groups:
        label = promise_label(beside.groups, inline.kv_cache or beside.kv_cache)
        merged = replace(beside, kv_cache=inline.kv_cache or beside.kv_cache, label=label)
        return Checkpoint(_add(merged, "N_SIDECAR", "only hf_quant_config.json lists the layers of MIXED_PRECISION"))
    if inline.label == beside.label or beside.algo is None:  # without an algo TensorRT-LLM reads config.json too
        return Checkpoint(inline)
    two = f"config.json promises {inline.label}, hf_quant_config.json {beside.label}"
    message = f"{two}; vLLM and SGLang read the former, TensorRT-LLM the latter"
    inline, beside = (_add(promise, "N_SIDECAR_DISAGREES", message) for promise in (inline, beside))
    return Checkpoint(inline, {"vllm": inline, "sglang": inline, "trtllm": beside})


def _load(path: Path) -> tuple[dict[str, Any], tuple[Note, ...]]:
    try:
        return read_json(path)
    except CheckpointError as error:
        raise error.at(printable(str(path), MAX_PATH)) from None


def _normal(
    path: Path, config: dict[str, Any], notes: tuple[Note, ...], sidecar: dict[str, Any] | None = None
) -> Promise:
    try:
        return with_notes(normalise(config, path.name, sidecar), notes)
    except CheckpointError as error:
        raise error.at(printable(str(path), MAX_PATH)) from None


def _add(promise: Promise, code: str, message: str) -> Promise:
    return replace(promise, notes=(*promise.notes, Note(code, message)))
