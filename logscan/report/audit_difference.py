"""The difference of two audits for a person: the totals, then each boot that changed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from logscan.report import view
from logscan.report.text import BLANK, Line, Span, colored, line, plain
from logscan.report.view import Json, clean

_RESULTS = {"worse": "bad", "better": "good", "changed": "warn", "same": "good"}
_SHOWN = 50


def render(doc: Json, *, verbose: bool = False, width: int | None = None, color: bool = False) -> str:
    """The document `logscan.diff/1` of two audits as text; the first fifty boots unless `verbose`."""
    columns = min(max(shutil.get_terminal_size().columns if width is None else width, 40), 160)
    return (colored if color else plain)(list(_lines(doc, verbose)), columns)


def _lines(doc: Json, verbose: bool) -> Iterator[Line]:
    count = len(doc["boots"])
    tail = f" · {view.many(count, 'boot')} changed"
    yield line(Span(doc["result"].upper(), _RESULTS[doc["result"]]), Span(tail, "dim"))
    yield BLANK
    for name in ("before", "after"):
        side = doc[name]
        verdicts = ", ".join(f"{number} {verdict}" for verdict, number in side["verdicts"].items())
        where = Span(clean(side["audit"]["directory"], 120), "bold")
        yield line(
            where, Span(f" · {view.many(side['logs'], 'log')} · {verdicts or 'no boots'}", "dim"), first=f"  {name:<8}"
        )
    for change in doc["boots"] if verbose else doc["boots"][:_SHOWN]:
        yield BLANK
        yield from _boot(change)
    if count > _SHOWN and not verbose:
        yield BLANK
        yield line(Span(f"and {view.many(count - _SHOWN, 'more boot')} (--verbose)", "dim"), first="  ")
    if doc["findings"]:
        yield BLANK
        yield line(Span("Boots by rule", "bold"), first="  ")
    for rule in doc["findings"]:
        step = f"{rule['before']} → {rule['after']}"
        style = "bad" if rule["after"] > rule["before"] else "good"
        yield line(Span(f"{rule['code']} {rule['slug']}  "), Span(step, style), first="    ")


def _boot(change: Json) -> Iterator[Line]:
    source = f" · {clean(change['source'], 120)}" if change["source"] else ""
    yield line(Span(clean(change["log"], 200), "bold"), Span(f"{source} {change['change']}", "dim"), first="  ")
    before, after = change["before"] or {}, change["after"] or {}
    for name in dict.fromkeys([*before, *after]):
        if before.get(name) != after.get(name):
            yield line(Span(f"{name:<9} "), *_step(before.get(name), after.get(name)), first="    ")
    for path in change["paths"]:
        title = " ".join(part for part in (path["path"], clean(path["group"], 80)) if part)
        yield line(Span(title), first="    ")
        was, now = path["before"] or {}, path["after"] or {}
        for name in dict.fromkeys([*was, *now]):
            yield line(Span(f"{name:<9} "), *_step(was.get(name), now.get(name)), first="      ")
    for word, sign, style in (("added", "+", "bad"), ("removed", "-", "good")):
        for finding in change["findings"][word]:
            text = f"{finding['code']} {finding['severity']} · {clean(finding['message'])}"
            yield line(Span(f"{sign} ", style), Span(text), first="    ", rest="      ")


def _step(was: object, now: object) -> list[Span]:
    return [Span(_word(was)), Span(" → ", "dim"), Span(_word(now))]


def _word(value: object) -> str:
    if isinstance(value, list):
        # Kernels are objects with a name.
        return ", ".join(clean(item["name"] if isinstance(item, dict) else item, 120) for item in value) or "none"
    return "none" if value is None else clean(value, 200)


def markdown(doc: Json) -> str:
    """The document for a pull request: one line for each boot that changed."""
    from logscan.report.markdown import cell

    before, after = doc["before"], doc["after"]
    lines = [f"### logscan: **{doc['result']}** · {view.many(len(doc['boots']), 'boot')} changed", ""]
    verdicts = dict.fromkeys([*before["verdicts"], *after["verdicts"]])
    if verdicts:
        lines += ["| verdict | before | after |", "|---|---|---|"]
    for verdict in verdicts:
        lines.append(f"| {verdict} | {before['verdicts'].get(verdict, 0)} | {after['verdicts'].get(verdict, 0)} |")
    if doc["boots"]:
        lines += ["", "| log | what | findings |", "|---|---|---|"]
    for change in doc["boots"]:
        was, now = change["before"] or {}, change["after"] or {}
        steps = [f"{name} {_word(was.get(name))} → {_word(now.get(name))}" for name in dict.fromkeys([*was, *now])]
        found = [f"+{f['code']}" for f in change["findings"]["added"]]
        found += [f"-{f['code']}" for f in change["findings"]["removed"]]
        what = "; ".join(steps) if change["change"] == "changed" else change["change"]
        lines.append(f"| {cell(change['log'])} | {cell(what)} | {' '.join(found)} |")
    return "\n".join(lines) + "\n"
