"""`packs verify` over many sources: the releases are shared out to processes, results come back in release order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from logscan import versions
from logscan.model import InputError
from logscan.packs import patterns_dir
from logscan.packs.load import load
from logscan.packs.schema import Pack
from logscan.packs.source import read_source
from logscan.packs.verify import Release, Verifier, read_ignored


def pack_of(engine: str, dirs: Sequence[Path] = ()) -> Pack:
    """The pack of an engine. Raises InputError for an engine without one."""
    packs = load(dirs)
    for pack in packs:
        if pack.id == engine:
            return pack
    raise InputError(f"{engine}: no such pack (there are {', '.join(p.id for p in packs)})")


def verify_all(engine: str, sources: Sequence[str], dirs: Sequence[Path] = (), jobs: int = 1) -> list[Release]:
    """Each source's Release, ascending by version.

    Raises InputError for a source that cannot be read, or whose version cannot be told.
    """
    work = partial(_verify, engine, dirs)
    shares = _shares(sources, jobs)
    results: list[Release] = []
    with ExitStack() as stack:
        if len(shares) > 1:
            pool = stack.enter_context(ProcessPoolExecutor(len(shares)))
            parts: Iterable[list[Release]] = pool.map(work, shares)
        else:
            parts = map(work, shares)
        for part in parts:
            results += part
    return sorted(results, key=lambda r: v.key if (v := versions.parse(r.version)) else ((), 0, 0, 0, 0))


def _shares(sources: Sequence[str], jobs: int) -> list[list[str]]:
    """Runs of neighbouring releases: most of a release's files are those of the one before, and are read once.

    Later releases are larger, so the first process gets more of them.
    """
    ordered = sorted(sources, key=_key)
    if jobs < 2 or len(ordered) < 2 * jobs:
        return [ordered]
    cuts = [round(len(ordered) * (n / jobs) ** 0.7) for n in range(jobs + 1)]
    return [ordered[a:b] for a, b in zip(cuts, cuts[1:], strict=False) if a < b]


def _key(source: str) -> tuple[object, ...]:
    name = Path(source).name.removesuffix(".tar.gz")
    for part in name.split("-"):
        v = versions.parse(part)
        if v:
            return (1, v.key, source)
    return (0, (), source)


def _verify(engine: str, dirs: Sequence[Path], sources: Sequence[str]) -> list[Release]:
    pack = pack_of(engine, dirs)
    verifier = Verifier(pack, read_ignored(patterns_dir() / pack.id / "verify" / "ignore.toml"))
    return [verifier.release(read_source(source, pack.engine)) for source in sources]
