"""Versions and ranges of engines: parsing, ordering, and the releases around a build.

Ranges (`>=0.15,<0.17`) compare release numbers; only there the local suffix is stripped. A `.postN` sorts after
its release, `rcN` and `.devN` before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

_VERSION = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[.-]?(?P<pre>a|b|rc)(?P<pre_n>\d+))?"
    r"(?:\.?post(?P<post>\d+))?"
    r"(?:\.?dev(?P<dev>\d+))?"
    r"(?:\+(?P<local>[A-Za-z0-9._-]+))?"
)
_CLAUSE = re.compile(r"\s*(>=|<=|==|!=|<|>)\s*([0-9][\w.+-]*)\s*")
_BUILD_LOCAL = re.compile(r"(?:cu|cpu|rocm|xpu|tpu|musa|g[0-9a-f]{6,}|d\d{8}|precompiled|empty)", re.A)

Kind = Literal["release", "dev", "vendor", "unknown"]
Key = tuple[tuple[int, ...], int, int, int, int]
_LONGEST = 200  # characters: no version is longer, and Python refuses to read endless numbers
_FINAL = 3  # dev < a/b/rc < final < post
_PRE = {"a": 0, "b": 1, "rc": 2}


class Version(NamedTuple):
    """A parsed version; `key` orders it, `local` is the suffix after `+`."""

    text: str
    key: Key
    dev: bool
    pre: bool
    local: str


@lru_cache(maxsize=1024)
def parse(text: str) -> Version | None:
    """The version in `text` (a leading `v` is allowed), or None when it is not one."""
    m = _VERSION.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if m is None:
        return None
    numbers = tuple(int(n) for n in m["release"].split("."))
    while len(numbers) > 1 and numbers[-1] == 0:
        numbers = numbers[:-1]
    pre, dev = m["pre"], m["dev"]
    stage = _PRE[pre] if pre else (-1 if dev and not m["post"] else _FINAL)
    key = (numbers, stage, int(m["pre_n"] or 0), int(m["post"] or -1) + 1, int(dev) if dev else 1 << 40)
    return Version(text.strip().removeprefix("v"), key, dev is not None, pre is not None, m["local"] or "")


def kind(version: Version | None) -> Kind:
    """`release`, `dev` (dev and rc builds), `vendor` (a fork's local suffix) or `unknown` (`0.1.dev…`, unparsable)."""
    if version is None or (version.dev and version.key[0] == (0, 1)):
        return "unknown"
    if version.dev or version.pre:
        return "dev"
    parts = [p for p in version.local.split(".") if p and not p.isdigit()]
    if not all(_BUILD_LOCAL.match(part) for part in parts):
        return "vendor"
    return "release"


@lru_cache(maxsize=4096)
def clauses(text: str) -> tuple[tuple[str, Key], ...]:
    """The parsed clauses of a range such as `>=0.15,<0.17`; an empty text is every release.

    Raises ValueError with the offending part.
    """
    out: list[tuple[str, Key]] = []
    for part in text.split(","):
        if not part.strip():
            continue
        m = _CLAUSE.fullmatch(part)
        v = parse(m[2]) if m else None
        if m is None or v is None:
            raise ValueError(f"not a version range: {part.strip()!r} (write it like '>=0.15,<0.17')")
        out.append((m[1], v.key))
    return tuple(out)


def contains(span: str, release: str) -> bool:
    """Whether `release` lies in the range `span`. Raises ValueError on a text that is no version or no range."""
    v = parse(release)
    if v is None:
        raise ValueError(f"not a version: {release!r}")
    return all(_holds(v.key, op, key) for op, key in clauses(span))


def landmarks(spans: Sequence[str], known: Sequence[str]) -> list[str]:
    """Releases at which ranges can be told apart: the known ones and those that the ranges name, in ascending order."""
    named = (m[2] + ".post1" * (m[1] == ">") for span in spans for m in _CLAUSE.finditer(span))
    found = {v.key: text for text in (*named, *known) if (v := parse(text))}
    return [found[key] for key in sorted(found)]


def _holds(key: Key, op: str, bound: Key) -> bool:
    return {
        ">=": key >= bound,
        "<=": key <= bound,
        "==": key == bound,
        "!=": key != bound,
        "<": key < bound,
        ">": key > bound,
    }[op]


def around(version: Version, known: Sequence[str]) -> tuple[str, ...]:
    """The known releases at which a build is evaluated: itself where it is one, else its neighbours.

    `known` is in ascending order. A version above the newest known release yields the newest. The next minor
    release is among the neighbours because builds of a main branch are numbered after the last patch release
    (`0.22.1rc1.dev368`) and hold what the next minor one will.
    """
    keys = [(v.key, text) for text in known if (v := parse(text))]
    exact = tuple(text for key, text in keys if key == version.key)
    if exact:
        return exact
    below = [text for key, text in keys if key < version.key]
    above = [text for key, text in keys if key > version.key]
    minor = version.key[0][:2]
    next_minor = [text for key, text in keys if key[0][:2] > minor]
    return tuple(dict.fromkeys(below[-1:] + above[:1] + next_minor[:1]))


def covered(version: Version, known: Sequence[str]) -> bool:
    """Whether the version lies within the span of the known releases (else: version-not-covered)."""
    first, last = parse(known[0]), parse(known[-1])
    return bool(first and last and first.key <= version.key <= last.key)
