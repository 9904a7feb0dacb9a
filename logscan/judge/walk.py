"""One release's walk: an order goes through config, scheme, override, kernel and load, every step a row of data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from logscan.judge.atoms import Atoms, Split, State
from logscan.judge.conditions import UNKNOWN, Condition
from logscan.judge.knowledge import FIRST_FITS, Candidates, Kernel, Knowledge, Rewrite, View
from logscan.model import Machine, Order, Outcome, Print, replace

_MAX_CASES = 4096  # of one release: 11 SMs × 8 toolkits × a few packages stay far below


class Case(NamedTuple):
    """One outcome of one release under one set of assumptions."""

    release: str
    outcome: Outcome
    assumed: Mapping[str, Any]
    unset: frozenset[str]


def cases_of(
    order: Order, machine: Machine, view: View, tables: Knowledge, kernel: str | None = None, able: bool = False
) -> Iterator[Case]:
    """The outcomes of one release, one for each assignment of the unknown atoms that matter.

    `kernel`: those in which this one runs, whatever comes before it in its list; `able`: only where it is in the list
    and its needs are met.
    """
    todo: list[Mapping[str, Any]] = [{}]
    for _ in range(_MAX_CASES):
        if not todo:
            return
        assumed = todo.pop()
        atoms = Atoms(order, machine, view, tables, assumed, State(order))
        try:
            covered = _walk(atoms, kernel, able)
        except Split as split:
            todo += [{**assumed, split.atom: value} for value in reversed(atoms.domain(split.atom))]
            continue
        if covered:
            yield Case(view.release, _outcome(order, atoms.state), assumed, atoms.unset)


def _walk(atoms: Atoms, forced: str | None = None, able: bool = False) -> bool:
    """Take the order through the stages. False when no row of the release speaks about such an order."""
    state, view, order = atoms.state, atoms.view, atoms.order
    for stage in ("config", "scheme", "override"):
        fits = False
        for row in view.rewrites.about(stage, order.path, order.method):
            if atoms.ask(row.when):
                fits = True
                _rewrite(atoms, row)
                if state.refusal:
                    return True
                if stage in FIRST_FITS:
                    break
        if stage == "scheme" and not fits:
            return False
    if forced and state.kernel and not state.choice and forced not in _names(view.kernels[state.kernel]):
        return False  # the scheme has a kernel of its own
    if state.choice and not (state.kernel and not forced):
        _choose(atoms, forced, able)
    if forced and not state.kernel:
        if able or not view.kernels.known(forced):
            return False
        state.kernel = forced
    if state.kernel and not state.refusal:
        _run(atoms, view.kernels[state.kernel])
    if not state.refusal:
        for row in view.rewrites.about("load", order.path, order.method):
            if atoms.ask(row.when):
                _rewrite(atoms, row)
    _fill(atoms)
    return True


def _names(kernel: Kernel) -> tuple[str, ...]:
    return kernel.name, kernel.printed, kernel.id


def _rewrite(atoms: Atoms, row: Rewrite) -> None:
    atoms.state.because.append(row.id)
    apply(atoms.state, row.sets, atoms.tables)
    _print(atoms, row.prints)
    if atoms.state.refusal:
        _fill(atoms)


def apply(state: State, sets: Mapping[str, Any], tables: Knowledge) -> None:
    """Carry out the `set` of a row (or what a kernel does to its promise)."""
    for key, value in sets.items():
        if key == "input":
            _set_input(state, value, tables)
        elif key == "weights":
            state.weights = None if value == "none" else tables.operands[value]
        elif key == "kv":
            state.kv = None if value == "none" else tables.operands[value]
        elif key == "mark":
            state.marks.update(value)
        elif key in ("list", "layer", "kernel", "compute", "refusal", "crashes"):
            setattr(state, "choice" if key == "list" else key, value)


def _set_input(state: State, effect: str, tables: Knowledge) -> None:
    if effect == "keep":
        return
    if effect in ("none", "adapted"):
        state.input, state.claim = None, "none" if effect == "none" else "unspecified"
        return
    state.claim = "quantized"
    if effect in ("token", "tensor"):
        base = state.input or tables.operands["fp8-token"]
        dynamic = True if effect == "token" else base.dynamic
        state.input = replace(base, strategy=effect, dynamic=dynamic, group_size=None, block=None)
    else:
        state.input = tables.operands[effect]


def _choose(atoms: Atoms, forced: str | None = None, able: bool = False) -> None:
    """Walk the candidate list: the first kernel whose place and needs hold, or the one that is `forced`."""
    state, view = atoms.state, atoms.view
    if atoms.value("platform") is UNKNOWN:
        raise Split("platform")
    chosen = view.candidates.get((str(state.choice), str(atoms.value("platform"))))
    if chosen is None:
        same = (other.refusal for (name, _), other in view.candidates.items() if name == state.choice)
        state.refusal = next(filter(None, same), f"no {state.choice} kernel exists for this platform")
        return
    order, select = _wanted(atoms, chosen)
    disabled = (atoms.machine.env.get("VLLM_DISABLED_KERNELS") or "").split(",")
    refusal = ""
    for name, place, otherwise in order:
        kernel = view.kernels[name]
        if forced is not None:
            fits = forced in _names(kernel)
            fits = fits and (not able or (kernel.needs is not None and atoms.ask(kernel.needs)))
        elif name in disabled or not atoms.ask(place):
            refusal = refusal or otherwise
            continue
        else:
            fits = kernel.needs is not None and atoms.ask(kernel.needs)
            refusal = refusal or select.get("unfit", "").replace("{printed}", kernel.printed)
        if fits:
            state.kernel = kernel.id
            state.because.append(f"{chosen.id}:{kernel.name}")
            _print(atoms, chosen.prints)
            return
    if forced is None:
        state.refusal = refusal if select and refusal else select.get("unknown") if select and not order else None
        state.refusal = state.refusal or chosen.refusal or "no kernel of the list can be used"
        state.because.append(f"{chosen.id}:none")


def _wanted(atoms: Atoms, chosen: Candidates) -> tuple[Sequence[tuple[str, Condition, str]], Mapping[str, Any]]:
    """The candidates that the requested backend leaves, and the row for the case that none of them fits."""
    for select in chosen.selects:
        backend = atoms.order.flags.get(select["flag"], "auto")
        if backend in ("auto", "None", ""):
            continue
        kernels = atoms.view.kernels
        backend = backend.rpartition(".")[2].lower()  # `AttentionBackendEnum.FLASHINFER` as an engine line has it
        named = [entry for entry in chosen.order if backend in kernels[entry[0]].backends]
        if named or select["missing"] == "refuse":
            return named, select
    return chosen.order, {}


def _run(atoms: Atoms, kernel: Kernel) -> None:
    """What the kernel makes of the promise, where it is known to crash, and which lines name it."""
    state = atoms.state
    for condition, effect in kernel.effects:
        if atoms.ask(condition):
            apply(state, {key: effect[key] for key in ("weights", "input", "compute") if key in effect}, atoms.tables)
            break
    for condition, because in kernel.crashes:
        if atoms.ask(condition):
            state.crashes, state.refusal = True, because
    _print(atoms, kernel.announces)


def _print(atoms: Atoms, lines: Sequence[Mapping[str, Any]]) -> None:
    for line in lines:
        if atoms.ask(line.get("if", ("all",))):
            atoms.state.prints.append(Print(line["level"], line["text"], line.get("pattern")))


def _fill(atoms: Atoms) -> None:
    """Put the names into the texts of lines and refusals, once they are known."""
    state = atoms.state
    kernel = atoms.view.kernels[state.kernel] if state.kernel else None
    names = {
        "{kernel}": kernel.name if kernel else "",
        "{printed}": kernel.printed if kernel else "",
        "{layer}": state.layer,
        "{method}": atoms.order.method,
        "{quantization}": atoms.order.flags.get("quantization", atoms.order.method),
        "{flag}": next((v for k, v in atoms.order.flags.items() if k.endswith("_backend")), ""),
        "{kv_flag}": atoms.order.flags.get("kv_cache_dtype"),
    }
    if any("{sm}" in text for text in (state.refusal or "", *(line.text for line in state.prints))):
        names["{sm}"] = str(atoms.value("sm"))

    def filled(text: str) -> str:
        for key, name in names.items():
            text = text.replace(key, name or "")
        return text

    state.prints = [replace(line, text=filled(line.text)) for line in state.prints]
    state.refusal = filled(state.refusal) if state.refusal else None


def _outcome(order: Order, state: State) -> Outcome:
    refused = state.refusal is not None and not state.crashes
    return Outcome(
        path=order.path,
        kernel=None if refused or not state.kernel else state.kernel.rpartition(":")[2],
        numeric=None if refused else state.numeric,
        compute=state.compute,
        layer=state.layer,
        refusal=state.refusal,
        crashes=state.crashes,
        prints=tuple(dict.fromkeys(state.prints)),
        because=tuple(state.because),
        also=("rescaled",) if "rescaled" in state.marks and not refused else (),
    )
