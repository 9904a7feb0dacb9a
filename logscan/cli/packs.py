"""`logscan packs`: what the packs hold, whether they are sound, and whether an engine's source bears them out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from logscan.cli import options
from logscan.cli.root import Command

app = typer.Typer(
    help="The pattern packs: what the engines print, since when, and what it means.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
SCHEMA = "logscan.packs-verify/1"
Format = Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="How to write it.")]


@app.command("list", cls=Command)
def _list(format: Format = "table", packs: options.Packs = None, output: options.Output = None) -> None:
    """Each pack: engine, version, number of patterns, releases known and proven, digest."""
    _run("listing", packs=packs, format=format, output=output)


@app.command("lint", cls=Command)
def _lint(packs: options.Packs = None) -> None:
    """Schema, examples, literals, ranges, regexes that could take forever, rows that are never reached.

    Exit 1 on an error.
    """
    _run("lint", packs=packs)


@app.command("test", cls=Command)
def _test(packs: options.Packs = None) -> None:
    """Each pattern matches its `match` lines and none of its `nomatch` lines. Exit 1 where one does not."""
    _run("test", packs=packs)


@app.command("new", cls=Command)
def _new(
    line: Annotated[str, typer.Argument(metavar="LINE", help="A log line, as it stands in the log; `-` reads stdin.")],
    engine: Annotated[str, typer.Option(metavar="PACK", help="The pack that it is for.")] = "vllm",
) -> None:
    """A stub of a pattern for a line that none owns: regex proposed, `match` line filled in."""
    _run("new", line=line, engine=engine)


@app.command("verify", cls=Command)
def _verify(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE...", help="A source tree, an sdist, a wheel, or an installed package's name."),
    ],
    engine: Annotated[str, typer.Option(metavar="PACK", help="The pack to verify.")] = "vllm",
    format: Format = "table",
    jobs: Annotated[int, typer.Option(help="Processes; 0 is one for each core.", min=0)] = 0,
    packs: options.Packs = None,
    output: options.Output = None,
) -> None:
    """Is each pattern in the source of the releases that it claims? The source is parsed, never imported.

    \b
    proven      found where the pattern's site says
    stale       claimed, and found nowhere (exit 1)
    too-narrow  found in a release that the pattern leaves out
    moved       found at another file or level
    uncovered   looks like a selection, a fallback or a refusal, and no pattern knows it
    """
    _run("verify", sources=sources, engine=engine, format=format, jobs=jobs, packs=packs, output=output)


def _run(function: str, **arguments: Any) -> None:
    from logscan.cli.root import execute

    execute(f"{__name__}:{function}", **arguments)


def _dirs(packs: Sequence[str] | None) -> list[Path]:
    return [Path(p) for p in packs or ()]


def listing(packs: Sequence[str] | None, format: str = "table", output: Path | None = None) -> int:
    """Write the packs that are installed. Raises InputError for a bad pack."""
    from logscan.cli.output import write
    from logscan.packs import ledger, patterns_dir
    from logscan.packs.load import load

    rows = []
    for pack in load(_dirs(packs)):
        path = patterns_dir() / pack.id / "verify" / "ledger.json"
        known, sample = ledger.read(path), ledger.sampled(path, pack)
        proven = {r for p in pack.patterns if p.id in known for r in ledger.claimed(p, sample)}
        rows.append(
            {
                "id": pack.id,
                "engine": pack.engine,
                "version": pack.version,
                "patterns": len(pack.patterns),
                "proven": sum(p.id in known for p in pack.patterns),
                "releases": ledger.spans(list(pack.releases), pack),
                "releases_known": len(pack.releases),
                "releases_proven": len(proven),
                "digest": pack.digest,
            }
        )
    document = json.dumps({"schema": "logscan.packs/1", "packs": rows}, indent=2) + "\n"
    write(document if format == "json" else _table(rows), output)
    return 0


def _table(rows: Iterable[Mapping[str, Any]]) -> str:
    out = ["pack     engine   version     patterns  proven  releases                       digest"]
    for r in rows:
        releases = f"{', '.join(r['releases']) or '-'} ({r['releases_proven']} proven)"
        counts = f"{r['patterns']:>8}  {r['proven']:>6}"
        out.append(f"{r['id']:<8} {r['engine']:<8} {r['version']:<11} {counts}  {releases:<30} {r['digest'][:19]}")
    return "\n".join(out) + "\n"


def lint(packs: Sequence[str] | None) -> int:
    """Write every problem of every pack and of what it knows: `file:line: severity: pattern: what`. 1 for an error."""
    from logscan.cli.output import write
    from logscan.packs.lint import lint as problems_of
    from logscan.packs.load import load
    from logscan.packs.rows import lint_knowledge

    loaded = load(_dirs(packs))
    problems = problems_of(loaded) + lint_knowledge(loaded, _dirs(packs))
    write("".join(f"{p.where}: {p.severity}: {p.pattern}: {p.message}\n" for p in problems))
    errors = sum(p.severity == "error" for p in problems)
    total = sum(len(pack.patterns) for pack in loaded)
    sys.stderr.write(f"{total} patterns, {errors} errors, {len(problems) - errors} warnings\n")
    return int(errors > 0)


def test(packs: Sequence[str] | None) -> int:
    """Try every pattern on its own examples. 1 where one fails."""
    from logscan.cli.output import write
    from logscan.packs.lint import failures
    from logscan.packs.load import load

    loaded = load(_dirs(packs))
    failed = [f"{p.where}: {p.id} {what}\n" for pack in loaded for p in pack.patterns for what in failures(p)]
    write("".join(failed))
    lines = sum(len(p.match) + len(p.nomatch) for pack in loaded for p in pack.patterns)
    sys.stderr.write(f"{lines} lines of {sum(len(pack.patterns) for pack in loaded)} patterns, {len(failed)} failed\n")
    return int(bool(failed))


def new(line: str, engine: str) -> int:
    """Write the stub of a pattern for a log line. Raises InputError for a line without text."""
    from logscan.cli.output import write
    from logscan.intake.framing import Framer, strip_escapes
    from logscan.model import InputError
    from logscan.packs.fleet import pack_of
    from logscan.packs.load import load
    from logscan.packs.stub import propose, toml
    from logscan.recognise import Recogniser

    if line == "-" and sys.stdin is None:
        raise InputError("packs new: stdin is closed; give the line itself, or pipe it in")
    raw = sys.stdin.buffer.readline() if line == "-" else line.encode("utf-8", "surrogateescape")
    printed = Framer().frame(1, strip_escapes(raw).rstrip(b"\r\n")).record
    record = Framer().frame(1, strip_escapes(raw).strip()).record
    if record.origin == "print":  # a message without its prefix: taken for the engine's
        record = record._replace(origin="engine", level="INFO")
    if not record.text.strip():
        raise InputError("packs new: no text in that line; give one line as it stands in the log")
    pack = pack_of(engine)
    recogniser = Recogniser(load())
    owner = next((e.pattern for as_read in (printed, record) for e in recogniser.events(as_read)), None)
    if owner:
        sys.stderr.write(f"logscan: {owner} already reads this line; change that one rather than add another\n")
    write(toml(propose(record, pack.id), record))
    return 0


def verify(
    sources: Sequence[str],
    engine: str,
    format: str = "table",
    jobs: int = 0,
    packs: Sequence[str] | None = None,
    output: Path | None = None,
) -> int:
    """Verify a pack against sources; 1 where a pattern is stale. Raises InputError for an unreadable source."""
    from logscan.cli.output import write
    from logscan.packs.fleet import pack_of, verify_all

    pack = pack_of(engine, _dirs(packs))
    releases = verify_all(engine, sources, _dirs(packs), jobs or os.cpu_count() or 1)
    document = {
        "schema": SCHEMA,
        "engine": pack.engine,
        "pack": {"id": pack.id, "version": pack.version, "digest": pack.digest},
        "releases": [_release(r) for r in releases],
    }
    if format == "json":
        write(json.dumps(document, indent=1, ensure_ascii=False) + "\n", output)
    else:
        write(_verified(document), output)
    return int(any(r.count("stale") for r in releases))


def _release(release: Any) -> dict[str, Any]:
    from logscan.packs.verify import KINDS

    findings = [f._asdict() for f in release.findings if f.kind not in ("proven", "ignored")]
    counts = {kind: release.count(kind) for kind in KINDS}
    return {"source": release.source, "version": release.version, "counts": counts, "findings": findings}


def _verified(document: Mapping[str, Any]) -> str:
    """One row a release, then each problem once with the releases that have it."""
    kinds = ("proven", "stale", "too-narrow", "moved", "uncovered", "ignored")
    out = [f"{'release':<14}" + "".join(f"{k:>12}" for k in kinds)]
    where: dict[tuple[str, ...], list[str]] = {}
    for release in document["releases"]:
        out.append(f"{release['version']:<14}" + "".join(f"{release['counts'][k]:>12}" for k in kinds))
        for f in release["findings"]:
            key = (f["kind"], f["pattern"], f["where"], f["level"], f["detail"])
            where.setdefault(key, []).append(release["version"])
    for (kind, pattern, place, level, detail), found in sorted(where.items(), key=lambda kv: kinds.index(kv[0][0])):
        text = " ".join(detail.split())
        span = found[0] if len(found) == 1 else f"{found[0]} … {found[-1]} ({len(found)})"
        out += ["", f"{kind}  {pattern or place}  {span}", f"    {place} {level}".rstrip(), f"    {text[:200]}"]
    return "\n".join(out) + "\n"
