"""Logs that were copied from a terminal: every line longer than it is wide stands there in rows.

Rows are joined as they were cut, at the width and nowhere else. A row that fills the width goes on in the next one,
unless that is a record of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from logscan.intake.framing import Item

_NARROWEST, _WIDEST = 40, 400  # columns; an engine's own lines are longer than any terminal
_CUT = 3  # different records that go on in the next row: fewer may be chance
_ROWS = 3  # rows of one record that fill the width, which is no chance either
_LONGEST = 1 << 18  # bytes that are joined: more no regex sees


def width_of(lines: Sequence[bytes], is_head: Callable[[bytes], bool]) -> int | None:
    """The width in columns at which these lines are wrapped; None where they are not. `is_head`: what begins a line.

    No line is wider, and of the records that fill it nearly all go on in the next row.
    """
    columns = [_columns(line) for line in lines]
    width = max(columns, default=0)
    if not _NARROWEST <= width <= _WIDEST:
        return None
    full = [n for n, c in enumerate(columns[:-1]) if c == width and is_head(lines[n])]
    cut = [n for n in full if lines[n + 1].strip() and not is_head(lines[n + 1])]
    long = any(columns[n : n + _ROWS] == [width] * _ROWS for n in cut)
    sure = long or len({lines[n] for n in cut}) >= _CUT
    return width if sure and len(cut) >= 0.8 * len(full) else None


def _columns(line: bytes) -> int:
    """Characters of a row. Those that take two columns are none of an engine's."""
    return len(line.rstrip(b"\r").decode("utf-8", "replace"))


class HardWrap:
    """Joins the rows of a line."""

    name = "hard-wrap"
    stateless: ClassVar[bool] = False
    weak: ClassVar[bool] = True

    def __init__(self, width: int, is_head: Callable[[bytes], bool]) -> None:
        self._width = width
        self._is_head = is_head
        self._open: Item | None = None  # a line that goes on, as far as it was read

    def sniff(self, lines: Sequence[bytes]) -> int:
        """How many lines fit: all that are not wider."""
        return sum(_columns(line) <= self._width for line in lines)

    def peel(self, item: Item) -> Sequence[Item]:
        """The lines that are complete with this row."""
        before, fills = self._open, _columns(item.payload) == self._width
        if before is None:
            return self._next(item, fills)
        if self._is_head(item.payload) or not item.payload.strip() or len(before.payload) > _LONGEST:
            return (before, *self._next(item, fills))
        return self._next(before._replace(payload=before.payload.rstrip(b"\r") + item.payload), fills)

    def _next(self, item: Item, open: bool) -> Sequence[Item]:
        self._open = item if open else None
        return () if open else (item,)

    def flush(self) -> Sequence[Item]:
        """The line that was open when the stream ended."""
        left, self._open = self._open, None
        return () if left is None else (left,)
