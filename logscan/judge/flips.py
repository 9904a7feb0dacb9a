"""What would have to change for an order to be kept: the same derivation, with one atom changed.

The search goes from the cheapest change to the dearest: request ▸ build ▸ version ▸ hardware. What the same card did
in the release before is a matter of the version, not of the card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from logscan.judge.atoms import text_of, whole_domain
from logscan.judge.derive import derive
from logscan.judge.knowledge import Knowledge
from logscan.model import Machine, NumericPath, Order, Outcome, replace

Cause = Literal["request", "hardware", "version", "build", "checkpoint"]
Wanted = NumericPath | Callable[[Outcome], bool]
_FINER = ("tensor", "channel", "token", "block", "group", "tensor_group")


class Flip(NamedTuple):
    """One change that keeps the order: `atom` from `now` to `then` (a value, or the values that do)."""

    cause: Cause
    atom: str  # flag.linear_backend env.VLLM_… sm platform engine cuda pkg.humming
    now: str
    then: str


def flips(
    order: Order,
    machine: Machine,
    releases: Sequence[str],
    tables: Knowledge,
    wanted: Wanted,
    known: Sequence[str] = (),
) -> Iterator[Flip]:
    """The changes after which every outcome serves `wanted`, nearest cause first; nothing where the checkpoint is it.

    `known` are the releases to try instead, ascending (a view of each is built: hand over few). Lazy: take as many as
    needed. Nothing either where nothing need change: what deviates from its own derivation has no known cause.
    """

    def kept(order: Order = order, machine: Machine = machine, releases: Sequence[str] = releases) -> bool:
        outcomes = derive(order, machine, releases, tables)
        return bool(outcomes) and all(serves(o, wanted) for o in outcomes)

    if kept():
        return
    for name, value in order.flags.items():
        if name == "quantization" and not order.group and value == order.method:
            continue  # without this request there is nothing to keep
        if kept(replace(order, flags=_without(order.flags, name))):
            yield Flip("request", f"flag.{name}", str(value), "not given")
    for name, value in machine.env.items():
        if kept(machine=replace(machine, env=_without(machine.env, name))):
            yield Flip("request", f"env.{name}", value, "unset")
    if machine.cuda is not None:
        toolkits = [
            c for c in whole_domain(tables, "cuda") if c != machine.cuda and kept(machine=replace(machine, cuda=c))
        ]
        if toolkits:
            yield Flip("build", "cuda", ".".join(map(str, machine.cuda)), str(text_of(toolkits)))
    for name, present in machine.packages.items():
        if kept(machine=replace(machine, packages={**machine.packages, name: not present})):
            yield Flip("build", f"pkg.{name}", _installed(present), _installed(not present))
    better = [r for r in known if r not in releases and kept(releases=(r,))]
    if better:
        yield Flip("version", "engine", " ".join(releases), " ".join(better))
    if machine.platform == "cuda" and machine.sm is not None:
        others = [sm for sm in whole_domain(tables, "sm") if sm != machine.sm and kept(machine=replace(machine, sm=sm))]
        if others:
            yield Flip("hardware", "sm", str(machine.sm), str(text_of(others)))
    elif machine.platform is not None:
        for sm in (90, 100):
            if kept(machine=replace(machine, platform="cuda", sm=sm, gfx=None, cuda=(13, 0))):
                yield Flip("hardware", "platform", machine.platform, f"cuda sm {sm}")
                break
    if machine.gfx:
        gfx = [g for g in whole_domain(tables, "gfx") if g != machine.gfx and kept(machine=replace(machine, gfx=g))]
        if gfx:
            yield Flip("hardware", "gfx", machine.gfx, str(text_of(gfx)))


def serves(outcome: Outcome, wanted: Wanted) -> bool:
    """Whether an outcome gives what is wanted: every axis that `wanted` names, and computed natively."""
    if outcome.refusal is not None:
        return False
    if callable(wanted):
        return wanted(outcome)
    ran = outcome.numeric
    if ran is None or ran.weights is None or wanted.weights is None or ran.weights.dtype != wanted.weights.dtype:
        return False
    if wanted.input_claim == "none":
        return ran.input is None and ran.input_claim == "none"
    if wanted.input_claim == "unspecified":
        return True
    if ran.input is None or wanted.input is None or outcome.compute != "native":
        return False
    ask, got = wanted.input, ran.input
    return got.dtype == ask.dtype and (
        ask.strategy is None or got.strategy == ask.strategy or _rank(got.strategy) > _rank(ask.strategy)
    )


def _rank(strategy: str | None) -> int:
    return _FINER.index(strategy) if strategy in _FINER else -1


def _without(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {k: v for k, v in table.items() if k != name}


def _installed(present: bool) -> str:
    return "installed" if present else "not installed"
