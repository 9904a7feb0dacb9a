"""A path as people give it → the promise that an engine reads there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from logscan.checkpoint.errors import CheckpointError
from logscan.checkpoint.file import read_json
from logscan.checkpoint.locate import Files, locate
from logscan.checkpoint.normalise import promise_from_dict, with_notes
from logscan.model import Note, Promise

ENGINES = ("vllm", "sglang", "trtllm")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What was read at a path: the promise, and what each engine reads where a directory holds two."""

    promise: Promise
    readings: Mapping[str, Promise] = field(default_factory=dict)  # vllm sglang trtllm; empty where all read the same


def read_promise(path: str | os.PathLike[str], *, engine: str | None = None) -> Promise:
    """The promise at `path`: a config.json, hf_quant_config.json or params.json, or a directory with one.

    A directory may be a model's, a HF snapshot (of symlinks) or a HF cache repository (`models--org--name`).
    `engine` (`vllm`, `sglang`, `trtllm`, a version may follow) decides between two promises in one directory:
    TensorRT-LLM reads the sidecar, the others config.json. Raises CheckpointError, which carries `.code` (`E_…`).
    """
    checkpoint = read_checkpoint(path)
    return checkpoint.readings.get(_engine_name(engine), checkpoint.promise)


def read_checkpoint(path: str | os.PathLike[str]) -> Checkpoint:
    """The promise at `path` with all that its directory adds. Raises CheckpointError."""
    shown = os.fspath(path)
    try:
        files = locate(Path(shown))
        return _read(files)
    except CheckpointError as error:
        raise error.at(ascii(shown)[1:-1] if not shown.isprintable() else shown) from None


def _engine_name(engine: str | None) -> str:
    name = "".join(c for c in (engine or "vllm").split("=")[0].split("<")[0].split(">")[0].lower() if c.isalnum())
    return "trtllm" if name in ("trtllm", "tensorrtllm") else name


def _read(files: Files) -> Checkpoint:
    config, notes = _load(files.main)
    if files.sidecar is None:
        return Checkpoint(with_notes(promise_from_dict(config, source=files.main.name), notes))
    try:
        sidecar, more = _load(files.sidecar)
        beside = with_notes(promise_from_dict(_beside(config, sidecar), source=files.sidecar.name), more)
    except CheckpointError as error:
        promise = with_notes(promise_from_dict(config, source=files.main.name), notes)
        return Checkpoint(
            _add(promise, Note("N_SIDECAR_UNREADABLE", f"{files.sidecar.name}: {error.code}: {error.detail}"))
        )
    inline = with_notes(promise_from_dict(config, source=files.main.name), notes)
    if inline.method == "none":
        return Checkpoint(
            _add(beside, Note("N_SIDECAR", "config.json has no quantization block; all engines read the sidecar"))
        )
    return _both(inline, beside)


def _both(inline: Promise, beside: Promise) -> Checkpoint:
    if inline.label == "MIXED(layers not listed)" or inline.label.startswith("MIXED(layers not listed) "):
        merged = replace(beside, kv_cache=inline.kv_cache or beside.kv_cache)
        return Checkpoint(
            _add(merged, Note("N_SIDECAR", "the layers of MIXED_PRECISION are listed in the sidecar only"))
        )
    if inline.label == beside.label:
        return Checkpoint(inline)
    two = f"config.json promises {inline.label}, {beside.source} {beside.label}"
    note = Note("N_SIDECAR_DISAGREES", f"{two}; vLLM and SGLang read the former, TensorRT-LLM the latter")
    inline, beside = _add(inline, note), _add(beside, note)
    return Checkpoint(inline, {"vllm": inline, "sglang": inline, "trtllm": beside})


def _load(path: Path) -> tuple[dict[str, Any], tuple[Note, ...]]:
    try:
        return read_json(path)
    except CheckpointError as error:
        raise error.at(str(path)) from None


def _beside(config: dict[str, Any], sidecar: dict[str, Any]) -> dict[str, Any]:
    """The model's config with the sidecar in place of its own block, so that traits and dtype stay."""
    rest = {k: v for k, v in config.items() if k not in ("quantization_config", "compression_config", "quantization")}
    return {**rest, "quantization_config": sidecar}


def _add(promise: Promise, note: Note) -> Promise:
    return replace(promise, notes=(*promise.notes, note))
