"""Markdown to paste into an issue or a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from logscan import catalogue
from logscan.report import view
from logscan.report.view import Json, Shown, clean

_RUNS = re.compile("`+")
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#!|~&$]|:(?=//)")


def render(doc: Json, *, boots: str = "last", **_: Any) -> str:
    """Headline, a table of rows for each boot, its findings with what to do, and the lines that show them."""
    drawn = view.worst_first(view.shown(doc, boots))
    lines = [f"### logscan: {_headline(doc, drawn)}"]
    for item in drawn:
        lines += ["", *_boot(item)]
    for log in doc["logs"]:
        if not log["boots"]:
            lines += [
                "",
                f"{code(view.log_name(log['name']))}: no line of a vLLM, TensorRT-LLM or SGLang boot was recognised.",
            ]
    return "\n".join(lines) + "\n"


def code(text: object, limit: int = 240) -> str:
    """Foreign text as a code span: no markup, HTML or mention is read in it."""
    shown = clean(text, limit)
    if not shown:
        return ""
    fence = "`" * (max((len(run) for run in _RUNS.findall(shown)), default=0) + 1)
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{space}{shown}{space}{fence}"


def cell(text: object) -> str:
    """A code span in a table, where a pipe must be escaped even within one."""
    return code(text).replace("|", "\\|")


def prose(text: object) -> str:
    """Text as text: what Markdown or HTML would read as markup, link or mention is escaped."""
    # A mention is read after escapes are resolved, so an invisible mark must part it.
    return _SPECIAL.sub(r"\\\g<0>", clean(text, 600)).replace("@", "@\N{WORD JOINER}")


def _headline(doc: Json, drawn: list[Shown]) -> str:
    if doc["verdict"] is None:
        return "**nothing recognised**"
    worst = f"severity {doc['worst']}" if doc["worst"] else view.no_findings(item.boot for item in drawn)
    return f"**{doc['verdict']}** · {doc['status']} · {worst}"


def _boot(item: Shown) -> Iterator[str]:
    log, boot = item.log, item.boot
    hardware, promise = boot["hardware"], boot["promise"]
    source = f" · {code(boot['source'])}" if boot["source"] else ""
    yield f"{code(view.log_name(log['name']))} boot {boot['index']}{source}: **{boot['verdict']}** · {boot['status']}"
    yield ""
    yield f"- engine {code(view.engine_name(boot['engine']))}" + (
        f", model {code(boot['model'])}" if boot["model"] else ""
    )
    known = [
        f"{label} {code(hardware[key])}"
        for key, label in (("gpu", "GPU"), ("sm", "SM"), ("cuda", "CUDA"))
        if hardware[key]
    ]
    yield f"- {', '.join(known) or 'hardware unknown'}"
    yield f"- promise {code(promise['label']) if promise and promise['label'] else 'unknown'}"
    yield ""
    yield "| path | verdict | measured against | ran | kinds | cause | visibility |"
    yield "|---|---|---|---|---|---|---|"
    for row in view.rows(boot):
        order = view.yardstick(row)
        cells = [
            cell(view.title(row)),
            f"**{row['verdict']}**",
            f"{row['against'] or ''} {cell(order)}" if order else "",
        ]
        cells += [cell(view.ran(row)), ", ".join(row["kinds"] or row["reasons"])]
        cells += [row["cause"] or "", row["visibility"] or ""]
        yield "| " + " | ".join(text.strip() for text in cells) + " |"
    yield from _reasons(boot)
    for finding in view.findings(boot):
        yield ""
        yield from _finding(finding, log)


def _reasons(boot: Json) -> Iterator[str]:
    found = dict.fromkeys(reason for row in boot["paths"] for reason in row["reasons"])
    if found:
        yield ""
    for reason in found:
        known = catalogue.reasons().get(reason)
        yield f"- {code(reason)}: {known.what} {known.advice}" if known else f"- {code(reason)}"


def _finding(finding: Json, log: Json) -> Iterator[str]:
    waived = f" (waived: {prose(finding['waived'])})" if finding["waived"] else ""
    yield f"**{finding['code']} {finding['slug']}** · {finding['severity']}{waived} — {prose(finding['message'])}"
    if finding["fix"] and not finding["waived"]:
        yield f"  - do: {prose(finding['fix'])}"
    for item in finding["evidence"]:
        yield f"  - {code(view.log_name(log['name']), 80)} line {item['line']} ({item['means']}): {code(item['text'])}"
