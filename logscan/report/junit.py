"""JUnit XML: a suite for each boot, a test case for each row."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple
from xml.sax.saxutils import escape, quoteattr

from logscan import catalogue
from logscan.report import view
from logscan.report.view import Json, Shown, clean


class Case(NamedTuple):
    """A test case and how it ended: `failure`, `error`, `skipped`, or "" for passed."""

    name: str
    ended: str = ""
    kind: str = ""
    message: str = ""
    body: str = ""


def render(
    doc: Json, *, boots: str = "last", fail_on: str = "high", fails: Callable[[Json], bool] | None = None, **_: Any
) -> str:
    """A row fails where a finding about it is at or above `fail_on`, so that the report and the exit code agree.

    `fails` decides instead of `fail_on` where a policy does.

    `unproven` and `no-promise` are skipped, never passed: nothing was shown to hold.
    """
    suites = [
        (_suite_name(item), item, list(_cases(item, fails or partial(_fails, fail_on=fail_on))))
        for item in view.shown(doc, boots)
    ]
    total = [case for _, _, cases in suites for case in cases]
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<testsuites name="logscan" {_counts(total)}>']
    for name, item, cases in suites:
        lines.append(f"  <testsuite name={quoteattr(name)} {_counts(cases)}>")
        lines += [f"    {text}" for case in cases for text in _case(case, name, item)]
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _suite_name(item: Shown) -> str:
    source = f" {clean(item.boot['source'], 120)}" if item.boot["source"] else ""
    return f"{view.log_name(item.log['name'])}{source} boot {item.boot['index']}"


def _counts(cases: list[Case]) -> str:
    ended = [case.ended for case in cases]
    failures, errors, skipped = (ended.count(word) for word in ("failure", "error", "skipped"))
    return f'tests="{len(cases)}" failures="{failures}" errors="{errors}" skipped="{skipped}"'


def _cases(item: Shown, fails: Callable[[Json], bool]) -> Iterator[Case]:
    boot = item.boot
    status = {"failed": "error", "died": "error", "incomplete": "skipped"}.get(boot["status"], "")
    yield Case("boot", status, boot["status"], f"the engine's status is {boot['status']}" if status else "")
    told: set[int] = set()
    for row in boot["paths"]:
        about = view.findings_of(row, boot)
        told.update(id(f) for f in about)
        yield _row_case(row, [f for f in about if fails(f)], about, item)
    for finding in view.findings(boot):
        if id(finding) not in told and fails(finding):
            yield _failure(f"{finding['code']} {finding['slug']}", [finding], item)


def _row_case(row: Json, failing: list[Json], about: list[Json], item: Shown) -> Case:
    name = view.title(row)
    if failing:
        return _failure(name, failing, item)
    if row["verdict"] == "unproven":
        known = catalogue.reasons()
        advice = [f"{r}: {known[r].advice}" if r in known else clean(r, 80) for r in row["reasons"]]
        return Case(name, "skipped", message=f"unproven; {' '.join(advice)}")
    if row["verdict"] == "no-promise":
        return Case(name, "skipped", message="no promise")
    notes = "\n".join(f"{f['code']} {f['severity']}: {clean(f['message'])}" for f in about)
    return Case(name, body="\n".join(part for part in (view.one_line(row), notes) if part))


def _failure(name: str, findings: list[Json], item: Shown) -> Case:
    worst = findings[0]
    lines = []
    for finding in findings:
        lines += [
            f"{finding['code']} {finding['severity']}: {clean(finding['message'])}",
            f"do: {clean(finding['fix'], 600)}",
        ]
        lines += [f"{view.log_name(item.log['name'])}:{e['line']}: {clean(e['text'])}" for e in finding["evidence"]]
    return Case(name, "failure", f"{worst['code']} {worst['slug']}", clean(worst["message"]), "\n".join(lines))


def _fails(finding: Json, fail_on: str) -> bool:
    limit = view.severity_rank(fail_on)
    return finding["waived"] is None and limit >= 0 and view.severity_rank(finding["severity"]) >= limit


def _case(case: Case, suite: str, item: Shown) -> Iterator[str]:
    file = quoteattr(clean(item.log["name"], 200))
    head = f"<testcase classname={quoteattr(suite)} name={quoteattr(case.name)} file={file}"
    if case.ended == "skipped":
        yield f"{head}><skipped message={quoteattr(case.message)}/></testcase>"
    elif case.ended:
        attributes = f"type={quoteattr(case.kind)} message={quoteattr(case.message)}"
        yield f"{head}><{case.ended} {attributes}>{escape(case.body)}</{case.ended}></testcase>"
    elif case.body:
        yield f"{head}><system-out>{escape(case.body)}</system-out></testcase>"
    else:
        yield f"{head}/>"
