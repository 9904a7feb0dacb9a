"""Which files of a path hold the promise: a file itself, a model directory, a HF snapshot, a HF cache directory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from logscan.checkpoint.errors import CheckpointError, show
from logscan.checkpoint.file import read_bytes

CONFIG, SIDECAR, PARAMS = "config.json", "hf_quant_config.json", "params.json"
_MAX_REF = 256


class Files(NamedTuple):
    """The file read first, the ModelOpt sidecar beside it, and their directory when that was given."""

    main: Path
    sidecar: Path | None = None
    directory: Path | None = None


def locate(path: Path) -> Files:
    """Raises CheckpointError: E_OPEN E_DANGLING E_DIR E_DIR_EMPTY E_NOT_FILE."""
    if not _is_dir(path):
        return Files(path)
    directory = _snapshot(path)
    config, sidecar, params = (directory / name for name in (CONFIG, SIDECAR, PARAMS))
    if os.path.lexists(config):
        return Files(config, sidecar if os.path.lexists(sidecar) else None, directory)
    for only in (params, sidecar):
        if os.path.lexists(only):
            return Files(only, None, directory)
    raise CheckpointError("E_DIR_EMPTY", f"no {CONFIG}, {PARAMS} or {SIDECAR} in this directory")


def _is_dir(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _snapshot(path: Path) -> Path:
    """The snapshot of a HF cache directory (`models--org--name`): the one `refs/main` names, else the only one."""
    snapshots = path / "snapshots"
    if os.path.lexists(path / CONFIG) or not _is_dir(snapshots):
        return path
    try:
        names = sorted(entry.name for entry in os.scandir(snapshots) if entry.is_dir())
    except OSError as error:
        raise CheckpointError("E_OPEN", (error.strerror or "unreadable").lower()) from None
    reference = path / "refs" / "main"
    if reference.is_file():
        commit = read_bytes(reference, _MAX_REF).decode("ascii", "replace").strip()
        if commit in names:
            return snapshots / commit
    if len(names) == 1:
        return snapshots / names[0]
    if not names:
        raise CheckpointError("E_DIR_EMPTY", "a cache directory without a snapshot")
    listed = ", ".join(show(name)[1:-1] for name in names[:5])
    raise CheckpointError("E_DIR_EMPTY", f"{len(names)} snapshots and no refs/main; give one of them: {listed}")
