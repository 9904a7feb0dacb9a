"""One JSON file of a checkpoint, read once, bounded in size, depth and count, and never trusted."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from logscan.checkpoint.errors import CheckpointError, kind_of, show
from logscan.model import Note

MAX_BYTES = 64 << 20
MAX_VALUES = 2_000_000  # each costs up to ~250 bytes once parsed
MAX_DEPTH = 64
MAX_DIGITS = 20

_GGUF = b"GGUF"
_LFS = b"version https://git-lfs.github.com/"
_ZIP = b"PK\x03\x04"
_UTF16 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_BOM = b"\xef\xbb\xbf"
# Patterns are compiled where they are first needed: most files need none.
_LONE_SURROGATE = (
    r"(?i)\\u(?:d[89ab][0-9a-f]{2}(?!\\ud[c-f][0-9a-f]{2})|(?<!\\ud[89ab][0-9a-f]{2}\\u)d[c-f][0-9a-f]{2})"
)
_YAML = r"(?:---\s*\n|#[^\n]*\n|\s)*[A-Za-z_]\w*:\s"


def read_json(path: Path) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """The JSON object in `path` and remarks on how it is written (N_BOM, N_DUP_KEY, N_NONFINITE).

    Raises CheckpointError: E_OPEN E_DANGLING E_DIR E_NOT_FILE E_HUGE E_EMPTY E_LFS E_BINARY E_ENCODING E_YAML E_JSON
    E_DEPTH E_VALUE E_TYPE.
    """
    return parse_json(read_bytes(path))


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The bytes of a regular file of at most `limit` bytes. Symlinks are followed (caches are made of them)."""
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno == errno.ENOENT and path.is_symlink():
            raise CheckpointError(
                "E_DANGLING", "a symbolic link to a file that is not there (partial download?)"
            ) from None
        raise CheckpointError("E_OPEN", _reason(error)) from None
    except ValueError:  # NUL in the name
        raise CheckpointError("E_OPEN", "not a file name") from None
    if stat.S_ISDIR(status.st_mode):
        raise CheckpointError("E_DIR", "is a directory, expected a file")
    if not stat.S_ISREG(status.st_mode):
        raise CheckpointError("E_NOT_FILE", "is not a regular file")
    if status.st_size > limit:
        raise CheckpointError("E_HUGE", f"{status.st_size:,} bytes; no config is larger than {limit:,}")
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise CheckpointError("E_OPEN", _reason(error)) from None
    if len(data) > limit:
        raise CheckpointError("E_HUGE", f"no config is larger than {limit:,} bytes")
    return data


def parse_json(data: bytes) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """`read_json` of bytes already read."""
    text, notes = _decode(data)
    if "\\u" in text:
        text = re.sub(_LONE_SURROGATE, r"\\ufffd", text)  # half a surrogate pair could never be written again
    if sum(map(text.count, ",[{")) > MAX_VALUES:
        raise CheckpointError("E_HUGE", f"more than {MAX_VALUES:,} values; no config holds that many")
    value, remarks = _parse(text)
    if not isinstance(value, dict):
        raise CheckpointError("E_TYPE", f"top level is {kind_of(value)}, expected an object")
    check_depth(value)
    return value, notes + remarks


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()


def _decode(data: bytes) -> tuple[str, tuple[Note, ...]]:
    notes: tuple[Note, ...] = ()
    if not data.strip():
        raise CheckpointError("E_EMPTY", "empty file")
    if data.startswith(_LFS):
        raise CheckpointError("E_LFS", "a Git LFS pointer, not the file; run `git lfs pull`")
    if data.startswith(_UTF16):
        raise CheckpointError("E_ENCODING", "UTF-16 or UTF-32; a config.json is UTF-8")
    if b"\0" in data or data.startswith((_GGUF, _ZIP)):
        raise CheckpointError("E_BINARY", f"a binary file ({_guess(data)}); give the model's config.json")
    if data.startswith(_BOM):
        data = data[len(_BOM) :]
        notes = (Note("N_BOM", "starts with a UTF-8 byte order mark, on which the engines' own readers fail"),)
    try:
        return data.decode("utf-8"), notes
    except UnicodeDecodeError as error:
        raise CheckpointError("E_ENCODING", f"not UTF-8 at byte {error.start}") from None


def _guess(data: bytes) -> str:
    if data.startswith(_GGUF):
        return "GGUF"
    if data[8:9] == b"{":
        return "safetensors?"
    if data.startswith(_ZIP):
        return "zip or PyTorch"
    return "pickle?" if data.startswith(b"\x80") else "NUL bytes"


def _parse(text: str) -> tuple[Any, tuple[Note, ...]]:
    duplicates: dict[str, None] = {}
    constants: list[str] = []

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs) and len(duplicates) < 3:
            seen: dict[str, Any] = {}
            for key, item in pairs:
                if key in seen and seen[key] != item:
                    duplicates[show(key)] = None
                seen[key] = item
        return value

    def constant(word: str) -> float:
        constants.append(word)
        return float(word)

    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=constant, parse_int=_integer)
    except json.JSONDecodeError as error:
        _refuse(text, error)
    except RecursionError:
        raise CheckpointError("E_DEPTH", f"nested deeper than {MAX_DEPTH}") from None
    notes: tuple[Note, ...] = ()
    if duplicates:
        names = ", ".join(duplicates)
        notes += (
            Note("N_DUP_KEY", f"{names} stands twice with different values; the last one wins, as in the engines"),
        )
    if constants:
        notes += (Note("N_NONFINITE", f"holds {constants[0]}, which strict JSON readers refuse"),)
    return value, notes


def _refuse(text: str, error: json.JSONDecodeError) -> NoReturn:
    if re.match(_YAML, text[:4096]):
        raise CheckpointError("E_YAML", "looks like YAML; a config is JSON") from None
    raise CheckpointError("E_JSON", f"is not JSON at line {error.lineno} column {error.colno}: {error.msg}") from None


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise CheckpointError("E_VALUE", f"an integer of {len(digits):,} digits")
    return int(digits)


def check_depth(value: Any, limit: int = MAX_DEPTH) -> None:
    """Raise E_DEPTH when objects and lists nest deeper than `limit`. Does not recurse."""
    level = [value]
    for _ in range(limit):
        level = [child for item in level for child in _children(item) if isinstance(child, (dict, list))]
        if not level:
            return
    raise CheckpointError("E_DEPTH", f"nested deeper than {limit}")


def check_finite(value: Any, path: str) -> None:
    """Raise E_NONFINITE when a number under `path` is NaN or infinite."""
    stack: list[tuple[str, Any]] = [(path, value)]
    while stack:
        where, item = stack.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise CheckpointError("E_NONFINITE", f"{where} is {item}")
        if isinstance(item, dict):
            stack += [(f"{where}.{show(k)[1:-1]}", v) for k, v in item.items() if isinstance(v, (dict, list, float))]
        elif isinstance(item, list):
            stack += [(f"{where}[{i}]", v) for i, v in enumerate(item) if isinstance(v, (dict, list, float))]


def _children(item: Any) -> Iterator[Any]:
    return iter(item.values()) if isinstance(item, dict) else iter(item) if isinstance(item, list) else iter(())
