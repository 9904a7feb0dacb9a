"""A TOML file of the user's, whose errors name file and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from logscan.model import InputError

_LARGEST = 4 << 20
_HEADER = re.compile(r"\s*\[(\[)?\s*([\w\"'.-]+)\s*\]?\]")
_KEY = re.compile(r"\s*([\w-]+|\"[^\"]*\"|'[^']*')\s*=")


class Located(NamedTuple):
    """The file as parsed, and as text to find lines in."""

    name: str
    tree: dict[str, Any]
    lines: Sequence[str]

    def where(self, table: str = "", index: int = 0, key: str = "") -> str:
        """`file:line` of a key, or of a table's header; of the file alone where it stands in no such place.

        `index` counts the tables of that name, from 0.
        """
        seen, current = -1, ""
        for number, text in enumerate(self.lines, 1):
            header, pair = _HEADER.match(text), _KEY.match(text)
            if header:
                current = header[2].strip("\"'")
                seen += current == table
                if current == table and seen == index and not key:
                    return f"{self.name}:{number}"
            elif pair and key and current == table and max(seen, 0) == index and pair[1].strip("\"'") == key:
                return f"{self.name}:{number}"
        return self.where(table, index) if key and table else self.name

    def containing(self, text: str, table: str, index: int, key: str) -> str:
        """`file:line` of a text in the value of a key that may run over several lines."""
        start = self.where(table, index, key)
        number = start.rsplit(":", 1)[-1]
        first = int(number) - 1 if number.isdigit() and start != self.name else 0
        at = next((n for n, row in enumerate(self.lines[first:], first + 1) if text in row), first + 1)
        return f"{self.name}:{at}"


def read(path: Path) -> Located:
    """Parse a TOML file. Raises InputError where it cannot be read, is too large, not UTF-8 or not TOML."""
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}:{data.count(10, 0, error.start) + 1}: not UTF-8 text") from error
    if len(data) > _LARGEST:
        raise InputError(f"{path}: larger than {_LARGEST >> 20} MiB; this is no policy")
    try:
        tree = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        at = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
        line = at[1] if at and at[1] else str(text.count("\n") + 1)
        raise InputError(f"{path}:{line}: not TOML: {str(error)[: at.start()] if at else error}") from error
    return Located(str(path), tree, text.split("\n"))


def unknown_key(key: str, known: Sequence[str], where: str) -> InputError:
    """The error for a key that does not exist, with the nearest one that does."""
    from difflib import get_close_matches

    near = get_close_matches(key, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
    return InputError(f"{where}: unknown key {key!r}; {hint}")
