"""Packs from their directories, through a cache.

A pack is a directory with a `pack.toml` (id, engine, version, releases) and any number of `*.toml` files that hold
`[[pattern]]` entries. TOML is read once: what it says is kept as plain tuples in the user's cache directory, keyed
by the names, sizes and times of the pack's files, because reading it anew would cost more than the rest of a run.
"""

from __future__ import annotations

import hashlib
import marshal
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from logscan import cachefile, tomlcache
from logscan.model import InputError
from logscan.packs import patterns_dir
from logscan.packs.schema import Head, Pack, Pattern, Patterns, Site

_SHAPE = 2  # of what the cache holds; change it with that
_EXAMPLES = ("match", "nomatch", "note")  # of a pattern: what a run over a log does not need
_SITES = Pattern._fields.index("sites")


def load(dirs: Sequence[Path] = (), *, examples: bool = True) -> tuple[Pack, ...]:
    """The packaged packs, then those of the user's directories (each a pack, or a directory of packs).

    `examples` False leaves out the patterns' example lines and notes, which reading a log does not need. Raises
    InputError that lists every error of every pack, each with file and line.
    """
    errors: list[str] = []
    packs: list[Pack] = []
    packaged = _packaged(errors)
    for folder, label in (*packaged, *_given(dirs, errors)):
        pack = load_pack(folder, label, errors, examples=examples)
        if pack is not None:
            packs.append(pack._replace(own=(folder, label) not in packaged))
    errors += _clashes(packs)
    if errors:
        raise InputError("\n".join(errors))
    return tuple(packs)


def engines(dirs: Sequence[Path] = ()) -> dict[str, tuple[str, ...]]:
    """The engines and their known releases, ascending: all that a forecast needs. Raises InputError as `load` does."""
    if not dirs:
        heads = [tomlcache.read(path) for path in sorted(patterns_dir().glob("*/pack.toml"))]
        return {head["engine"]: tuple(head["releases"]) for head in heads}
    found: dict[str, tuple[str, ...]] = {}
    for pack in load(dirs, examples=False):
        found.setdefault(pack.engine, pack.releases)
    return found


def load_pack(folder: Path, label: str, errors: list[str], *, examples: bool = True) -> Pack | None:
    """One pack, from the cache where its files have not changed; `label` names the folder in messages.

    None when it cannot be read: then `errors` has grown.
    """
    paths = sorted(folder.glob("*.toml"))
    try:
        seen = [(path.name, path.stat()) for path in paths]
        name, key = _cache_name(folder), repr([_SHAPE] + [(n, cachefile.seen(s)) for n, s in seen]).encode()
        pack = _from_cache(name, key, examples)
        if pack is not None:
            return pack
        files = [(path.name, path.read_bytes()) for path in paths]
    except OSError as e:
        errors.append(f"{label}/{Path(e.filename or folder).name}: cannot be read: {e.strerror}")
        return None
    # Imported here: with a warm cache a run needs neither tomllib nor the checks.
    from logscan.packs.read import read_pack

    pack = read_pack(files, label, digest_of(files), errors)
    if pack is not None:
        _to_cache(name, key, pack)
    return pack


def digest_of(files: Iterable[tuple[str, bytes]]) -> str:
    """`sha256:…` over the names and bytes of a pack's files, in the order given."""
    h = hashlib.sha256()
    for name, data in files:
        h.update(b"%s\0%d\0" % (name.encode(), len(data)))
        h.update(data)
    return "sha256:" + h.hexdigest()


def _packaged(errors: list[str]) -> list[tuple[Path, str]]:
    root = patterns_dir()
    out = [(p.parent, f"patterns/{p.parent.name}") for p in sorted(root.glob("*/pack.toml"))]
    if not out:
        errors.append(f"{root}: no pattern packs are installed there; install logscan anew")
    return out


def _given(dirs: Sequence[Path], errors: list[str]) -> list[tuple[Path, str]]:
    out: list[tuple[Path, str]] = []
    for folder in dirs:
        if (folder / "pack.toml").is_file():
            out.append((folder, str(folder)))
            continue
        inner = sorted(folder.glob("*/pack.toml")) if folder.is_dir() else []
        out += [(p.parent, str(p.parent)) for p in inner]
        if not folder.is_dir():
            errors.append(f"{folder}: no such directory; --packs wants the directory that holds pack.toml")
        elif not inner:
            errors.append(f"{folder}: no pack.toml in it; write one with id, engine and version")
    return out


def _clashes(packs: Sequence[Pack]) -> list[str]:
    seen: dict[str, tuple[Pack, int]] = {}
    errors = []
    for pack in packs:
        for number, head in enumerate(pack.patterns.heads):
            if head.id in seen:
                before, here = (p.patterns[n].where for p, n in (seen[head.id], (pack, number)))
                errors.append(f"{here}: pattern {head.id!r} is already defined at {before}; give it another id")
            seen.setdefault(head.id, (pack, number))
    return errors


def _cache_name(folder: Path) -> str:
    return "pack-" + hashlib.sha256(os.path.abspath(folder).encode(errors="surrogateescape")).hexdigest()[:16]


def _from_cache(name: str, key: bytes, examples: bool) -> Pack | None:
    kept = cachefile.load(name, key)
    shown = cachefile.load(f"{name}-examples", key) if examples else None
    if kept is None or (examples and shown is None):
        return None
    pack_id, engine, version, digest, releases, heads, bodies = kept

    def build(index: int) -> Pattern:
        values = list(marshal.loads(bodies[index]))
        values[_SITES] = tuple(Site(*site) for site in values[_SITES])
        pattern = Pattern(*values)
        return pattern._replace(**dict(zip(_EXAMPLES, shown[index], strict=True))) if shown else pattern

    return Pack(pack_id, engine, version, digest, releases, Patterns([Head(*head) for head in heads], build))


def _to_cache(name: str, key: bytes, pack: Pack) -> None:
    """The patterns, and apart from them what only lint, tests and pages need: half of a pack is examples.

    Each pattern is packed by itself, as it is built by itself.
    """
    *identity, patterns, _ = pack
    bodies = tuple(marshal.dumps(_lean(pattern)) for pattern in patterns)
    cachefile.store(name, key, (*identity, tuple(map(tuple, patterns.heads)), bodies))
    shown = tuple(tuple(getattr(p, field) for field in _EXAMPLES) for p in patterns)
    cachefile.store(f"{name}-examples", key, shown)


def _lean(pattern: Pattern) -> tuple[Any, ...]:
    """Its fields as plain values, without the examples."""
    values = list(pattern._replace(match=(), nomatch=(), note=""))
    values[_SITES] = tuple(tuple(site) for site in pattern.sites)
    return tuple(values)
