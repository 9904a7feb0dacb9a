"""What a pattern pack holds, as frozen values. `load.py` fills them from TOML, `lint.py` judges them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, overload

from logscan.model import Means, Origin


class Site(NamedTuple):
    """Who prints a pattern's text in a range of releases, and what it means there."""

    means: Means
    engine: str = ""  # range, `>=0.15,<0.17`; "" = every release
    source: str = ""  # `vllm/model_executor/kernels/linear/__init__.py:init_fp8_linear_kernel`
    level: str = ""  # INFO WARNING … ; "" = any, or not a logger's (raised, uvicorn)
    paths: tuple[
        str, ...
    ] = ()  # linear moe attention kv_cache, where the site tells; several = not attributable by itself
    note: str = ""


class Pattern(NamedTuple):
    """One text, all releases: literals for the prefilter, one regex, and its sites.

    `regex` is searched in the record's message (bytes, MULTILINE: `^` and `$` are those of a physical line).
    `value` names the group (or a `{group}` template) that is the fact's value; the first named group by default.
    """

    id: str
    regex: str
    literals: tuple[str, ...]  # one of them stands in every match
    emits: str  # fact name, dotted: `linear.kernel`
    value: str = ""
    origin: tuple[Origin, ...] = ("engine",)
    phase: str = "boot"  # boot: until ready; any: also after it
    parse: str = ""  # built-in reader of structured text: pydict | namespace | engine-config
    component: str = ""  # target drafter encoder, where the text itself tells
    match: tuple[str, ...] = ()
    nomatch: tuple[str, ...] = ()
    sites: tuple[Site, ...] = ()
    note: str = ""
    where: str = ""  # file:line of the TOML entry, for messages


class Head(NamedTuple):
    """What of a pattern is looked at before it hits."""

    id: str
    literals: tuple[bytes, ...]
    emits: str
    phase: str


class Patterns(Sequence[Pattern]):
    """The patterns of a pack, each built when first asked for: a log hits a tenth of them."""

    def __init__(self, heads: Sequence[Head], build: Callable[[int], Pattern]) -> None:
        self.heads = heads
        self._build = build
        self._built: dict[int, Pattern] = {}

    @classmethod
    def of(cls, patterns: Sequence[Pattern]) -> Patterns:
        """Patterns that are there already."""
        heads = [Head(p.id, tuple(x.encode() for x in p.literals), p.emits, p.phase) for p in patterns]
        return cls(heads, patterns.__getitem__)

    def __len__(self) -> int:
        return len(self.heads)

    @overload
    def __getitem__(self, index: int) -> Pattern: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Pattern, ...]: ...
    def __getitem__(self, index: int | slice) -> Pattern | tuple[Pattern, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if index not in self._built:
            self._built[index] = self._build(range(len(self))[index])
        return self._built[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Patterns) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]


class Pack(NamedTuple):
    """The patterns of one engine, with what identifies them in every report."""

    id: str  # vllm trtllm sglang, or the user's
    engine: str
    version: str  # calendar: 2026.12.0
    digest: str  # sha256:… over the pack's files
    releases: tuple[str, ...]  # known releases of the engine, ascending
    patterns: Patterns
    own: bool = False  # of a user's directory: nobody but them has linted it
