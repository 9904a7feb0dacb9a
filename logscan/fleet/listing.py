"""What the user named → logs: files, globs, directories, archives, a list on stdin, object stores."""

from __future__ import annotations

import glob
import os
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

from logscan.model import InputError

MAX_LOG = 1 << 30  # bytes of a log out of an archive or an object store
_MAX_MEMBERS = 200_000
_MAX_SPOOL = 64 << 30
_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".zip")
_NOT_LOGS = (
    ".json",
    ".safetensors",
    ".parquet",
    ".py",
    ".md",
    ".toml",
    ".yaml",
    ".yml",
    ".html",
    ".png",
    ".csv",
    ".pdf",
)
_ANYTHING = "*?["


class Item(NamedTuple):
    """One log: what it is called in every report, where its bytes are, when it was last written (UTC)."""

    name: str
    location: str
    modified: str | None = None
    error: str | None = None  # it was listed, and cannot be read


def listing(paths: Iterable[str], spool: Path, stdin: IO[str] | None = None) -> list[Item]:
    """The logs, each once, by name. Members of archives are unpacked into `spool` and named `archive!member`.

    Raises InputError for a path that is not there or names no log.
    """
    found: dict[str, Item] = {}
    for path in paths:
        if path == "-":
            if stdin is None and sys.stdin is None:
                raise InputError("stdin: is closed; pipe the list of logs in, or name them")
            named = [line.strip() for line in (stdin or sys.stdin).read().split("\n")]
            items: Iterable[Item] = (item for name in named if name for item in _missing_is_a_row(name, spool))
        else:
            items = _expand(path, spool)
        before = len(found)
        seen = False
        for item in items:
            seen = True
            found.setdefault(item.name, item)
        if not seen and len(found) == before:
            raise InputError(f"{path}: no log in it; give files, a glob, a directory, an archive, or - with a list")
    return [found[name] for name in sorted(found)]


def shard(items: list[Item], which: str | None) -> list[Item]:
    """The i-th of n shards (`i/n`, from 1), by a hash of the name: new logs move no others. Raises InputError."""
    if which is None:
        return items
    left, _, right = which.partition("/")
    if not (left.isdecimal() and right.isdecimal() and 1 <= int(left) <= int(right) <= 100_000):
        raise InputError(f"--shard {which!r}: write i/n with 1 <= i <= n, such as 2/8")
    i, n = int(left), int(right)
    return [item for item in items if zlib.crc32(item.name.encode("utf-8", "surrogateescape")) % n == i - 1]


def _missing_is_a_row(name: str, spool: Path) -> Iterator[Item]:
    """A line of a list that names nothing is a row with an error: nobody typed it at this moment."""
    try:
        yield from _expand(name, spool)
    except InputError as error:
        yield Item(name, name, None, str(error))


def _expand(path: str, spool: Path) -> Iterator[Item]:
    if "://" in path:
        yield from _remote(path)
    elif os.path.isdir(path):
        yield from _directory(path, spool)
    elif os.path.exists(path):
        yield from _file(path, spool)
    elif any(c in path for c in _ANYTHING):
        for match in sorted(glob.iglob(path, recursive=True)):
            if os.path.isfile(match):
                yield from _file(match, spool)
    else:
        raise InputError(f"{path}: no such file or directory")


def _directory(path: str, spool: Path) -> Iterator[Item]:
    for directory, below, names in os.walk(path):
        below[:] = sorted(name for name in below if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and not name.lower().endswith(_NOT_LOGS):
                whole = os.path.join(directory, name)
                if os.path.isfile(whole):
                    yield from _file(whole, spool)


def _file(path: str, spool: Path) -> Iterator[Item]:
    if path.lower().endswith(_ARCHIVES):
        yield from _archive(path, spool)
        return
    try:
        yield Item(path, path, _utc(os.stat(path).st_mtime))
    except OSError as error:
        yield Item(path, path, None, f"{path}: {error.strerror}")


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---------------------------------------------------------------- archives


def _archive(path: str, spool: Path) -> Iterator[Item]:
    """Members in one pass, each capped; what is damaged is a row with an error."""
    left = _MAX_SPOOL
    try:
        for count, (name, modified, size, opened) in enumerate(_members(path)):
            if name.lower().endswith(_NOT_LOGS) or os.path.basename(name).startswith("."):
                continue
            whole = f"{path}!{name}"
            if size > MAX_LOG or left < size or count > _MAX_MEMBERS:
                yield Item(
                    whole, whole, modified, f"{whole}: {size:,} bytes are more than is unpacked; unpack it yourself"
                )
                continue
            target = spool / f"{zlib.crc32(os.fsencode(path)):08x}-{count:07}"
            with opened() as source, open(target, "wb") as file:
                left -= _copy(source, file, whole)
            yield Item(whole, str(target), modified)
    except (OSError, EOFError, tarfile.TarError, zipfile.BadZipFile, ValueError, RuntimeError, InputError) as error:
        yield Item(path, path, None, f"{path}: cannot be unpacked: {getattr(error, 'strerror', None) or error}")


def _members(path: str) -> Iterator[tuple[str, str | None, int, Callable[[], Any]]]:
    if path.lower().endswith(".zip"):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if not info.is_dir():
                    when = datetime(*info.date_time).strftime("%Y-%m-%dT%H:%M:%SZ")
                    yield info.filename, when, info.file_size, lambda info=info: archive.open(info)  # type: ignore[misc]
        return
    with tarfile.open(path, "r|*") as tar:
        for member in tar:
            if member.isfile():
                yield member.name, _utc(member.mtime), member.size, lambda m=member: tar.extractfile(m)  # type: ignore[misc]


def _copy(source: IO[bytes], target: IO[bytes], name: str) -> int:
    total = 0
    while block := source.read(1 << 20):
        total += len(block)
        if total > MAX_LOG:
            raise InputError(f"{name}: is larger than {MAX_LOG >> 20} MiB; download or unpack it yourself")
        target.write(block)
    return total


# ---------------------------------------------------------------- object stores


def _remote(url: str) -> Iterator[Item]:
    system, path = _filesystem(url)
    scheme = url.partition("://")[0]
    try:
        if any(c in path for c in _ANYTHING):
            infos = system.glob(path, detail=True)
        elif system.isfile(path):
            infos = {path: system.info(path)}
        else:
            infos = system.find(path, detail=True)
    except Exception as error:
        raise InputError(_refused(url, error)) from None
    for name, info in sorted(infos.items()):
        if info.get("type", "file") == "file" and not name.lower().endswith(_NOT_LOGS):
            when = info.get("LastModified") or info.get("updated") or info.get("mtime")
            stamp = when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if isinstance(when, datetime) else None
            yield Item(f"{scheme}://{name}", f"{scheme}://{name}", stamp)


def _filesystem(url: str) -> tuple[Any, str]:
    scheme = url.partition("://")[0]
    package = {"s3": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}.get(scheme, "fsspec")
    try:
        import fsspec

        return fsspec.core.url_to_fs(url)  # type: ignore[no-any-return]
    except ImportError:
        raise InputError(
            f"{url}: reading {scheme}:// needs fsspec and {package}; pip install fsspec {package}"
        ) from None
    except ValueError as error:
        raise InputError(f"{url}: {error}; give s3://, gs:// or a path") from None


def _refused(url: str, error: Exception) -> str:
    """One line: object stores answer with pages of it."""
    kind, text = type(error).__name__, " ".join(str(error).split())[:200]
    if (
        kind in ("NoCredentialsError", "DefaultCredentialsError", "PartialCredentialsError")
        or "credential" in text.lower()
    ):
        how = "aws configure, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; gcloud auth application-default login"
        return f"{url}: no credentials; give them as its own tools want them ({how})"
    if isinstance(error, FileNotFoundError):
        return f"{url}: no such object"
    if isinstance(error, PermissionError):
        return f"{url}: access is refused: {text or 'forbidden'}"
    return f"{url}: cannot be read: {kind}: {text}"


@contextmanager
def fetched(item: Item) -> Iterator[str]:
    """A local path with the log's bytes. Raises InputError where they cannot be had."""
    if item.error is not None:
        raise InputError(item.error)
    if "://" not in item.location:
        yield item.location
        return
    import tempfile

    system, path = _filesystem(item.location)
    with tempfile.NamedTemporaryFile(prefix="logscan-") as file:
        try:
            with system.open(path, "rb") as source:
                _copy(source, file, item.name)
        except InputError:
            raise
        except Exception as error:
            raise InputError(_refused(item.location, error)) from None
        file.flush()
        yield file.name
