"""GitHub Actions: annotations as workflow commands; `markdown` is what belongs into the job summary."""

from __future__ import annotations

from typing import Any

from logscan.report import view
from logscan.report.view import Json, Shown, clean

MOST = 10  # GitHub shows no more annotations of a step
_LEVELS = {"critical": "error", "high": "error", "medium": "warning", "low": "notice", "info": "notice"}


def render(doc: Json, *, boots: str = "last", **_: Any) -> str:
    """At most ten annotations, the most severe first; waived findings are left out. Without any: one notice."""
    found = [(item, f) for item in view.shown(doc, boots) for f in item.boot["findings"] if f["waived"] is None]
    found.sort(key=lambda pair: -view.severity_rank(pair[1]["severity"]))
    if not found:
        verdict = f"{doc['verdict']} · {doc['status']}" if doc["verdict"] else "nothing recognised"
        return f"::notice title=logscan::{_data(verdict)}\n"
    return "".join(_annotation(item, finding) for item, finding in found[:MOST])


def _annotation(item: Shown, finding: Json) -> str:
    lines = [e["line"] for e in finding["evidence"] if e["role"] == "supports"] or [
        e["line"] for e in finding["evidence"]
    ]
    where = f"file={_property(item.log['name'])}," + (f"line={lines[0]}," if lines else "")
    if item.log["name"] == "-":  # stdin is no file of the repository
        where = ""
    title = _property(f"{finding['code']} {finding['slug']} ({finding['severity']})")
    text = " — ".join(clean(part, 600) for part in (finding["message"], finding["fix"]) if part)
    return f"::{_LEVELS[finding['severity']]} {where}title={title}::{_data(text)}\n"


def _data(text: object) -> str:
    return clean(text, 1200).replace("%", "%25")


def _property(text: object) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
