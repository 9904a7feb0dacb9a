"""Records → events: which patterns hit which record. Text only; what a hit means is known with the version.

Most patterns are anchored at the message start, so a record is looked up by its first bytes; the few others share one
alternation of their literals. A pattern's own regex runs only where one of its literals stands.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from logscan.model import Event, Record
from logscan.packs.schema import Pack, Pattern

CLIP = 1 << 18  # bytes of a message that a regex may see
TEXT = 2000  # characters of a line kept as evidence
USER_TIMEOUT = 0.5  # seconds that a user pack's regex may take on one record
_KEY = 5
_ANCHORED = re.compile(r"\^((?:[A-Za-z0-9 _'\"/:,=<>%-]|\\[-.()\[\]{}+*?|^$ ])+)")
_REPEAT = re.compile(r"[?*+{|]")

Search = Callable[[bytes], "re.Match[bytes] | None"]


class Recogniser:
    """Holds the packs' patterns, indexed. Regexes are compiled when first needed."""

    def __init__(self, packs: Sequence[Pack], trusted: Iterable[str] = ("vllm", "trtllm", "sglang")) -> None:
        trusted = frozenset(trusted)
        self.patterns: dict[str, Pattern] = {}
        self.engines: dict[str, str] = {}
        self._trusted: set[str] = set()
        self._search: dict[str, Search] = {}
        self._anchored: dict[bytes, list[tuple[Pattern, tuple[bytes, ...]]]] = {}
        self._floating: list[tuple[Pattern, tuple[bytes, ...]]] = []
        for pack in packs:
            for pattern in pack.patterns:
                self._add(pack, pattern, pack.id in trusted)
        literals = sorted({lit for _, lits in self._floating for lit in lits}, key=len, reverse=True)
        self._any_floating: Search = (
            re.compile(b"|".join(map(re.escape, literals))).search if literals else lambda _: None
        )

    def _add(self, pack: Pack, pattern: Pattern, trusted: bool) -> None:
        self.patterns[pattern.id] = pattern
        self.engines[pattern.id] = pack.engine
        if trusted:
            self._trusted.add(pattern.id)
        entry = (pattern, tuple(lit.encode() for lit in pattern.literals))
        prefix = anchored_prefix(pattern.regex)
        if len(prefix) >= _KEY:
            self._anchored.setdefault(prefix[:_KEY], []).append(entry)
        else:
            self._floating.append(entry)

    def events(self, record: Record) -> Iterator[Event]:
        """The patterns that hit the record, each once, with the physical line of the hit."""
        text = record.text if len(record.text) <= CLIP else record.text[:CLIP]
        for pattern, literals in self._candidates(text):
            if record.origin not in pattern.origin:
                continue
            if record.engine and record.engine != self.engines[pattern.id]:
                continue
            if literals and not any(lit in text for lit in literals):
                continue
            m = self._searcher(pattern)(text)
            if m is not None:
                yield self._event(pattern, record, text, m)

    def _candidates(self, text: bytes) -> list[tuple[Pattern, tuple[bytes, ...]]]:
        found = list(self._anchored.get(text[:_KEY], ()))
        if b"\n" in text:
            for row in text.split(b"\n")[1:]:
                found += [e for e in self._anchored.get(row[:_KEY], ()) if e not in found]
        if self._any_floating(text):
            found += self._floating
        return found

    def _searcher(self, pattern: Pattern) -> Search:
        search = self._search.get(pattern.id)
        if search is None:
            search = self._search[pattern.id] = (
                re.compile(pattern.regex.encode(), re.MULTILINE).search
                if pattern.id in self._trusted
                else _bounded_search(pattern)
            )
        return search

    def _event(self, pattern: Pattern, record: Record, text: bytes, m: re.Match[bytes]) -> Event:
        start = text.rfind(b"\n", 0, m.start()) + 1
        end = text.find(b"\n", start)
        row = text[start : end if end >= 0 else len(text)]
        fields = {k: v.decode("utf-8", "replace") for k, v in m.groupdict().items() if v is not None}
        line = record.line + text.count(b"\n", 0, start)
        return Event(line, pattern.id, fields, record, row.decode("utf-8", "replace")[:TEXT])


def anchored_prefix(pattern: str) -> bytes:
    """The literal bytes that every match of an anchored regex begins with; empty where there are none."""
    m = _ANCHORED.match(pattern)
    if m is None or _has_top_level_bar(pattern):
        return b""
    literal = m[1]
    if _REPEAT.match(pattern, m.end()) and not literal.endswith("\\|"):
        literal = literal[:-2] if len(literal) > 1 and literal[-2] == "\\" else literal[:-1]
    return re.sub(r"\\(.)", r"\1", literal).encode()


def _has_top_level_bar(pattern: str) -> bool:
    depth, i = 0, 0
    while i < len(pattern):
        c = pattern[i]
        if c == "\\":
            i += 1
        elif c == "[":
            i = pattern.find("]", i + 2)
            if i < 0:
                return False
        elif c in "()":
            depth += 1 if c == "(" else -1
        elif c == "|" and depth == 0:
            return True
        i += 1
    return False


def _bounded_search(pattern: Pattern) -> Search:
    import regex  # a user's pack is not linted by us: its regex gets a time limit

    compiled: Any = regex.compile(pattern.regex.encode(), regex.MULTILINE)

    def search(text: bytes) -> re.Match[bytes] | None:
        try:
            m: re.Match[bytes] | None = compiled.search(text, timeout=USER_TIMEOUT)
        except TimeoutError:
            return None
        return m

    return search


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
