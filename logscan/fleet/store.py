"""The store of audits: append-only Parquet parts that appear whole, a manifest of what was scanned, a record an audit.

    DIR/store.json                                     schema of the store
    DIR/boots|paths|findings/audit=A/part-00001.parquet   rows, hive-partitioned by the audit that scanned them
    DIR/manifest/A-00001.jsonl                         a line a log: name, key
    DIR/audits/A.json                                  what an audit was about: its logs with their keys, in order

A part is written beside the store and committed by one rename of its directory; what is left to do after that (moving
its files into place) is done again by whoever opens the store next. So a process that is killed loses the chunk that it
was at, and nothing is ever there twice.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from logscan.fleet.columns import SCHEMA, STRUCTS, TABLES, Columns, Row
from logscan.model import InputError

if TYPE_CHECKING:
    import polars as pl

_STALE = 86400  # seconds after which a part that nobody committed is thrown away


class Tables(NamedTuple):
    """The rows of one audit, in order of log and boot."""

    boots: pl.DataFrame
    paths: pl.DataFrame
    findings: pl.DataFrame


class Audit(NamedTuple):
    """The record of an audit. `logs`: name → key."""

    id: str
    finished: str
    about: Mapping[str, Any]
    logs: Mapping[str, str]


class Store:
    """A directory of audits. Raises InputError for one that is another schema's, or not writable."""

    def __init__(self, root: Path, create: bool = True) -> None:
        self.root = root
        mark = root / "store.json"
        try:
            if create and not mark.exists():
                if root.exists() and any(not entry.name.startswith(".") for entry in root.iterdir()):
                    raise InputError(f"{root}: is not empty and no store of audits; give an empty or a new directory")
                root.mkdir(parents=True, exist_ok=True)
                _write(mark, json.dumps({"schema": SCHEMA}) + "\n")
            schema = json.loads(mark.read_text(encoding="utf-8")).get("schema")
        except (OSError, ValueError, AttributeError) as error:
            reason = getattr(error, "strerror", None) or "its store.json cannot be read"
            raise InputError(f"{root}: no store of audits: {reason}; give a directory that `audit -o` wrote") from None
        if schema != SCHEMA:
            raise InputError(f"{root}: is a store of {schema}, this release reads {SCHEMA}; give another directory")
        self._finish_commits()

    # ------------------------------------------------------------ writing

    def append(self, audit: str, number: int, keys: Mapping[str, str], rows: Sequence[Row]) -> None:
        """Commit the rows of whole logs as part `number` of an audit. `keys`: name of each log → its key."""
        name = f"{audit}-{number:05}"
        staged = self.root / ".staging" / name
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        for table, frame in frames(rows)._asdict().items():
            frame.write_parquet(staged / f"{table}.parquet", statistics=True)
        _write(staged / "manifest.jsonl", "".join(json.dumps(entry) + "\n" for entry in keys.items()))
        committed = self.root / ".committed" / name
        committed.parent.mkdir(exist_ok=True)
        staged.rename(committed)
        self._into_place(committed)

    def _into_place(self, committed: Path) -> None:
        audit, _, number = committed.name.rpartition("-")
        for table in (*TABLES, "manifest"):
            if table == "manifest":
                source, target = committed / "manifest.jsonl", self.root / "manifest" / f"{committed.name}.jsonl"
            else:
                source = committed / f"{table}.parquet"
                target = self.root / table / f"audit={audit}" / f"part-{number}.parquet"
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                source.rename(target)
            except FileNotFoundError:
                continue  # another process finishes the same commit
        shutil.rmtree(committed, ignore_errors=True)

    def _finish_commits(self) -> None:
        for committed in sorted(self.root.glob(".committed/*")):
            self._into_place(committed)
        for staged in self.root.glob(".staging/*"):
            with suppress(FileNotFoundError):  # committed by its writer at this moment
                if time.time() - staged.stat().st_mtime > _STALE:
                    shutil.rmtree(staged, ignore_errors=True)

    def record(self, audit: str, about: Mapping[str, Any], logs: Mapping[str, str]) -> Audit:
        """Write down which logs an audit was about."""
        finished = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        document = {"schema": SCHEMA, "id": audit, "finished": finished, "about": about, "logs": logs}
        target = self.root / "audits" / f"{audit}.json"
        target.parent.mkdir(exist_ok=True)
        _write(target, json.dumps(document) + "\n")
        return Audit(audit, finished, about, logs)

    # ------------------------------------------------------------ reading

    def known(self) -> dict[str, set[str]]:
        """Name of a log → the keys under which rows of it are kept."""
        known: dict[str, set[str]] = {}
        for name, key in self._manifest():
            known.setdefault(name, set()).add(key)
        return known

    def _manifest(self) -> Iterator[tuple[str, str]]:
        for file in sorted(self.root.glob("manifest/*.jsonl")):
            for line in file.read_text(encoding="utf-8").split("\n"):
                if line:
                    name, key = json.loads(line)
                    yield name, key

    def audits(self) -> list[Audit]:
        """Every recorded audit, oldest first."""
        found = []
        for file in sorted(self.root.glob("audits/*.json")):
            document = json.loads(file.read_text(encoding="utf-8"))
            found.append(Audit(document["id"], document["finished"], document["about"], document["logs"]))
        return found

    def tables(self, keys: Collection[str]) -> Tables:
        """The rows filed under `keys`, sorted by log and boot, each log once."""
        import polars as pl

        wanted = pl.DataFrame({"key": sorted(set(keys))}, schema={"key": pl.String})
        out = []
        for table, columns in TABLES.items():
            schema = polars_schema(columns)
            parts = sorted(self.root.glob(f"{table}/audit=*/part-*.parquet"))
            if parts:
                frame = pl.scan_parquet(parts, schema=schema, extra_columns="ignore", missing_columns="insert")
                frame = frame.join(wanted.lazy(), on="key", how="semi", maintain_order="left")
                rows = frame.sort("log", "boot", maintain_order=True).collect()
            else:
                rows = pl.DataFrame(schema=schema)
            out.append(rows)
        return Tables(*out)

    def seen(self) -> pl.DataFrame:
        """Code, first and last time of a log with such a finding, over everything in the store: the log's own time,
        or when its file was last written where it prints none.
        """
        import polars as pl

        found = []
        for table, names in {
            "findings": ["key", "boot", "code"],
            "boots": ["key", "boot", "modified", "started"],
        }.items():
            schema = {name: kind for name, kind in polars_schema(TABLES[table]).items() if name in names}
            parts = sorted(self.root.glob(f"{table}/audit=*/part-*.parquet"))
            if not parts:
                return pl.DataFrame(schema={"code": pl.String, "first": pl.String, "last": pl.String})
            found.append(pl.scan_parquet(parts, extra_columns="ignore", missing_columns="insert", schema=schema))
        findings, boots = found
        grouped = findings.join(boots, on=["key", "boot"]).group_by("code")
        when = pl.coalesce("started", "modified")
        return grouped.agg(first=when.min(), last=when.max()).sort("code").collect()

    def latest(self) -> Audit | None:
        """The last recorded audit."""
        audits = self.audits()
        return audits[-1] if audits else None


def frames(rows: Iterable[Row]) -> Tables:
    """Rows with nested paths and findings as three frames."""
    import polars as pl

    boots = list(rows)
    flat = {
        "boots": boots,
        "paths": [path for boot in boots for path in boot["paths"]],
        "findings": [finding for boot in boots for finding in boot["findings"]],
    }
    made = []
    for table, columns in TABLES.items():
        schema = polars_schema(columns)
        # By rows: by columns, polars makes a frame of its own for each list of structs.
        made.append(pl.from_dicts(flat[table], schema=schema) if flat[table] else pl.DataFrame(schema=schema))
    return Tables(*made)


def polars_schema(columns: Columns) -> dict[str, Any]:
    """The polars types of a table's columns."""
    import polars as pl

    types: dict[str, Any] = {"str": pl.String, "int": pl.Int64, "bool": pl.Boolean, "strs": pl.List(pl.String)}
    for name, struct in STRUCTS.items():
        types[name] = pl.List(pl.Struct({field: types[kind] for field, kind in struct.items()}))
    return {name: types[kind] for name, kind in columns.items()}


def new_id(which: str | None = None) -> str:
    """The id of an audit that starts now: sortable, and another for each shard and process."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    return f"{stamp}-{(which or '').replace('/', 'of') or 'all'}-{os.getpid()}"


def _write(target: Path, text: str) -> None:
    """A file that appears whole."""
    part = target.with_name(f".{target.name}.{os.getpid()}")
    part.write_text(text, encoding="utf-8")
    part.replace(target)
