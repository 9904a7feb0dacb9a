"""Skimming a long log: one automaton over whole blocks, records only where it hits.

Hyperscan finds hundreds of literals at several times the speed of grep; without it, one `re` over a trie of the
literals finds the very same places. The compiled database is kept between runs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple, Protocol

from logscan import cachefile
from logscan.intake.framing import Framer, Item, strip_escapes
from logscan.intake.lines import LineCount, Span
from logscan.intake.wrapping import Wrapping
from logscan.model import Record

_WINDOW = 8  # bytes that hyperscan's matcher looks at
_COMMON = b" etaoinsrlcdump0123456789:/.,()[]-\"'TPOSIN"  # bytes of the lines below
# What engines print for every request and every few seconds: what long logs are made of.
_STEADY = (
    b'INFO:      - "POST /v1/chat/completions HTTP/1.1" 200 OK "GET /health /metrics /v1/models (APIServer pid= '
    b"(EngineCore pid= Engine 000: Avg prompt throughput: tokens/s, Avg generation throughput: tokens/s, Running: reqs"
    b", Swapped: reqs, Pending: reqs, Waiting: reqs, GPU KV cache usage: %, CPU KV cache usage: %, Prefix cache hit "
    b"Received request chatcmpl- params: SamplingParams( Added request Finished request Aborted request "
    b"Decode batch, #running-req: #full token: #token: token usage: cuda graph: True, gen throughput (token/s): "
    b"#queue-req: Prefill batch, #new-seq: #new-token: #cached-token: input throughput (token/s): "
)
_WINDOWS = b"1"  # of the rule that cuts windows out of literals; change it with the rule
_LOOK_BACK = 64  # lines before a hit that may say what it is (a traceback's head)
_CONTEXT = 1 << 14  # bytes of the block before that are kept for it


class Detector(Protocol):
    """Finds a set of literals in bytes."""

    def ends(self, data: bytes) -> list[int]:
        """Ascending offsets behind (parts of) occurrences: one at least in each line that holds a literal."""

    def matches(self, text: bytes) -> bool:
        """Whether a literal stands in `text`."""

    def found(self, text: bytes) -> Collection[bytes]:
        """The literals that stand in `text`."""

    def only(self, literals: Collection[bytes]) -> Detector:
        """The same automaton for some of its literals: quicker to have than one of their own."""


class Late(NamedTuple):
    """What is looked for once a boot is ready, and what would begin another one."""

    detector: Detector
    starts: Detector | None


class HyperscanDetector:
    """Hyperscan's literal matcher, on the rarest eight bytes of each literal. ImportError where it is not installed."""

    def __init__(self, literals: Iterable[bytes]) -> None:
        import hyperscan

        wanted = sorted(set(literals))
        key = b"\0".join([_WINDOWS, str(getattr(hyperscan, "__version__", "")).encode(), *wanted])
        name = f"literals-{cachefile.digest(key)}"
        kept = cachefile.load(name, key)
        try:
            self._of, dumped = kept
            self._database: Any = hyperscan.loadb(dumped, hyperscan.HS_MODE_BLOCK)
            self._database.scratch = hyperscan.Scratch(self._database)
        except (TypeError, ValueError, hyperscan.HyperscanError):  # none, or another machine's
            self._of, self._database = _compiled(wanted)
            cachefile.store(name, key, (self._of, hyperscan.dumpb(self._database)))
        self._found: list[tuple[int, int]] = []
        append = self._found.append
        self._hit = lambda which, _from, to, _flags, _context: append((to, which))

    def only(self, literals: Collection[bytes]) -> Detector:
        some = copy(self)
        some._of = [[known for known in group if known[0] in literals] for group in self._of]
        return some

    def _scan(self, data: bytes) -> list[tuple[int, int]]:
        self._found.clear()
        self._database.scan(data, match_event_handler=self._hit)
        return self._found

    def ends(self, data: bytes) -> list[int]:
        return [end for end, i in self._scan(data) if any(_stands(data, end, *known) for known in self._of[i])]

    def matches(self, text: bytes) -> bool:
        return bool(self.ends(text))

    def found(self, text: bytes) -> Collection[bytes]:
        hits = self._scan(text)
        return {known[0] for end, i in hits for known in self._of[i] if _stands(text, end, *known)} if hits else ()


def _compiled(literals: Sequence[bytes]) -> tuple[list[list[tuple[bytes, int]]], Any]:
    """For each window the literals it is cut from and where it ends in them; and the windows' database."""
    import hyperscan

    windows: dict[bytes, list[tuple[bytes, int]]] = {}
    for literal in literals:
        window = _rarest(literal)
        windows.setdefault(window, []).append((literal, literal.index(window) + len(window)))
    ids = list(range(len(windows)))
    database: Any = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    # Escaped, not `literal=True`: that takes C strings, which end at a NUL.
    expressions = [b"".join(b"\\x%02x" % byte for byte in window) for window in windows]
    database.compile(expressions=expressions, ids=ids, elements=len(ids))
    return list(windows.values()), database


class PythonDetector:
    """The same with the standard library: a trie of the literals as one expression."""

    def __init__(self, literals: Iterable[bytes]) -> None:
        self._literals = sorted(set(literals))
        self._re = re.compile(_trie(self._literals))

    def ends(self, data: bytes) -> list[int]:
        return [m.end() for m in self._re.finditer(data)]

    def only(self, literals: Collection[bytes]) -> Detector:
        return PythonDetector(literal for literal in self._literals if literal in literals)

    def matches(self, text: bytes) -> bool:
        return self._re.search(text) is not None

    def found(self, text: bytes) -> Collection[bytes]:
        return [lit for lit in self._literals if lit in text] if self._re.search(text) else ()


def detector(literals: Iterable[bytes]) -> Detector:
    """The fastest detector that is installed. Raises ValueError where a literal holds LF, or there is none."""
    literals = [literal for literal in literals if literal]
    if not literals or any(b"\n" in literal for literal in literals):
        raise ValueError("a detector needs literals that are not empty and hold no line feed")
    try:
        return HyperscanDetector(literals)
    except ImportError:
        return PythonDetector(literals)


def _stands(data: bytes, end: int, literal: bytes, within: int) -> bool:
    """Whether `literal` stands in `data` where its window, which ends at `within` in it, ends at `end`."""
    return end >= within and data.startswith(literal, end - within)


def _rarest(literal: bytes) -> bytes:
    """The eight bytes of a literal that other text is least likely to hold, above all in the last four of them."""
    starts = range(max(len(literal) - _WINDOW, 0) + 1)
    windows = (literal[i : i + _WINDOW] for i in starts)
    return max(windows, key=lambda w: (w not in _STEADY, len((w + 2 * w[4:]).translate(None, _COMMON))))


def _trie(words: list[bytes]) -> bytes:
    """An expression for any of the sorted words, common prefixes shared; one that starts with another adds nothing."""
    if words[0] == b"":
        return b""
    branches: list[bytes] = []
    start = 0
    for i in range(1, len(words) + 1):
        if i == len(words) or words[i][0] != words[start][0]:
            group = words[start:i]
            shared = _shared(group[0], group[-1])
            branches.append(re.escape(group[0][:shared]) + _trie([word[shared:] for word in group]))
            start = i
    return branches[0] if len(branches) == 1 else b"(?:" + b"|".join(branches) + b")"


def _shared(a: bytes, b: bytes) -> int:
    """Length of the common prefix."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


class Skimmer:
    """Finds the records of a stream in which the detector finds something, span by span."""

    def __init__(
        self, detector: Detector, framer: Framer, wrapping: Wrapping, count: LineCount, starts: Detector | None = None
    ) -> None:
        self.look_for(Late(detector, starts))
        self._framer = framer
        self._wrapping = wrapping
        self._count = count
        self._context = b""  # complete lines before the span
        self.framed_to = count.lines  # the framer has seen every line up to this one

    def look_for(self, late: Late) -> None:
        """From the next span on, find these."""
        self._starts = late.starts
        self._ends = late.detector.ends
        self._matches = late.detector.matches

    def restarts(self, span: Span) -> bool:
        """Whether something may start within the span, from which on every line counts again."""
        if self._starts is None:
            return False
        return bool(self._starts.ends(strip_escapes(span.data[span.start : span.stop])))

    def all(self, records: Iterable[Record]) -> Iterator[Record]:
        """Those of a run of records that hold a literal."""
        return (record for record in records if self._matches(record.text))

    def span(self, span: Span) -> Iterator[Record]:
        """The records of complete lines that hold a literal."""
        data, begin, limit, position, _ = span
        if b"\x1b" in data:
            data = strip_escapes(data[begin:limit])
            begin, limit = 0, len(data)
        ends = [end for end in self._ends(data) if begin < end < limit]
        if ends or self._framer.holding:
            line = self._count.lines + 1
            yield from self._records(data, begin, limit, ends, line)
            self._count.add(data.count(b"\n", begin, limit), position)
        else:
            self._count.skip(span)
        if limit - begin >= _CONTEXT:
            self._context = data[limit - _CONTEXT : limit].partition(b"\n")[2]
        else:
            self._context = (self._context + data[begin:limit])[-2 * _CONTEXT :]

    def _records(self, data: bytes, begin: int, limit: int, ends: list[int], line: int) -> Iterator[Record]:
        """`line` is the number of the line that starts at `begin`."""
        at = done = begin  # `at` is where line `line` starts; before `done` all is dealt with
        if self._framer.holding:
            done = _message(data, data.find(b"\n", begin), limit) + 1
            yield from self._frame(data[begin : done - 1].split(b"\n"), line + data.count(b"\n", begin, done - 1))
        for end in ends:
            if end <= done:
                continue
            start = max(data.rfind(b"\n", begin, end) + 1, begin)
            line += data.count(b"\n", at, start)
            at = start
            stop = _message(data, data.find(b"\n", end), limit)
            before = data[done:start] if done > begin else self._context + data[begin:start]
            lines = self._before(before, data[start:stop].split(b"\n"), line)
            done = stop + 1
            yield from self._frame(lines, line + data.count(b"\n", start, stop))

    def _before(self, before: bytes, lines: list[bytes], line: int) -> list[bytes]:
        """Add the unseen lines before line `line` that tell what it is: back to a record that is complete."""
        if before[-2:] != b"\r\n" and self._framer.is_head(lines[0]):
            return lines
        pieces = before.split(b"\n")[:-1]
        unseen = max(len(pieces) - (line - self.framed_to - 1), 0)  # index of the first line not framed yet
        near = len(pieces) - _LOOK_BACK
        i = len(pieces)
        while i > unseen and (i > near or pieces[i - 1][-1:] == b"\r"):
            i -= 1
            if self._framer.is_head(pieces[i]) and not (i and pieces[i - 1][-1:] == b"\r"):
                break
        return pieces[i:] + lines

    def _frame(self, lines: list[bytes], last: int) -> Iterator[Record]:
        """The records among these lines, the last of which is line `last`, that hold a literal."""
        first = last - len(lines) + 1
        if first > self.framed_to + 1:
            yield from self.all(self._framer.flush())
            self._framer.forget()
        self.framed_to = last
        items: Iterable[Item] = self._wrapping.unwrap(lines, first)
        yield from self.all(self._framer.records(items))


def _message(data: bytes, stop: int, limit: int) -> int:
    """The end of the message whose line ends at `stop`: lines that end in CR go on in the next one."""
    while data[stop - 1 : stop] == b"\r" and stop + 1 < limit:
        stop = data.find(b"\n", stop + 1)
    return stop
