"""An engine's source, wherever it lies: a tree, an installed package, an sdist, a wheel. Nothing is imported."""

from __future__ import annotations

import importlib.util
import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from logscan.model import InputError
from logscan.packs.cpp import SUFFIXES

_ROOTS = {"trtllm": ("tensorrt_llm", "cpp/tensorrt_llm")}  # where the name differs from the engine's
# Vendored projects, and other programs of the package (SGLang's image generation), print their own lines.
_SKIPPED = ("third_party/", "tests/", "multimodal_gen/")
_VERSION_LINE = re.compile(rb"^Version: (\S+)", re.MULTILINE)
_VERSION_PY = re.compile(rb"^(?:__version__ = )?(?:version|__version__) = ['\"]([^'\"]+)['\"]", re.MULTILINE)
_DIST_NAME = re.compile(r"[A-Za-z0-9_.]+?-(\d[^-]*?)(?:\.tar\.gz|\.zip|-[^/]*\.whl)?")


class Source(NamedTuple):
    """Source files of one release: path inside the package's parent (`vllm/config.py`), and bytes."""

    name: str  # as given
    version: str | None
    files: list[tuple[str, bytes]]


def roots(engine: str) -> tuple[str, ...]:
    """The directories that hold an engine's source: its package, then its C++ beside it."""
    return _ROOTS.get(engine, (engine,))


def read_source(where: str, engine: str) -> Source:
    """The source files of an engine at `where`: a path, or the name of an installed package.

    C++ is read where the engine logs from it and the source has it (a repository; no wheel). Raises InputError when
    it cannot be read or does not hold the package.
    """
    path = Path(where)
    package = roots(engine)[0]
    try:
        if path.is_dir():
            members = _tree(path, roots(engine))
        elif path.is_file():
            members = _archive(path)
        else:
            path = _installed(where)
            members = _tree(path, roots(engine))
        files, version = _package_files(members, roots(engine))
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


def _tree(root: Path, folders: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    package = folders[0]
    if root.name == package and (root / "__init__.py").is_file():
        root = root.parent
    for meta in (*root.glob("PKG-INFO"), *root.glob(f"{package}-*.dist-info/METADATA")):
        yield meta.relative_to(root).as_posix(), meta.read_bytes()
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".py", *SUFFIXES) and path.is_file():
                yield path.relative_to(root).as_posix(), path.read_bytes()


def _archive(path: Path) -> Iterator[tuple[str, bytes]]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as z:
            for name in z.namelist():
                if name.endswith((".py", *SUFFIXES, "/METADATA")):
                    yield name, z.read(name)
        return
    with tarfile.open(path) as t:
        for member in t:
            _, _, inner = member.name.partition("/")  # sdists hold one directory, `vllm-0.33.0/`
            if member.isfile() and (inner.endswith((".py", *SUFFIXES)) or inner == "PKG-INFO"):
                data = t.extractfile(member)
                yield inner, data.read() if data else b""


def _package_files(
    members: Iterator[tuple[str, bytes]], folders: tuple[str, ...]
) -> tuple[list[tuple[str, bytes]], str | None]:
    files: list[tuple[str, bytes]] = []
    version = None
    package, *native = folders
    for name, data in members:
        if name.rsplit("/", 1)[-1] in ("PKG-INFO", "METADATA"):
            m = _VERSION_LINE.search(data)
            version = m[1].decode(errors="replace") if m else version
        elif name in (f"{package}/_version.py", f"{package}/version.py") and version is None:
            m = _VERSION_PY.search(data)
            version = m[1].decode(errors="replace") if m else version
        suffixes = (".py",) if name.startswith(f"{package}/") else SUFFIXES
        folder = next((f for f in (package, *native) if name.startswith(f"{f}/")), None)
        if folder and name.endswith(suffixes) and not name[len(folder) + 1 :].startswith(_SKIPPED):
            files.append((name, data))
    return files, version
