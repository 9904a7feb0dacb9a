"""Packs from their directories, through a cache.

A pack is a directory with a `pack.toml` (id, engine, version, releases) and any number of `*.toml` files that hold
`[[pattern]]` entries. TOML is read once: what it says is kept as plain tuples in the user's cache directory, keyed
by the digest of the pack's files, because reading it anew would cost more than the rest of a run.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from logscan.model import InputError
from logscan.packs import patterns_dir
from logscan.packs.schema import Pack, Pattern, Site

_FORMAT = b"logscan-pack-1\n"  # of the cached form; bump when schema.py changes
_CHECK = 32  # bytes of SHA-256 before the payload
_SITES = Pattern._fields.index("sites")


def load(dirs: Sequence[Path] = ()) -> tuple[Pack, ...]:
    """The packaged packs, then those of the user's directories (each a pack, or a directory of packs).

    Raises InputError that lists every error of every pack, each with file and line.
    """
    errors: list[str] = []
    packs: list[Pack] = []
    for folder, label in _folders(dirs, errors):
        pack = load_pack(folder, label, errors)
        if pack is not None:
            packs.append(pack)
    errors += _clashes(packs)
    if errors:
        raise InputError("\n".join(errors))
    return tuple(packs)


def load_pack(folder: Path, label: str, errors: list[str]) -> Pack | None:
    """One pack, from the cache where its files have not changed; `label` names the folder in messages.

    None when it cannot be read: then `errors` has grown.
    """
    files: list[tuple[str, bytes]] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            files.append((path.name, path.read_bytes()))
        except OSError as e:
            errors.append(f"{label}/{path.name}: cannot be read: {e.strerror}")
            return None
    digest = digest_of(files)
    cached = _cache_file(folder)
    pack = _from_cache(cached, digest)
    if pack is None:
        # Imported here: with a warm cache a run needs neither tomllib nor the checks.
        from logscan.packs.read import read_pack

        pack = read_pack(files, label, digest, errors)
        if pack is not None:
            _to_cache(cached, pack)
    return pack


def digest_of(files: Iterable[tuple[str, bytes]]) -> str:
    """`sha256:…` over the names and bytes of a pack's files, in the order given."""
    h = hashlib.sha256()
    for name, data in files:
        h.update(b"%s\0%d\0" % (name.encode(), len(data)))
        h.update(data)
    return "sha256:" + h.hexdigest()


def _folders(dirs: Sequence[Path], errors: list[str]) -> list[tuple[Path, str]]:
    root = patterns_dir()
    out = [(p.parent, f"patterns/{p.parent.name}") for p in sorted(root.glob("*/pack.toml"))]
    if not out:
        errors.append(f"{root}: no pattern packs are installed there; install logscan anew")
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
    seen: dict[str, str] = {}
    errors = []
    for pack in packs:
        for p in pack.patterns:
            if p.id in seen:
                errors.append(f"{p.where}: pattern {p.id!r} is already defined at {seen[p.id]}; give it another id")
            seen.setdefault(p.id, p.where)
    return errors


def _cache_file(folder: Path) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    key = hashlib.sha256(os.path.abspath(folder).encode(errors="surrogateescape")).hexdigest()[:16]
    return Path(base, "logscan", f"pack-{key}.{sys.implementation.cache_tag}")


def _from_cache(path: Path, digest: str) -> Pack | None:
    head = _FORMAT + digest.encode()
    try:
        data = path.read_bytes()
    except OSError:
        return None
    if not data.startswith(head):
        return None
    check, payload = data[len(head) : len(head) + _CHECK], data[len(head) + _CHECK :]
    # marshal must never see damaged bytes.
    if hashlib.sha256(payload).digest() != check:
        return None
    pack_id, engine, version, _, releases, patterns = marshal.loads(payload)
    return Pack(pack_id, engine, version, digest, releases, tuple(_pattern(p) for p in patterns))


def _pattern(fields: tuple[Any, ...]) -> Pattern:
    values = list(fields)
    values[_SITES] = tuple(Site(*s) for s in fields[_SITES])
    return Pattern(*values)


def _fields(noun: Pattern | Site) -> tuple[Any, ...]:
    """The noun as a tuple of plain values, sites as tuples of their own."""
    return tuple(
        tuple(_fields(s) for s in v) if isinstance(v, tuple) and v and isinstance(v[0], Site) else v for v in noun
    )


def _to_cache(path: Path, pack: Pack) -> None:
    patterns = tuple(_fields(p) for p in pack.patterns)
    payload = marshal.dumps((pack.id, pack.engine, pack.version, pack.digest, pack.releases, patterns))
    data = _FORMAT + pack.digest.encode() + hashlib.sha256(payload).digest() + payload
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(path)
    except OSError:
        return  # a read-only home costs time, nothing else
