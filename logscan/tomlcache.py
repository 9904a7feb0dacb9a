"""TOML files of the package, read through a cache: parsing takes many times as long as loading plain values."""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
from pathlib import Path
from typing import Any

from logscan import cachefile

_FORMAT = b"logscan-toml-1\n"
_CHECK = 32  # bytes of SHA-256


def read(path: Path) -> dict[str, Any]:
    """What the TOML file holds; from the user's cache directory where its bytes have not changed.

    Raises OSError and tomllib.TOMLDecodeError as they come: the files are the package's own.
    """
    source = path.read_bytes()
    cached = _cache_file(path)
    head = _FORMAT + hashlib.sha256(source).digest()
    found = _load(cached, head)
    if found is None:
        import tomllib

        found = tomllib.loads(source.decode())
        _store(cached, head, found)
    return found


def _cache_file(path: Path) -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    key = hashlib.sha256(os.path.abspath(path).encode(errors="surrogateescape")).hexdigest()[:16]
    return Path(base, "logscan", f"{path.stem}-{key}.{sys.implementation.cache_tag}")


def _load(cached: Path, head: bytes) -> dict[str, Any] | None:
    try:
        data = cached.read_bytes()
    except OSError:
        return None
    payload = data[len(head) + _CHECK :]
    # marshal must never see damaged bytes.
    if not data.startswith(head) or hashlib.sha256(payload).digest() != data[len(head) : len(head) + _CHECK]:
        return None
    found: dict[str, Any] = marshal.loads(payload)
    return found


def _store(cached: Path, head: bytes, value: dict[str, Any]) -> None:
    payload = marshal.dumps(value)
    part = cached.with_name(f"{cached.name}.{os.getpid()}")
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(head + hashlib.sha256(payload).digest() + payload)
        part.replace(cached)
    except OSError:
        return  # a read-only home costs time, nothing else
    cachefile.prune(cached.parent)
