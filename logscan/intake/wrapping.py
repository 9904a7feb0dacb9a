"""Which envelopes a stream is wrapped in: learned from its lines, in any order they nest, never from its name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from logscan.intake.envelopes import STRONG, WEAK, Constant, Envelope
from logscan.intake.framing import Framer, Item, is_record
from logscan.intake.json_envelopes import JsonLines, PrettyJson

_SAMPLE = 32  # lines that are looked at
_RUN = 3  # lines of a kind that make an envelope in mid-stream
_START = 8  # lines of a bare log among which a record is expected
_DEPTH = 6  # envelopes within envelopes
_WAIT = 4  # lines held back while they look like a weak envelope
_GATE = re.compile(
    rb"(?:\[pod/|\d{4}-\d\d-\d\dT\d|[\[,]?\{|\[$|<\d{1,3}>|[A-Z][a-z]{2} (?:[A-Z][a-z]{2} )?[ \d]\d \d\d:|"
    rb"[A-Z][a-z]{2} \d{4}-\d\d-|\[(?:[\w.-]+@)?\d+,\d+\]<std|==> .{1,200} <==$)"
)
_HEAD = re.compile(
    rb"(?:\([^()]*pid=\d+[^()]*\) )*(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[^\s\[\]:]+:\d+\]"
)

Make = Callable[[], Envelope]


class Wrapping:
    """Peels the envelopes of a stream off its lines."""

    def __init__(self, framer: Framer) -> None:
        self.names: list[str] = []
        self._framer = framer
        self._chain: list[Envelope] = []
        self._waiting: list[bytes] = []
        self._waiting_from = 0  # number of the first of them

    @property
    def stateless(self) -> bool:
        """Whether each line can be peeled without those before it."""
        return not self._waiting and all(envelope.stateless for envelope in self._chain)

    def unwrap(self, lines: list[bytes], first: int) -> Iterator[Item]:
        """The payloads of a run of physical lines, the first of which is line `first`."""
        if not self._chain and not self._framer.framed and self._undecided(lines, first):
            return
        if self._waiting:
            first = self._waiting_from
            lines = self._waiting + lines
            self._waiting = []
        gate, tuple_ = _GATE.match, tuple.__new__
        for i, line in enumerate(lines):
            if not self._chain and (gate(line) is None or not self._learn(lines[i : i + _SAMPLE])):
                yield tuple_(Item, (first + i, line, "", ""))
                continue
            yield from self._peel(Item(first + i, line), lines, i)

    def flush(self) -> Iterator[Item]:
        """What is still held at the end of the stream."""
        waiting, self._waiting = self._waiting, []
        for i, line in enumerate(waiting, self._waiting_from):
            yield Item(i, line)
        for n, envelope in enumerate(self._chain):
            for item in envelope.flush():
                yield from self._through(item, n + 1)

    def _undecided(self, lines: list[bytes], first: int) -> bool:
        """Look for envelopes at the start of a stream; true where a few more lines are needed to tell."""
        sample = (self._waiting + lines)[:_SAMPLE]
        if self._learn(sample):
            return False
        if (
            sample
            and len(sample) < _WAIT
            and (sample[0].strip() in (b"[", b"{") or any(make().sniff(sample[-1:]) for make in WEAK))
        ):
            if not self._waiting:
                self._waiting_from = first
            self._waiting += lines
            return True
        return False

    def _peel(self, item: Item, lines: list[bytes], i: int) -> Iterator[Item]:
        outer = self._chain[0].peel(item)
        if outer is None:
            if _GATE.match(item.payload) is None or not self._learn(lines[i : i + _SAMPLE]):
                yield item
                return
            outer = self._chain[0].peel(item)
        if len(self._chain) == 1:
            yield from outer or ()
            return
        for inner in outer or ():
            yield from self._through(inner, 1)

    def _through(self, item: Item, depth: int) -> Iterator[Item]:
        if depth >= len(self._chain):
            yield item
            return
        peeled = self._chain[depth].peel(item)
        for inner in (item,) if peeled is None else peeled:
            yield from self._through(inner, depth + 1)

    def _learn(self, lines: Sequence[bytes]) -> bool:
        """Set the chain from sample lines; false, and nothing changed, where they are not wrapped."""
        start = not self._framer.framed
        sample = [line for line in lines if line.strip()]
        if start and any(map(is_record, sample[:_START])):  # bare: spare the time that the patterns take to compile
            return False
        chain: list[Envelope] = []
        while len(chain) < _DEPTH and sample:
            found = self._outermost(sample, start, deeper=bool(chain))
            if found is None:
                break
            make, envelope = found
            probe = make()
            items = [probe.peel(Item(0, line)) for line in sample]
            inner = [i.payload for got in items for i in got or ()] + [i.payload for i in probe.flush()]
            chain.append(envelope)
            sample = [line for line in inner if line.strip()]
        if not chain:
            return False
        self._chain = chain
        self.names += [e.name for e in chain if e.name not in self.names]
        return True

    def _outermost(self, sample: list[bytes], start: bool, deeper: bool) -> tuple[Make, Envelope] | None:
        makes: list[Make] = [JsonLines, PrettyJson, *STRONG]
        for make in makes:
            envelope = make()
            if envelope.sniff(sample if start else sample[:8]) >= _RUN or (start and envelope.sniff(sample[:1])):
                return make, make()
        if not start and not deeper:
            return None
        for make in WEAK:
            if self._proven(make(), sample):
                return make, make()
        prefix = _constant(sample)
        if prefix:
            self._framer.learn(prefix)
            return (lambda: Constant(prefix)), Constant(prefix)
        return None

    def _proven(self, envelope: Envelope, sample: list[bytes]) -> bool:
        """A weak envelope: nearly all lines fit, and a payload frames while its line does not (or there are many)."""
        fitting = [line for line in sample if envelope.sniff((line,))]
        if len(fitting) < _RUN or len(fitting) < 0.8 * len(sample):
            return False
        inside = [item.payload for line in fitting for item in envelope.peel(Item(0, line)) or ()]
        return len(fitting) >= 8 or any(map(is_record, inside))


def _constant(sample: list[bytes]) -> bytes:
    """The text that stands before the engine's records in the sample, where it is always the same."""
    before = [line[: m.start()] for line in sample if (m := _HEAD.search(line)) and m.start() < 80]
    (prefix, times), *_ = Counter(before).most_common(1) or [(b"", 0)]
    return prefix if times >= _RUN and times == len(before) else b""
