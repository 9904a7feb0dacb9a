"""What is wrong with a pattern, before any log has seen it: the examples, the literals, the ranges, the regex.

One small function a check; each yields problems. `error` fails `packs lint`, `warning` is for the eye.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import regex

from logscan import versions
from logscan.packs import backtracking
from logscan.packs.schema import Pack, Pattern, Site
from logscan.recognise import USER_TIMEOUT, bounded_search

FAMILIES = (
    *("attention", "boot", "build", "config", "cuda", "deepgemm", "dtype", "engine", "env", "feature", "flashinfer"),
    *("gpu", "graph", "jit", "kv", "linear", "model", "moe", "nccl", "package", "parallel", "process", "promise"),
    *("quant", "request", "tuner", "weights"),
)
"""First parts of fact names. A fact of another family would be read by nobody."""
LEAST_LITERAL = 4
_FIELD = re.compile(r"\{(\w+)\}")


class Problem(NamedTuple):
    """One complaint, at the entry's file and line."""

    severity: Literal["error", "warning"]
    where: str
    pattern: str
    message: str


def lint(packs: Sequence[Pack]) -> list[Problem]:
    """Every problem of every pattern, in the order of the files."""
    return [
        Problem(severity, p.where, p.id, message)
        for pack in packs
        for p in pack.patterns
        for severity, check in _CHECKS
        for message in check(p, pack)
    ]


def failures(pattern: Pattern) -> Iterator[str]:
    """`match` lines that the regex misses, `nomatch` lines that it hits: what `packs test` reports."""
    found = bounded_search(pattern)
    try:
        for line in pattern.match:
            if not found(line.encode()):
                yield f"does not match its match line {_cut(line)}"
        for line in pattern.nomatch:
            if found(line.encode()):
                yield f"matches its nomatch line {_cut(line)}"
    except TimeoutError:
        yield f"takes more than {USER_TIMEOUT} s on the line {_cut(line)}"


def _examples(p: Pattern, _: Pack) -> Iterator[str]:
    if not p.match:
        yield "no match line: give one real line"
    if not p.nomatch:
        yield "no nomatch line: give one that is near and must not match"
    yield from failures(p)


def _literals(p: Pattern, _: Pack) -> Iterator[str]:
    for literal in p.literals:
        if len(literal.encode()) < LEAST_LITERAL:
            yield f"literal {literal!r} is shorter than {LEAST_LITERAL} bytes: it would stand in every other line"
    for line in p.match:
        if not any(literal in line for literal in p.literals):
            yield f"none of its literals stands in the match line {_cut(line)}"


def _idle(p: Pattern, _: Pack) -> Iterator[str]:
    lines = [_counted(line) for line in p.match]
    for literal in p.literals:
        if lines and not any(_counted(literal) in line for line in lines):
            yield f"no match line has the literal {literal!r}: add one, or drop the literal"


def _counted(text: str) -> str:
    """With every number alike: literals that only count (`GPU 0: `, `GPU 1: `) need one line between them."""
    return re.sub(r"\d+", "0", text)


def _value(p: Pattern, _: Pack) -> Iterator[str]:
    groups = regex.compile(p.regex).groupindex
    for name in _FIELD.findall(p.value):
        if name not in groups:
            yield f"value: the regex has no group {name!r} (it has {', '.join(groups) or 'none'})"
    if p.parse and "args" not in groups:
        yield f"parse = {p.parse!r} reads the group 'args', and the regex has none"


def _emits(p: Pattern, pack: Pack) -> Iterator[str]:
    family = p.emits.split(".")[0]
    if family not in FAMILIES:
        yield f"emits {p.emits!r}: no such family of facts (known: {', '.join(FAMILIES)})"
    if not p.id.startswith(f"{pack.id}."):
        yield f"id: patterns of this pack begin with {pack.id}."


def _sites(p: Pattern, pack: Pack) -> Iterator[str]:
    at = versions.landmarks([site.engine for site in p.sites], pack.releases)
    for n, site in enumerate(p.sites):
        if site.source and not re.fullmatch(r"[^:\n]+(?::[\w.<>:~]+)?", site.source):
            yield f"source {site.source!r}: write it as path/file.py:Class.function"
        for other in p.sites[n + 1 :]:
            if _same_place(site, other):
                both = [r for r in at if _in(site, r) and _in(other, r)]
                if both:
                    yield f"two sites of {site.source or 'no source'} overlap in {both[0]} … {both[-1]}"


def _ahead(p: Pattern, pack: Pack) -> Iterator[str]:
    for site in p.sites:
        if pack.releases and site.engine and not any(_in(site, r) for r in pack.releases):
            yield f"engine {site.engine!r}: no release that pack.toml lists is in it"


def _same_place(a: Site, b: Site) -> bool:
    return bool(a.source) and (a.source, a.level, a.paths) == (b.source, b.level, b.paths)


def _in(site: Site, release: str) -> bool:
    return versions.contains(site.engine, release)


def _gaps(p: Pattern, pack: Pack) -> Iterator[str]:
    covered = [any(_in(s, r) for s in p.sites) for r in pack.releases]
    if True not in covered:
        return
    last = len(covered) - 1 - covered[::-1].index(True)
    holes = [r for r, c in list(zip(pack.releases, covered, strict=True))[covered.index(True) : last] if not c]
    if holes and "gap" not in p.note:
        yield f"gap: no site covers {holes[0]} … {holes[-1]}; say in its note why the gap is real"


def _scannable(p: Pattern, _: Pack) -> Iterator[str]:
    if re.search(r"\(\?(?:[=!]|<[=!]|P=)", p.regex):
        yield "lookaround and backreferences cannot be scanned for: write it without"
    try:
        re.compile(p.regex.encode())
    except re.error as error:
        yield f"the standard library cannot read it ({error}): nobody knows how long it may take"


def _anchor(p: Pattern, _: Pack) -> Iterator[str]:
    if not p.regex.startswith("^") and p.phase == "boot":
        yield "not anchored with ^: a line that only quotes the text would be taken for it"


def _backtracking(p: Pattern, _: Pack) -> Iterator[str]:
    try:
        found = backtracking.fault(p.regex)
    except re.error:
        return  # told below
    if found is not None:
        yield found


def _cut(line: str) -> str:
    return repr(line if len(line) <= 80 else line[:79] + "…")


Check = Callable[[Pattern, Pack], Iterator[str]]
_CHECKS: tuple[tuple[Literal["error", "warning"], Check], ...] = (
    ("error", _examples),
    ("error", _literals),
    ("error", _value),
    ("error", _emits),
    ("error", _sites),
    ("error", _backtracking),
    ("warning", _ahead),
    ("warning", _idle),
    ("warning", _scannable),
    ("warning", _anchor),
    ("warning", _gaps),
)
