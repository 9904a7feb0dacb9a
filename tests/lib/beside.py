"""Real logs, recorded selections and labelled checkpoints that are no part of this project: their tests may skip."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_SIBLING = Path(__file__).resolve().parents[3] / "shared"


def _folder() -> Path | None:
    """`LOGSCAN_SHARED` (empty: none), else the sibling folder; one that only has the name is somebody else's."""
    given = os.environ.get("LOGSCAN_SHARED")
    if given is None:
        return _SIBLING if (_SIBLING / "tools" / "score.py").is_file() else None
    if given and not Path(given).is_dir():
        raise pytest.UsageError(f"LOGSCAN_SHARED={given}: no such directory")
    return Path(given).resolve() if given else None


SHARED = _folder() or Path(__file__).with_name("nowhere")
"""The folder; one that does not exist where there is none, so that a glob finds nothing in it."""


def needs(name: str) -> pytest.MarkDecorator:
    """A mark that skips where this part of the folder is missing."""
    return pytest.mark.skipif(not (SHARED / name).is_dir(), reason=f"no folder with {name} is given or beside this one")
