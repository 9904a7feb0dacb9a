"""The tables of knowledge: loading, checking, and the view that one release gives of them.

What holds for every engine (atoms, operands) lies in `patterns/knowledge/*.toml`, what one engine does in
`patterns/knowledge/<engine>/*.toml`; only the tables of the engine at hand are read.

Loading collects every mistake with file and line. What was compiled is plain data and is kept in the user's cache,
keyed by a digest of the files, so that a later start neither parses TOML nor checks again.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from logscan import cachefile, versions
from logscan.judge.conditions import ALWAYS, Condition, Kind, compile_condition
from logscan.model import InputError, Operand, Outcome
from logscan.packs import patterns_dir

MEMO = 512  # answers kept: a fleet's boots ask some dozens of questions
FORMAT = 2  # of the compiled cache; change it with the shape of what is stored
STAGES = (
    "config",
    "scheme",
    "override",
    "load",
)  # config and scheme: the first row that fits; the others: all that fit
FIRST_FITS = ("config", "scheme")
_TABLES = ("atom", "domain", "operand", "gate", "kernel", "candidates", "rewrite", "distrust", "layer")
_ELSEWHERE = (
    "gpu",
    "rule",
    "request",
    "kind",
    "reason",
    "caveat",
    "fmha",
)  # tables of other rooms, kept in the same directory
_PACK_ENGINE = re.compile(r'^engine\s*=\s*"(\w+)"', re.M)
_HEADER = re.compile(r"^\[\[(\w+)\]\]", re.M)

Row = Mapping[str, Any]


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
    rewrites: Mapping[str, tuple[Rewrite, ...]]
    domains: Mapping[str, tuple[tuple[Condition, tuple[Any, ...]], ...]]


class Knowledge:
    """All tables, compiled. `digest` names the files they came from."""

    def __init__(self, raw: Mapping[str, tuple[Row, ...]], digest: str) -> None:
        self.raw, self.digest = raw, digest
        self._views: dict[str, View] = {}
        self._memo: dict[tuple[str, ...], tuple[Outcome, ...]] = {}

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
            self._views[release] = _view(self, release)
        return self._views[release]

    def atom(self, name: str) -> Row | None:
        """The row of an atom, or of its family (`pkg.*`)."""
        rows: Mapping[str, Row] = _index(self)
        return rows.get(name) or rows.get(name.split(".", 1)[0] + ".*")

    def operands(self) -> Mapping[str, Operand]:
        """The named operands (`nvfp4`, `fp8-token` …) that rows set."""
        return _operands(self)

    def reason(self, atom: str) -> str:
        """The reason code that an unknown atom gives a row (`no-gpu`, `no-cuda`, …)."""
        row = self.atom(atom)
        return str(row.get("reason", "no-package")) if row else "no-package"


@lru_cache(maxsize=8)
def _index(knowledge: Knowledge) -> Mapping[str, Row]:
    return {row["id"]: row for row in knowledge.raw["atom"]}


@lru_cache(maxsize=8)
def _operands(knowledge: Knowledge) -> Mapping[str, Operand]:
    return {row["id"]: _operand(row) for row in knowledge.raw["operand"]}


def _operand(row: Row) -> Operand:
    fields: dict[str, Any] = {k: v for k, v in row.items() if k not in ("id", "source", "where")}
    return Operand(**fields)


# ---------------------------------------------------------------- one release's view


def _covers(row: Row, release: str) -> bool:
    return versions.contains(row.get("engine", ""), release)


def _when(row: Row) -> Condition:
    condition: Condition = row.get("if", ALWAYS)
    return condition


def _place(entry: str | Row) -> tuple[str, Condition, str]:
    return (entry, ALWAYS, "") if isinstance(entry, str) else (entry["kernel"], _when(entry), entry.get("else", ""))


def _view(tables: Knowledge, release: str) -> View:
    raw = tables.raw
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
        {stage: tuple(rows) for stage, rows in rewrites.items()},
        {atom: tuple(rows) for atom, rows in domains.items()},
    )


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
    return _tables(tuple(str(d) for d in dirs), engine)


@lru_cache(maxsize=8)
def _tables(dirs: tuple[str, ...], engine: str) -> Knowledge:
    own = (Path(d) / "knowledge" for d in dirs if _engine_of(Path(d)) == engine)
    shared = patterns_dir() / "knowledge"
    homes = (patterns_dir(), *(Path(d) for d in dirs))
    files = _files(shared, *(home / "knowledge" / engine for home in homes if engine), *own)
    digest = _digest(files)
    name = f"knowledge-{digest}"
    raw = cachefile.load(name, digest.encode())
    if raw is None:
        raw = _compile(files)
        cachefile.store(name, digest.encode(), dict(raw))
    return Knowledge(raw, digest)


def _engine_of(folder: Path) -> str:
    """The engine that a directory's pack is about."""
    try:
        m = _PACK_ENGINE.search((folder / "pack.toml").read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return "vllm"
    return m[1] if m else "vllm"


def _files(*dirs: Path) -> list[tuple[Path, bytes]]:
    return [(path, path.read_bytes()) for d in dirs if d.is_dir() for path in sorted(d.glob("*.toml"))]


def _digest(files: Sequence[tuple[Path, bytes]]) -> str:
    import hashlib

    h = hashlib.blake2b(f"{FORMAT}.{sys.version_info[:2]}".encode(), digest_size=16)
    for path, data in files:
        h.update(path.name.encode() + b"\0" + len(data).to_bytes(8, "big") + data)
    return h.hexdigest()


def _compile(files: Sequence[tuple[Path, bytes]]) -> Mapping[str, tuple[Row, ...]]:
    from logscan.judge.lint import problems

    raw: dict[str, list[dict[str, Any]]] = {table: [] for table in _TABLES}
    faults: list[str] = []
    for path, data in files:
        for table, row, where in _rows(path, data, faults):
            raw[table].append({**row, "where": where})
    kinds = {row["id"]: row.get("kind", "word") for row in raw["atom"] if "id" in row}

    def kind_of(atom: str) -> Kind | None:
        return kinds.get(atom) or kinds.get(atom.split(".", 1)[0] + ".*")

    compiled = {
        table: tuple(_frozen(row, kind_of, row["where"], faults) for row in rows) for table, rows in raw.items()
    }
    if not faults:
        faults += problems(compiled)
    if faults:
        raise InputError("\n".join(faults))
    return compiled


def _rows(path: Path, data: bytes, faults: list[str]) -> Iterator[tuple[str, dict[str, Any], str]]:
    import tomllib

    try:
        text = data.decode()
        document = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        faults.append(f"{path}: not TOML: {error}")
        return
    lines: dict[str, list[int]] = {}
    for m in _HEADER.finditer(text):
        lines.setdefault(m[1], []).append(text.count("\n", 0, m.start()) + 1)
    for table, rows in document.items():
        if table in _ELSEWHERE:
            continue
        if table not in _TABLES or not isinstance(rows, list):
            faults.append(f"{path}: [[{table}]] is no table of knowledge; known: {', '.join(_TABLES)}")
            continue
        for row, line in zip(rows, lines.get(table, []), strict=False):
            yield table, row, f"{path}:{line}"


def _frozen(value: Any, kind_of: Any, where: str, faults: list[str]) -> Any:
    """Lists become tuples, and every `if` its compiled condition."""
    if isinstance(value, list):
        return tuple(_frozen(item, kind_of, where, faults) for item in value)
    if not isinstance(value, dict):
        return value
    out: dict[str, Any] = {}
    for key, item in value.items():
        if key == "if":
            try:
                out[key] = compile_condition(item, kind_of)
            except (ValueError, AttributeError) as error:
                faults.append(f"{where}: {error}")
        else:
            if key == "engine":
                try:
                    versions.clauses(item)
                except (ValueError, AttributeError) as error:
                    faults.append(f"{where}: engine: {error}")
            out[key] = _frozen(item, kind_of, where, faults)
    return out
