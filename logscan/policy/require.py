"""Facts that must hold, or must not, in every boot that counts: `linear.kernel~=Cutlass`.

Every value that a trusted line shows must match. A missing fact fails, since nothing shows that it holds, and so does
one whose only line is known to be untrue in that release.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import regex

from logscan import catalogue
from logscan.model import PATHS, InputError

Json = Mapping[str, Any]
_FORM = re.compile(r"\s*(?P<fact>[a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)+)\s*~=\s*(?P<regex>.+?)\s*", re.S)
_SECONDS = 1.0  # a value is at most a few thousand characters: longer means a runaway expression
_SHOWN = 3


class Requirement(NamedTuple):
    """A fact by name and what its values must match; `forbidden`: what none of them may match."""

    fact: str
    pattern: str
    forbidden: bool = False
    where: str = "--require"

    def __str__(self) -> str:
        return f"{self.fact}~={self.pattern}"


class Reading(NamedTuple):
    """A value of a fact, with the line that shows it; None for what was judged rather than read."""

    value: str
    line: int | None = None
    means: str = "available"
    pattern: str | None = None


def parse(text: str, where: str, forbidden: bool = False) -> Requirement:
    """`FACT~=REGEX`. Raises InputError for another form, and for an expression that does not compile."""
    m = _FORM.fullmatch(text)
    if m is None:
        raise InputError(f"{where}: {text!r} is not FACT~=REGEX; write for example 'linear.kernel~=Cutlass'")
    try:
        regex.compile(m["regex"])
    except (regex.error, RecursionError) as error:
        raise InputError(f"{where}: {m['regex']!r} is not a regular expression: {error}") from error
    return Requirement(m["fact"], m["regex"], forbidden, where)


def check(requirement: Requirement, boot: Json) -> dict[str, Any] | None:
    """The finding where a boot (as in a document) does not meet a requirement."""
    readings, untrue = readings_of(requirement.fact, boot)
    if requirement.forbidden:
        wrong = [r for r in readings if _matches(requirement, r.value)]
        message = f"{requirement} is forbidden, and the boot has {_listed(wrong)}"
        return _finding("LS802", requirement, message, wrong, boot) if wrong else None
    wrong = [r for r in readings if not _matches(requirement, r.value)]
    if readings and not wrong:
        return None
    if readings:
        message = f"{requirement} is required, and the boot has {_listed(wrong)}"
    elif untrue:
        message = f"{requirement} is required, and the only line about it is known not to be true: {_listed(untrue)}"
    else:
        message = f"{requirement} is required, and no line shows {requirement.fact}{_nearest(requirement.fact, boot)}"
    return _finding("LS801", requirement, message, wrong, boot)


def readings_of(name: str, boot: Json) -> tuple[list[Reading], list[Reading]]:
    """What a boot says of a fact: the values of trusted lines, and those of lines known to be untrue.

    Beside the facts of the packs: `boot.status`, `boot.verdict`, `hardware.gpu|sm|cuda`, `promise.label`, and of each
    path of the target `linear.ran`, `linear.verdict` …
    """
    distrusted = {e["line"] for row in boot["paths"] for e in row["evidence"] if e["role"] == "contradicts"}
    found = [
        Reading(f["value"], f["line"], f["means"], f["pattern"])
        for f in boot["facts"]
        if f["name"] == name and f["component"] == "target"
    ]
    trusted = [r for r in found if r.line not in distrusted] + _judged(name, boot)
    return list(dict.fromkeys(trusted)), [r for r in found if r.line in distrusted]


def _judged(name: str, boot: Json) -> list[Reading]:
    home, _, field = name.partition(".")
    rows = [row for row in boot["paths"] if row["path"] == home and row["component"] == "target"]
    values: list[Any] = []
    if home in PATHS and field in ("ran", "verdict"):
        values = [row[field] for row in rows]
    elif name in ("boot.status", "boot.verdict"):
        values = [boot[field]]
    elif home == "hardware" and field in ("gpu", "sm", "cuda"):
        values = [boot["hardware"][field]]
    elif name == "promise.label" and boot["promise"]:
        values = [boot["promise"]["label"]]
    return [Reading(str(value)) for value in values if value is not None]


def _matches(requirement: Requirement, value: str) -> bool:
    try:
        return regex.search(requirement.pattern, value, timeout=_SECONDS) is not None
    except TimeoutError as error:
        raise InputError(
            f"{requirement.where}: {requirement.pattern!r} takes too long to match; write it without nested repeats"
        ) from error


def _listed(readings: Sequence[Reading]) -> str:
    shown = [f"{r.value[:120]!r}" + (f" (line {r.line})" if r.line else "") for r in readings[:_SHOWN]]
    more = [f"{len(readings) - _SHOWN} more"] if len(readings) > _SHOWN else []
    return ", ".join(shown + more)


def _nearest(name: str, boot: Json) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, {f["name"] for f in boot["facts"]}, 1, cutoff=0.75)
    return f" (did you mean {near[0]}?)" if near else ""


def _finding(
    code: str, requirement: Requirement, message: str, readings: Sequence[Reading], boot: Json
) -> dict[str, Any]:
    from logscan.judge.findings import fingerprint

    quoted = {e["line"]: e["text"] for row in boot["paths"] for e in row["evidence"]}
    evidence = [
        {
            "line": r.line,
            "role": "supports",
            "means": r.means,
            "pattern": r.pattern,
            "text": quoted.get(r.line, r.value),
            "distrusted_by": None,
        }
        for r in readings
        if r.line is not None
    ]
    values = sorted(r.value for r in readings)
    return finding(code, message, fingerprint(code, None, str(requirement), *values), evidence)


def finding(code: str, message: str, fingerprint: str, evidence: Sequence[Json] = ()) -> dict[str, Any]:
    """A finding of the policy's, as it stands in a document."""
    rule = catalogue.rules()[code]
    return {
        "code": rule.code,
        "slug": rule.slug,
        "severity": rule.severity,
        "path": None,
        "group": "",
        "kind": None,
        "cause": None,
        "consequence": list(rule.consequence),
        "visibility": None,
        "authority": "given",
        "message": message,
        "fix": rule.fix_for(None),
        "evidence": list(evidence),
        "fingerprint": fingerprint,
        "waived": None,
    }
