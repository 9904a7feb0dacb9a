"""One GEMM row (linear or experts): outcomes × evidence → verdict.

The derivation gives every outcome that cannot be excluded. Trusted lines filter that set, the absence of a line filters
it where such a line would have been seen, and a trusted line that names a kernel decides what ran whatever was derived.
If all that remains agrees on the verdict, it is decided; if not, the unknowns that split it are the reasons.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from logscan import labels
from logscan.judge import compare
from logscan.judge.derive import able, default_numeric, derive, distrusted, foreign_values, outcomes_with
from logscan.judge.evidence import Seen, cite, spelled
from logscan.judge.knowledge import Knowledge
from logscan.judge.order import Ask
from logscan.judge.reasons import caveats_of, not_ready, splitting, unheard, why_nothing, why_open
from logscan.model import (
    VERDICTS_WORST_FIRST,
    Boot,
    Kernel,
    Machine,
    NumericPath,
    Outcome,
    Print,
    Row,
    Verdict,
    replace,
)

_NEVER_MOVES = frozenset({"rescaled", "storage-only", "untuned"})
_CENSUS_LEVEL = {"INFO": ("INFO",), "WARNING": ("INFO", "WARNING"), "ERROR": ("INFO", "WARNING", "ERROR")}


class Reading(NamedTuple):
    """One way the row may have gone: an outcome measured against the yardstick."""

    verdict: Verdict
    kinds: tuple[str, ...]
    numeric: NumericPath | None
    compute: str
    outcome: Outcome
    against: str | None


class Bench(NamedTuple):
    """What a row is judged with. `boot` is None for a prediction: nothing was printed, everything may still happen."""

    machine: Machine
    tables: Knowledge
    releases: tuple[str, ...]
    boot: Boot | None = None
    known: tuple[str, ...] = ()  # all releases of the engine, ascending
    requests: tuple[Mapping[str, Any], ...] = ()  # what its flags promise

    @property
    def ready(self) -> bool:
        return self.boot is None or self.boot.status in ("ready", "died")


def gemm_row(ask: Ask, seen: Seen, bench: Bench) -> Row:
    """The row of a dense-linear or experts group."""
    if ask.refusal is not None and (bench.boot is None or bench.boot.status == "failed") and not seen.refused:
        return Row(ask.path, ask.group, "not-served", refusal=ask.refusal, cause="version", visibility="warned",
                   authority="derived")  # fmt: skip
    default = default_numeric(ask.order, bench.machine, bench.releases, bench.tables) if ask.wanted else None
    outcomes = derive(ask.order, bench.machine, bench.releases, bench.tables) if ask.order.method else ()
    readings = [_measure(ask, o, default) for o in outcomes]
    expected = readings
    named, strange = _named(ask, seen, bench, default)
    strange = [name for name in strange if name not in {o.layer for o in outcomes}]  # a method's class, not a kernel
    if bench.boot is not None:
        readings = _still_possible(readings, named, seen, bench)
    evidence = tuple(cite(f) for f in seen.lines) + tuple(cite(f, "contradicts", why) for f, why in seen.doubted)
    base = Row(
        ask.path,
        ask.group,
        "unproven",
        requested=_label(ask.requested),
        promised=_label(ask.promised),
        default=_label(default) if ask.against and _default_names_more(ask.wanted, default) else None,
        against=ask.against,  # type: ignore[arg-type]
        evidence=evidence,
    )
    decided = _decide(base, ask, seen, bench, named, readings)
    foreign = foreign_values(ask.order, bench.machine, bench.releases, bench.tables)
    if (strange and decided.verdict == "kept") or (foreign and decided.authority == "derived"):
        kernels = (*_kernels(named, ()), *(Kernel(name, "logged") for name in (*strange, *foreign)))
        return replace(base, reasons=("unknown-kernel",), kernels=kernels)
    if decided.verdict == "kept" and (seen.foreign or _denied(named, seen)):
        against = tuple(e._replace(role="contradicts") if e.pattern in {f.pattern for f in seen.weight_only} else e
                        for e in evidence) + tuple(cite(f, "contradicts") for f in seen.foreign)  # fmt: skip
        return replace(base, reasons=("line-untrusted",), kernels=decided.kernels, evidence=against)
    return _with_disagreement(decided, ask, named, expected, bench)


def _denied(named: Sequence[tuple[Reading, str]], seen: Seen) -> bool:
    """Whether a line says "weight-only" of a row whose kernels quantize the activations and do not print it."""
    said = {f.pattern for f in seen.weight_only}
    return bool(said) and any(
        r.numeric is not None and r.numeric.input is not None and not said & {p.pattern for p in r.outcome.prints}
        for r, _ in named
    )


def _label(numeric: NumericPath | None) -> str | None:
    return labels.path_label(numeric) if numeric is not None else None


def _default_names_more(wanted: NumericPath | None, default: NumericPath | None) -> bool:
    return default is not None and wanted is not None and default != wanted


# ---------------------------------------------------------------- readings


def _measure(ask: Ask, outcome: Outcome, default: NumericPath | None) -> Reading:
    """An outcome against the strongest statement that names an axis: request or promise, then the engine's default."""
    if outcome.refusal is not None and not outcome.crashes:
        return Reading("not-served", (), None, outcome.compute, outcome, ask.against)
    if outcome.crashes:
        return Reading("not-served", (), outcome.numeric, outcome.compute, outcome, ask.against)
    if ask.wanted is None or outcome.numeric is None:
        return Reading("no-promise", (), outcome.numeric, outcome.compute, outcome, None)
    found = compare.kinds(ask.wanted, outcome.numeric, outcome.compute)
    against = ask.against
    if not found and default is not None:
        found = tuple(k for k in compare.kinds(default, outcome.numeric, outcome.compute) if k == "coarser-scales")
        against = "default" if found else against
    moving = [k for k in found if k not in _NEVER_MOVES]
    open_axis = compare.unsure(ask.wanted, outcome.numeric) or (default and compare.unsure(default, outcome.numeric))
    verdict: Verdict = "downgraded" if moving else "unproven" if open_axis else "kept"
    return Reading(verdict, found + outcome.also, outcome.numeric, outcome.compute, outcome, against)


def _named(
    ask: Ask, seen: Seen, bench: Bench, default: NumericPath | None
) -> tuple[list[tuple[Reading, str]], list[str]]:
    """Readings of the kernels that trusted lines name, each with the kernel's name as the log spells it.

    Beside them the names that no table knows.
    """
    out: dict[str, Reading] = {}
    strange: list[str] = []
    for name in dict.fromkeys(map(spelled, seen.selected or seen.shared)):
        outcomes = outcomes_with(name, ask.order, bench.machine, bench.releases, bench.tables)
        if outcomes:
            out[name] = _joint([_measure(ask, o, default) for o in outcomes])
        else:
            strange.append(name)
    numeric = ask.order.numeric
    if not out and seen.weight_only and numeric is not None and not seen.doubted:
        outcome = Outcome(ask.path, None, NumericPath(numeric.weights, None, "none"), "weight-only")
        out[""] = _measure(ask, outcome, default)
    return [(reading, name) for name, reading in out.items()], strange


def _joint(readings: Sequence[Reading]) -> Reading:
    """One reading of a kernel that may have run in several ways: what they agree on, unproven where they do not."""
    first = readings[0]
    if len(readings) == 1:
        return first
    verdict: Verdict = first.verdict if len({r.verdict for r in readings}) == 1 else "unproven"
    kinds = tuple(dict.fromkeys(kind for r in readings for kind in r.kinds))
    weights = first.numeric.weights if first.numeric is not None else None
    same = len({r.numeric for r in readings}) == 1
    numeric = first.numeric if same or weights is None else NumericPath(weights, None, "unspecified")
    return first._replace(verdict=verdict, kinds=kinds, numeric=numeric)


def _still_possible(
    readings: Sequence[Reading], named: Sequence[tuple[Reading, str]], seen: Seen, bench: Bench
) -> list[Reading]:
    """The readings that the boot's lines, and the lines it does not have, leave open."""
    left = list(readings)
    if bench.ready:
        left = [r for r in left if r.outcome.refusal is None or r.outcome.crashes] or left
    names = {r.outcome.kernel for r, _ in named}
    left = [r for r in left if r.outcome.kernel in names] or left if names - {None} else left
    said = {f.pattern for f in seen.lines}
    announced = {f.pattern for f in seen.weight_only}
    if announced:
        left = [r for r in left if announced & {p.pattern for p in r.outcome.prints}] or left
    shown = [r for r in left if not _would_show(r.outcome, said, seen, bench)]
    # Silence narrows the kernels of a known machine; where that is not known it must not stand in for knowing it.
    known = bench.machine.platform is not None and (bench.machine.platform != "cuda" or bench.machine.sm is not None)
    if shown:
        return shown if known else left
    return [] if bench.boot is not None else left


def _would_show(outcome: Outcome, said: Collection[str], seen: Seen, bench: Bench) -> bool:
    """Whether the outcome prints a line that this boot would have shown, and does not."""
    boot = bench.boot
    if boot is None or boot.census.head != "seen" or boot.status == "incomplete" or unheard(boot):
        return False
    said = {*said, *(f.pattern for f in boot.facts), *(f.pattern for f, _ in seen.doubted)}
    heard = {level for level in _CENSUS_LEVEL if any(boot.census.levels.get(x) for x in _CENSUS_LEVEL[level])}
    if boot.engine.name == "sglang":  # prints no levels; its head is a line at INFO (server_args=…)
        heard = set(_CENSUS_LEVEL)
    return any(p.pattern is not None and p.pattern not in said and p.level in heard for p in outcome.prints)


# ---------------------------------------------------------------- the decision


def _decide(
    base: Row, ask: Ask, seen: Seen, bench: Bench, named: Sequence[tuple[Reading, str]], readings: Sequence[Reading]
) -> Row:
    if seen.refused and not bench.ready:
        fact = seen.refused[0]
        evidence = tuple(cite(f) for f in seen.refused[:3]) + base.evidence
        return replace(base, verdict="not-served", refusal=fact.text, evidence=evidence, authority="logged",
                       visibility="warned", kernels=_kernels(named, readings))  # fmt: skip
    if named:
        if ask.wanted is None:
            return _without_yardstick(base, ask, named, readings, bench)
        return _from_lines(base, ask, seen, bench, named, readings)
    refused = bool(readings) and all(r.verdict == "not-served" for r in readings)
    if ask.wanted is None and not (refused and bench.boot is None):
        return _without_yardstick(base, ask, named, readings, bench)
    return _from_derivation(base, ask, seen, bench, readings)


def _without_yardstick(
    base: Row, ask: Ask, named: Sequence[tuple[Reading, str]], readings: Sequence[Reading], bench: Bench
) -> Row:
    kernels = _kernels(named, readings if len(readings) == 1 else ())
    if not ask.unknown:
        return replace(base, verdict="no-promise", kernels=kernels, authority="logged" if named else None,
                       ran=_label(named[0][0].numeric) if named and named[0][0].numeric else None)  # fmt: skip
    reasons = ["no-checkpoint"]
    if bench.boot is not None and not bench.ready:
        reasons.append("boot-failed" if bench.boot.status == "failed" else "tail-missing")
    return replace(base, verdict="unproven", reasons=tuple(reasons), kernels=kernels)


def _from_lines(
    base: Row, ask: Ask, seen: Seen, bench: Bench, named: Sequence[tuple[Reading, str]], readings: Sequence[Reading]
) -> Row:
    """Trusted lines say what ran. Several kernels: the worst of them, and the extent says so."""
    verdicts = {r.verdict for r, _ in named}
    worst = min(named, key=lambda n: VERDICTS_WORST_FIRST.index(n[0].verdict))[0]
    if seen.shared and not seen.selected and len(verdicts) > 1:
        return replace(base, verdict="unproven", reasons=("not-attributable",), kernels=_kernels(named, ()))
    same = [r for r in readings if r.verdict == worst.verdict]
    lines = seen.selected or seen.shared or seen.weight_only
    row = replace(
        base,
        verdict=worst.verdict,
        kinds=worst.kinds,
        ran=_label(worst.numeric),
        against=worst.against,
        authority="logged",
        kernels=_kernels(named, same),
        extent=None if worst.verdict != "downgraded" else "some" if len(verdicts) > 1 else "unknown",
        visibility=visible(worst.verdict, [f.level for f in lines + seen.weight_only]),
        caveats=("rank-limited",),
        because=same[0].outcome.because if same else (),
    )
    if worst.verdict == "unproven":
        return replace(row, kinds=(), reasons=splitting(readings, bench) or why_open(bench), caveats=row.caveats)
    if worst.outcome.crashes or worst.verdict == "not-served":
        return replace(row, verdict="unproven", reasons=("line-untrusted",), extent=None, visibility=None)
    crashing = [r for r in readings if r.outcome.crashes and r.outcome.kernel in {n.outcome.kernel for n, _ in named}]
    if crashing and bench.boot is not None:
        refusal = crashing[0].outcome.refusal
        row = replace(row, kinds=(), extent=None, visibility=None)
        return replace(row, verdict="unproven", reasons=("line-untrusted",), refusal=refusal)
    return _needs_ready(row, bench)


def _from_derivation(base: Row, ask: Ask, seen: Seen, bench: Bench, readings: Sequence[Reading]) -> Row:
    if not readings:
        return replace(base, reasons=why_nothing(ask, seen, bench))
    kernels = _kernels((), readings) or tuple(Kernel(n, "logged") for n in dict.fromkeys(map(spelled, seen.selected)))
    verdicts = {r.verdict for r in readings}
    caveats = caveats_of(readings, bench)
    alike = len({r.outcome.prints for r in readings}) == 1
    prints = _announced(readings[0].outcome, ask, bench) if alike else ()
    if len(verdicts) > 1 or (seen.undecided and len({r.kinds for r in readings}) > 1):
        reasons = splitting(readings, bench) or ("unknown-kernel",)
        return replace(base, reasons=reasons, kernels=kernels, caveats=caveats, prints=prints)
    first = readings[0]
    if first.verdict == "unproven":
        ran = _label(first.numeric)
        return replace(base, reasons=why_open(bench), kernels=kernels, caveats=caveats, ran=ran, prints=prints)
    if first.verdict == "not-served":
        row = replace(
            base, refusal=first.outcome.refusal, kernels=kernels, caveats=caveats, because=first.outcome.because
        )
        failed = bench.boot is not None and bench.boot.status == "failed" and not first.outcome.crashes
        if bench.boot is not None and not failed:
            return replace(row, reasons=("line-untrusted",) if bench.ready else not_ready(bench))
        layer = first.outcome.layer
        return replace(row, verdict="not-served", authority="derived", visibility="warned", layer=layer)
    kinds = tuple(k for k in first.kinds if all(k in r.kinds for r in readings)) or first.kinds
    numerics = {_label(r.numeric) for r in readings}
    said = {f.pattern for f in seen.lines}
    row = replace(
        base,
        verdict=first.verdict,
        kinds=kinds,
        ran=numerics.pop() if len(numerics) == 1 else _label(first.numeric),
        against=first.against,
        authority="derived",
        kernels=kernels,
        layer=first.outcome.layer,
        prints=prints,
        extent="all" if first.verdict == "downgraded" else None,
        visibility=_least_visible(readings, said if bench.boot is not None else None),
        caveats=caveats,
        because=first.outcome.because,
    )
    if bench.boot is not None and not bench.ready and not seen.lines:
        return replace(row, verdict="unproven", kinds=(), extent=None, visibility=None, reasons=not_ready(bench))
    return _needs_ready(row, bench)


def _announced(outcome: Outcome, ask: Ask, bench: Bench) -> tuple[Print, ...]:
    """What a predicted outcome prints, with those lines marked that will not be true."""
    fields = {"kernel": outcome.kernel or "", "layer": outcome.layer or ""}

    def doubt(pattern: str | None) -> str | None:
        if pattern is None:
            return None
        found = distrusted(pattern, fields, ask.order, bench.machine, bench.releases, bench.tables)
        return found[0] if isinstance(found, tuple) else None

    return tuple(p._replace(distrusted_by=doubt(p.pattern)) for p in outcome.prints)


def _needs_ready(row: Row, bench: Bench) -> Row:
    """`Selected` is not `ran`: kept needs a boot that got ready, a downgrade does not."""
    if row.verdict == "kept" and not bench.ready:
        return replace(row, verdict="unproven", reasons=not_ready(bench))
    return row


# ---------------------------------------------------------------- words


def visible(verdict: Verdict, levels: Sequence[str]) -> str | None:
    """How visible a deviation was: warned, noted (an INFO line names what ran), silent; None without a deviation."""
    if verdict != "downgraded":
        return None
    if any(level in ("WARNING", "ERROR", "CRITICAL") for level in levels):
        return "warned"
    return "noted" if any(levels) else "silent"


def _least_visible(readings: Sequence[Reading], said: Collection[str] | None) -> str | None:
    """The quietest of the readings: what can be relied on. `said`: patterns in the log, None for a forecast."""
    rank = {None: 0, "silent": 1, "noted": 2, "warned": 3}
    shown = [[p.level for p in r.outcome.prints if said is None or p.pattern in said] for r in readings]
    words = [visible(r.verdict, levels) for r, levels in zip(readings, shown, strict=True)]
    return min(words, key=lambda word: rank[word])


def _kernels(named: Sequence[tuple[Reading, str]], readings: Sequence[Reading]) -> tuple[Kernel, ...]:
    logged = [Kernel(name, "logged") for _, name in named if name]
    if logged:
        return tuple(logged)
    return tuple(Kernel(name, "derived") for name in dict.fromkeys(r.outcome.kernel for r in readings) if name)


def _with_disagreement(
    row: Row, ask: Ask, named: Sequence[tuple[Reading, str]], expected: Sequence[Reading], bench: Bench
) -> Row:
    """Mark a row whose trusted line no derived outcome explains: the table or the deployment is not what we think.

    Where the kernel could not even run on the machine at hand, the line does not prove that the order is kept.
    """
    names = [n for _, n in named if n]
    kernels = {r.outcome.kernel for r, n in named if n}
    if not expected or not names or any(r.outcome.kernel in kernels for r in expected):
        return row
    derived = ", ".join(dict.fromkeys(r.outcome.kernel or r.outcome.refusal or "?" for r in expected))
    if row.verdict == "kept" and not all(
        able(name, ask.order, bench.machine, bench.releases, bench.tables) for name in names
    ):
        row = replace(row, verdict="unproven", reasons=("line-untrusted",))
    return replace(row, disagreement=f"the log names {', '.join(names)}; {derived} was expected")
