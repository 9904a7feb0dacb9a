"""Why a row stays open, as reason codes, and what limits any verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from logscan.judge.evidence import Seen
from logscan.judge.order import Ask
from logscan.model import Boot

if TYPE_CHECKING:
    from logscan.judge.rows import Bench, Reading


def unheard(boot: Boot) -> bool:
    """Whether a logger of the engine is silent in this log, so that a line that is not there proves nothing.

    TensorRT-LLM has two, of C++ and of Python, with levels of their own; the former may go to the other stream.
    """
    return boot.engine.name == "trtllm" and len(boot.census.voices) < 2


def not_ready(bench: Bench) -> tuple[str, ...]:
    """Why a selection is not yet known to have run."""
    return ("boot-failed",) if bench.boot is not None and bench.boot.status == "failed" else ("tail-missing",)


def caveats_of(readings: Sequence[Reading], bench: Bench) -> tuple[str, ...]:
    """What a derived verdict takes for granted."""
    out = []
    if any(r.outcome.unset for r in readings) and bench.boot is not None:
        out.append("env-assumed-unset")
    if bench.boot is not None and bench.boot.engine.kind == "dev":
        out.append("dev-version-bracketed")
    return tuple(out)


def splitting(readings: Sequence[Reading], bench: Bench) -> tuple[str, ...]:
    """The unknown atoms on which the verdicts hang, as reason codes, hardware first."""
    reasons: list[str] = []
    by_verdict: dict[str, list[Reading]] = {}
    for r in readings:
        by_verdict.setdefault(r.verdict, []).append(r)
    for atom in dict.fromkeys(a for r in readings for a in r.outcome.assumed):
        values = {v: {str(r.outcome.assumed.get(atom)) for r in rs} for v, rs in by_verdict.items()}
        if len({frozenset(v) for v in values.values()}) > 1:
            reasons.append(bench.tables.reason(atom))
    if not reasons and len({r.outcome.releases for r in readings}) > 1:
        reasons.append("version-ambiguous")
    if "no-gpu" in reasons:  # toolkit and packages count on a known GPU only; once it is given they show
        reasons = [r for r in reasons if r not in ("no-cuda", "no-package")]
    order = ("no-gpu", "no-cuda", "no-package", "version-ambiguous")
    return tuple(sorted(dict.fromkeys(reasons), key=lambda c: order.index(c) if c in order else len(order)))


def why_nothing(ask: Ask, seen: Seen, bench: Bench) -> tuple[str, ...]:
    """Why neither lines nor tables say what ran."""
    boot, reasons = bench.boot, []
    if boot is not None:
        if boot.engine.name is None:
            reasons.append("unknown-engine")
        if boot.census.head == "missing":
            reasons.append("head-missing")
        if not boot.census.levels.get("INFO") or unheard(boot):
            reasons.append("log-level")
        if boot.status == "failed":
            reasons.append("boot-failed")
        elif boot.status == "incomplete":
            reasons.append("tail-missing")
    if seen.lines:
        reasons.append("unknown-kernel")
    elif seen.undecided or seen.doubted:
        reasons.append("line-untrusted")
    if bench.machine.platform is None:
        reasons.append("no-gpu")
    if not bench.releases:
        reasons.append("unknown-version")
    elif boot is not None and boot.engine.version is None and len(bench.releases) > 1:
        reasons.append("version-ambiguous")
    return tuple(reasons) or ("not-printed-in-version",)


def why_open(bench: Bench) -> tuple[str, ...]:
    """Why an axis of a known kernel stays open: what its gate hangs on, or the tables do not say."""
    if bench.machine.platform is None or (bench.machine.platform == "cuda" and bench.machine.sm is None):
        return ("no-gpu",)
    if bench.machine.platform == "cuda" and bench.machine.cuda is None:
        return ("no-cuda",)
    return ("not-printed-in-version",)
