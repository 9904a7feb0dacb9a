"""From an order to the set of outcomes that cannot be excluded: ran = load ∘ override ∘ kernel ∘ scheme ∘ request
(promise).

For one release the tables are a function once every atom that matters is known. An atom that is not known and matters
splits the walk into one case for each value it may have (its domain), so unknowns stay correlated: humming cannot be
installed for the scheme and missing for the kernel. Cases with the same outcome are merged; what they assumed is
kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from logscan import versions
from logscan.judge.atoms import Atoms, State, text_of, whole_domain
from logscan.judge.atoms import format_of as format_of
from logscan.judge.conditions import ALWAYS, evaluate
from logscan.judge.knowledge import Knowledge
from logscan.judge.order import is_set
from logscan.judge.walk import Case, apply, cases_of
from logscan.model import Machine, NumericPath, Order, Outcome, replace


def derive(order: Order, machine: Machine, releases: Sequence[str], tables: Knowledge) -> tuple[Outcome, ...]:
    """All outcomes of an order that cannot be excluded, over all `releases` (version texts the tables cover).

    Empty where one of the releases has no rows for such an order: nothing is known then, and nothing is guessed.
    """
    return tables.memo((repr(order), repr(machine), *releases), lambda: _derive(order, machine, releases, tables))


def _derive(order: Order, machine: Machine, releases: Sequence[str], tables: Knowledge) -> tuple[Outcome, ...]:
    cases: list[Case] = []
    for release in releases:
        found = list(cases_of(order, machine, tables.view(release), tables))
        if not found:
            return ()
        cases += found
    return _merge(cases, tables)


def foreign_values(order: Order, machine: Machine, releases: Sequence[str], tables: Knowledge) -> tuple[str, ...]:
    """The flags' values that choose what runs and that no release's tables know (`moe_runner_backend=theirs`).

    A plugin adds backends of its own; what those do with the promise nobody has read.
    """
    known: dict[str, set[str]] = {}
    for release in releases:
        view = tables.view(release)
        atoms = Atoms(order, machine, view, tables, {}, State(order))
        for atom, rows in view.domains.items():
            if atom.startswith("flag."):
                fits = (values for condition, values in rows if evaluate(condition, atoms).value is not False)
                known.setdefault(atom.removeprefix("flag."), set()).update(v for values in fits for v in values)
    given = ((flag, order.flags.get(flag), values) for flag, values in known.items() if values)
    return tuple(f"{flag}={value}" for flag, value, values in given if is_set(value) and value not in values)


def default_numeric(order: Order, machine: Machine, releases: Sequence[str], tables: Knowledge) -> NumericPath | None:
    """What these releases run for the order when their own gate is open; None where no source says, or they differ.

    Rows marked `default` say it (a native fp8 checkpoint with dynamic activations names no granularity; from 0.7.0 vLLM
    runs per-token where CUTLASS can). Gates count as open, and what the machine is does not matter.
    """
    wanted: set[NumericPath | None] = set()
    for release in releases:
        view = tables.view(release)
        atoms = Atoms(order, machine, view, tables, {}, State(order), open_gates=True)
        row = next(
            (r for r in view.rewrites["scheme"] if r.default and evaluate(r.when, atoms).value is not False), None
        )
        if row is not None:
            apply(atoms.state, row.sets, tables)
        wanted.add(atoms.state.numeric if row is not None else None)
    return wanted.pop() if len(wanted) == 1 else None


def outcomes_with(
    kernel: str, order: Order, machine: Machine, releases: Sequence[str], tables: Knowledge
) -> tuple[Outcome, ...]:
    """All outcomes in which this kernel ran (a class name, a backend, or the log's spelling of one).

    Those of the derivation where it has some; else, since a trusted line says so, those in which it was preferred to
    the kernels before it; else those on whatever machine chooses it; else those in which its needs are taken for met.
    Empty for a kernel that the tables do not know.
    """
    found = _of_kernel(kernel, derive(order, machine, releases, tables))
    found = found or _forced(kernel, order, machine, releases, tables, able=True)
    if not found:
        anywhere = machine._replace(platform=None, sm=None, gfx=None, cuda=None, packages={})
        found = _of_kernel(kernel, derive(order, anywhere, releases, tables))
    return found or _forced(kernel, order, machine, releases, tables)


def able(kernel: str, order: Order, machine: Machine, releases: Sequence[str], tables: Knowledge) -> bool:
    """Whether this kernel can serve the order on this machine, chosen or not."""
    found = _of_kernel(kernel, derive(order, machine, releases, tables))
    return bool(found or _forced(kernel, order, machine, releases, tables, able=True))


def _of_kernel(kernel: str, outcomes: Sequence[Outcome]) -> tuple[Outcome, ...]:
    return tuple(o for o in outcomes if (o.kernel or "").lower() == kernel.lower() and not o.refusal)


def _forced(
    kernel: str, order: Order, machine: Machine, releases: Sequence[str], tables: Knowledge, able: bool = False
) -> tuple[Outcome, ...]:
    """The outcomes when this kernel runs: a trusted line says so. `able`: only where its needs are met."""
    views = (tables.view(release) for release in releases)
    cases = [case for view in views for case in cases_of(order, machine, view, tables, kernel, able)]
    return tuple(o for o in _merge(cases, tables) if not o.refusal)


Doubt = tuple[str, Literal["derive", "unknown"], str]


def distrusted(
    pattern: str,
    fields: Mapping[str, str],
    order: Order,
    machine: Machine,
    releases: Sequence[str] | str,
    tables: Knowledge,
) -> Doubt | Literal["maybe"] | None:
    """Whether a line that was printed is known not to be true.

    (row id, truth, because) where it is; "maybe" where that hangs on what is not known; None where it can be believed.
    `fields` are the pattern's named groups (`field.layer` in a condition).
    """
    spans = (releases,) if isinstance(releases, str) else tuple(releases)
    maybe = False
    for row in tables.timeless["distrust"]:
        if row["pattern"] != pattern:
            continue
        covered = [r for r in spans if versions.contains(row.get("engine", ""), r)]
        answers = [
            evaluate(
                row.get("if", ALWAYS), Atoms(order, machine, tables.view(r), tables, {}, State(order), fields=fields)
            )
            for r in covered
        ]
        if answers and len(covered) == len(spans) and all(a.value is True for a in answers):
            return row["id"], row["truth"], row["because"]
        maybe |= any(a.value is not False for a in answers)
    return "maybe" if maybe else None


# ---------------------------------------------------------------- merging cases


def _merge(cases: Sequence[Case], tables: Knowledge) -> tuple[Outcome, ...]:
    """One outcome for all cases that differ only in what they assumed or went through."""
    groups: dict[Any, list[Case]] = {}
    for case in cases:
        o = case.outcome
        groups.setdefault((o.kernel, o.numeric, o.compute, o.layer, o.refusal, o.crashes, o.prints, o.also), []).append(
            case
        )
    return tuple(
        replace(
            group[0].outcome,
            assumed=_assumed([case.assumed for case in group], tables),
            releases=tuple(dict.fromkeys(case.release for case in group)),
            unset=tuple(sorted(frozenset().union(*(case.unset for case in group)))),
        )
        for group in groups.values()
    )


def _assumed(cases: Sequence[Mapping[str, Any]], tables: Knowledge) -> Mapping[str, Any]:
    """For each atom the values under which the outcome is reached; left out where every value leads to it."""
    out: dict[str, Any] = {}
    for atom in dict.fromkeys(atom for case in cases for atom in case):
        whole = whole_domain(tables, atom)
        values = {case[atom] for case in cases if atom in case}
        if len(values) < len(whole) or len(cases) == 1:
            out[atom] = text_of([v for v in whole if v in values] or sorted(values, key=str))
    return out
