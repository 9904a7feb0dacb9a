"""The summary of an audit for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from logscan.report import text
from logscan.report.text import BLANK, Line, Span, line
from logscan.report.view import clean, many

_STYLE = {"not-served": "bad", "downgraded": "bad", "unproven": "warn", "kept": "good", "no-promise": "dim"}
_SEVERITY = {"critical": "bad", "high": "bad", "medium": "warn", "low": "note", "info": "dim"}
_ROWS = 20
_MESSAGES = 3  # of a rule
_ENGINES = {"vllm": "vLLM", "trtllm": "TensorRT-LLM", "sglang": "SGLang"}
_Cell = tuple[str, str]  # text, style


def render(document: Mapping[str, Any], width: int = 100, color: bool = False, verbose: bool = False) -> str:
    """The document `logscan.audit/1` for people. `verbose`: every row of every table."""
    write = text.colored if color else text.plain
    return write(_lines(document, width, 1 << 30 if verbose else _ROWS), width)


def _lines(doc: Mapping[str, Any], width: int, most: int) -> Iterator[Line]:
    yield from _headline(doc)
    yield from _table("model × GPU × engine", _matrix(doc["matrix"]), most, width)
    yield from _findings(doc["findings"], most)
    yield from _outliers(doc["outliers"], most)
    yield from _unjoined(doc["unjoined"], most)
    yield from _wrong(doc, most)
    yield from _trend(doc["trend"])


def _headline(doc: Mapping[str, Any]) -> Iterator[Line]:
    totals = doc["totals"]
    verdict = doc["verdict"]
    if verdict is None:
        yield line(Span("NOTHING RECOGNISED", "bad"), f" in {many(totals['logs'], 'log')}")
    else:
        severity = f" · severity {doc['worst']}" if doc["worst"] else ""
        yield line(Span(verdict.upper(), _STYLE[verdict]), f" · {many(totals['counted'], 'boot')}{severity}")
    yield BLANK
    spans: list[Span | str] = []
    for name, count in totals["verdicts"].items():
        spans += [Span(f"{count:,} {name}", _STYLE[name]), " · "]
    spans += [" · ".join(f"{count:,} {name}" for name, count in totals["statuses"].items())] if spans else []
    if spans:
        yield line(*spans)
    scanned = doc["audit"].get("scanned")
    unchanged = totals["logs"] - (totals["logs"] if scanned is None else scanned)
    same = f"; {many(unchanged, 'log')} unchanged since an earlier audit" if unchanged else ""
    yield line(Span(f"{many(totals['logs'], 'log')}, {many(totals['boots'], 'boot')} in them{same}", "dim"))


def _matrix(rows: Sequence[Mapping[str, Any]]) -> list[list[_Cell]]:
    return [
        [
            (clean(row["model"], 44), ""),
            (clean(row["gpu"], 24), ""),
            (clean(f"{_ENGINES.get(row['engine'], row['engine'])} {row['version']}", 28), ""),
            (many(row["boots"], "boot"), "dim"),
            *[(f"{count:,} {name}", _STYLE[name]) for name, count in row["verdicts"].items()],
        ]
        for row in rows
    ]


def _table(title: str, rows: list[list[_Cell]], most: int, width: int) -> Iterator[Line]:
    if not rows:
        return
    yield BLANK
    yield line(Span(title, "bold"))
    shown = rows[:most]
    columns = max(map(len, shown))
    widths = [max((text.cells(row[i][0]) for row in shown if i < len(row)), default=0) for i in range(columns)]
    for row in shown:
        spans = []
        for i, (content, style) in enumerate(row):
            # No-break spaces: the padding of a cell is not folded when the line is wrapped.
            spans.append(Span(content.replace(" ", "\xa0"), style))
            if i + 1 < len(row):
                spans.append(Span("\xa0" * (widths[i] - text.cells(content) + 1) + " "))
        yield line(*spans, first="  ", rest="      ")
    yield from _more(len(rows), most)


def _more(count: int, most: int) -> Iterator[Line]:
    if count > most:
        yield line(Span(f"and {count - most:,} more (--verbose, or --html for all of them)", "dim"), first="  ")


def _findings(rows: Sequence[Mapping[str, Any]], most: int) -> Iterator[Line]:
    if not rows:
        return
    yield BLANK
    yield line(Span("findings", "bold"))
    for row in rows[:most]:
        style = _SEVERITY[row["severity"]]
        head = f" {row['severity']} · {row['slug']} · {many(row['boots'], 'boot')}"
        yield line(Span(row["code"], style), head, first="  ", rest="      ")
        yield from _messages(row)
        for common in row["common"]:
            value = clean(common["value"], 80)
            told = f"all have {common['column']} {value}; {common['boots']:,} of {common['of']:,} such boots"
            yield line(Span(told, "note"), first="      ")
        if row["first_seen"]:
            yield line(Span(f"logs from {row['first_seen']} to {row['last_seen']}", "dim"), first="      ")
    yield from _more(len(rows), most)


def _messages(row: Mapping[str, Any]) -> Iterator[Line]:
    """What the rule says of which boots, each text with a log that it is of."""
    shown = row["messages"][:_MESSAGES]
    for told in shown:
        count = f"{many(told['boots'], 'boot')}: " if told["boots"] < row["boots"] else ""
        yield line(Span(count, "dim"), Span(clean(told["message"], 300)), first="      ")
        yield line(Span(f"such as {clean(told['examples'][0], 200)}", "dim"), first="      ")
    hidden = len(row["messages"]) - len(shown) + row["more_messages"]
    if hidden:
        yield line(Span(f"and {many(hidden, 'other text')}", "dim"), first="      ")


def _outliers(rows: Sequence[Mapping[str, Any]], most: int) -> Iterator[Line]:
    if not rows:
        return
    yield BLANK
    yield line(Span("outliers", "bold"), Span(" (same checkpoint and release, another kernel)", "dim"))
    for row in rows[:most]:
        where = f"{row['path']} {clean(row['group'], 60)}".strip()
        name = f"{_ENGINES.get(row['engine'], row['engine'])} {row['version']}"
        yield line(clean(f"{row['model']} · {name} · {where}", 200), first="  ", rest="      ")
        for word, way, style in (("usual", row["usual"], ""), ("other", row["other"], "warn")):
            ran = clean(f"{way['kernels'] or '?'} → {way['ran'] or '?'}", 160)
            told = f"{ran} · {many(way['boots'], 'boot')} on {clean(', '.join(way['gpus']), 80)}"
            yield line(Span(told, style), first=f"      {word}  ")
        yield line(Span(f"such as {clean(row['logs'][0], 200)}", "dim"), first="      ")
    yield from _more(len(rows), most)


def _unjoined(rows: Sequence[Mapping[str, Any]], most: int) -> Iterator[Line]:
    if not rows:
        return
    yield BLANK
    yield line(Span("no checkpoint found", "bold"))
    for row in rows[:most]:
        told = f"{clean(row['model'], 80)} · {many(row['boots'], 'boot')} · {clean(row['why'], 200)}"
        yield line(told, first="  ", rest="      ")
    yield from _more(len(rows), most)


def _wrong(doc: Mapping[str, Any], most: int) -> Iterator[Line]:
    for title, rows in (
        ("not readable", [error["error"] for error in doc["errors"]]),
        ("nothing recognised", doc["nothing"]),
    ):
        if rows:
            yield BLANK
            yield line(Span(title, "bold"), Span(f" ({many(len(rows), 'log')})", "dim"))
            for row in rows[:most]:
                yield line(clean(row, 300), first="  ", rest="      ")
            yield from _more(len(rows), most)


def _trend(rows: Sequence[Mapping[str, Any]]) -> Iterator[Line]:
    if len(rows) < 2:
        return
    yield BLANK
    yield line(Span("trend", "bold"))
    for row in rows[-10:]:
        verdicts = " · ".join(f"{count:,} {name}" for name, count in row["verdicts"].items())
        yield line(f"{row['finished']}  {many(row['logs'], 'log')}  {verdicts}", first="  ", rest="      ")
