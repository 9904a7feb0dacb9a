"""`logscan triage`: from arguments to a report and an exit code."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from logscan import document, policy
from logscan.boots import Boots
from logscan.cli.output import job_summary, to_stdout, wants_color, write
from logscan.desk import Desk, Given, Watch, cleaner, read_log
from logscan.intake import open_source
from logscan.model import SEVERITIES, InputError

FOUND, BAD_INPUT, NOTHING = 1, 2, 3


def run(
    *,
    logs: Sequence[str],
    ckpt: str | None,
    gpu: str | None,
    cuda: str | None,
    engine: str | None,
    env: Mapping[str, str],
    format: str,
    output: Path | None,
    fail_on: str | None,
    strict: bool,
    boots: str,
    until: str,
    timeout: float | None,
    select: Sequence[str],
    ignore: Sequence[str],
    require: Sequence[str],
    waivers: Path | None,
    baseline: Path | None,
    config: Path | None,
    isolated: bool,
    packs: Sequence[str],
    redact: bool,
    quiet: bool,
    verbose: bool,
    color: str,
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
    told: dict[tuple[str, int], str] = {}
    for name in logs:
        tell = partial(_tell, desk, name, clean, told) if format == "jsonl" and output is None else None
        try:
            reports.append(read_log(open_source(name), desk, Watch(until == "ready", deadline, tell)))
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


def _tell(desk: Desk, name: str, clean: document.Text, told: dict[tuple[str, int], str], boots: Boots) -> None:
    """Write a line for each boot that is decided, and again when it has changed, while the stream goes on."""
    for judged in desk.judged(boots.snapshot()):
        if judged.boot.status != "incomplete":
            _tell_boot(name, document.boot_document(judged, clean), told)


def _tell_boot(name: str, boot: dict[str, Any], told: dict[tuple[str, int], str]) -> None:
    from logscan.report.jsonl import boot_line

    key, outcome = (name, boot["index"]), f"{boot['status']} {boot['verdict']} {[f['code'] for f in boot['findings']]}"
    if told.get(key) != outcome:
        told[key] = outcome
        write(boot_line(name, boot))
        with to_stdout():
            sys.stdout.flush()


def _tell_rest(doc: dict[str, Any], told: dict[tuple[str, int], str]) -> None:
    """At the end of the streams: the boots that were never decided, and those that changed since."""
    for log in doc["logs"]:
        for boot in log["boots"]:
            _tell_boot(log["name"], boot, told)


def _say(text: str) -> None:
    print(f"logscan: {text}", file=sys.stderr)


def _notes(reports: Sequence[document.LogReport]) -> None:
    for report in reports:
        for note in report.notes:
            _say(f"{report.name}: {note}")
        if not report.boots:
            what = "is empty" if not report.bytes else "holds nothing that an engine pack knows"
            _say(f"{report.name}: {what}; give the boot log of vLLM, TensorRT-LLM or SGLang, from its first line")


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
