"""A prediction for a person: what will run on each path, what will say so, what would change it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

from logscan import catalogue
from logscan.report.text import BLANK, Line, Span, colored, line, plain
from logscan.report.view import clean

_STYLES = {"not-served": "bad", "downgraded": "bad", "unproven": "warn", "kept": "good", "no-promise": "dim"}
_WIDEST, _NARROWEST = 160, 40
_SILENT = "nothing in the log will say so"
_OPEN = "what it prints hangs on what is unknown"


def render(doc: dict[str, Any], *, verbose: bool = False, width: int | None = None, color: bool = False) -> str:
    """The document `logscan.expect/1` as annotated text; over several releases one block for each run of equal ones."""
    columns = shutil.get_terminal_size().columns if width is None else width
    lines = list(_releases(doc["releases"], verbose) if "releases" in doc else _outcome(doc, verbose))
    write = colored if color else plain
    return write(lines, min(max(columns, _NARROWEST), _WIDEST))


def _releases(outcomes: list[dict[str, Any]], verbose: bool) -> Iterator[Line]:
    """Releases whose outcome is the same are told together: where it changes is what is asked."""
    runs: list[list[dict[str, Any]]] = []
    for outcome in outcomes:
        if runs and _same(runs[-1][-1], outcome):
            runs[-1].append(outcome)
        else:
            runs.append([outcome])
    for n, run in enumerate(runs):
        first, last = run[0]["engine"], run[-1]["engine"].partition("==")[2]
        if n:
            yield BLANK
        yield line(Span(first if len(run) == 1 else f"{first} to {last}", "bold"))
        yield from _outcome(run[0], verbose)


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    keys = ("path", "group", "verdict", "ran", "kinds", "kernels", "refusal", "reasons", "visibility")
    return [[r[k] for k in keys] for r in one["paths"]] == [[r[k] for k in keys] for r in other["paths"]]


def _outcome(doc: dict[str, Any], verbose: bool) -> Iterator[Line]:
    yield line(Span(doc["verdict"].upper(), _STYLES[doc["verdict"]]), Span(" is expected", "dim"))
    for row in doc["paths"]:
        yield from _row(
            row, [f for f in doc["findings"] if f["path"] == row["path"] and f["group"] == row["group"]], verbose
        )


def _row(row: dict[str, Any], findings: list[dict[str, Any]], verbose: bool) -> Iterator[Line]:
    kernels = " or ".join(clean(k["name"], 80) for k in row["kernels"])
    if row["verdict"] == "no-promise" and not findings:
        facts = " by ".join(part for part in (row["ran"] or "", kernels) if part)
        tail = Span(f": {facts}" if facts else "", "dim")
        yield line(f"– {row['path']}", Span(" no promise", "dim"), tail, first="  ", rest="      ")
        return
    yield BLANK
    title = f"{row['path']} {row['group']}".strip()
    yield line(Span(clean(title, 120), "bold"), " ", Span(row["verdict"].upper(), _STYLES[row["verdict"]]), first="  ")
    order = row["requested"] or row["promised"]
    if order:
        yield _field("asked for" if row["requested"] else "promised", order)
    yield _field("will run", f"{row['ran'] or 'unknown'}{' by ' + kernels if kernels else ''}")
    if row["layer"] and verbose:
        yield _field("layer", row["layer"])
    if row["refusal"]:
        yield _field("refused", row["refusal"])
    if row["kinds"]:
        parts = [" + ".join(row["kinds"]), f"cause: {row['cause']}" if row["cause"] else "", row["visibility"] or ""]
        yield _field("how", " · ".join(p for p in parts if p))
    for text in [_print(p) for p in row["prints"]] or [_SILENT if row["verdict"] != "unproven" else _OPEN]:
        yield _field("prints", text)
    known = catalogue.reasons()
    for reason in row["reasons"]:
        yield _field("unknown", f"{reason}: {known[reason].what} {known[reason].advice}" if reason in known else reason)
    for finding in findings:
        yield _field(finding["code"], f"{finding['severity']} · {finding['fix']}")
    if verbose and row["because"]:
        yield _field("because", " → ".join(row["because"]))


def _print(line: dict[str, Any]) -> str:
    mark = f" (printed, and not true: {line['distrusted_by']})" if line["distrusted_by"] else ""
    return f"[{line['level']}] {line['text']}{mark}"


def _field(name: str, text: str) -> Line:
    return line(Span(clean(text, 600)), first=f"    {name:<9} ", rest=" " * 14)
