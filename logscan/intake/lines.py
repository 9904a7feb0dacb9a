"""Blocks → physical lines. Lines end at LF only; an endless line is clipped, never kept."""

from __future__ import annotations

from typing import NamedTuple, Protocol

CLIP = 1 << 17  # bytes kept of either end of a line


class Span(NamedTuple):
    """Complete lines: `data[start:stop]` ends in LF; `position` is the offset of `stop` in the text. Where the last
    line of the text has no LF (`ended` is false), the span has one all the same."""

    data: bytes
    start: int
    stop: int
    position: int
    ended: bool = True


class Splitter:
    """Splits blocks at LF and carries the unfinished line. Of a line longer than 2 × CLIP both ends are kept:
    its head names the speaker, its tail is what a progress bar showed last."""

    def __init__(self) -> None:
        self.ended = True
        self.clipped = 0  # lines that were clipped
        self._fed = 0  # bytes
        self._parts: list[bytes] = []
        self._size = 0  # bytes kept in parts
        self._pending = 0  # bytes of the unfinished line, kept or not
        self._head = b""
        self._message = b""  # lines of a message that is not complete

    @property
    def position(self) -> int:
        """Offset in the text behind the last complete line."""
        return self._fed - self._pending - len(self._message)

    def feed(self, block: bytes) -> list[bytes]:
        """The lines that this block completes."""
        self._fed += len(block)
        block = self._with_message(block)
        lines = block.split(b"\n")
        rest = lines.pop()
        if lines:
            lines[0] = self._finish(lines[0])
        if rest:
            self._keep(rest)
        for i, line in enumerate(lines) if len(block) > 2 * CLIP else ():
            if len(line) > 2 * CLIP:
                lines[i] = self._clip(line)
        return lines

    def spans(self, block: bytes) -> list[Span]:
        """The same lines where they lie, not copied; not cut within a message that goes on (CRLF)."""
        self._fed += len(block)
        block = self._with_message(block)
        offset = self._fed - len(block)
        cut = block.rfind(b"\n") + 1
        if not cut:
            if block:
                self._keep(block)
            return []
        spans: list[Span] = []
        start = 0
        if self._parts:
            start = block.find(b"\n") + 1
            line = self._finish(block[:start])
            spans.append(Span(line, 0, len(line), offset + start))
        if block[cut - 2 : cut - 1] == b"\r":
            whole = _whole(block, start, cut)
            if whole > start or cut - start < CLIP:
                self._message = block[whole:]
                return [*spans, Span(block, start, whole, offset + whole)] if whole > start else spans
        if cut < len(block):
            self._keep(block[cut:])
        return [*spans, Span(block, start, cut, offset + cut)] if cut > start else spans

    def end(self) -> list[bytes]:
        """The last lines; `ended` tells whether an LF ends the last of them."""
        lines = self.feed(b"") if self._message else []
        self.ended = not self._parts
        return lines if self.ended else [*lines, self._finish(b"")]

    def _with_message(self, block: bytes) -> bytes:
        if self._message:
            block, self._message = self._message + block, b""
        return block

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        self._pending += len(part)
        if self._size > 4 * CLIP:
            whole = b"".join(self._parts)
            self._head = self._head or whole[:CLIP]
            self._parts = [whole[-CLIP:]]
            self._size = CLIP

    def _finish(self, part: bytes) -> bytes:
        if not self._parts:
            return part
        line = self._clip(b"".join(self._parts) + part)
        self._parts, self._size, self._pending, self._head = [], 0, 0, b""
        return line

    def _clip(self, line: bytes) -> bytes:
        if self._head or len(line) > 2 * CLIP:
            self.clipped += 1
            return (self._head or line[:CLIP]) + line[-CLIP:]
        return line


def _whole(block: bytes, start: int, cut: int) -> int:
    """The last place between `start` and `cut` at which a line ends without CR; `start` where there is none."""
    while cut > start and block[cut - 2 : cut - 1] == b"\r":
        cut = block.rfind(b"\n", start, cut - 1) + 1
    return max(cut, start)


class Text(Protocol):
    """What lines are counted in."""

    rereadable: bool

    def recount(self, start: int, stop: int) -> int:
        """Lines between two offsets."""


class LineCount:
    """Counts physical lines. Where skipped lines can be read again, they are counted only when somebody asks."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._lines = 0
        self._at = 0  # offset up to which lines are counted
        self._to = 0  # offset up to which they were passed

    @property
    def lines(self) -> int:
        """Lines passed so far."""
        if self._text.rereadable and self._to > self._at:
            self._lines += self._text.recount(self._at, self._to)
            self._at = self._to
        return self._lines

    def add(self, lines: int, position: int) -> None:
        """Known lines were passed, up to `position`."""
        self._lines = self.lines + lines
        self._at = self._to = position

    def skip(self, span: Span) -> None:
        """A span was passed without a look at its lines."""
        if not self._text.rereadable:
            self._lines += span.data.count(b"\n", span.start, span.stop)
        elif not span.ended:
            self._lines += 1
        self._to = span.position
