"""A log as the user gave it: opened, unwrapped, and read as records."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from logscan.intake.framing import Framer
from logscan.intake.lines import LineCount, Span, Splitter
from logscan.intake.reader import Reader
from logscan.intake.wrapping import Wrapping
from logscan.model import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from logscan.intake.scanner import Detector, Late, Skimmer

Line = bytes
_MUCH = 1 << 15  # bytes of a block from which on skimming is worth its detectors
_LONG = 1 << 22  # bytes of a log from which on it is worth automata of its own
_LINES = 64  # of a piece: envelopes are told by the lines that stand together
_CRLF_SAMPLE = 8  # a banner's rows end in CRLF too, six of them


class Source:
    """One log. `bytes`, `lines`, `sha256`, `envelopes` and `notes` are complete when `records()` is exhausted."""

    def __init__(self, path: str) -> None:
        self.name = path
        self._reader = Reader(path)
        self._count = LineCount(self._reader)
        self._splitter = Splitter()
        self._crlf: bool | None = None  # every line ends in CRLF: a terminal's or Windows' doing, no continuation
        self._framer = Framer()
        self._wrapping = Wrapping(self._framer)
        self._skimmer: Skimmer | None = None
        self._late: Callable[[bool], Late | None] | None = None
        self._since = 0  # offset from which on every line was read
        self.skimmed_to = 0  # the last line of which only a part was looked at

    @property
    def bytes(self) -> int:
        """Size of the file as it lies there, or of what came through the pipe."""
        return self._reader.bytes

    @property
    def lines(self) -> int:
        """Physical lines, ended by LF, or by the end of the log."""
        return self._count.lines

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
        more = (
            [f"{clipped} line{'s are' if clipped > 1 else ' is'} longer than a record may be: only both ends are read"]
            if clipped
            else []
        )
        return tuple(self._reader.notes + more)

    def until(self, deadline: float) -> None:
        """End a live stream at this time of `time.monotonic()`, even when it brings nothing."""
        self._reader.deadline = deadline

    def close(self) -> None:
        """Close the file."""
        self._reader.close()

    def skim(self, detector: Detector) -> None:
        """From the next piece on, yield only the records in whose text the detector finds something."""
        from logscan.intake.scanner import Skimmer

        self._skimmer = Skimmer(detector, self._framer, self._wrapping, self._count)

    def skim_late(self, late: Callable[[bool], Late | None]) -> None:
        """Where much is left, yield only what `late` finds (asked then; None: nothing may be left out), until something
        starts again. It is asked again, with True, when the log turns out long.

        May be called while `records()` runs: for the rest of a log whose boot is decided.
        """
        self._late = late

    def hits(self, detector: Detector) -> Iterator[Record]:
        """Only the records in whose text the detector finds something: those that `records()` would yield."""
        self.skim(detector)
        return self.records()

    def records(self) -> Iterator[Record]:
        """The records, in order, each as soon as its line is complete. Raises InputError on what is no log."""
        try:
            for block in self._pieces():
                if self._late is not None and self._skips and (self._skimmer or len(block) >= _MUCH):
                    self._skim(self._late)
                if self._skimmer is not None and self._skips:
                    for span in self._splitter.spans(block):
                        yield from self._span(span)
                elif lines := self._splitter.feed(block):
                    yield from self._records(lines)
            if lines := self._splitter.end():
                if self._skimmer is not None and self._skips:
                    data, ended = b"\n".join([*lines, b""]), self._splitter.ended
                    yield from self._skimmer.span(Span(data, 0, len(data), self._splitter.position, ended))
                else:
                    yield from self._records(lines)
            held = self._framer.records(self._wrapping.flush())
            yield from self._skimmer.all(held) if self._skimmer else held
            yield from self._skimmer.all(self._framer.flush()) if self._skimmer else self._framer.flush()
        finally:
            self.close()

    def _pieces(self) -> Iterator[Line]:
        """The text, in small pieces until it is skimmed: most boots are decided within a fraction of a block."""
        for block in self._reader.text():
            start = 0
            while start < len(block):
                stop = len(block) if self.skimming else _lines_on(block, start)
                yield block[start:stop]
                start = stop

    @property
    def _skips(self) -> bool:
        """Whether lines may be left out: the head of the log is known, and no envelope must see every line."""
        return self._crlf is not None and not self._crlf and self._wrapping.stateless

    def _span(self, span: Span) -> Iterator[Record]:
        if self._skimmer is not None and self._skimmer.restarts(span):
            self.skimmed_to = self._count.lines
            if self._count.lines > self._skimmer.framed_to:
                yield from self._skimmer.all(self._framer.flush())
                self._framer.forget()
            self._skimmer = self._late = None
            self._since = span.position
        if self._skimmer is not None:
            yield from self._skimmer.span(span)
        else:
            yield from self._records(span.data[span.start : span.stop].split(b"\n")[:-1], span.position)

    @property
    def skimming(self) -> bool:
        """Whether lines are left out from here on, where there are many."""
        return self._skimmer is not None or self._late is not None

    @property
    def plodding(self) -> bool:
        """Whether every line is read, and was for so long that a start is over, or was never there."""
        return not self.skimming and self._splitter.position - self._since >= _LONG

    def _skim(self, ask: Callable[[bool], Late | None]) -> None:
        """Begin to skim, or go on with detectors for a long log."""
        long = self._splitter.position >= _LONG
        if self._skimmer is not None and not long:
            return
        late = ask(long)
        if late is None or long:
            self._late = None
        if late is None:
            return
        if self._skimmer is None:
            from logscan.intake.scanner import Skimmer

            self._skimmer = Skimmer(late.detector, self._framer, self._wrapping, self._count, late.starts)
        else:
            self._skimmer.look_for(late)

    def _records(self, lines: list[Line], position: int | None = None) -> Iterator[Record]:
        first = self._count.lines + 1
        self._count.add(len(lines), self._splitter.position if position is None else position)
        items = self._wrapping.unwrap(lines, first)
        if self._crlf is None and items:
            ended = all(item.payload[-1:] == b"\r" for item in items)
            self._crlf = ended if not ended or self._count.lines >= _CRLF_SAMPLE else None
        if self._crlf:
            items = [item._replace(payload=item.payload.removesuffix(b"\r")) for item in items]
        records = self._framer.records(items)
        if self._skimmer is None:
            return records
        self._skimmer.framed_to = self.lines
        return self._skimmer.all(records)


def _lines_on(block: bytes, start: int) -> int:
    """The offset _LINES lines on, or the end of the block."""
    for _ in range(_LINES):
        start = block.find(b"\n", start) + 1
        if not start:
            return len(block)
    return start


def open_source(path: str) -> Source:
    """Open a log file, `-` for stdin; `.gz` and `.zst` are told by content.

    Raises InputError for a missing file or a directory; a binary is told when it is read. An empty log is none.
    """
    return Source(path)
