"""The three tables of an audit: one row a boot, a path of a boot, a finding of a boot. Names and types, told once.

A row of `boots` is a plain dict of these columns with its `paths` and `findings` as lists of dicts: so it crosses
process borders, becomes a line of JSON, a nested Arrow row, or three flat tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

SCHEMA = "logscan.store/1"
Row = dict[str, Any]
Columns = Mapping[str, str]  # name → str | int | bool | strs | kernels | evidence

_OF_BOOT = {"key": "str", "log": "str", "boot": "int", "source": "str"}
BOOTS: Columns = {
    **_OF_BOOT,
    "outcome": "str",  # boot: a boot was read; nothing: nothing was recognised; error: the log could not be read
    "error": "str",
    "counted": "bool",  # the last boot of its source: it decides the verdict of the audit
    "verdict": "str",
    "status": "str",
    "worst": "str",
    "engine": "str",
    "version": "str",
    "range": "str",
    "kind": "str",
    "model": "str",
    "gpu": "str",
    "platform": "str",
    "sm": "str",
    "cuda": "str",
    "promise": "str",
    "method": "str",
    "ckpt": "str",
    "joined": "str",  # how the checkpoint was found: given, inputs, path, name; null: it was not
    "unjoined": "str",  # why it was not
    "first": "int",
    "last": "int",
    "bytes": "int",
    "lines": "int",
    "modified": "str",  # of the log, UTC
    "sha256": "str",
    "notes": "strs",
    "started": "str",  # of the log, by its own first dated line, in the zone of its host
}
PATHS: Columns = {
    **_OF_BOOT,
    "path": "str",
    "group": "str",
    "component": "str",
    "requested": "str",
    "promised": "str",
    "default": "str",
    "ran": "str",
    "against": "str",
    "verdict": "str",
    "extent": "str",
    "kinds": "strs",
    "cause": "str",
    "visibility": "str",
    "authority": "str",
    "kernels": "kernels",
    "reasons": "strs",
    "caveats": "strs",
    "refusal": "str",
    "evidence": "evidence",
}
FINDINGS: Columns = {
    **_OF_BOOT,
    "code": "str",
    "slug": "str",
    "severity": "str",
    "path": "str",
    "group": "str",
    "kind": "str",
    "cause": "str",
    "consequence": "strs",
    "visibility": "str",
    "authority": "str",
    "message": "str",
    "fix": "str",
    "fingerprint": "str",
    "waived": "str",
    "evidence": "evidence",
}
EVIDENCE: Columns = {
    "line": "int",
    "role": "str",
    "means": "str",
    "pattern": "str",
    "text": "str",
    "distrusted_by": "str",
}
KERNEL: Columns = {"name": "str", "authority": "str"}
STRUCTS: Mapping[str, Columns] = {"evidence": EVIDENCE, "kernels": KERNEL}  # lists of these, as in `logscan.triage/1`
TABLES: Mapping[str, Columns] = {"boots": BOOTS, "paths": PATHS, "findings": FINDINGS}
UNCHANGED = "unchanged"  # the outcome of a log whose rows stand in the store already; never stored itself


def blank(key: str, log: str, outcome: str) -> Row:
    """A row of `boots` with nothing known but the log."""
    row: Row = {name: [] if kind == "strs" else None for name, kind in BOOTS.items()}
    return {**row, "key": key, "log": log, "boot": 0, "source": "", "outcome": outcome, "counted": True} | {
        "paths": [],
        "findings": [],
    }


def fill(boot: Row, paths: Iterable[Mapping[str, Any]], findings: Iterable[Mapping[str, Any]]) -> Row:
    """The row with its documents of paths and findings (as in `logscan.triage/1`) cut to the columns."""
    boot["paths"] = [_cut(boot, PATHS, path) for path in paths]
    boot["findings"] = [_cut(boot, FINDINGS, finding) for finding in findings]
    return boot


def _cut(boot: Row, columns: Columns, document: Mapping[str, Any]) -> Row:
    row: Row = {name: boot[name] for name in _OF_BOOT}
    for name, kind in columns.items():
        if name in _OF_BOOT:
            continue
        value = document.get(name)
        if kind in STRUCTS:
            value = [{field: item.get(field) for field in STRUCTS[kind]} for item in document[name]]
        row[name] = value
    return row


def order(row: Mapping[str, Any]) -> tuple[str, int]:
    """Sort key of every table: rows of a boot keep the order of its document."""
    return row["log"], row["boot"]
