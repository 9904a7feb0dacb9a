"""Regexes that take quadratic or exponential time on a text made for them.

A regex is ambiguous where it can go through one text in several ways. A search that fails tries them all: exponentially
many where a repeat is ambiguous within itself, polynomially many where several repeats share a text (Weber and Seidl,
On the degree of ambiguity of finite automata, 1991). Both are read off the regex' positions.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from functools import cache
from itertools import count, product
from typing import Any, NamedTuple

from logscan.recognise import CLIP

_sre: Any = importlib.import_module("re._parser")  # the standard parser; private, hence by name

_FEW = 9  # a bounded repeat up to this is written out
_MANY = 64  # a bounded repeat above this is as good as unbounded where repeats nest
_LOOKS = 1500  # a search that looks so often at each byte takes about a second on the longest text
_RARE = 16  # bytes: a longer text between two repeats does not come again and again by accident
_POSITIONS = 5000  # of a regex; ours have some hundred
_PATIENCE = 100_000  # steps that the lint itself may take over a regex
_ALL = frozenset(range(256))
_WORD = frozenset(i for i in range(256) if re.fullmatch(rb"\w", bytes([i])))
_ANY, _LINE, _GAP, _WORDY = range(4)  # positions before a match
Ways = Counter[int]


def fault(pattern: str) -> str | None:
    """What makes a search take quadratic time or worse, the worst of it: it is what to mend first. None where nothing
    does, or where it was not found in time. Raises re.error for what the standard library cannot compile.

    `pattern` is searched in bytes, MULTILINE, of which it sees at most `CLIP`.
    """
    tree = _sre.parse(pattern.encode(), re.MULTILINE)
    try:
        graph = _Graph(tree, tree.state.flags)
    except _TooLarge:
        return "too large to be judged: its repeats of a few multiply"
    looks, _ways, _length, anywhere = _worst(graph)
    if graph.nested:
        return "a long repeat inside a long repeat: it can take exponential time"
    if any(_forks(graph, loop) for loop in graph.loops[1:]):
        return "a repeat that can take the same text in several ways: it can take exponential time"
    if looks > _LOOKS and anywhere:
        return "a repeat over what the regex may begin with anew: begin with ^, leave \\n out, or bound it, {0,200}"
    if looks > _LOOKS:
        return "two unbounded repeats, or several long ones, of the same characters in a row: bound them, {0,200}"
    return None


class _TooLarge(Exception):
    """A regex of more positions than anybody reads."""


class _Loop(NamedTuple):
    """A repeat that is more than a few: its positions, how often at most, and the sealed group that it is in."""

    body: range
    most: int
    group: int


class _Graph:
    """A regex as its positions: what bytes each eats, and which may follow it, in how many ways.

    A search that fails has tried all ways through a text. Where their number grows with the text, so does the time.
    Repeats of up to a few are written out (two or three times stand for all), longer ones are loops. A sealed group
    (atomic, possessive, lookahead) is not entered again: no other way through it is tried once it is left.
    """

    def __init__(self, tree: Any, flags: int) -> None:
        # What stands before a match: any bytes; and as the last of them a line end, or either side of a \b.
        self.eats = [_ALL, frozenset(b"\n"), _ALL - _WORD, _WORD]
        self.follow = [Ways((_ANY, _LINE, _GAP, _WORDY)), Ways(), Ways(), Ways()]
        self.loops = [_Loop(range(1), CLIP, 0)]
        self.nested = False
        self.done: set[tuple[int, int]] = set()  # group and position: here nothing can fail any more
        self._held: set[int] = set()  # positions that an assertion follows
        self._shut = {_GAP: _ALL - _WORD, _WORDY: _WORD}  # what may not come next, for a sealed group has taken it
        self._groups: dict[int, Any] = {}
        self._group, self._inside, self._numbers, self._steps = 0, False, count(), 0
        self._sealed(tree, Ways((_ANY,)), flags)

    def tires(self, steps: int) -> bool:
        """Whether the search for ways has itself taken so many steps that it is given up."""
        self._steps += steps
        return self._steps > _PATIENCE

    def inner(self, loop: _Loop) -> dict[int, Ways]:
        """What follows what without leaving the loop."""
        return {at: Ways({b: ways for b, ways in self.follow[at].items() if b in loop.body}) for at in loop.body}

    def _sequence(self, tree: Any, last: Ways, flags: int) -> Ways:
        for op, arg in tree:
            last = self._node(str(op), arg, last, flags)
        return last

    def _node(self, op: str, arg: Any, last: Ways, flags: int) -> Ways:
        """Adds a node of the parse tree behind the positions in `last`; gives those that it can end with."""
        if op in ("MAX_REPEAT", "MIN_REPEAT"):
            return self._repeat(arg, last, flags)
        if op == "POSSESSIVE_REPEAT":
            return self._sealed([("MAX_REPEAT", arg)], last, flags)
        if op == "ATOMIC_GROUP":
            return self._sealed(arg, last, flags)
        if op in ("ASSERT", "ASSERT_NOT"):
            self._held |= set(last)
            if arg[0] > 0:
                self._sealed(arg[1], last, flags)
            return last
        if op == "SUBPATTERN":
            flags = (flags | arg[1]) & ~arg[2]
            self._groups[arg[0]] = arg[3]
            return self._sequence(arg[3], last, flags)
        if op == "GROUPREF":
            return self._sealed(self._groups.get(arg, ()), last, flags)
        if op in ("BRANCH", "GROUPREF_EXISTS"):
            branches = arg[1] if op == "BRANCH" else (arg[1], arg[2] or ())
            return sum((self._sequence(branch, last, flags) for branch in branches), Ways())
        if op == "AT":
            return self._assertion(str(arg), last)
        return self._position(_eaten(op, arg, flags), last)

    def _position(self, eats: frozenset[int], last: Ways) -> Ways:
        if len(self.eats) > _POSITIONS:
            raise _TooLarge
        here = Ways((len(self.eats),))
        self.eats.append(eats)
        self.follow.append(Ways())
        self._join(last, here)
        return here

    def _join(self, last: Ways, first: Ways) -> None:
        for a, ways in last.items():
            for b, more in first.items():
                if not self.eats[b] <= self._shut.get(a, frozenset()):
                    self.follow[a][b] += ways * more

    def _repeat(self, arg: Any, last: Ways, flags: int) -> Ways:
        least, most, body = arg
        if most > _FEW and most > least:
            return self._loop(least, most, body, last, flags)
        for _ in range(min(least, 3)):
            last = self._sequence(body, last, flags)
        ends = last
        for _ in range(min(most - least, 2)):
            last = self._sequence(body, last, flags)
            ends = ends + last
        return ends

    def _loop(self, least: int, most: int, body: Any, last: Ways, flags: int) -> Ways:
        inside, self._inside = self._inside, self._inside or most > _MANY
        self.nested = self.nested or (inside and most > _MANY)
        (entry,) = self._position(frozenset(), Ways())  # what follows it is what the body can begin with
        ends = self._sequence(body, last + Ways((entry,)), flags)
        del ends[entry]
        self._join(Ways({at: ways for at, ways in ends.items() if at > entry}), self.follow[entry])
        self.loops.append(_Loop(range(entry + 1, len(self.eats)), min(most, CLIP), self._group))
        self._inside = inside
        return ends if least else ends + last

    def _sealed(self, tree: Any, last: Ways, flags: int) -> Ways:
        before, start = (self._group, self._inside), len(self.eats)
        self._group, self._inside = next(self._numbers), False
        ends = self._sequence(tree, last, flags)
        self.done |= {(self._group, at) for at in ends if at not in self._held}
        for at in range(start, len(self.eats)):
            self._shut[at] = frozenset[int]().union(*(self.eats[b] for b in self.follow[at]))
        self._group, self._inside = before
        return ends

    def _assertion(self, name: str, last: Ways) -> Ways:
        if name == "AT_BEGINNING_STRING":
            return Ways()
        if name == "AT_BEGINNING":
            return Ways({_LINE if at == _ANY else at: ways for at, ways in last.items() if 10 in self.eats[at]})
        met = {"AT_END": _ALL - {10}, "AT_END_STRING": _ALL}.get(name)  # it cannot but end so
        endless = {loop.body for loop in self.loops if loop.most == CLIP}
        self._held |= {at for at in last if not (met and met <= self.eats[at] and range(at, at + 1) in endless)}
        if name == "AT_BOUNDARY" and _ANY in last:
            return last - Ways({_ANY: last[_ANY]}) + Ways({_GAP: last[_ANY], _WORDY: last[_ANY]})
        return last


def _forks(graph: _Graph, loop: _Loop) -> bool:
    """Whether a loop can eat one text in two ways: then n such texts in 2ⁿ."""
    if any((loop.group, at) in graph.done for at in loop.body):
        return False
    inner, seen = graph.inner(loop), set[tuple[int, int]]()
    if any(ways > 1 for follow in inner.values() for ways in follow.values()):
        return True
    new = {(a, b) for follow in inner.values() for a in follow for b in follow if a < b}
    while new := {(a, b) for a, b in new if graph.eats[a] & graph.eats[b]} - seen:
        if any(a == b for a, b in new):
            return True
        if graph.tires(len(new)):
            return False
        seen |= new
        new = {pair for a, b in new for pair in product(inner[a], inner[b])}
    return False


def _worst(graph: _Graph) -> tuple[float, float, int, bool]:
    """The chain of loops that takes longest: looks at each byte, ways to split a text, its length, begins anywhere.

    Each loop prolongs the worst chain that leads to it.
    """
    chains: list[tuple[float, float, int, bool]] = []
    for loop in graph.loops:
        ends = [(1.0, float(loop.most), loop.most, not chains)]
        for before, (_, ways, length, anywhere) in zip(graph.loops, chains, strict=False):
            if apart := _apart(graph, before, loop):
                ways, length = ways * loop.most / apart, length + loop.most
                ends.append((ways / length, ways, length, anywhere))
        chains.append(max(ends))
    return max(chains)


def _apart(graph: _Graph, first: _Loop, second: _Loop) -> int:
    """Length of a text that both can eat and that leads from one to the other: n such texts split in n ways. Or 0."""
    if first.group not in (0, second.group) or any((first.group, at) in graph.done for at in second.body):
        return 0
    before, after = graph.inner(first), graph.inner(second)
    for a, b in product(before, after):
        new, seen = {(a, a, b)}, set[tuple[int, int, int]]()
        for length in range(1, _RARE + 1):
            seen |= new
            steps = [step for x, y, z in new for step in product(before[x], graph.follow[y], after[z])]
            new = {(x, y, z) for x, y, z in steps if graph.eats[x] & graph.eats[y] & graph.eats[z]} - seen
            if (a, b, b) in new:
                return length
            if graph.tires(len(steps)):
                return 0
    return 0


def _eaten(op: str, arg: Any, flags: int) -> frozenset[int]:
    """The bytes that a node for one byte, or a part of a set, can eat."""
    if op == "IN":
        eaten = frozenset[int]().union(*(_eaten(str(kind), value, flags) for kind, value in arg if value is not None))
        eaten = _ALL - eaten if str(arg[0][0]) == "NEGATE" else eaten
    elif op == "CATEGORY":
        eaten = _category(str(arg))
    elif op == "RANGE":
        eaten = frozenset(range(arg[0], arg[1] + 1))
    elif op == "ANY":
        eaten = _ALL if flags & re.DOTALL else _ALL - {10}
    else:
        eaten = _ALL - {arg} if op == "NOT_LITERAL" else frozenset({arg})
    return eaten | {ord(chr(b).swapcase()) for b in eaten if b < 128} if flags & re.IGNORECASE else eaten


@cache
def _category(name: str) -> frozenset[int]:
    letter = name.rpartition("_")[-1][0].lower()  # of DIGIT, SPACE, WORD
    found = frozenset(i for i in range(256) if re.fullmatch(rb"\%c" % ord(letter), bytes([i])))
    return _ALL - found if "_NOT_" in name else found
