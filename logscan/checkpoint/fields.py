"""Typed access to a config: every error names the path of the key it met."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from logscan.checkpoint.errors import CheckpointError, kind_of, show

MAX_STRINGS = 1_000_000
MAX_STRING = 65_536


class Node:
    """A JSON object and the path that led to it. Absent and null are the same: the getter's default."""

    __slots__ = ("path", "value")

    def __init__(self, value: Mapping[str, Any], path: str = "") -> None:
        self.value = value
        self.path = path

    def at(self, key: str) -> str:
        """The path of `key` as messages name it."""
        key = key if key.isascii() and key.isprintable() and len(key) <= 80 else show(key)
        return f"{self.path}.{key}" if self.path else key

    def has(self, *keys: str) -> bool:
        """True when one of `keys` is there and not null."""
        return any(self.value.get(key) is not None for key in keys)

    def raw(self, *keys: str) -> Any:
        """The first value among `keys` that is there and not null, unchecked."""
        return next((v for key in keys if (v := self.value.get(key)) is not None), None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.value)

    def first(self, *keys: str) -> str:
        """The first of `keys` that is there and not null; the first of all where none is."""
        return next((key for key in keys if self.value.get(key) is not None), keys[0])

    def text(self, *keys: str) -> str | None:
        value: str | None = self._typed(self.first(*keys), str, "a string")
        return value

    def flag(self, *keys: str) -> bool | None:
        key = self.first(*keys)
        value = self.value.get(key)
        if type(value) is int and value in (0, 1):  # some writers put 0 and 1
            return bool(value)
        answer: bool | None = self._typed(key, bool, "true or false")
        return answer

    def integer(self, *keys: str) -> int | None:
        key = self.first(*keys)
        value = self.value.get(key)
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise CheckpointError("E_TYPE", f"{self.at(key)} must be an integer, got {_got(value)}")

    def number(self, *keys: str) -> float | None:
        key = self.first(*keys)
        value = self.value.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise CheckpointError("E_TYPE", f"{self.at(key)} must be a number, got {_got(value)}")
        if not math.isfinite(value):
            raise CheckpointError("E_NONFINITE", f"{self.at(key)} is {value}")
        return float(value)

    def node(self, *keys: str) -> Node | None:
        key = self.first(*keys)
        value = self._typed(key, dict, "an object")
        return None if value is None else Node(value, self.at(key))

    def strings(self, *keys: str) -> tuple[str, ...]:
        """A list of strings; a single string counts as a list of one."""
        key = self.first(*keys)
        value = self.value.get(key)
        if value is None:
            return ()
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, (list, tuple)):
            raise CheckpointError("E_TYPE", f"{self.at(key)} must be a list of strings, got {_got(value)}")
        if len(value) > MAX_STRINGS:
            raise CheckpointError("E_HUGE", f"{self.at(key)} lists more than {MAX_STRINGS:,} entries")
        for item in value:
            if not isinstance(item, str):
                raise CheckpointError("E_TYPE", f"{self.at(key)} must be a list of strings, got {_got(item)} in it")
            if len(item) > MAX_STRING:
                raise CheckpointError("E_HUGE", f"{self.at(key)} holds a string of more than {MAX_STRING:,} characters")
        return tuple(value)

    def need(self, *keys: str) -> None:
        """Raise E_KEY unless one of `keys` is there."""
        if not self.has(*keys):
            raise CheckpointError("E_KEY", f"{self.at(' or '.join(keys))} is missing")

    def choice(self, key: str, allowed: Mapping[str, Any]) -> Any:
        """The meaning of a word (letter case ignored), None where absent; E_VALUE when it is none of `allowed`."""
        word = self.text(key)
        if word is None:
            return None
        if word.lower() not in allowed:
            known = ", ".join(allowed)
            raise CheckpointError("E_VALUE", f"{self.at(key)} is {show(word)}; known: {known}")
        return allowed[word.lower()]

    def _typed(self, key: str, kind: type, wanted: str) -> Any:
        value = self.value.get(key)
        if value is None or isinstance(value, kind):
            if isinstance(value, str) and len(value) > MAX_STRING:
                raise CheckpointError("E_HUGE", f"{self.at(key)} is a string of more than {MAX_STRING:,} characters")
            return value
        raise CheckpointError("E_TYPE", f"{self.at(key)} must be {wanted}, got {_got(value)}")


def _got(value: object) -> str:
    return show(value) if isinstance(value, (str, int, float)) else kind_of(value)


def pair(value: object, path: str) -> tuple[int, int]:
    """Two positive integers `[n, k]` (or the string `nxk`), E_VALUE otherwise."""
    if isinstance(value, str):
        parts: list[Any] = [int(p) if p.isdecimal() and len(p) < 10 else None for p in value.lower().split("x")]
    else:
        parts = list(value) if isinstance(value, (list, tuple)) else []
    if len(parts) != 2 or any(type(p) is not int or not 0 < p < 1 << 31 for p in parts):
        raise CheckpointError("E_VALUE", f"{path} must be two positive integers")
    return parts[0], parts[1]
