"""`logscan triage`: from arguments to a report and an exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from logscan import document, policy
from logscan.boots import Boots
from logscan.cli.output import job_summary, to_stdout, wants_color, write
from logscan.desk import Desk, Given, Watch, read_log
from logscan.intake import open_source
from logscan.model import SEVERITIES, InputError
from logscan.redact import cleaner
from logscan.report.view import log_name

FOUND, BAD_INPUT, NOTHING = 1, 2, 3


def run(
    *,
    logs: Sequence[str],
    ckpt: str | None = None,
    gpu: str | None = None,
    cuda: str | None = None,
    engine: str | None = None,
    env: Mapping[str, str] = {},
    format: str = "table",
    output: Path | None = None,
    fail_on: str | None = None,
    strict: bool = False,
    boots: str = "last",
    until: str = "end",
    timeout: float | None = None,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    require: Sequence[str] = (),
    waivers: Path | None = None,
    baseline: Path | None = None,
    config: Path | None = None,
    isolated: bool = False,
    packs: Sequence[str] = (),
    redact: bool = True,
    quiet: bool = False,
    verbose: bool = False,
    color: str = "auto",
) -> int:
    """Write the report, and return the exit code. Raises InputError for bad input that leaves nothing to report."""
    rules = policy.gather(
        config=config, isolated=isolated, fail_on=fail_on, require=require, waivers=waivers, baseline=baseline
    )
    desk = Desk.of(Given(ckpt, gpu, cuda, engine, dict(env)), packs)
    deadline = None if timeout is None else time.monotonic() + timeout
    reports: list[document.LogReport] = []
    unreadable = 0
    clean = cleaner(redact)
    told: dict[tuple[str, int], _Told] = {}
    for name in logs:
        try:
            source = open_source(name)
            streams = source.live and format == "jsonl" and output is None
            tell = partial(_tell, desk, name, clean, told) if streams else None
            reports.append(read_log(source, desk, Watch(until == "ready", deadline, tell)))
        except InputError as error:
            if len(logs) == 1:
                raise
            unreadable += 1
            _say(f"{error}")
    doc = document.document(reports, desk.packs, desk.given.document(), boots, clean)
    _choose(doc, _codes(select), _codes(ignore))
    counted = _counting(doc, boots)
    remarks = policy.apply(rules, (boot for log in doc["logs"] for boot in log["boots"]), counted)
    found = [f for boot in counted for f in boot["findings"]]
    severities = {f["severity"] for f in found if f["waived"] is None}
    doc["worst"] = next((s for s in reversed(SEVERITIES) if s in severities), None)
    if not quiet:
        _notes(reports)
        for remark in remarks:
            _say(remark)
    if told:
        _tell_rest(doc, told)
    else:
        write(_render(doc, format, boots, verbose, wants_color(color, output), rules), output)
    return _exit_code(doc, any(map(rules.fails, found)), strict, unreadable)


class _Told(NamedTuple):
    """What a stream's reader last heard of a boot."""

    outcome: str
    line: str


def _tell(desk: Desk, name: str, clean: document.Text, told: dict[tuple[str, int], _Told], boots: Boots) -> None:
    """Write a line for each boot that is decided, and again when its outcome changes, while the stream goes on."""
    from logscan.report.jsonl import boot_line

    for judged in desk.judged(boots.snapshot()):
        if judged.boot.status == "incomplete":
            continue
        boot = document.boot_document(judged, clean)
        outcome = f"{boot['status']} {boot['verdict']} {[f['code'] for f in boot['findings']]}"
        key = (name, boot["index"])
        if key not in told or told[key].outcome != outcome:
            told[key] = _Told(outcome, boot_line(name, boot))
            write(told[key].line)
            with to_stdout():
                sys.stdout.flush()


def _tell_rest(doc: dict[str, Any], told: Mapping[tuple[str, int], _Told]) -> None:
    """At the end of the streams: the boots of which anything is new, so that the last line of each is the whole of it:
    its last line, what a policy makes of it.
    """
    from logscan.report.jsonl import boot_line

    for log in doc["logs"]:
        for boot in log["boots"]:
            line, last = boot_line(log["name"], boot), told.get((log["name"], boot["index"]))
            if last is None or last.line != line:
                write(line)


def _say(text: str) -> None:
    print(f"logscan: {text}", file=sys.stderr)


def _notes(reports: Sequence[document.LogReport]) -> None:
    for report in reports:
        name = log_name(report.name)
        for note in report.notes:
            _say(f"{name}: {note}")
        if not report.boots:
            what = "is empty" if not report.bytes else "holds nothing that an engine pack knows"
            _say(f"{name}: {what}; give the boot log of vLLM, TensorRT-LLM or SGLang, from its first line")


def _codes(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(code.strip().upper() for text in texts for code in text.split(",") if code.strip())


def _choose(doc: dict[str, Any], select: tuple[str, ...], ignore: tuple[str, ...]) -> None:
    """Keep the findings that were asked for; the verdicts stay as they are."""
    if not select and not ignore:
        return
    for log in doc["logs"]:
        for boot in log["boots"]:
            boot["findings"] = [
                f
                for f in boot["findings"]
                if (not select or f["code"].startswith(select)) and not (ignore and f["code"].startswith(ignore))
            ]


def _counting(doc: dict[str, Any], boots: str) -> list[dict[str, Any]]:
    if boots == "all":
        return [b for log in doc["logs"] for b in log["boots"]]
    return [b for log in doc["logs"] for b in {b["source"]: b for b in log["boots"]}.values()]


def _render(doc: dict[str, Any], format: str, boots: str, verbose: bool, color: bool, rules: policy.Policy) -> str:
    from logscan.report import render

    if format == "github":
        job_summary(render(doc, "markdown", boots=boots))
    return render(doc, format, boots=boots, verbose=verbose, color=color, fails=rules.fails)


def _exit_code(doc: dict[str, Any], failed: bool, strict: bool, unreadable: int) -> int:
    """2 > 1 > 3, as the contract says: nothing recognised is always 3."""
    if unreadable:
        return BAD_INPUT
    if failed:
        return FOUND
    if doc["verdict"] is None or (strict and doc["verdict"] == "unproven"):
        return NOTHING
    return 0
