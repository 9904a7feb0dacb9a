"""Why a row deviates: the one thing whose change restores its yardstick.

The same derivation that predicts is asked again with one thing changed at a time: without the operator's flags and
variables, with another toolkit or package, in a neighbouring release, on another GPU. What restores the yardstick first
is the cause; what nothing restores is the checkpoint's own, or not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from logscan import versions
from logscan.judge import compare
from logscan.judge.derive import default_numeric, derive
from logscan.judge.order import Ask
from logscan.judge.rows import Bench
from logscan.model import Machine, Order, Outcome, Row, replace

# Flags that choose a kernel or a method; the others do not bear on a numeric path.
CHOOSERS = ("linear_backend", "moe_backend", "attention_backend", "quantization", "kv_cache_dtype", "kernel_config")
NEIGHBOURS = 4  # minor releases tried on either side
_SMS = (75, 80, 86, 89, 90, 100, 103, 120, 121)
_CUDAS = ((12, 0), (12, 4), (12, 8), (13, 0))


def explain(row: Row, ask: Ask, bench: Bench) -> Row:
    """The row with its cause and remedy, where it deviates."""
    if row.verdict not in ("downgraded", "not-served") or ask.order.numeric is None:
        return row
    cause, remedy = _cause(ask, bench)
    return replace(row, cause=cause, remedy=remedy)


def _cause(ask: Ask, bench: Bench) -> tuple[str, str | None]:
    order, machine, releases = ask.order, bench.machine, bench.releases
    asked = [k for k in CHOOSERS if k in order.flags] + [k for k in machine.env if k.startswith("VLLM_")]
    for name in asked:
        flags = {k: v for k, v in order.flags.items() if k != name}
        env = {k: v for k, v in machine.env.items() if k != name}
        if _kept(ask, replace(order, flags=flags), replace(machine, env=env), releases, bench):
            value = order.flags.get(name) or machine.env.get(name)
            return "request", f"({name}={value} asks for it.)"
    if machine.platform is None or (machine.platform == "cuda" and machine.sm is None):
        return "unknown", None
    for other, what in _builds(machine):
        if _kept(ask, order, other, releases, bench):
            return "build", f"({what} restores it.)"
    found = [r for r in _neighbours(releases, bench.known) if _kept(ask, order, machine, (r,), bench)]
    if found:
        return "version", f"(On this hardware it is kept in {', '.join(found)}.)"
    sms = [sm for sm in _SMS if _kept(ask, order, _on(machine, sm), releases, bench)]
    if sms:
        names = ", ".join(f"SM {sm // 10}.{sm % 10}" for sm in sms)
        return "hardware", f"(In this release it is kept on {names if machine.platform == 'cuda' else 'NVIDIA GPUs'}.)"
    return "checkpoint" if derive(order, machine, releases, bench.tables) else "unknown", None


def _kept(ask: Ask, order: Order, machine: Machine, releases: Sequence[str], bench: Bench) -> bool:
    """Whether some outcome of the changed order keeps the yardstick."""
    outcomes = derive(order, machine, releases, bench.tables)
    default = default_numeric(ask.order, bench.machine, bench.releases, bench.tables)
    return any(_restores(ask, o, default) for o in outcomes)


def _restores(ask: Ask, outcome: Outcome, default: object) -> bool:
    wanted = ask.wanted
    if outcome.refusal is not None or outcome.numeric is None or wanted is None:
        return False
    if ask.path == "kv_cache":
        stored = outcome.numeric.weights
        return not (wanted.weights and stored and compare.kv_kinds(wanted.weights, stored))
    if compare.kinds(wanted, outcome.numeric, outcome.compute):
        return False
    return default is None or "coarser-scales" not in compare.kinds(default, outcome.numeric, outcome.compute)  # type: ignore[arg-type]


def _builds(machine: Machine) -> Iterable[tuple[Machine, str]]:
    for cuda in _CUDAS:
        if machine.platform == "cuda" and machine.cuda is not None and cuda > machine.cuda:
            yield replace(machine, cuda=cuda), f"A build with CUDA {cuda[0]}.{cuda[1]} or newer"
    for name, present in machine.packages.items():
        packages: Mapping[str, bool] = {**machine.packages, name: not present}
        yield replace(machine, packages=packages), f"{'Installing' if not present else 'Removing'} {name}"


def _neighbours(releases: Sequence[str], known: Sequence[str]) -> Iterable[str]:
    """The nearest minor releases around the boot's own, nearest first."""
    own = versions.parse(releases[-1]) if releases else None
    if own is None:
        return
    minors: dict[tuple[int, ...], str] = {}
    for text in known:
        version = versions.parse(text)
        if version is not None and not version.pre and not version.dev:
            minors[version.key[0][:2]] = text
    keys = sorted(minors)
    here = own.key[0][:2]
    below = [k for k in keys if k < here][-NEIGHBOURS:][::-1]
    above = [k for k in keys if k > here][:NEIGHBOURS]
    for key in [*above, *below]:
        yield minors[key]


def _on(machine: Machine, sm: int) -> Machine:
    """The machine with another GPU of NVIDIA's, and a toolkit that can serve it."""
    cuda = machine.cuda if machine.cuda is not None and machine.cuda >= (12, 8) else (12, 8)
    return replace(machine, platform="cuda", sm=sm, gfx=None, gpu=None, cuda=cuda)
