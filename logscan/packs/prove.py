"""Which patterns own which templates: a pattern's `match` lines tie its regex to the source that prints them.

A template owns a pattern's line when the line can be had by filling the template's holes, and one of the pattern's
literals stands in the template itself (so that `Using %s backend.` does not prove every named backend).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from logscan.packs.schema import Pattern
from logscan.packs.templates import HOLE

_KEY = 4
_LEAST = 5  # literal characters below which a template says nothing
_RAISED = re.compile(r"^[ |]*(?:[\w.]*(?:Error|Exception|Exit|Interrupt|Warning): |Value error, )")


class Owners:
    """Looks up the patterns that a template can print. Built once, asked for many templates."""

    def __init__(self, patterns: Sequence[Pattern]) -> None:
        self._literals: dict[str, tuple[str, ...]] = {}
        self._by_key: dict[str, list[tuple[str, str]]] = {}
        self._all: list[tuple[str, str]] = []
        for p in patterns:
            self._literals[p.id] = p.literals
            for line in dict.fromkeys(x for m in p.match for x in (m, _RAISED.sub("", m))):
                entry = (p.id, line.rstrip())
                self._all.append(entry)
                self._by_key.setdefault(line[:_KEY], []).append(entry)
        self._regexes = [re.compile(p.regex.encode(), re.MULTILINE) for p in patterns]
        self.of = lru_cache(maxsize=1 << 18)(self._of)
        self.knows = lru_cache(maxsize=1 << 14)(self._knows)

    def _of(self, text: str) -> tuple[str, ...]:
        """Ids of the patterns that own a line of the template's text."""
        found: dict[str, None] = {}
        for line in text.split("\n"):
            pieces = line.rstrip().split(HOLE)
            if sum(map(len, pieces)) < _LEAST:
                continue
            for pattern, sample in self._candidates(pieces):
                if pattern not in found and fills(pieces, sample) and self._spoken(pattern, pieces):
                    found[pattern] = None
        return tuple(found)

    def _knows(self, text: str) -> bool:
        """Whether a pattern's regex reads the text: it may be put together from more pieces than a `match` line has."""
        filled = text.replace(HOLE, "x1").encode()
        return any(r.search(filled) for r in self._regexes)

    def _candidates(self, pieces: list[str]) -> Iterable[tuple[str, str]]:
        if len(pieces[0]) >= _KEY:
            return self._by_key.get(pieces[0][:_KEY], ())
        longest = max(pieces, key=len)
        return (entry for entry in self._all if longest in entry[1])

    def _spoken(self, pattern: str, pieces: list[str]) -> bool:
        return any(literal.rstrip() in piece for literal in self._literals[pattern] for piece in pieces)


def fills(pieces: list[str], line: str) -> bool:
    """Whether `line` is the pieces in order, with anything between them."""
    if len(pieces) == 1:
        return pieces[0] == line
    first, *middle, last = pieces
    if not line.startswith(first) or not line.endswith(last):
        return False
    at, end = len(first), len(line) - len(last)
    for piece in middle:
        at = line.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return at <= end
