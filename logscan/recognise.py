"""Records → events: which patterns hit which record. Text only; what a hit means is known with the version.

One automaton finds the literals of the patterns in a record; a regex runs only where a literal of its pattern stands.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

from logscan.intake.scanner import Detector, Late, detector
from logscan.model import Event, Record
from logscan.packs.schema import Head, Pack, Pattern, Site

CLIP = 1 << 16  # bytes of a message that a regex may see; the longest that engines were seen to print has 14 KB
TEXT = 2000  # characters of a line kept as evidence
USER_TIMEOUT = 0.5  # seconds that a user pack's regex may take on one record
USER_TOTAL = 2.0  # seconds of CPU that it may take in a log

START = ("boot.start", "request.args", "boot.engine")  # facts with which a boot begins
_POSTS = frozenset((*START, "boot.ready", "boot.engine_ready", "boot.died", "boot.failed"))  # a boot's course
_STATED = (
    "boot.start",
    "boot.engine",
    "boot.ready",
    "boot.died",
    "boot.failed",
    "request.",
    "linear.",
    "moe.",
    "attention.",
    "kv.",
)
# In any text that looks like a selection, a fallback or a refusal.
SELECTING = (b"sing ", b"elect", b"alling back", b"not supported", b"isabled")
_WORD = re.compile(rb"[0-9A-Za-z]")
Search = Callable[[bytes], "re.Match[bytes] | None"]


class Recogniser:
    """Holds the packs' patterns by literal. Patterns are built, and their regexes compiled, when first needed."""

    def __init__(self, packs: Sequence[Pack]) -> None:
        self._packs = tuple(packs)
        self._home: dict[str, tuple[Pack, int]] = {}
        self._search: dict[str, Search] = {}
        self._of: dict[bytes, list[str]] = {}
        self._spent: dict[str, float] = {}  # seconds that users' patterns took in this log
        self.given_up: dict[str, str] = {}  # those that took too long in it, and the fact that each emits
        for pack in packs:
            for number, head in enumerate(pack.patterns.heads):
                self._home[head.id] = (pack, number)
                for literal in head.literals:
                    self._of.setdefault(literal, []).append(head.id)
        self.detector = detector(self._of)  # of every literal: what it does not find, no pattern owns
        self._found = self.detector.found

    def begin(self) -> None:
        """Another log: what was given up in the one before is tried again."""
        self._spent.clear()
        self.given_up.clear()

    def pattern(self, name: str) -> Pattern:
        """The pattern of an id. Raises KeyError where no pack has it."""
        pack, number = self._home[name]
        return pack.patterns[number]

    def engine(self, pattern: str) -> str:
        """The engine that a pattern's pack is about. Raises KeyError where no pack has the id."""
        return self._home[pattern][0].engine

    def late(self, ready: bool, long: bool) -> Late:
        """What can still tell something of a boot that is over, or ready, and what begins another one.

        Automata of their own pay in a long log only.
        """
        later, starts = self._own if long else self._shared
        return Late(later if ready else self.detector, starts)

    def all(self) -> Late:
        """What any pattern may own, or what looks like a line that one should."""
        return Late(self._coarse, None)

    @cached_property
    def _coarse(self) -> Detector:
        return detector([*self._of, *SELECTING])

    @cached_property
    def _own(self) -> tuple[Detector, Detector]:
        return detector(self._later), detector(self._starting)

    @cached_property
    def _shared(self) -> tuple[Detector, Detector]:
        return self.detector.only(self._later), self.detector.only(self._starting)

    @cached_property
    def _starting(self) -> frozenset[bytes]:
        return self._literals(lambda head: head.emits in START)

    @cached_property
    def _later(self) -> frozenset[bytes]:
        return self._literals(lambda head: head.phase == "any" or head.emits in (*START, "boot.ready"))

    def _literals(self, wanted: Callable[[Head], bool]) -> frozenset[bytes]:
        heads = (head for pack in self._packs for head in pack.patterns.heads)
        return frozenset(literal for head in heads if wanted(head) for literal in head.literals)

    def events(self, record: Record) -> Sequence[Event]:
        """The patterns that hit the record, each once, with the physical line of the hit."""
        text = record.text if len(record.text) <= CLIP else record.text[:CLIP]
        literals = self._found(text)
        return list(self._hits(record, text, literals)) if literals else ()

    def _hits(self, record: Record, text: bytes, literals: Iterable[bytes]) -> Iterator[Event]:
        for name in dict.fromkeys(name for literal in sorted(literals) for name in self._of[literal]):
            pattern = self.pattern(name)
            if record.origin not in pattern.origin:
                continue
            if record.engine and record.engine != self.engine(name):
                continue
            m = self._searcher(pattern)(text)
            if m is not None and _own_words(pattern, record, text, m):
                yield self._event(pattern, record, text, m)

    def _searcher(self, pattern: Pattern) -> Search:
        search = self._search.get(pattern.id)
        if search is None:
            search = self._search[pattern.id] = (
                re.compile(pattern.regex.encode(), re.MULTILINE).search
                if not self._home[pattern.id][0].own
                else self._bounded(pattern)
            )
        return search

    def _bounded(self, pattern: Pattern) -> Search:
        """The search of a user's pattern, which is given up for the rest of the log where it takes too long."""
        search = bounded_search(pattern)

        def searched(text: bytes) -> re.Match[bytes] | None:
            if pattern.id in self.given_up:
                return None
            began = time.process_time()
            try:
                return search(text)
            except TimeoutError:
                self._spent[pattern.id] = USER_TOTAL
                return None
            finally:
                spent = self._spent[pattern.id] = self._spent.get(pattern.id, 0) + time.process_time() - began
                if spent >= USER_TOTAL:
                    self.given_up[pattern.id] = pattern.emits

        return searched

    def _event(self, pattern: Pattern, record: Record, text: bytes, m: re.Match[bytes]) -> Event:
        start = text.rfind(b"\n", 0, m.start()) + 1
        end = text.find(b"\n", start)
        row = text[start : end if end >= 0 else len(text)]
        fields = {k: v.decode("utf-8", "replace") for k, v in m.groupdict().items() if v is not None}
        line = record.line + text.count(b"\n", 0, start)
        return Event(line, pattern.id, fields, record, row.decode("utf-8", "replace")[:TEXT])


def _own_words(pattern: Pattern, record: Record, text: bytes, m: re.Match[bytes]) -> bool:
    """Whether a record says a text itself, rather than quotes it: errors, prompts and chat templates are logged too.

    What an engine states is the first row of its message with a word in it (block glyphs frame vLLM's banner); only
    what may stand in a traceback comes later. Where a boot begins, is up and ends is said by known files.
    """
    if record.origin != "engine":
        return True
    if "traceback" in pattern.origin:
        return True
    if record.file and pattern.emits in _POSTS and not any(_printed(site, record) for site in pattern.sites):
        return False
    if not pattern.emits.startswith(_STATED):
        return True
    return _WORD.search(text, 0, text.rfind(b"\n", 0, m.start()) + 1) is None


def _printed(site: Site, record: Record) -> bool:
    at_home = not site.source or file_of(site) == basename(record.file)
    return at_home and (not site.level or site.level == record.level)


def basename(path: str) -> str:
    """`core.py` of a printed file: `v1/engine/core.py`, `v1/.../core.py`."""
    return path.rsplit("/", 1)[-1]


def file_of(site: Site) -> str:
    """The name of a site's source file, "" where no source is known."""
    return basename(site.source.split(":", 1)[0])


def bounded_search(pattern: Pattern) -> Search:
    """A search that raises TimeoutError after `USER_TIMEOUT` seconds: a user's pack is not linted by us."""
    import regex

    compiled: Any = regex.compile(pattern.regex.encode(), regex.MULTILINE)
    return partial(compiled.search, timeout=USER_TIMEOUT)


def value_of(pattern: Pattern, fields: Mapping[str, str], text: str) -> str:
    """The value of the fact that a hit emits: the named group, the filled template, the first group, else the text."""
    want = pattern.value
    if want in fields:
        return fields[want]
    if "{" in want:
        return re.sub(r"\{(\w+)\}", lambda m: fields.get(m[1], ""), want)
    if want:
        return want
    return next(iter(fields.values()), text)
