"""What bounds every verdict of a boot, whatever its rows say: a release nobody has read, a GPU that the log denies.

Inside those bounds only a line of the log proves something, and it never proves that an order is kept: what the line
does not name may have changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from logscan import versions
from logscan.model import Boot, Fact, Machine, Row, replace
from logscan.observed import conflicts

_ENGINES = frozenset({"vllm", "trtllm", "sglang"})
Conflict = tuple[str, tuple[Fact, ...]]  # what to tell, and the lines that show it


class Denied(NamedTuple):
    """What the log, or the range of the tables, denies of what a verdict would rest on."""

    release: str | None = None
    hardware: Conflict | None = None
    engine: Conflict | None = None


def denied(boot: Boot, given: Machine | None, known: Sequence[str]) -> Denied:
    """What is denied of a boot. `given`: hardware that the user named; `known`: the engine's releases, ascending."""
    hardware = conflicts(given, boot) if given is not None else None
    return Denied(uncovered(boot.engine.version, known), hardware, other_engine(boot))


def uncovered(version: str | None, known: Sequence[str]) -> str | None:
    """Why the tables say nothing of this version: it lies outside the known releases. None where it does not."""
    parsed = versions.parse(version) if version else None
    if parsed is None or not known or versions.kind(parsed) == "unknown" or versions.covered(parsed, known):
        return None
    newest = versions.parse(known[-1])
    if newest is not None and parsed.key > newest.key:
        return f"{parsed.text} is newer than {known[-1]}, the newest release that is known"
    return f"{parsed.text} is older than {known[0]}, the oldest release that is known"


def bounded(rows: Iterable[Row], reason: str, logged: bool) -> tuple[Row, ...]:
    """Rows without the verdicts that rest on the tables, `unproven` for `reason` instead.

    `logged`: kept rows too whose kernel a line names, as that is known of other releases.
    """
    return tuple(
        _open(row, reason)
        if _rests(row, logged)
        else _also(row, reason)
        if logged and row.verdict == "unproven"
        else row
        for row in rows
    )


def _also(row: Row, reason: str) -> Row:
    others = [r for r in row.reasons if r not in (reason, "not-printed-in-version")]
    return replace(row, reasons=(reason, *others))


def _rests(row: Row, logged: bool) -> bool:
    if row.verdict == "kept":
        return logged or row.authority != "logged"
    return row.verdict in ("downgraded", "not-served") and row.authority != "logged"


def _open(row: Row, reason: str) -> Row:
    return replace(row, verdict="unproven", kinds=(), extent=None, visibility=None, cause=None, remedy=None,
                   refusal=None, reasons=(reason,))  # fmt: skip


def limited(rows: tuple[Row, ...], boot: Boot, known: Sequence[str], denied: Denied) -> tuple[Row, ...]:
    """The rows of a boot within its bounds."""
    if denied.release is not None:
        rows = bounded(rows, "version-not-covered", logged=True)
    if denied.hardware is not None:
        rows = bounded(rows, "no-gpu", logged=False)
    if boot.census.head == "missing":  # what was asked for is not seen: an argument may turn the derivation
        rows = bounded(rows, "head-missing", logged=False)
    if denied.engine is None:
        return rows
    printed = denied.engine[1][0]
    if not printed.pattern.startswith(f"{boot.engine.name}."):
        return bounded(rows, "unknown-engine", logged=True)
    version = versions.parse(printed.value)
    told = versions.kind(version) == "release" and uncovered(printed.value, known) is None
    return bounded(rows, "version-ambiguous", logged=False) if told else rows


def unheard_of(rows: Iterable[Row], facts: Iterable[str]) -> tuple[Row, ...]:
    """Rows of which nothing is kept where a pattern that might speak of them was given up. `facts`: what those emit."""
    paths = {fact.partition(".")[0] for fact in facts}
    mute = {"kv_cache" if path == "kv" else path for path in paths}
    return tuple(_open(r, "line-untrusted") if r.verdict == "kept" and r.path in mute else r for r in rows)


def other_engine(boot: Boot) -> Conflict | None:
    """How the log contradicts the engine that was given, and the lines that do; None where it does not."""
    engine = boot.engine
    if engine.authority != "given" and engine.name is None:
        return None
    foreign = tuple(f for f in boot.facts if f.pattern.partition(".")[0] in _ENGINES - {engine.name})
    if foreign:
        name = foreign[0].pattern.partition(".")[0]
        return f"{engine.name} was given, the log is one of {name}", foreign[:1]
    if engine.authority != "given":
        return None
    given = versions.parse(engine.version or "")
    printed = [f for f in boot.facts if f.name == "engine.version" and versions.parse(f.value) is not None]
    other = next((f for f in printed if given is not None and f.value.removeprefix("v") != given.text), None)
    if other is None:
        return None
    return f"{engine.name} {engine.version} was given, the log shows {other.value}", (other,)
