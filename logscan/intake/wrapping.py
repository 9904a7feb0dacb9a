"""Which envelopes a stream is wrapped in: learned from its lines, in any order they nest, never from its name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from logscan.intake.envelopes import STRONG, WEAK, Constant, Envelope
from logscan.intake.framing import Framer, Item, is_record, strip_escapes
from logscan.intake.terminal import HardWrap, width_of

_SAMPLE = 32  # lines that are looked at
_PREFIX = 800  # bytes of a line in which it is sought
_LONG = 512  # lines in which a constant prefix is sought
_RUN = 3  # lines of a kind that make an envelope in mid-stream
_START = 8  # lines of a bare log among which a record is expected
_DEPTH = 6  # envelopes within envelopes
_KINDS = 4  # envelopes side by side
_WAIT = 4  # lines held back while they look like a weak envelope
_MANY = 8  # lines that prove a weak envelope without a record within
_GATE = re.compile(
    rb"(?:\[pod/|\d{4}-\d\d-\d\dT\d|[\[,]?\{|\[$|<\d{1,3}>|[A-Z][a-z]{2} (?:[A-Z][a-z]{2} )?[ \d]\d \d\d:|"
    rb"[A-Z][a-z]{2} \d{4}-\d\d-|\[(?:[\w.-]+@)?\d+,\d+\]<std|==> .{1,200} <==\r?$)"
)
_HEAD = (
    rb"(?:\([^()]{0,80}pid=\d+[^()]{0,80}\) ){0,6}(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d "
    rb"\[?[^\s\[\]:]{1,200}:\d+\]|\[TensorRT-LLM\]\[[A-Z]+\]|\[\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d\] \[TRT|"
    rb"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[\d.]{0,8}(?: [A-Z_]+\d+)*\] |"
    rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\s\]:]{1,200}:\d+\]"
)

_LAST_WORDS = (b"Traceback (most recent call last)", b"Fatal Python error", b"*** SIG", b"terminate called", b"!!!!!!!")

Make = Callable[[], Envelope]


class Wrapping:
    """One layer of a stream: the envelopes around its lines, once they are known, and the layer within."""

    def __init__(self, framer: Framer, depth: int = 0) -> None:
        self._framer = framer
        self._depth = depth
        self._envelopes: list[Envelope] = []
        self._within: Wrapping | None = None
        self._waiting: list[Item] = []

    @property
    def names(self) -> list[str]:
        """Of the envelopes, outermost first."""
        within = self._within.names if self._within else []
        return list(dict.fromkeys([envelope.name for envelope in self._envelopes] + within))

    @property
    def stateless(self) -> bool:
        """Whether each line can be peeled without those before it."""
        within = self._within is None or self._within.stateless
        return not self._waiting and within and all(envelope.stateless for envelope in self._envelopes)

    def unwrap(self, lines: Iterable[bytes], first: int) -> list[Item]:
        """The payloads of a run of physical lines, the first of which is line `first`."""
        new = tuple.__new__
        return self.feed([new(Item, (n, line, "", "")) for n, line in enumerate(lines, first)])

    def feed(self, items: list[Item]) -> list[Item]:
        """The payloads of these items, or of those before that had to wait for them."""
        if self._envelopes:
            return self._peeled(items)
        if self._depth >= _DEPTH:
            return items
        if self._waiting:
            items, self._waiting = self._waiting + items, []
        if not self._framer.framed and items:
            if self._learn(items, start=True):
                return self._peeled(items)
            if self._undecided(items):
                self._waiting = items
                return []
        gate = _GATE.match
        for i, item in enumerate(items):
            if gate(item[1]) is not None and self._learn(items[i : i + _SAMPLE]):
                return items[:i] + self._peeled(items[i:])
        return items

    def flush(self) -> list[Item]:
        """What is still held at the end of the stream."""
        waiting, self._waiting = self._waiting, []
        if self._within is None:
            return waiting
        held = [item for envelope in self._envelopes for item in envelope.flush()]
        return waiting + self._within.feed(held) + self._within.flush()

    def _peeled(self, items: list[Item]) -> list[Item]:
        within = self._within
        assert within is not None
        out: list[Item] = []
        run: list[Item] = []
        for i, item in enumerate(items):
            inner = self._inside(item)
            if inner is None and _GATE.match(item.payload) and self._learn(items[i : i + _SAMPLE]):
                inner = self._inside(item)
            if inner is not None:
                run += inner
                continue
            if run:
                out += within.feed(run)
                run = []
            out.append(item)
        return out + within.feed(run) if run else out

    def _inside(self, item: Item) -> Sequence[Item] | None:
        for envelope in self._envelopes:
            inner = envelope.peel(item)
            if inner is not None:
                return inner
        return None

    def _undecided(self, items: list[Item]) -> bool:
        """Whether a few more lines are needed to tell a weak envelope."""
        if len(items) >= _WAIT or is_record(items[-1].payload):
            return False
        return items[0].payload.strip() in (b"[", b"{") or any(make().sniff([items[-1].payload]) for make in WEAK)

    def _learn(self, items: Sequence[Item], start: bool = False) -> bool:
        """Add the envelope of sample lines; false, and nothing changed, where they are in none that is new."""
        sample = [item.payload for item in items[:_SAMPLE] if item.payload.strip()]
        if not sample or len(self._envelopes) >= _KINDS:
            return False
        make = self._rows(items) if start else None
        if make is None and start and not _GATE.match(sample[0]) and any(map(is_record, sample[:_START])):
            return False  # bare: spare the time that the envelopes' patterns take to compile
        make = make or _strong(sample, start) or (self._weak(items, sample) if start else None)
        if make is None:
            return False
        self._envelopes.append(make())
        self._within = self._within or Wrapping(self._framer, self._depth + 1)
        return True

    def _rows(self, items: Sequence[Item]) -> Make | None:
        """A terminal's rows: they hold every other envelope, and none holds them."""
        if self._depth or self._envelopes:
            return None
        width = width_of([item.payload for item in items[:_LONG]], _is_head)
        return None if width is None else lambda: HardWrap(width, _is_head)

    def _weak(self, items: Sequence[Item], sample: list[bytes]) -> Make | None:
        for make in WEAK:
            if _proven(make(), sample):
                return make
        lines = [strip_escapes(item.payload[:_PREFIX]) for item in items[:_LONG]]
        prefix = _constant(lines) or _common(lines)
        if not prefix:
            return None
        self._framer.learn(prefix)
        return lambda: Constant(prefix)


def _is_head(row: bytes) -> bool:
    """Whether a terminal's row begins a line: an engine's record, last words, or an envelope of other than JSON."""
    if row.startswith(_LAST_WORDS):
        return True
    return is_record(row) or (row[:1] not in b"{[, " and _GATE.match(row) is not None) or row.startswith(b"[pod/")


def _strong(sample: list[bytes], start: bool) -> Make | None:
    """The envelope of the first line: one line proves it at the start of a stream, three of eight later on. At the
    start also one of later lines, where none is around the first."""
    from logscan.intake.json_envelopes import JsonLines, PrettyJson  # a bare log needs neither

    makes: list[Make] = [JsonLines, PrettyJson, *STRONG]
    hits = [(make, envelope.sniff(sample[:1]), envelope) for make in makes for envelope in (make(),)]
    for make, first, envelope in hits:
        if first and (start or envelope.sniff(sample[:8]) >= _RUN):
            return make
    return next((make for make, _, envelope in hits if start and envelope.sniff(sample) >= _RUN), None)


def _proven(envelope: Envelope, sample: list[bytes]) -> bool:
    """A weak envelope: nearly all lines fit, and a payload is a record while its line is not (or there are many)."""
    fitting = [line for line in sample if envelope.sniff((line,))]
    if len(fitting) < _RUN or len(fitting) < 0.8 * len(sample):
        return False
    inside = [item.payload for line in fitting for item in envelope.peel(Item(0, line)) or ()]
    return len(fitting) >= _MANY or any(is_record(line) or _GATE.match(line) for line in inside)


def _constant(lines: list[bytes]) -> bytes:
    """The text that stands before the engine's records in these lines, where it is nearly always the same."""
    head = re.compile(_HEAD)
    before = [line[: m.start()] for line in lines if (m := head.search(line)) and m.start() < 80]
    before = [text for text in before if b"pid=" not in text]  # a process' name, not a prefix
    (prefix, times), *_ = Counter(before).most_common(1) or [(b"", 0)]
    return prefix if times >= _RUN and times >= 0.8 * len(before) else b""


def _common(lines: list[bytes]) -> bytes:
    """The label before all of these lines, where one of them holds nothing else, or a line of an engine's behind it.

    For what holds no three records: a report, the last words of a crash.
    """
    first, last = min(lines), max(lines)
    shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    m = re.match(rb".{2,}[:|\])>] ", first[:shared] if len(first) > shared else first + b" ", re.S)
    if len(lines) < _RUN or m is None or b"pid=" in m[0] or _is_own(m[0]):
        return b""
    label = m[0]
    within = [line[len(label) :] for line in lines]
    engine = re.compile(rb".{0,80}?(?:" + _HEAD + rb"|\[TensorRT-LLM\])", re.S)
    return label if not all(map(bytes.strip, within)) or any(map(engine.match, within)) else b""


def _is_own(label: bytes) -> bool:
    """Whether a text is the head of a record, of any format that is known, and no wrapper's."""
    record = Framer().frame(0, label + b"x").record
    return record.text != label + b"x" or bool(record.engine or record.process or record.level)
