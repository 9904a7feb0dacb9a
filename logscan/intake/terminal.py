"""Logs that were copied from a terminal: every line longer than it is wide stands there in rows.

Rows are joined as they were cut, at the width and nowhere else. A row that fills the width goes on in the next one,
unless that is a record of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from logscan.intake.framing import Item

_NARROWEST, _WIDEST = 40, 400  # columns; an engine's own lines are longer than any terminal
_PROOF = 3  # places that show it: fewer may be chance
_TEXT = 6  # rows of one text, which begin and end with whatever stood there
_VARIED = 4  # of them: tables begin and end their rows alike
_LONGEST = 1 << 18  # bytes that are joined: more no regex sees


def width_of(lines: Sequence[bytes], is_head: Callable[[bytes], bool]) -> int | None:
    """The width in columns at which these lines are wrapped; None where they are not. `is_head`: what begins a line.

    No line is wider, and what fills the width goes on in the next row: different records, one record over several
    rows, words that are torn, or a long text.
    """
    columns = [_columns(line) for line in lines]
    width = max(columns, default=0)
    if not _NARROWEST <= width <= _WIDEST:
        return None
    full = [n for n, c in enumerate(columns[:-1]) if c == width]
    cut = [n for n in full if lines[n + 1].strip() and not is_head(lines[n + 1])]
    heads = [n for n in full if is_head(lines[n])]
    records = [n for n in cut if n in heads]
    if 2 * len(records) >= len(heads) and (
        len({lines[n] for n in records}) >= _PROOF or any(columns[n : n + _PROOF] == [width] * _PROOF for n in records)
    ):
        return width
    last = [n for n in cut if columns[n + 1] < width]  # rows that end their line are shorter; a table's are not
    torn = [(lines[n], lines[n + 1]) for n in last if _is_torn(lines[n], lines[n + 1])]
    alike = len({row for row, _ in torn}) == len(set(torn))  # what goes on goes on in the same way each time
    if (len(torn) >= _PROOF and alike and 2 * len(torn) >= len(last)) or _has_text(lines, columns, width):
        return width
    return None


def _is_torn(row: bytes, following: bytes) -> bool:
    return row.rstrip(b"\r")[-1:].isalnum() and following[:1].isalnum()


def _has_text(lines: Sequence[bytes], columns: Sequence[int], width: int) -> bool:
    """Whether a long text stands there in rows."""
    full = (lines[n : n + _TEXT] for n in range(len(lines) - _TEXT) if columns[n : n + _TEXT] == [width] * _TEXT)
    return any(min(len({row[:1] for row in rows}), len({row[-2:] for row in rows})) >= _VARIED for rows in full)


def _columns(line: bytes) -> int:
    """Characters of a row. Those that take two columns are none of an engine's."""
    return len(line.rstrip(b"\r").decode("utf-8", "replace"))


class HardWrap:
    """Joins the rows of a line."""

    name = "hard-wrap"
    stateless: ClassVar[bool] = False

    def __init__(self, width: int, is_head: Callable[[bytes], bool]) -> None:
        self._width = width
        self._is_head = is_head
        self._open: Item | None = None  # a line that goes on, as far as it was read
        self._over = False  # a wider row was met: no terminal is at work any more

    def sniff(self, lines: Sequence[bytes]) -> int:
        """How many lines fit: all that are not wider."""
        return sum(_columns(line) <= self._width for line in lines)

    def peel(self, item: Item) -> Sequence[Item]:
        """The lines that are complete with this row."""
        if self._over:
            return (item,)
        columns = _columns(item.payload)
        self._over = columns > self._width
        before, fills = self._open, columns == self._width
        if before is None:
            return self._next(item, fills)
        if self._over or self._is_head(item.payload) or not item.payload.strip() or len(before.payload) > _LONGEST:
            return (before, *self._next(item, fills))
        return self._next(before._replace(payload=before.payload.rstrip(b"\r") + item.payload), fills)

    def _next(self, item: Item, open: bool) -> Sequence[Item]:
        self._open = item if open else None
        return () if open else (item,)

    def flush(self) -> Sequence[Item]:
        """The line that was open when the stream ended."""
        left, self._open = self._open, None
        return () if left is None else (left,)
