"""`logscan audit`: many logs in, a store, a summary and a page out."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from logscan.model import SEVERITIES, InputError

if TYPE_CHECKING:
    from logscan.fleet.joins import Joins
    from logscan.fleet.listing import Item
    from logscan.fleet.local import Done
    from logscan.fleet.scan import Settings
    from logscan.fleet.store import Store, Tables

FOUND, BAD_INPUT, NOTHING = 1, 2, 3


def run(
    *,
    paths: Sequence[str],
    inputs: Path | None,
    ckpt_root: Path | None,
    gpu: str | None,
    cuda: str | None,
    engine: str | None,
    env: Mapping[str, str],
    output: Path | None,
    html: Path | None,
    shard: str | None,
    runner: str,
    jobs: int | None,
    format: str,
    table: str,
    fail_on: str,
    strict: bool,
    packs: Sequence[str],
    redact: bool,
    quiet: bool,
    verbose: bool,
    color: str,
) -> int:
    """Audit the logs and return the exit code. Raises InputError for what leaves nothing to audit."""
    _needs_polars()
    from logscan.fleet.listing import listing
    from logscan.fleet.listing import shard as shard_of
    from logscan.fleet.scan import Settings, given_of

    joins = _joins(inputs, ckpt_root, given_of(gpu, cuda, engine, env))
    settings = Settings(joins, tuple(str(Path(pack).resolve()) for pack in packs), redact)
    with _scratch() as scratch:
        (scratch / "spool").mkdir()
        items = shard_of(listing(paths, scratch / "spool"), shard)
        about = {"paths": list(paths), "shard": shard, "runner": runner}
        store = _open(output if output is not None else scratch / "store")
        done, audit = _scan(items, store, settings, about, runner, jobs, quiet, output is not None)
        tables = store.tables(done.keys.values())
        doc = _document(store, audit, about, done, tables, settings)
        if not quiet:
            _notes(joins, items)
        _report(doc, tables, format, table, html, verbose, color)
    return _exit_code(doc, fail_on, strict)


def _needs_polars() -> None:
    try:
        import importlib.util

        found = importlib.util.find_spec("polars")
    except (ImportError, ValueError):
        found = None
    if found is None:
        raise InputError("audit needs polars; pip install 'llm-logscan[audit]'")


def _joins(inputs: Path | None, root: Path | None, fleet: Any) -> Joins:
    from logscan.fleet import joins

    if inputs is not None and root is not None:
        raise InputError("--inputs and --ckpt-root are two ways to say the same; give one of them")
    if inputs is not None:
        return joins.read_inputs(inputs, fleet)
    return joins.read_root(root, fleet) if root is not None else joins.Joins(fleet)


@contextmanager
def _scratch() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(prefix="logscan-audit-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _open(root: Path) -> Store:
    from logscan.fleet.store import Store

    return Store(root)


def _scan(
    items: Sequence[Item],
    store: Store,
    settings: Settings,
    about: Mapping[str, Any],
    runner: str,
    jobs: int | None,
    quiet: bool,
    kept: bool,
) -> tuple[Done, str]:
    from logscan.fleet import local
    from logscan.fleet.store import new_id

    audit = new_id(about["shard"])
    progress = local.Progress(len(items), quiet)
    try:
        if runner == "ray":
            from logscan.fleet import cluster

            return cluster.run(items, store, audit, settings, progress), audit
        return local.run(items, store, audit, settings, jobs or os.cpu_count() or 1, progress), audit
    except KeyboardInterrupt:
        progress.end()
        if not kept:
            _say("interrupted; with -o DIR it could go on from where it was")
            raise
        done = sum(1 for item in items if item.name in store.known())
        _say(f"interrupted; {done:,} of {len(items):,} logs are in {store.root}; the same command goes on from there")
        raise
    finally:
        progress.end()


def _document(
    store: Store, audit: str, about: Mapping[str, Any], done: Done, tables: Tables, settings: Settings
) -> dict[str, Any]:
    from logscan import __version__
    from logscan.fleet.summary import summary, verdicts
    from logscan.packs.load import load

    told = {**about, "scanned": done.scanned, "verdicts": verdicts(tables)}
    record = store.record(audit, told, done.keys)
    packs = [{"id": p.id, "version": p.version, "digest": p.digest} for p in load([Path(p) for p in settings.packs])]
    return summary(store, record, tables, {"version": __version__, "packs": packs})


def _notes(joins: Joins, items: Sequence[Item]) -> None:
    hit = {rule for item in items if (rule := joins.of_log(item.name)[1]) is not None}
    for unused in joins.rules:
        if unused.where not in hit:
            _say(f"{unused.where}: no log fits {unused.glob!r}")


def _report(
    doc: dict[str, Any], tables: Tables, format: str, table: str, html: Path | None, verbose: bool, color: str
) -> None:
    from logscan.cli.output import wants_color, write
    from logscan.fleet import summary

    if html is not None:
        from logscan.fleet.page import render as page

        write(page(doc, summary.boots_of(tables)), html)
    if format == "table":
        from logscan.fleet.terminal import render

        width = min(max(shutil.get_terminal_size((100, 24)).columns, 60), 140)
        write(render(doc, width, wants_color(color), verbose))
    elif format == "json":
        write(json.dumps({**doc, "boots": []}, indent=2).removesuffix("]\n}"))
        comma = ""
        for boot in summary.boots_of(tables):  # never all of them at once: there may be ten thousand
            write(f"{comma}\n    {json.dumps(boot)}")
            comma = ","
        write("\n  ]\n}\n")
    elif format == "jsonl":
        for boot in summary.boots_of(tables):
            write(json.dumps(boot) + "\n")
    else:
        write(summary.flat(getattr(tables, table)).write_csv())


def _say(text: str) -> None:
    print(f"logscan: {text}", file=sys.stderr)


def _exit_code(doc: Mapping[str, Any], fail_on: str, strict: bool) -> int:
    """2 > 1 > 3: a log that cannot be read, a finding, nothing recognised at all (with `strict`: anything unproven)."""
    if doc["errors"]:
        return BAD_INPUT
    worst = doc["worst"]
    if worst is not None and fail_on != "never" and SEVERITIES.index(worst) >= SEVERITIES.index(fail_on):
        return FOUND
    if doc["verdict"] is None or (strict and "unproven" in doc["totals"]["verdicts"]):
        return NOTHING
    return 0
