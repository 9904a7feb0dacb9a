"""The page of an audit: one file, nothing loaded from anywhere, every text of a log shown as text.

Its data are rows of numbers into a table of strings and a table of records: pods of one deployment differ in their
names and in where a line stands, so ten thousand boots stay a few megabytes.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Any

from logscan.report.view import many

_TEXTS = ("log", "source", "outcome", "error", "verdict", "status", "worst", "model", "hardware", "engine", "version",
          "promise", "sm", "cuda", "ckpt", "joined", "unjoined", "modified")  # fmt: skip
_NUMBERS = ("boot", "first", "last")
_OF_BOOT = ("key", "log", "boot", "source")


def render(document: Mapping[str, Any], boots: Iterable[Mapping[str, Any]]) -> str:
    """The document `logscan.audit/1` and its boots as one HTML page."""
    web = files("logscan.fleet").joinpath("web")
    css, script, page = (
        web.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js", "page.html")
    )
    parts = {
        "csp": f"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src {_hash(css)}; script-src {_hash(script)}",
        "title": html.escape(f"logscan audit: {headline(document)}"),
        "headline": html.escape(headline(document)),
        "css": css,
        "js": script,
        "data": _json({"summary": dict(document), **_packed(boots)}),
    }
    pieces = page.split("@")
    # Filled in one pass: what is filled in may hold such marks itself.
    return "".join(parts.get(piece, piece) if i % 2 else piece for i, piece in enumerate(pieces))


def headline(document: Mapping[str, Any]) -> str:
    """What the page is about, in a line."""
    totals = document["totals"]
    if document["verdict"] is None:
        return f"Nothing recognised in {many(totals['logs'], 'log')}"
    counts = " · ".join(f"{count:,} {verdict}" for verdict, count in totals["verdicts"].items())
    broken = f" · {totals['errors']:,} not readable" if totals["errors"] else ""
    return f"{counts}{broken}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> str:
    """JSON that no HTML parser reads anything into."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


class _Table:
    """Values by number, each once."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[str, int] = {}

    def add(self, name: str, value: Any) -> int:
        number = self._numbers.setdefault(name, len(self.values))
        if number == len(self.values):
            self.values.append(value)
        return number


def _packed(boots: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    strings, records = _Table(), _Table()

    def record(row: Mapping[str, Any]) -> list[Any]:
        kept = {name: value for name, value in row.items() if name not in _OF_BOOT}
        if "kernels" in kept:
            kept["kernels"] = [kernel["name"] for kernel in row["kernels"]]
        lines = [item["line"] for item in row["evidence"]]
        kept["evidence"] = [{k: v for k, v in item.items() if k not in ("line", "pattern")} for item in row["evidence"]]
        return [records.add(json.dumps(kept), kept), lines]

    rows = []
    for boot in boots:
        sm = boot["sm"] and (f"SM {boot['sm']}" if boot["sm"][:1].isdigit() else boot["sm"])
        known = {**boot, "hardware": boot["gpu"] or sm or boot["platform"] or ("unknown" if boot["boot"] else None)}
        known["version"] = boot["version"] or boot["range"] or "unknown"
        row: list[Any] = [-1 if known[name] is None else strings.add(known[name], known[name]) for name in _TEXTS]
        row += [boot[name] for name in _NUMBERS]
        row += [boot["counted"], [record(path) for path in boot["paths"]], [record(f) for f in boot["findings"]]]
        rows.append(row)
    columns = [*_TEXTS, *_NUMBERS]
    return {
        "columns": columns,
        "numbers": list(_NUMBERS),
        "boots": rows,
        "strings": strings.values,
        "records": records.values,
    }
