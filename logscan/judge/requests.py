"""The rows of `patterns/knowledge/requests.toml`: what a flag promises."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from logscan import tomlcache
from logscan.packs import patterns_dir


@lru_cache(maxsize=1)
def rows() -> tuple[Mapping[str, Any], ...]:
    """The request rows, in the order of the file: the first that fits a flag's value and release counts."""
    return tuple(tomlcache.read(patterns_dir() / "knowledge" / "requests.toml")["request"])
