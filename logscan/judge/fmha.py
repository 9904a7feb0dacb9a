"""TensorRT-LLM's context attention: a miss of the fused kernels, its cause, and what it can cost.

One miss is up to three records (the probe's parameters, the kernel that does not exist, the fallback), repeated for
each layer and rank: they are one deviation. Where the fallback's own record is cut off it follows from the miss.
Severity is a matter of consequence: unfused attention does not read the paged cache, so with KV reuse, chunked prefill
or draft tokens a prefix is left out of the answer without an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from logscan import tomlcache
from logscan.judge.evidence import cite
from logscan.model import Boot, Component, Fact, Promise, Row, replace
from logscan.packs import patterns_dir

Reuse = Literal["on", "off", "unknown"]
FUSED, UNFUSED = "fused", "unfused"


class Fallback(NamedTuple):
    """Context attention without a fused kernel. `reuse`: whether something reads a cached prefix."""

    facts: tuple[Fact, ...]  # the fallback's records, or those of the look-up where the former are cut off
    derived: bool
    reuse: Reuse
    cause: str
    refused: tuple[Fact, ...] = ()  # the assertion that a fallback leads to when FP8 attention was on


def fallback(boot: Boot, sm: int | None = None, component: Component = "target") -> Fallback | None:
    """The boot's fallback to unfused attention, all records of it taken together; None where there is none.

    `sm`: the GPU's, where it is known from elsewhere (89 for SM 8.9); the log's own wins.
    """
    said = _named(boot, ("attention.unfused",), component)
    missed = _named(boot, ("attention.lookup_miss",), component)
    if not said and not missed:
        return None
    layouts = [f.fields["layout"] for f in said if "layout" in f.fields]
    layouts += [f.value for f in _named(boot, ("attention.lookup_layout",), component)]
    return Fallback(
        facts=said or missed,
        derived=not said,
        reuse=_reuse(boot, layouts, whole=all("layout" in f.fields for f in said)),
        cause=_cause(boot, said, sm),
        refused=tuple(f for f in boot.facts if f.name == "attention.refused" and f.value == "fp8_context_fmha"),
    )


def unfused(row: Row, boot: Boot, sm: int | None = None) -> Row:
    """The attention row as the boot's fallback makes it: downgraded against the release's default, which is fused."""
    found = fallback(boot, sm)
    if found is None:
        return row
    if found.refused:
        evidence = tuple(cite(f) for f in (*found.refused[:1], *found.facts[:3]))
        return replace(row, verdict="not-served", refusal=found.refused[0].text, cause=found.cause, authority="logged",
                       visibility="warned", evidence=evidence)  # fmt: skip
    return replace(
        row,
        verdict="downgraded",
        kinds=("unfused",),
        against="default",
        default=FUSED,
        ran=UNFUSED,
        extent="unknown",
        cause=found.cause,
        authority="derived" if found.derived else "logged",
        visibility="warned",
        reasons=(),
        evidence=tuple(cite(f) for f in found.facts),
        reuse=found.reuse,
    )


def lost_fp8(boot: Boot, promise: Promise | None) -> tuple[Fact, ...]:
    """The lines that drop FP8 context attention although the checkpoint's engine would have run it.

    On a 16-bit checkpoint they are the normal end of a default and nothing is lost.
    """
    algos = _rows("algo")[0]["algo"]
    logged = {f.value for f in boot.facts if f.name == "promise.quant_algo"}
    given = {promise.algo or "", *(g.algo or "" for g in promise.groups)} if promise is not None else set()
    if not any(algo in algos for algo in logged | given) and not (promise is not None and promise.method == "fp8"):
        return ()
    return tuple(f for f in boot.facts if f.name == "attention.fp8_context_fmha_off")


def _named(boot: Boot, names: Sequence[str], component: Component) -> tuple[Fact, ...]:
    return tuple(f for f in boot.facts if f.name in names and f.component == component)


def _reuse(boot: Boot, layouts: Iterable[str], *, whole: bool) -> Reuse:
    """`whole`: every record tells its layout. One that reads pages decides; none that does is off."""
    paged = {_paged(layout) for layout in layouts}
    if True not in paged and None not in paged and paged and whole:
        return "off"
    readers = [_reader(boot, row) for row in _rows("wishes")]
    if "on" in readers:
        return "on"
    return "off" if all(r == "off" for r in readers) else "unknown"


def _reader(boot: Boot, row: Mapping[str, Any]) -> Reuse:
    """Whether one reader of cached prefixes is on. Not printed is not off: KV reuse is on by default."""
    if any(f.name == row.get("gate") and f.value == "off" for f in boot.facts):
        return "off"
    wishes = [f.value for f in boot.facts if f.name in row["wishes"]]
    if not wishes:
        return "unknown"
    return "on" if "True" in wishes else "off"


def _paged(layout: str) -> bool | None:
    return next((row["paged"] for row in _rows("layout") if layout in row["layout"]), None)


def _cause(boot: Boot, said: Sequence[Fact], sm: int | None) -> str:
    if _empty_list(boot):
        return "build"
    logged: set[int | None] = {int(f.value) for f in boot.facts if f.name == "gpu.sm" and f.value.isdigit()}
    for key, seen in (
        ("reason", {f.fields.get("reason", "") for f in said}),
        ("pattern", {f.pattern for f in said}),
        ("sm", logged or {sm}),
    ):
        for row in _rows(key):
            wanted = row[key] if isinstance(row[key], list) else [row[key]]
            if seen & set(wanted):
                return str(row["cause"])
    return "unknown"


def _empty_list(boot: Boot) -> bool:
    """Whether a list of available kernels was printed to its end with nothing in it."""
    kernels = sorted(f.line for f in boot.facts if f.name == "attention.available_kernel")
    lists = sorted(f.line for f in boot.facts if f.name == "attention.available_list")
    ends = [*lists[1:], boot.last + 1] if lists else []
    return any(
        start < boot.last and not any(start < k < end for k in kernels) for start, end in zip(lists, ends, strict=True)
    )


@lru_cache(maxsize=8)
def _rows(key: str) -> tuple[Mapping[str, Any], ...]:
    """The rows of `patterns/knowledge/trtllm/fmha.toml` that hold `key`, in order."""
    table = tomlcache.read(patterns_dir() / "knowledge" / "trtllm" / "fmha.toml")["fmha"]
    return tuple(row for row in table if key in row)
