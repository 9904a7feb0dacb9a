"""Blocks → physical lines. Lines end at LF only; an endless line is clipped, never kept."""

from __future__ import annotations

CLIP = 1 << 17  # bytes kept of either end of a line


class Splitter:
    """Splits blocks at LF and carries the unfinished line. Of a line longer than 2 × CLIP both ends are kept:
    its head names the speaker, its tail is what a progress bar showed last."""

    def __init__(self) -> None:
        self.clipped = 0  # lines that were clipped
        self._parts: list[bytes] = []
        self._size = 0
        self._head = b""
        self._message = b""  # lines of a message that is not complete

    def feed(self, block: bytes) -> list[bytes]:
        """The lines that this block completes."""
        lines = block.split(b"\n")
        rest = lines.pop()
        if lines:
            lines[0] = self._finish(lines[0])
        if rest:
            self._keep(rest)
        for i, line in enumerate(lines) if len(block) > 2 * CLIP else ():
            if len(line) > 2 * CLIP:
                self.clipped += 1
                lines[i] = line[:CLIP] + line[-CLIP:]
        return lines

    def block(self, block: bytes) -> bytes:
        """The same lines as one run of bytes, each ended by LF; not cut within a message that goes on (CRLF)."""
        if self._message:
            block, self._message = self._message + block, b""
        cut = block.rfind(b"\n") + 1
        if not cut:
            self._keep(block)
            return b""
        if block[cut - 2 : cut - 1] == b"\r":
            cut = _whole(block, cut)
            if not cut and len(block) < CLIP:
                self._message = block
                return b""
            cut = cut or block.rfind(b"\n") + 1
        first = b""
        start = 0
        if self._parts:
            start = block.find(b"\n")
            first = self._finish(block[:start])
        if cut < len(block):
            self._keep(block[cut:])
        return first + block[start:cut]

    def end(self) -> list[bytes]:
        """The last line, where no LF ends it."""
        block, self._message = self._message, b""
        lines = self.feed(block) if block else []
        return lines + ([self._finish(b"")] if self._parts else [])

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)
        if self._size > 4 * CLIP:
            whole = b"".join(self._parts)
            self._head = self._head or whole[:CLIP]
            self._parts = [whole[-CLIP:]]
            self._size = CLIP

    def _finish(self, part: bytes) -> bytes:
        if not self._parts:
            return part
        line = b"".join(self._parts) + part
        if self._head:
            line = self._head + line[-CLIP:]
            self.clipped += 1
        elif len(line) > 2 * CLIP:
            line = line[:CLIP] + line[-CLIP:]
            self.clipped += 1
        self._parts, self._size, self._head = [], 0, b""
        return line


def _whole(block: bytes, cut: int) -> int:
    """The last place before `cut` at which a line ends without CR; 0 where there is none."""
    while cut > 0 and block[cut - 2 : cut - 1] == b"\r":
        cut = block.rfind(b"\n", 0, cut - 1) + 1
    return cut
