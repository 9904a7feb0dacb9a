"""TOML files of the package, read through the cache: parsing takes many times as long as loading plain values."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from logscan import cachefile


def read(path: Path) -> dict[str, Any]:
    """What the TOML file holds; from the user's cache directory where its bytes have not changed.

    Raises OSError and tomllib.TOMLDecodeError as they come: the files are the package's own.
    """
    source = path.read_bytes()
    place = os.path.abspath(path).encode(errors="surrogateescape")
    name = f"{path.stem}-{cachefile.digest(place)}"
    found: dict[str, Any] | None = cachefile.load(name, source)
    if found is None:
        import tomllib

        found = tomllib.loads(source.decode())
        cachefile.store(name, source, found)
    return found
