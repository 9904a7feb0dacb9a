"""Which of a boot's lines speak for a row, and which of those can be believed.

A line speaks for a row when it is about the row's path, names no other number format than the row's, and its layer
class can belong to the row's group. A line that is printed and not true (a distrust row) contradicts, never supports.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from logscan.checkpoint.attribution import groups_for
from logscan.judge.derive import derive, distrusted, format_of
from logscan.judge.knowledge import Knowledge
from logscan.judge.order import Ask
from logscan.model import Boot, Evidence, Fact, Machine, Outcome, Promise

_FORMAT = re.compile(r"nvfp4|mxfp4|mxfp6|mxfp8|fp8|fp4|int8|int4", re.I)
_SELECTED = {
    "linear": ("linear.kernel", "linear.layer"),
    "moe": ("moe.backend",),
    "attention": ("attention.backend",),
}
_WEIGHT_ONLY = ("linear.weight_only", "moe.weight_only")


class Seen(NamedTuple):
    """The lines of one row, sorted by what they are worth."""

    selected: tuple[Fact, ...] = ()  # trusted, and of this row
    shared: tuple[Fact, ...] = ()  # trusted, and of one of several rows
    weight_only: tuple[Fact, ...] = ()  # say that a kernel left the activations alone
    doubted: tuple[tuple[Fact, str], ...] = ()  # with the distrust row
    undecided: tuple[tuple[Fact, str], ...] = ()  # whether they can be believed hangs on the hardware
    refused: tuple[Fact, ...] = ()  # the engine refused the path, or crashed in it
    foreign: tuple[Fact, ...] = ()  # of a layer class that no group of the promise can have

    @property
    def lines(self) -> tuple[Fact, ...]:
        return self.selected + self.shared + self.weight_only


def gather(
    ask: Ask, asks: Sequence[Ask], boot: Boot, promise: Promise | None, machine: Machine, tables: Knowledge
) -> Seen:
    """The lines of `boot` that speak for the row `ask`; `asks` are all rows of the boot."""
    selected: list[Fact] = []
    shared: list[Fact] = []
    weight_only: list[Fact] = []
    doubted: list[tuple[Fact, str]] = []
    undecided: list[tuple[Fact, str]] = []
    foreign: list[Fact] = []
    for fact in boot.facts:
        if fact.component != "target" or not _on_path(fact, ask.path) or not _format_fits(fact, ask):
            continue
        if fact.name in _WEIGHT_ONLY:
            if not _of_another(fact, ask, asks, boot, machine, tables):
                weight_only.append(fact)
        elif fact.name in _SELECTED.get(ask.path, ()):
            groups = _groups(fact, ask, promise)
            if not groups:
                foreign.append(fact)
            if ask.group not in groups:
                continue
            doubt = _doubt(fact, ask, boot, machine, tables)
            if doubt is None:
                (shared if len(groups) > 1 else selected).append(fact)
            elif doubt[1]:
                doubted.append((fact, doubt[0]))
            else:
                undecided.append((fact, doubt[0]))
    refused = _refused(ask, asks, boot)
    return Seen(
        tuple(selected), tuple(shared), tuple(weight_only), tuple(doubted), tuple(undecided), refused, tuple(foreign)
    )


def _of_another(fact: Fact, ask: Ask, asks: Sequence[Ask], boot: Boot, machine: Machine, tables: Knowledge) -> bool:
    """Whether another row accounts for a warning that several rows print alike, and this row need not print it.

    One logger serves them all and prints once (marlin_utils_fp8.py:prepare_fp8_layer_for_marlin), so the warning says
    that one of them is weight-only, not which.
    """
    others = [a for a in asks if a is not ask and _on_path(fact, a.path) and _format_fits(fact, a)]
    if not others:
        return False
    own = [_prints(fact, o) for o in derive(ask.order, machine, boot.engine.releases, tables)]
    if own and all(own):
        return False
    for other in others:
        outcomes = derive(other.order, machine, boot.engine.releases, tables)
        loud = [o for o in outcomes if _prints(fact, o)]
        selected = _SELECTED.get(other.path, ()) if other.path != ask.path else ()
        named = {spelled(f).lower() for f in boot.facts
                 if f.name in selected and f.component == "target"}  # fmt: skip
        sure = bool(loud) and len(loud) == len(outcomes)
        if sure or any((o.kernel or "").lower() in named for o in loud) or (loud and own and not any(own)):
            return True
    return False


def _prints(fact: Fact, outcome: Outcome) -> bool:
    return outcome.refusal is None and fact.pattern in {p.pattern for p in outcome.prints}


def _refused(ask: Ask, asks: Sequence[Ask], boot: Boot) -> tuple[Fact, ...]:
    """The refusals of this path, and the frame of the crash when the innermost one lies in it alone."""
    if boot.status != "failed":
        return ()
    name = "kv" if ask.path == "kv_cache" else ask.path
    found = [f for f in boot.facts if f.name == f"{name}.refused"]
    if name in ("linear", "moe"):  # what refuses a method refuses the linears and the experts
        both = ("linear.refused", "quant.refused")
        found += [f for f in boot.facts if f.name in both and f.path is None and f not in found]
    frames = [f for f in boot.facts if f.name.endswith(".crashed")]
    if frames and not found:
        frame = frames[-1]
        rows = {a.path for a in asks if frame.path == a.path or (frame.path is None and a.path in ("linear", "moe"))}
        if rows == {ask.path}:
            found.append(frame)
    return tuple(found)


def _on_path(fact: Fact, path: str) -> bool:
    """Whether a line is about a path; some texts are printed by the linears and the experts alike."""
    if fact.path is not None:
        return fact.path == path
    if fact.name in _WEIGHT_ONLY:
        return path in ("linear", "moe")
    return fact.name.startswith(path + ".")


def formats_named(text: str) -> frozenset[str]:
    """The number formats that a line names: `FP4` stands for NVFP4 and MXFP4 alike."""
    found = {m.lower() for m in _FORMAT.findall(text)}
    return frozenset(found | ({"nvfp4", "mxfp4"} if "fp4" in found else set()))


def _format_fits(fact: Fact, ask: Ask) -> bool:
    numeric = ask.order.numeric
    if numeric is None or numeric.weights is None or ask.path not in ("linear", "moe"):
        return True
    kernel = " ".join((fact.fields.get("kernel", ""), fact.fields.get("layer", ""), fact.fields.get("format", "")))
    named = formats_named(fact.text if fact.name in _WEIGHT_ONLY else kernel)
    return not named or format_of(numeric.weights) in named


def _groups(fact: Fact, ask: Ask, promise: Promise | None) -> tuple[str, ...]:
    """The groups that a selection line can be about; all of the path's where its layer does not tell.

    Empty where the layer's class belongs to none of them: it is another promise's.
    """
    if promise is None or not ask.promised or not promise.groups:
        return (ask.group,)
    layer = fact.fields.get("layer") or ""
    if not layer:
        return tuple(g.name for g in promise.groups) if ask.mixed else (ask.group,)
    names = tuple(g.name for g in groups_for(promise, layer, ask.path))
    return names or (tuple(g.name for g in promise.groups) if ask.mixed else ())


def _doubt(fact: Fact, ask: Ask, boot: Boot, machine: Machine, tables: Knowledge) -> tuple[str, bool] | None:
    """The distrust row that applies (True), or that one may apply (False: the hardware is not known)."""
    found = distrusted(fact.pattern, fact.fields, ask.order, machine, boot.engine.releases, tables)
    if found is None:
        return None
    return ("", False) if found == "maybe" else (found[0], True)


def spelled(fact: Fact) -> str:
    """The kernel or backend that a selection line names, as it spells it."""
    return fact.fields.get("kernel") or fact.fields.get("backend") or fact.value


def cite(fact: Fact, role: str = "supports", distrusted_by: str | None = None) -> Evidence:
    """A fact as evidence."""
    return Evidence(fact.line, role, fact.means, fact.pattern, fact.text, distrusted_by)  # type: ignore[arg-type]
