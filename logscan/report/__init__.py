"""Reports: a `logscan.triage/1` document, written for a reader or a program. One file a format."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

FORMATS = ("table", "json", "jsonl", "markdown", "junit", "github", "prom")


def render(doc: Mapping[str, Any], format: str, **options: Any) -> str:
    """The document in one of `FORMATS`, ending in a newline unless it is empty.

    Options (each format takes those that mean something to it): `boots` last|all, `verbose`, `width` in columns,
    `color`. Raises ValueError for another format.
    """
    if format not in FORMATS:
        raise ValueError(f"no format {format!r}; one of {', '.join(FORMATS)}")
    text: str = import_module(f"logscan.report.{format}").render(doc, **options)
    return text
