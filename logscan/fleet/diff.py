"""Two audits: what changed between them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from logscan.diff import audit_result
from logscan.fleet.columns import Row
from logscan.fleet.store import Store
from logscan.fleet.summary import boots_of
from logscan.model import InputError

SCHEMA = "logscan.diff/1"
_CELLS = ("status", "verdict", "worst", "engine", "version", "model", "gpu", "sm", "cuda", "promise")
_PATH_CELLS = ("requested", "promised", "ran", "verdict", "kinds", "cause", "kernels")
_Place = tuple[str, str]


def compare(old_dir: str | Path, new_dir: str | Path) -> dict[str, Any]:
    """`logscan.diff/1` of the last audits of two stores; of the last two audits where both are the same store.

    Logs are the same when their names are, after what all names of an audit begin with; what counts is the last boot of
    each source. Raises InputError for a directory that is no store, or holds no audit.
    """
    old, new = _last(Path(old_dir), 0), _last(Path(new_dir), 0)
    if Path(old_dir).resolve() == Path(new_dir).resolve():
        old = _last(Path(old_dir), 1)
    before, after = old[1], new[1]
    places = sorted({*before, *after})
    boots = [change for place in places if (change := _change(place, before.get(place), after.get(place)))]
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "of": "audit",
        "before": {"audit": old[0], **_totals(before)},
        "after": {"audit": new[0], **_totals(after)},
        "boots": boots,
        "findings": _findings(before, after),
    }
    return {**document, "result": audit_result(document)}


def _last(directory: Path, back: int) -> tuple[dict[str, Any], dict[_Place, Row]]:
    store = Store(directory, create=False)
    audits = store.audits()
    if len(audits) <= back:
        what = "holds no finished audit" if not audits else "holds one audit only"
        raise InputError(f"{directory}: {what}; give two directories that `audit -o` wrote")
    audit = audits[-1 - back]
    rows = [row for row in boots_of(store.tables(audit.logs.values())) if row["counted"]]
    prefix = _shared([row["log"] for row in rows])
    found = {(row["log"][len(prefix) :], row["source"]): row for row in rows}
    return {"id": audit.id, "finished": audit.finished, "directory": str(directory)}, found


def _shared(names: list[str]) -> str:
    """The directories that all names begin with: the same logs may lie elsewhere in another audit."""
    if not names:
        return ""
    first, last = min(names), max(names)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[: first.rfind("/", 0, same) + 1]


def _totals(rows: Mapping[_Place, Row]) -> dict[str, Any]:
    verdicts: dict[str, int] = {}
    for row in rows.values():
        if row["verdict"]:
            verdicts[row["verdict"]] = verdicts.get(row["verdict"], 0) + 1
    return {"logs": len({log for log, _ in rows}), "verdicts": dict(sorted(verdicts.items()))}


def _change(place: _Place, before: Row | None, after: Row | None) -> dict[str, Any] | None:
    """What differs in one boot; None where nothing does."""
    log, source = place
    if before is None or after is None:
        word = "added" if before is None else "removed"
        known = [row and {name: row[name] for name in ("outcome", *_CELLS)} for row in (before, after)]
        cells = dict(zip(("before", "after"), known, strict=True))
        return {"log": log, "source": source, "change": word, **cells, "paths": [], "findings": _between(before, after)}
    names = [name for name in ("outcome", *_CELLS) if before[name] != after[name]]
    paths, findings = _paths(before, after), _between(before, after)
    if not names and not paths and not findings["added"] and not findings["removed"]:
        return None
    return {
        "log": log,
        "source": source,
        "change": "changed",
        "before": {name: before[name] for name in names},
        "after": {name: after[name] for name in names},
        "paths": paths,
        "findings": findings,
    }


def _paths(before: Row, after: Row) -> list[dict[str, Any]]:
    old, new = ({(p["path"], p["group"], p["component"]): p for p in row["paths"]} for row in (before, after))
    changes = []
    for place in sorted({*old, *new}):
        a, b = old.get(place), new.get(place)
        names = [name for name in _PATH_CELLS if a is None or b is None or a[name] != b[name]]
        if names:
            changes.append(
                {
                    **dict(zip(("path", "group", "component"), place, strict=True)),
                    "before": a and {name: a[name] for name in names},
                    "after": b and {name: b[name] for name in names},
                }
            )
    return changes


def _between(before: Row | None, after: Row | None) -> dict[str, list[dict[str, Any]]]:
    old, new = ({f["fingerprint"]: f for f in row["findings"]} if row else {} for row in (before, after))
    return {
        "added": [_brief(f) for print_, f in new.items() if print_ not in old],
        "removed": [_brief(f) for print_, f in old.items() if print_ not in new],
    }


def _brief(finding: Row) -> dict[str, Any]:
    return {name: finding[name] for name in ("code", "slug", "severity", "path", "group", "message", "fingerprint")}


def _findings(before: Mapping[_Place, Row], after: Mapping[_Place, Row]) -> list[dict[str, Any]]:
    """Each rule that fires in another number of boots than before."""
    counts: list[dict[tuple[str, str], int]] = []
    for rows in (before, after):
        count: dict[tuple[str, str], int] = {}
        for row in rows.values():
            for rule in {(f["code"], f["slug"]) for f in row["findings"] if f["waived"] is None}:
                count[rule] = count.get(rule, 0) + 1
        counts.append(count)
    old, new = counts
    return [
        {"code": code, "slug": slug, "before": old.get((code, slug), 0), "after": new.get((code, slug), 0)}
        for code, slug in sorted({*old, *new})
        if old.get((code, slug), 0) != new.get((code, slug), 0)
    ]
