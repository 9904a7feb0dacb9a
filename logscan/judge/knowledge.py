"""The tables of knowledge: loading, checking, and the view that one release gives of them.

What holds for every engine (atoms, operands) lies in `patterns/knowledge/*.toml`, what one engine does in
`patterns/knowledge/<engine>/*.toml`; only the tables of the engine at hand are read.

Loading collects every mistake with file and line. What was compiled is plain data and is kept in the user's cache,
keyed by a digest of the files, so that a later start neither parses TOML nor checks again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from logscan import cachefile, tomlcache, versions
from logscan.judge.conditions import ALWAYS, Condition, possible
from logscan.model import InputError, Operand, Outcome
from logscan.packs import patterns_dir

MEMO = 512  # answers kept: a fleet's boots ask some dozens of questions
FORMAT = 3  # of the compiled cache; change it with the shape of what is stored
STAGES = (
    "config",
    "scheme",
    "override",
    "load",
)  # config and scheme: the first row that fits; the others: all that fit
FIRST_FITS = ("config", "scheme")
_TIMELESS = ("atom", "operand", "distrust")
_OF_RAW = ("engine", "source", "where", "note")
_TIMED = ("gate", "kernel", "candidates", "rewrite", "domain")

Row = Mapping[str, Any]
Raw = Mapping[str, tuple[Row, ...]]  # compiled tables by name


class Rewrite(NamedTuple):
    """What the engine does to a promise in one release before (or after) a kernel is chosen."""

    id: str
    when: Condition
    sets: Row
    prints: tuple[Row, ...]
    default: bool


class Kernel(NamedTuple):
    """What a kernel does to the promise it is handed, in one release. `needs` None: no row covers the release."""

    id: str
    needs: Condition | None
    effects: tuple[tuple[Condition, Row], ...]
    crashes: tuple[tuple[Condition, str], ...]
    announces: tuple[Row, ...]
    backends: tuple[str, ...]  # values of --linear-backend, --moe-backend, --attention-backend that name it
    name: str  # as a report shows it: the id without its family (`fp8:MARLIN`)
    printed: str  # as the log spells it


class Candidates(NamedTuple):
    """An ordered list of kernels, what a choice of one prints, and what is raised when none fits."""

    id: str
    order: tuple[
        tuple[str, Condition, str], ...
    ]  # kernel, when it has this place, what is raised when asked for outside it
    prints: tuple[Row, ...]
    refusal: str
    selects: tuple[Row, ...]  # flags that name a backend, and what happens when it has no kernel in the list


class View(NamedTuple):
    """The tables as they are in one release."""

    release: str
    gates: Mapping[str, Condition]
    kernels: Kernels
    candidates: Mapping[tuple[str, str], Candidates]
    rewrites: Rewrites
    domains: Mapping[str, tuple[tuple[Condition, tuple[Any, ...]], ...]]


class Knowledge:
    """All tables of an engine, compiled. `digest` names the files they came from."""

    def __init__(self, timeless: Raw, digest: str, whole: Callable[[], Raw]) -> None:
        """`timeless`: the tables of which every release needs all; `whole`: all tables, read when a view needs them."""
        self.digest, self.timeless = digest, timeless
        self._whole = whole
        self._views: dict[str, View] = {}
        self._memo: dict[tuple[str, ...], tuple[Outcome, ...]] = {}

    @cached_property
    def raw(self) -> Raw:
        """All tables, of all releases."""
        return self._whole()

    def memo(self, key: tuple[str, ...], found: Callable[[], tuple[Outcome, ...]]) -> tuple[Outcome, ...]:
        """What these tables answer to a question that was asked before: a crash loop asks the same one every time."""
        if key not in self._memo:
            if len(self._memo) >= MEMO:
                self._memo.clear()
            self._memo[key] = found()
        return self._memo[key]

    def view(self, release: str) -> View:
        """The rows whose `engine` range holds the release (a version text)."""
        if release not in self._views:
            key = f"{FORMAT} {self.digest} {release}".encode()
            name = f"view-{cachefile.digest(key)}"
            part = cachefile.load(name, key)
            if part is None:
                part = {table: _within(self.raw[table], release) for table in _TIMED if table != "kernel"}
                part["kernel"] = tuple(_within(row, release) for row in self.raw["kernel"])  # each may be in a list
                cachefile.store(name, key, part)
            self._views[release] = _view(part, release)
        return self._views[release]

    def atom(self, name: str) -> Row | None:
        """The row of an atom, or of its family (`pkg.*`)."""
        return self._atoms.get(name) or self._atoms.get(name.split(".", 1)[0] + ".*")

    @cached_property
    def _atoms(self) -> Mapping[str, Row]:
        return {row["id"]: row for row in self.timeless["atom"]}

    @cached_property
    def operands(self) -> Mapping[str, Operand]:
        """The named operands (`nvfp4`, `fp8-token` …) that rows set."""
        return {row["id"]: _operand(row) for row in self.timeless["operand"]}

    def reason(self, atom: str) -> str:
        """The reason code that an unknown atom gives a row (`no-gpu`, `no-cuda`, …)."""
        row = self.atom(atom)
        return str(row.get("reason", "no-package")) if row else "no-package"


def _operand(row: Row) -> Operand:
    fields: dict[str, Any] = {k: v for k, v in row.items() if k not in ("id", "source", "where")}
    return Operand(**fields)


# ---------------------------------------------------------------- one release's view


def _covers(row: Row, release: str) -> bool:
    return "engine" not in row or versions.contains(row["engine"], release)


def _when(row: Row) -> Condition:
    condition: Condition = row.get("if", ALWAYS)
    return condition


def _place(entry: str | Row) -> tuple[str, Condition, str]:
    return (entry, ALWAYS, "") if isinstance(entry, str) else (entry["kernel"], _when(entry), entry.get("else", ""))


def _within(value: Any, release: str) -> Any:
    """What a release reads of a table: the rows that cover it, at every depth, less what only lint needs."""
    if isinstance(value, dict):
        return {k: _within(v, release) for k, v in value.items() if k not in _OF_RAW}
    if isinstance(value, tuple):
        return tuple(_within(v, release) for v in value if not (isinstance(v, dict) and not _covers(v, release)))
    return value


def _view(raw: Raw, release: str) -> View:
    gates = {}
    for gate in raw["gate"]:
        rows = [_when(row) for row in gate["rows"] if _covers(row, release)]
        if rows:
            gates[gate["id"]] = ("any", *rows)
    candidates = {}
    for entry in raw["candidates"]:
        row = next((row for row in entry["rows"] if _covers(row, release)), None)
        if row is not None:
            prints = tuple(line for line in entry.get("prints", ()) if _covers(line, release))
            refusal = next((r["text"] for r in entry.get("refusals", ()) if _covers(r, release)), "")
            order = tuple(_place(o) for o in row["order"])
            selects = tuple(s for s in entry.get("selects", ()) if _covers(s, release))
            for platform in entry["platform"] if isinstance(entry["platform"], tuple) else (entry["platform"],):
                candidates[entry["id"], platform] = Candidates(entry["id"], order, prints, refusal, selects)
    rewrites: dict[str, list[Rewrite]] = {stage: [] for stage in STAGES}
    for row in raw["rewrite"]:
        if _covers(row, release):
            prints = tuple(line for line in row.get("prints", ()) if _covers(line, release))
            rewrites[row["stage"]].append(Rewrite(row["id"], _when(row), row["set"], prints, row.get("default", False)))
    domains: dict[str, list[tuple[Condition, tuple[Any, ...]]]] = {}
    for row in raw["domain"]:
        if _covers(row, release):
            domains.setdefault(row["atom"], []).append((_when(row), row["values"]))
    return View(
        release,
        gates,
        Kernels({row["id"]: row for row in raw["kernel"]}, release),
        candidates,
        Rewrites({stage: tuple(rows) for stage, rows in rewrites.items()}),
        {atom: tuple(rows) for atom, rows in domains.items()},
    )


class Rewrites(dict[str, tuple[Rewrite, ...]]):
    """The rewrites of a release by stage."""

    def __init__(self, rows: Mapping[str, tuple[Rewrite, ...]]) -> None:
        super().__init__(rows)
        self._about: dict[tuple[str, str, str], tuple[Rewrite, ...]] = {}

    def about(self, stage: str, path: str, method: str) -> tuple[Rewrite, ...]:
        """Those of a stage that may hold for orders of a path and a method: a tenth of them."""
        key = (stage, path, method)
        if key not in self._about:
            known = {"path": path, "method": method}
            self._about[key] = tuple(row for row in self[stage] if possible(row.when, known))
        return self._about[key]


class Kernels(dict[str, Kernel]):
    """Kernels of a release, filtered when first asked for: a derivation meets a dozen of a few hundred."""

    def __init__(self, rows: Mapping[str, Row], release: str) -> None:
        super().__init__()
        self._rows, self._release = rows, release

    def __missing__(self, name: str) -> Kernel:
        row, release = self._rows[name], self._release
        effects: list[tuple[Condition, Row]] = [(_when(e), e) for e in row.get("effects", ()) if _covers(e, release)]
        needs = [_when(need) for need in row["needs"] if _covers(need, release)]
        self[name] = kernel = Kernel(
            name,
            ("any", *needs) if needs else None,
            (*effects, (ALWAYS, row)),
            tuple((_when(c), c["because"]) for c in row.get("crashes", ()) if _covers(c, release)),
            tuple(a for a in row.get("announces", ()) if _covers(a, release)),
            row.get("backends", ()),
            shown := name.rpartition(":")[2],
            row.get("printed", shown),
        )
        return kernel

    def known(self, name: str) -> bool:
        return name in self._rows


# ---------------------------------------------------------------- loading


def tables(dirs: Sequence[Path | str] = (), engine: str = "vllm") -> Knowledge:
    """What is known of one engine (`vllm`, `trtllm`, `sglang`; `""`: what holds for all), in the package and
    in `dirs`.

    A directory of one's own keeps its rows in `knowledge/<engine>/`; those in `knowledge/` itself belong to the engine
    that its `pack.toml` names, vLLM where there is none. Raises InputError with one line for each mistake, each with
    its file and line.
    """
    return _tables(tuple(str(d) for d in dirs), engine, tuple(map(_stamp, dirs)))


def _stamp(folder: Path | str) -> tuple[tuple[object, ...], ...]:
    """What changes with the tables of a folder of one's own: who holds on to a desk may edit them in between."""
    found = (p for kind in ("pack.toml", "knowledge/*.toml", "knowledge/*/*.toml") for p in Path(folder).glob(kind))
    return tuple((os.path.abspath(path), *_seen(path)) for path in sorted(found))


def _seen(path: Path) -> tuple[int, ...]:
    try:
        return cachefile.seen(path.stat())
    except OSError:  # gone, or a link to nothing: told when it is read
        return ()


@lru_cache(maxsize=8)
def _tables(dirs: tuple[str, ...], engine: str, _stamps: tuple[object, ...] = ()) -> Knowledge:
    own = (Path(d) / "knowledge" for d in dirs if _engine_of(Path(d)) == engine)
    homes = (patterns_dir(), *(Path(d) for d in dirs))
    paths = _paths(patterns_dir() / "knowledge", *(home / "knowledge" / engine for home in homes if engine), *own)
    if dirs:  # somebody edits them
        raw, digest = _compiled(_read(paths))
        return Knowledge(raw, digest, lambda: raw)
    key = repr((FORMAT, [(path.name, cachefile.seen(path.stat())) for path in paths])).encode()
    name = f"tables-{cachefile.digest(repr([os.path.abspath(path) for path in paths]).encode())}"
    kept = cachefile.load(name, key)
    if kept is None:
        raw, digest = _compiled(_read(paths))
        kept = {table: raw[table] for table in _TIMELESS}, digest
        cachefile.store(name, key, kept)
    timeless, digest = kept
    return Knowledge(timeless, digest, lambda: _unchanged(paths, digest))


def _unchanged(paths: Sequence[Path], digest: str) -> Raw:
    """All tables, of the files that a run began with. Raises InputError where they are others by now."""
    raw, now = _compiled(_read(paths))
    if now != digest:
        raise InputError(f"{paths[0].parent}: the tables were replaced while logscan ran; run it again")
    return raw


def _compiled(files: Sequence[tuple[Path, bytes]]) -> tuple[Raw, str]:
    """All tables, and the digest of the files."""
    digest = _digest(files)
    name = f"knowledge-{digest}"
    raw = cachefile.load(name, digest.encode())
    if raw is None:
        from logscan.judge.compiling import compile_tables

        raw = compile_tables(files)
        cachefile.store(name, digest.encode(), dict(raw))
    return raw, digest


def _engine_of(folder: Path) -> str:
    """The engine that a directory's pack is about."""
    try:
        return str(tomlcache.read(folder / "pack.toml").get("engine", "vllm"))
    except (OSError, ValueError):
        return "vllm"


def _paths(*dirs: Path) -> list[Path]:
    return [path for d in dirs if d.is_dir() for path in sorted(d.glob("*.toml"))]


def _read(paths: Sequence[Path]) -> list[tuple[Path, bytes]]:
    """The files' bytes. Raises InputError for one that cannot be read."""
    found = []
    for path in paths:
        try:
            if path.exists() and not path.is_file():
                raise InputError(f"{path}: cannot be read: is no file")
            found.append((path, path.read_bytes()))
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    return found


def _digest(files: Sequence[tuple[Path, bytes]]) -> str:
    import hashlib

    h = hashlib.blake2b(f"{FORMAT}.{sys.version_info[:2]}".encode(), digest_size=16)
    for path, data in files:
        h.update(path.name.encode() + b"\0" + len(data).to_bytes(8, "big") + data)
    return h.hexdigest()
