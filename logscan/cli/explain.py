"""`logscan explain CODE` and `logscan rules`: the catalogue, as text and as JSON."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from logscan import catalogue
from logscan.catalogue import Rule
from logscan.cli.output import write

SCHEMA = "logscan.rules/1"


def explain(rule: str, format: str, output: Path | None = None) -> int:
    """Write one rule. Raises InputError for a code or slug that does not exist."""
    found = catalogue.rule(rule)
    write(_json([found]) if format == "json" else page(found, _width()), output)
    return 0


def rules(format: str, output: Path | None = None) -> int:
    """Write the whole catalogue."""
    found = list(catalogue.rules().values())
    write(_json(found) if format == "json" else listing(found, _width()), output)
    return 0


def document(found: list[Rule]) -> dict[str, Any]:
    """The rules as `logscan.rules/1`."""
    return {"schema": SCHEMA, "rules": [_entry(rule) for rule in found]}


def page(rule: Rule, width: int) -> str:
    """One rule as a page of text, `width` columns wide."""
    moves = _moves(rule)
    facts = [f"severity {rule.severity}", f"touches {', '.join(rule.consequence)}", *([moves] if moves else [])]
    lines = [f"{rule.code}  {rule.slug}", *_wrap(rule.title, width, ""), "", *_wrap(" · ".join(facts), width, "  ")]
    for heading, text in (("What it finds", rule.what), ("Why it matters", rule.why)):
        lines += ["", heading, *_wrap(text, width, "  ")]
    lines += ["", "What to do"]
    for cause in catalogue.CAUSES:
        if cause in rule.fix:
            label = "otherwise" if cause == "unknown" else cause
            first, rest = (f"  {label:<12}", " " * 14) if len(rule.fix) > 1 else ("  ", "  ")
            lines += _wrap(rule.fix[cause], width, first, rest)
    lines += ["", "Where the engines decide or print it", *(f"  {source}" for source in rule.sources), ""]
    return "\n".join(lines)


def listing(found: list[Rule], width: int) -> str:
    """One line a rule: code, severity, slug and, where there is room, the title."""
    slugs = max(len(rule.slug) for rule in found)
    room = width - slugs - 19
    lines = []
    for rule in found:
        title = textwrap.shorten(rule.title, room, placeholder=" …") if room >= 20 else ""
        lines.append(f"{rule.code}  {rule.severity:<8}  {rule.slug:<{slugs}}  {title}".rstrip() + "\n")
    return "".join(lines)


def _moves(rule: Rule) -> str:
    if rule.kind is None:
        return ""
    return {
        "always": "makes the row downgraded",
        "never": "leaves the verdict as it is",
        "request": "makes the row downgraded where it was requested",
        "default": "makes the row downgraded against the engine's default",
        "static-scale": "makes the row downgraded where a static scale is promised",
    }[catalogue.kinds()[rule.kind].moves]


def _entry(rule: Rule) -> Mapping[str, Any]:
    return {
        "code": rule.code,
        "slug": rule.slug,
        "title": rule.title,
        "path": rule.path,
        "kind": rule.kind,
        "severity": rule.severity,
        "consequence": list(rule.consequence),
        "what": rule.what,
        "why": rule.why,
        "fix": dict(rule.fix),
        "sources": list(rule.sources),
    }


def _json(found: list[Rule]) -> str:
    return json.dumps(document(found), indent=2, ensure_ascii=False) + "\n"


def _wrap(text: str, width: int, first: str, rest: str | None = None) -> list[str]:
    rest = first if rest is None else rest
    return textwrap.wrap(text, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def _width() -> int:
    return min(shutil.get_terminal_size().columns, 100)
