"""A log as the user gave it: opened, unwrapped, and read as records."""

from __future__ import annotations

from collections.abc import Iterator

from logscan.intake.framing import Framer
from logscan.intake.lines import Splitter
from logscan.intake.reader import Reader
from logscan.intake.wrapping import Wrapping
from logscan.model import Record

Line = bytes
_CRLF_SAMPLE = 8  # a banner's rows end in CRLF too, six of them


class Source:
    """One log. `bytes`, `lines`, `sha256`, `envelopes` and `notes` are complete when `records()` is exhausted."""

    def __init__(self, path: str) -> None:
        self.name = path
        self.lines = 0
        self._reader = Reader(path)
        self._splitter = Splitter()
        self._crlf: bool | None = None  # every line ends in CRLF: a terminal's or Windows' doing, no continuation
        self._framer = Framer()
        self._wrapping = Wrapping(self._framer)

    @property
    def bytes(self) -> int:
        """Size of the file as it lies there, or of what came through the pipe."""
        return self._reader.bytes

    @property
    def sha256(self) -> str:
        """Of the same bytes."""
        return self._reader.sha256

    @property
    def live(self) -> bool:
        """Whether more may come at any time: a pipe, a terminal."""
        return self._reader.live

    @property
    def envelopes(self) -> tuple[str, ...]:
        """What was peeled off the lines, outermost first."""
        outer = ["crlf"] if self._crlf else []
        return tuple(outer + self._wrapping.names + (["ray"] if self._framer.ray else []))

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader should know: truncated, clipped, damaged."""
        clipped = self._splitter.clipped
        more = [f"{clipped} lines are longer than a record may be: only both ends of them are read"] if clipped else []
        return tuple(self._reader.notes + more)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def records(self) -> Iterator[Record]:
        """The records, in order, each as soon as its line is complete. Raises InputError on what is no log."""
        try:
            for block in self._reader.text():
                lines = self._splitter.feed(block)
                if lines:
                    yield from self._records(lines)
            yield from self._records(self._splitter.end())
            yield from self._framer.records(self._wrapping.flush(self.lines))
            yield from self._framer.flush()
        finally:
            self.close()

    def _records(self, lines: list[Line]) -> Iterator[Record]:
        first = self.lines + 1
        self.lines += len(lines)
        if self._crlf is None and len(lines) >= _CRLF_SAMPLE:
            self._crlf = all(line[-1:] == b"\r" for line in lines)
        if self._crlf:
            lines = [line.removesuffix(b"\r") for line in lines]
        return self._framer.records(self._wrapping.unwrap(lines, first))


def open_source(path: str) -> Source:
    """Open a log file, `-` for stdin; `.gz` and `.zst` are told by content.

    Raises InputError for a missing file or a directory; a binary is told when it is read. An empty log is none.
    """
    return Source(path)
