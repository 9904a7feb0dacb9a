"""Compiled things between runs: plain values in the user's cache directory, under a key of what they were made from.

A damaged, foreign or unwritable file costs time, nothing else. `marshal` must never see damaged bytes, so a checksum
stands before the payload. Whoever stores something also clears away what is old: a new release, interpreter or place of
installation has files of its own, and nobody would miss the others.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

_FORMAT = b"logscan-cache-1\n"
_CHECK = 16  # bytes of BLAKE2b
MOST = 512  # files that are kept; an installation has about 40, and one for each release that is asked for
OLDEST = 30 * 24 * 3600  # seconds since a file was written


def _check(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_CHECK).digest()


def digest(key: bytes) -> str:
    """A short name for a key, where several values of one kind are kept beside each other."""
    return _check(key)[:8].hex()


def seen(stat: os.stat_result) -> tuple[int, ...]:
    """What tells a file from an edited one, without reading it: an edit can keep size and time, not the change time."""
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def path_of(name: str) -> Path:
    """The file of a name. The interpreter is part of it: `marshal` is not stable between versions."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # as the standard has it
        base = os.path.expanduser("~/.cache")
    if not os.path.isabs(base):
        base = os.devnull  # nobody's home: nothing is kept
    return Path(base, "logscan", f"{name}.{sys.implementation.cache_tag}")


def load(name: str, key: bytes) -> Any:
    """The value stored under this name for this very key; None where there is none, or it is damaged."""
    try:
        data = path_of(name).read_bytes()
    except OSError:
        return None
    head = _FORMAT + _check(key)
    payload = data[len(head) + _CHECK :]
    if not data.startswith(head) or _check(payload) != data[len(head) : len(head) + _CHECK]:
        return None
    return marshal.loads(payload)


def store(name: str, key: bytes, value: Any) -> None:
    """Store a value of plain types; a later `load` with the same key returns it. Never raises for a read-only home."""
    path = path_of(name)
    part = path.with_name(f"{path.name}.{os.getpid()}")
    payload = marshal.dumps(value)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(_FORMAT + _check(key) + _check(payload) + payload)
        part.replace(path)
    except OSError:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        return
    prune(path.parent)


def prune(folder: Path) -> None:
    """Remove files that were written more than `OLDEST` seconds ago, and all but the newest `MOST`. Never raises."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(
                ((e.stat().st_mtime, e.path) for e in entries if e.is_file(follow_symlinks=False)), reverse=True
            )
    except OSError:
        return  # another run clears the same folder
    limit = time.time() - OLDEST
    for n, (written, path) in enumerate(found):
        if n >= MOST or written < limit:
            try:
                os.unlink(path)
            except OSError:
                continue
