"""An engine's Python source, wherever it lies: a tree, an installed package, an sdist, a wheel. Nothing is imported."""

from __future__ import annotations

import importlib.util
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from logscan.model import InputError

# Vendored projects print their own lines.
_SKIPPED = ("third_party/", "tests/")
_VERSION_LINE = re.compile(rb"^Version: (\S+)", re.MULTILINE)
_VERSION_PY = re.compile(rb"^(?:__version__ = )?(?:version|__version__) = ['\"]([^'\"]+)['\"]", re.MULTILINE)
_DIST_NAME = re.compile(r"[A-Za-z0-9_.]+?-(\d[^-]*?)(?:\.tar\.gz|\.zip|-[^/]*\.whl)?")


class Source(NamedTuple):
    """Python files of one release: path inside the package's parent (`vllm/config.py`), and bytes."""

    name: str  # as given
    version: str | None
    files: list[tuple[str, bytes]]


def read_source(where: str, package: str) -> Source:
    """The `.py` files of `package` at `where`: a path, or the name of an installed package.

    Raises InputError when it cannot be read or does not hold the package.
    """
    path = Path(where)
    try:
        if path.is_dir():
            members = _tree(path, package)
        elif path.is_file():
            members = _archive(path)
        else:
            path = _installed(where)
            members = _tree(path, package)
        files, version = _package_files(members, package)
    except (OSError, tarfile.TarError, zipfile.BadZipFile, EOFError) as e:
        raise InputError(f"{where}: cannot be read as a source tree, sdist or wheel: {e}") from e
    if not files:
        raise InputError(f"{where}: no Python files of {package!r} in it; give the release's tree, sdist or wheel")
    named = _DIST_NAME.fullmatch(path.name)
    return Source(where, version or (named[1] if named else None), files)


def _installed(name: str) -> Path:
    # A top-level name is found without being imported; a dotted one would import its parent.
    spec = importlib.util.find_spec(name) if name.isidentifier() else None
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"{name}: neither a file, a directory, nor an installed package")
    return Path(next(iter(spec.submodule_search_locations)))


def _tree(root: Path, package: str) -> Iterator[tuple[str, bytes]]:
    if root.name == package and (root / "__init__.py").is_file():
        root = root.parent
    for meta in (*root.glob("PKG-INFO"), *root.glob(f"{package}-*.dist-info/METADATA")):
        yield meta.relative_to(root).as_posix(), meta.read_bytes()
    for path in sorted((root / package).rglob("*.py")):
        yield path.relative_to(root).as_posix(), path.read_bytes()


def _archive(path: Path) -> Iterator[tuple[str, bytes]]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as z:
            for name in z.namelist():
                if name.endswith((".py", "/METADATA")):
                    yield name, z.read(name)
        return
    with tarfile.open(path) as t:
        for member in t:
            _, _, inner = member.name.partition("/")  # sdists hold one directory, `vllm-0.33.0/`
            if member.isfile() and (inner.endswith(".py") or inner == "PKG-INFO"):
                data = t.extractfile(member)
                yield inner, data.read() if data else b""


def _package_files(members: Iterator[tuple[str, bytes]], package: str) -> tuple[list[tuple[str, bytes]], str | None]:
    files: list[tuple[str, bytes]] = []
    version = None
    for name, data in members:
        if name.rsplit("/", 1)[-1] in ("PKG-INFO", "METADATA"):
            m = _VERSION_LINE.search(data)
            version = m[1].decode(errors="replace") if m else version
        elif name == f"{package}/_version.py" and version is None:
            m = _VERSION_PY.search(data)
            version = m[1].decode(errors="replace") if m else version
        if name.startswith(f"{package}/") and name.endswith(".py"):
            inner = name[len(package) + 1 :]
            if not inner.startswith(_SKIPPED):
                files.append((name, data))
    return files, version
