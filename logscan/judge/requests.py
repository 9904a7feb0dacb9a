"""The rows of `patterns/knowledge/<engine>/requests.toml`: what a flag promises."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from logscan import tomlcache
from logscan.packs import patterns_dir


@lru_cache(maxsize=4)
def rows(engine: str | None = "vllm") -> tuple[Mapping[str, Any], ...]:
    """The request rows of an engine, in the order of the file: the first that fits a flag's value and release counts.

    An unknown engine's flags are read as vLLM's.
    """
    path = patterns_dir() / "knowledge" / (engine or "vllm") / "requests.toml"
    return tuple(tomlcache.read(path)["request"])
