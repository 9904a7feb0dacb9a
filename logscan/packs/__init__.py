"""Pattern packs: what the engines print, since when, and what it means there (`patterns/<engine>/*.toml`)."""

from __future__ import annotations

from pathlib import Path


def patterns_dir() -> Path:
    """The directory of the packaged patterns: `logscan/_patterns` in a wheel, `patterns/` in a checkout."""
    package = Path(__file__).resolve().parent.parent
    packaged = package / "_patterns"
    return packaged if packaged.is_dir() else package.parent / "patterns"
