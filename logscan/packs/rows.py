"""Rows of knowledge that no release ever reads: an earlier row is taken instead, or the release is not listed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from logscan import versions
from logscan.judge.conditions import ALWAYS, Condition
from logscan.judge.knowledge import tables
from logscan.packs import patterns_dir
from logscan.packs.lint import Problem
from logscan.packs.schema import Pack

Row = Mapping[str, Any]


class Ladder(NamedTuple):
    """Rows of which one release takes the first that it fits (`first`), or all of them (`needs`, a gate's rows)."""

    entry: Row
    name: str
    rows: Sequence[Row]
    first: bool


def lint_knowledge(packs: Sequence[Pack], dirs: Sequence[Path] = ()) -> list[Problem]:
    """`lint_rows` for each engine of the packs, own tables in `dirs` included. Raises InputError for bad tables."""
    found = []
    for engine in dict.fromkeys(pack.engine for pack in packs):
        releases = max((pack.releases for pack in packs if pack.engine == engine), key=len)
        found += lint_rows(tables(dirs, engine).raw, releases)
    home = f"{patterns_dir()}{os.sep}"
    return [p._replace(where=p.where.replace(home, f"patterns{os.sep}")) for p in found]


def lint_rows(raw: Mapping[str, tuple[Row, ...]], releases: Sequence[str]) -> list[Problem]:
    """What is dead in the compiled tables of one engine (`Knowledge.raw`), whose pack lists `releases`.

    An error is a row that another one makes unreachable in releases that both name; a warning is a row whose range
    holds no release of the list: it stays without effect until the release is added there.
    """
    found = []
    for ladder in _ladders(raw):
        where, name = str(ladder.entry.get("where", "")), ladder.name
        points = versions.landmarks([str(row.get("engine", "")) for row in ladder.rows], releases)
        found += [Problem("error", where, name, text) for text in _dead(ladder, points)]
        found += [Problem("warning", where, name, text) for text in _ahead(ladder.rows, releases)]
    return found


def _ladders(raw: Mapping[str, tuple[Row, ...]]) -> Iterator[Ladder]:
    for entry in raw.get("candidates", ()):
        yield Ladder(entry, f"[[candidates]] {entry['id']}", entry["rows"], True)
    for entry in raw.get("gate", ()):
        yield Ladder(entry, f"[[gate]] {entry['id']}", entry["rows"], False)
    for entry in raw.get("kernel", ()):
        yield Ladder(entry, f"[[kernel]] {entry['id']}", entry["needs"], False)


def _dead(ladder: Ladder, points: Sequence[str]) -> Iterator[str]:
    for n, row in enumerate(ladder.rows):
        for other in ladder.rows[:n]:
            both = [p for p in points if _covers(row, p) and _covers(other, p)]
            if both and (ladder.first or _implies(row.get("if", ALWAYS), other.get("if", ALWAYS))):
                where = _through(both, points)
                yield f"row {_span(row)} is dead in {where}: row {_span(other)} stands before it; end that one's range"


def _ahead(rows: Sequence[Row], releases: Sequence[str]) -> Iterator[str]:
    for row in rows:
        if releases and row.get("engine") and not any(_covers(row, r) for r in releases):
            yield f"row {_span(row)}: no release that pack.toml lists is in it"


def _implies(condition: Condition, weaker: Condition) -> bool:
    """Whether every part of `weaker` stands in `condition`: then it holds wherever `condition` does."""
    return set(_parts(weaker)) <= set(_parts(condition))


def _parts(condition: Condition) -> tuple[Any, ...]:
    return condition[1:] if condition[0] == "all" else (condition,)


def _covers(row: Row, release: str) -> bool:
    return versions.contains(row.get("engine", ""), release)


def _span(row: Row) -> str:
    return repr(row.get("engine") or "any release")


def _through(some: Sequence[str], points: Sequence[str]) -> str:
    last = "and later" if some[-1] == points[-1] else f"to {some[-1]}"
    return some[0] if len(some) == 1 and last != "and later" else f"{some[0]} {last}"
