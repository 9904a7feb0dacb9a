"""Why a row deviates: the one thing whose change restores its yardstick, cheapest first, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logscan import versions
from logscan.judge import compare
from logscan.judge.derive import default_numeric, derive
from logscan.judge.flips import Flip, flips
from logscan.judge.order import Ask
from logscan.judge.rows import Bench
from logscan.model import NumericPath, Outcome, Row, replace

NEIGHBOURS = 4  # minor releases tried on either side


def explain(row: Row, ask: Ask, bench: Bench) -> Row:
    """The row with its cause and remedy, where it deviates."""
    if row.cause is not None or row.verdict not in ("downgraded", "not-served") or ask.order.numeric is None:
        return row
    default = default_numeric(ask.order, bench.machine, bench.releases, bench.tables)
    known = tuple(_neighbours(bench.releases, bench.known))
    found = flips(ask.order, bench.machine, bench.releases, bench.tables, lambda o: _restores(ask, o, default), known)
    flip = next(found, None)
    if flip is not None:
        return replace(row, cause=flip.cause, remedy=_remedy(flip))
    machine = bench.machine
    unknown = machine.platform is None or (machine.platform == "cuda" and machine.sm is None)
    derived = () if unknown else derive(ask.order, machine, bench.releases, bench.tables)
    here = bool(derived) and not any(_restores(ask, o, default) for o in derived)
    return replace(row, cause="checkpoint" if here else "unknown")


def _restores(ask: Ask, outcome: Outcome, default: NumericPath | None) -> bool:
    """Whether an outcome keeps the row's yardstick."""
    wanted, ran = ask.wanted, outcome.numeric
    if outcome.refusal is not None or ran is None or wanted is None:
        return False
    if ask.path == "kv_cache":
        return not (wanted.weights and ran.weights and compare.kv_kinds(wanted.weights, ran.weights))
    if compare.kinds(wanted, ran, outcome.compute):
        return False
    return default is None or "coarser-scales" not in compare.kinds(default, ran, outcome.compute)


def _neighbours(releases: Sequence[str], known: Sequence[str]) -> Iterable[str]:
    """The last releases of the nearest minor ones around the boot's own, ascending."""
    own = versions.parse(releases[-1]) if releases else None
    if own is None:
        return ()
    minors: dict[tuple[int, ...], str] = {}
    for text in known:
        version = versions.parse(text)
        if version is not None:
            minors[version.key[0][:2]] = text
    here = own.key[0][:2]
    below = [k for k in sorted(minors) if k < here][-NEIGHBOURS:]
    above = [k for k in sorted(minors) if k > here][:NEIGHBOURS]
    return [minors[k] for k in below + above]


def _remedy(flip: Flip) -> str:
    family, _, name = flip.atom.partition(".")
    if flip.cause == "request":
        return f"({name}={flip.now} asks for it.)"
    if flip.atom == "engine":
        return f"(On this hardware it is kept in {', '.join(flip.then.split())}.)"
    if flip.atom == "sm":
        return f"(In this release it is kept on {', '.join(f'SM {s[:-1]}.{s[-1]}' for s in flip.then.split())}.)"
    if flip.atom == "cuda":
        return f"(It is kept with a build for CUDA {', '.join(flip.then.split())}.)"
    if family == "pkg":
        return f"(It is kept with {name} {flip.then}.)"
    return f"(In this release it is kept on {flip.then}.)"
