"""The ledger: in which releases each pattern was proven, and when. Kept beside the pack as `verify/ledger.json`.

A pattern's entry holds a digest of what it claims (regex, literals, `match` lines, sites). Where the pattern changed
and the ledger did not, the two digests differ, and the tests fail until the range is verified anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from logscan import versions
from logscan.model import InputError
from logscan.packs.schema import Pack, Pattern
from logscan.packs.source import roots
from logscan.packs.verify import Release, sourced

SCHEMA = "logscan.packs-ledger/1"


def claim(pattern: Pattern) -> str:
    """A digest of what `packs verify` checks of a pattern."""
    sites = [(s.engine, s.source, s.level) for s in pattern.sites]
    text = json.dumps([pattern.regex, pattern.literals, pattern.match, sites], ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def claimed(pattern: Pattern, pack: Pack) -> list[str]:
    """The releases that a pattern's sourced sites name, ascending."""
    folders = tuple(f"{folder}/" for folder in roots(pack.engine))
    spans = [s.engine for s in pattern.sites if s.source.startswith(folders)]
    return [r for r in pack.releases if any(versions.contains(span, r) for span in spans)]


def read(path: Path) -> dict[str, Any]:
    """The ledger's patterns by id; empty where there is none. Raises InputError for a damaged one."""
    if not path.is_file():
        return {}
    try:
        patterns: dict[str, Any] = json.loads(path.read_bytes())["patterns"]
    except (ValueError, KeyError, TypeError) as e:
        raise InputError(f"{path}: not a ledger: {e}") from e
    return patterns


def sampled(path: Path, pack: Pack) -> Pack:
    """The pack with those of its releases alone whose source was at hand when the ledger was written."""
    try:
        names = json.loads(path.read_bytes()).get("releases") or pack.releases
    except (OSError, ValueError, AttributeError):
        return pack
    return pack._replace(releases=tuple(r for r in pack.releases if r in names))


def write(path: Path, pack: Pack, results: Iterable[Release], on: str, *, sample: bool = False) -> None:
    """Write the ledger of a pack from the results of a whole range; `on` is the date. Keeps the dates of entries
    that say the same as before, so that a rerun changes nothing.

    `sample`: not every release's source is at hand; the ledger then names those that were, and is about them alone.
    """
    results = list(results)
    if sample:
        pack = pack._replace(releases=tuple(r for r in pack.releases if r in {x.version for x in results}))
    proven: dict[str, set[str]] = {}
    for release in results:
        for f in release.findings:
            if f.kind == "proven":
                proven.setdefault(f.pattern, set()).add(release.version)
    before = read(path)
    entries = {}
    for p in pack.patterns:
        if sourced(p, pack.engine):
            entry = {"claim": claim(p), "proven": spans([r for r in pack.releases if r in proven.get(p.id, ())], pack)}
            old = before.get(p.id, {})
            same = all(old.get(k) == v for k, v in entry.items())
            entries[p.id] = {**entry, "on": old["on"] if same else on}
    doc: dict[str, Any] = {"schema": SCHEMA, "pack": pack.id, "engine": pack.engine}
    doc |= {"releases": list(pack.releases)} if sample else {}
    doc["patterns"] = entries
    path.write_text(json.dumps(doc, indent=1, ensure_ascii=False) + "\n", "utf-8")


def add(path: Path, pack: Pack, results: Iterable[Release], on: str) -> None:
    """Write what a few releases prove into a ledger that holds the others: a new release is proven without all the old.

    An entry whose pattern has changed since keeps its old claim, so that `stale` asks for its whole range.
    """
    results = list(results)
    read_now = {r.version for r in results}
    names = {*sampled(path, pack).releases, *read_now}
    held = pack._replace(releases=tuple(r for r in pack.releases if r in names))
    doc = json.loads(path.read_bytes())
    entries = doc["patterns"]
    for p in pack.patterns:
        entry = entries.get(p.id, {"claim": claim(p), "proven": []})
        if not sourced(p, pack.engine) or entry["claim"] != claim(p):
            continue
        new = {r.version for r in results for f in r.findings if f.kind == "proven" and f.pattern == p.id}
        proven = new | (_named(entry["proven"], held) - read_now)
        runs = spans([r for r in held.releases if r in proven], held)
        entries[p.id] = entry if runs == entry["proven"] and "on" in entry else {**entry, "proven": runs, "on": on}
    if "releases" in doc:
        doc["releases"] = list(held.releases)
    path.write_text(json.dumps(doc, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _named(runs: Iterable[str], pack: Pack) -> set[str]:
    """The releases of runs as `spans` writes them."""
    out: set[str] = set()
    for run in runs:
        first, _, last = run.partition("..")
        at = pack.releases.index
        out |= set(pack.releases[at(first) : at(last or first) + 1])
    return out


def spans(releases: Sequence[str], pack: Pack) -> list[str]:
    """Releases as runs of the pack's list: `0.15.0..0.18.1`; a run of one is itself."""
    at = [pack.releases.index(r) for r in releases]
    runs: list[list[int]] = []
    for i in at:
        if runs and i == runs[-1][1] + 1:
            runs[-1][1] = i
        else:
            runs.append([i, i])
    return [pack.releases[a] if a == b else f"{pack.releases[a]}..{pack.releases[b]}" for a, b in runs]


def stale(pack: Pack, ledger: dict[str, Any]) -> list[str]:
    """What the ledger does not cover: patterns that changed since, or whose range was not proven whole."""
    out = []
    for p in pack.patterns:
        if not claimed(p, pack):  # nothing of the engine's, or only of releases that are not known yet
            continue
        entry = ledger.get(p.id)
        if entry is None:
            out.append(f"{p.where}: {p.id} is not in the ledger")
        elif entry["claim"] != claim(p):
            out.append(f"{p.where}: {p.id} changed since it was proven")
        elif entry["proven"] != spans(claimed(p, pack), pack):
            out.append(f"{p.where}: {p.id} claims {spans(claimed(p, pack), pack)} and was proven in {entry['proven']}")
    ids = {p.id for p in pack.patterns}
    return out + [f"ledger: {known} is no pattern any more" for known in ledger if known not in ids]
