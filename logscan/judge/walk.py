"""One release's walk: an order goes through config, scheme, override, kernel and load, every step a row of data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from logscan.judge.conditions import UNKNOWN, Condition, evaluate
from logscan.judge.knowledge import FIRST_FITS, Candidates, Kernel, Knowledge, Rewrite, View
from logscan.model import Claim, Machine, NumericPath, Operand, Order, Outcome, Print, replace

_MAX_CASES = 4096  # of one release: 11 SMs × 8 toolkits × a few packages stay far below
_FIRST = ("platform", "sm", "gfx", "cuda")  # the atoms on which others hang are split first
_CLOSED: Condition = ("any",)  # a gate that a release does not have
_DTYPES = {"float16": "fp16", "half": "fp16", "torch.float16": "fp16", "bfloat16": "bf16", "torch.bfloat16": "bf16"}


@dataclass
class State:
    """What the steps have made of the promise so far."""

    weights: Operand | None
    input: Operand | None
    claim: Claim
    kv: Operand | None = None
    choice: str | None = None  # id of the candidate list
    layer: str | None = None
    kernel: str | None = None
    compute: str = "native"
    refusal: str | None = None
    crashes: bool = False
    marks: dict[str, str] = field(default_factory=dict)
    prints: list[Print] = field(default_factory=list)
    because: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, order: Order) -> State:
        numeric = order.numeric or NumericPath(None)
        return cls(numeric.weights, numeric.input, numeric.input_claim, order.kv)

    @property
    def numeric(self) -> NumericPath:
        return NumericPath(self.weights, self.input, self.claim)


class Case(NamedTuple):
    """One outcome of one release under one set of assumptions."""

    release: str
    outcome: Outcome
    assumed: Mapping[str, Any]
    unset: frozenset[str]


class Split(Exception):
    """An atom that matters is not known."""

    def __init__(self, atom: str) -> None:
        self.atom = atom


class Atoms:
    """The values that conditions ask for: of the order, the machine, the assumptions, and the state of the walk."""

    def __init__(
        self,
        order: Order,
        machine: Machine,
        view: View,
        tables: Knowledge,
        assumed: Mapping[str, Any],
        state: State,
        *,
        open_gates: bool = False,
        fields: Mapping[str, str] | None = None,
    ) -> None:
        self.order, self.machine, self.view, self.tables = order, machine, view, tables
        self.assumed, self.state, self.open_gates = assumed, state, open_gates
        self.fields = fields or {}
        self.unset: frozenset[str] = frozenset()

    def gate(self, name: str) -> Condition:
        return ("all",) if self.open_gates else self.view.gates.get(name, _CLOSED)

    def value(self, atom: str) -> Any:
        atom = "cuda" if atom == "cuda_runtime" else atom
        if atom in self.assumed:
            return self.assumed[atom]
        family, _, name = atom.partition(".")
        if family == "env":
            return self.machine.env.get(name)
        if family == "flag":
            return self.order.flags.get(name, self._default(atom))
        if family == "trait":
            value = self.order.traits.get(name)
            return self._default(atom) if value is None else value
        if family == "pkg":
            return self.machine.packages.get(name, UNKNOWN)
        if family == "field":
            return self.fields.get(name, "")
        if family == "mark":
            return self.state.marks.get(name, "")
        return self._plain(atom)

    def _default(self, atom: str) -> Any:
        row = self.tables.atom(atom) or {}
        return row.get("default", UNKNOWN)

    def _plain(self, atom: str) -> Any:
        state, order, machine = self.state, self.order, self.machine
        match atom:
            case "platform":
                return machine.platform or UNKNOWN
            case "sm" | "cuda" | "gfx":
                platform = self.value("platform")
                native = "rocm" if atom == "gfx" else "cuda"
                if platform is not UNKNOWN and platform != native:
                    return {"sm": 0, "cuda": (0, 0), "gfx": ""}[atom]
                known = getattr(machine, atom)
                return UNKNOWN if known is None else known
            case "path" | "method":
                return getattr(order, atom)
            case "online":  # no group of a checkpoint stands behind the order: the request made it
                return bool(
                    order.traits.get("online", not order.group and order.flags.get("quantization") == order.method)
                )
            case "explicit":
                return order.flags.get("quantization", "") not in ("", "None", "auto")
            case "dtype":
                return _DTYPES.get(str(order.flags.get("dtype", ""))) or _DTYPES.get(
                    str(order.traits.get("model_dtype", "")), "bf16"
                )
            case "algo":
                return order.algo or ""
            case "kernel" | "layer":
                return getattr(state, atom) or ""
            case "list":
                return state.choice or ""
            case "w":
                return format_of(state.weights)
            case "w_gran":
                return state.weights.strategy or "unnamed" if state.weights else "none"
            case "bits":
                return int(state.weights.bits) if state.weights else 16
            case "group_size":
                return (state.weights.group_size or 0) if state.weights else 0
            case "sym":
                return state.weights is None or state.weights.symmetric is not False
            case "a":
                return state.claim
            case "a_type":
                return format_of(state.input)
            case "a_gran":
                return state.input.strategy or "unnamed" if state.input else "none"
            case "a_dyn":
                return _dynamic(state.input)
            case "kv":
                return format_of(state.kv) if state.kv else "none"
        return UNKNOWN

    def ask(self, condition: Condition) -> bool:
        """Whether a condition holds. Raises Split with the atom to decide first when that is not known."""
        answer = evaluate(condition, self)
        self.unset |= answer.unset
        if answer.value is None:
            names = {"cuda" if atom == "cuda_runtime" else atom for atom in answer.unknown}
            raise Split(min(names, key=lambda a: (_FIRST.index(a) if a in _FIRST else len(_FIRST), a)))
        return answer.value

    def domain(self, atom: str) -> tuple[Any, ...]:
        """The values an unknown atom may have, narrowed by what is known (Blackwell needs CUDA 12.8)."""
        for condition, values in self.view.domains.get(atom, ()):
            if evaluate(condition, self).value:
                return values
        return whole_domain(self.tables, atom)


def whole_domain(tables: Knowledge, atom: str) -> tuple[Any, ...]:
    row = tables.atom(atom) or {}
    return row.get("domain", (True, False))  # type: ignore[no-any-return]


def text_of(values: Sequence[Any]) -> Any:
    """Values of an atom as a report shows them: one as it is, versions dotted, several apart by a blank."""
    if len(values) == 1 and isinstance(values[0], bool | int | str):
        return values[0]
    return " ".join(".".join(map(str, v)) if isinstance(v, tuple) else str(v) for v in values)


def format_of(operand: Operand | None) -> str:
    """The format word of an operand: fp8 int8 int4 nvfp4 mxfp4 mxfp6 mxfp8 nf4 … or `none`."""
    if operand is None:
        return "none"
    family = operand.dtype.partition("_")[0]
    if family == "fp4" and operand.strategy == "tensor_group":
        return "nvfp4"
    if family in ("fp4", "fp6", "fp8") and operand.strategy == "group" and operand.group_size == 32:
        return f"mx{family}"
    return family


def _dynamic(operand: Operand | None) -> str:
    if operand is None:
        return "none"
    return {True: "dynamic", False: "static", None: "unnamed"}.get(operand.dynamic, "dynamic")  # type: ignore[arg-type]


def cases_of(
    order: Order, machine: Machine, view: View, tables: Knowledge, kernel: str | None = None
) -> Iterator[Case]:
    """The outcomes of one release, one for each assignment of the unknown atoms that matter."""
    todo: list[Mapping[str, Any]] = [{}]
    for _ in range(_MAX_CASES):
        if not todo:
            return
        assumed = todo.pop()
        atoms = Atoms(order, machine, view, tables, assumed, State.of(order))
        try:
            covered = _walk(atoms, kernel)
        except Split as split:
            todo += [{**assumed, split.atom: value} for value in reversed(atoms.domain(split.atom))]
            continue
        if covered:
            yield Case(view.release, _outcome(order, atoms.state), assumed, atoms.unset)


def _walk(atoms: Atoms, forced: str | None = None) -> bool:
    """Take the order through the stages. False when no row of the release speaks about such an order."""
    state, view = atoms.state, atoms.view
    for stage in ("config", "scheme", "override"):
        fits = False
        for row in view.rewrites[stage]:
            if atoms.ask(row.when):
                fits = True
                _rewrite(atoms, row)
                if state.refusal:
                    return True
                if stage in FIRST_FITS:
                    break
        if stage == "scheme" and not fits:
            return False
    if forced:
        state.kernel = forced
    elif state.choice and not state.kernel:
        _choose(atoms)
    if state.kernel and not state.refusal:
        _run(atoms, view.kernels[state.kernel])
    if not state.refusal:
        for row in view.rewrites["load"]:
            if atoms.ask(row.when):
                _rewrite(atoms, row)
    _fill(atoms)
    return True


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
            state.weights = None if value == "none" else tables.operands()[value]
        elif key == "kv":
            state.kv = None if value == "none" else tables.operands()[value]
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
        base = state.input or tables.operands()["fp8-token"]
        dynamic = True if effect == "token" else base.dynamic
        state.input = replace(base, strategy=effect, dynamic=dynamic, group_size=None, block=None)
    else:
        state.input = tables.operands()[effect]


def _choose(atoms: Atoms) -> None:
    """Walk the candidate list: the first kernel whose place and needs hold."""
    state, view = atoms.state, atoms.view
    if atoms.value("platform") is UNKNOWN:
        raise Split("platform")
    chosen = view.candidates.get((str(state.choice), str(atoms.value("platform"))))
    if chosen is None:
        state.refusal = f"no {state.choice} kernel exists for this platform"
        return
    disabled = (atoms.machine.env.get("VLLM_DISABLED_KERNELS") or "").split(",")
    for name, place in _wanted(atoms, chosen):
        if name in disabled or not atoms.ask(place):
            continue
        needs = view.kernels[name].needs
        if needs is not None and atoms.ask(needs):
            state.kernel = name
            state.because.append(f"{chosen.id}:{name}")
            _print(atoms, chosen.prints)
            return
    state.refusal = chosen.refusal or "no kernel of the list can be used"
    state.because.append(f"{chosen.id}:none")


def _wanted(atoms: Atoms, chosen: Candidates) -> Sequence[tuple[str, Condition]]:
    """The candidates that the request's backend leaves: those it names, or all of them where the release falls back."""
    for select in chosen.selects:
        backend = atoms.order.flags.get(select["flag"], "auto")
        if backend in ("auto", "None", ""):
            continue
        kernels = atoms.view.kernels
        named = [entry for entry in chosen.order if backend in kernels[entry[0]].backends]
        if named or select["missing"] == "refuse":
            return named
    return chosen.order


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
    names = {"{kernel}": state.kernel, "{layer}": state.layer, "{method}": atoms.order.method}
    if state.refusal and "{sm}" in state.refusal:
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
        kernel=None if refused else state.kernel,
        numeric=None if refused else state.numeric,
        compute=state.compute,
        layer=state.layer,
        refusal=state.refusal,
        crashes=state.crashes,
        prints=tuple(dict.fromkeys(state.prints)),
        because=tuple(state.because),
    )
