"""What conditions ask about during a walk: order, machine, assumptions, and what became of the promise so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from logscan.judge.conditions import UNKNOWN, Condition, evaluate
from logscan.judge.knowledge import Knowledge, View
from logscan.model import Claim, Machine, NumericPath, Operand, Order, Print

_FIRST = ("platform", "sm", "gfx", "cuda")  # the atoms on which others hang are split first
_CLOSED: Condition = ("any",)  # a gate that a release does not have
_DTYPES = {"float16": "fp16", "half": "fp16", "torch.float16": "fp16", "bfloat16": "bf16", "torch.bfloat16": "bf16"}


class State:
    """What the steps have made of an order's promise so far."""

    def __init__(self, order: Order) -> None:
        numeric = order.numeric or NumericPath(None)
        self.weights: Operand | None = numeric.weights
        self.input: Operand | None = numeric.input
        self.claim: Claim = numeric.input_claim
        self.kv: Operand | None = order.kv
        self.choice: str | None = None  # id of the candidate list
        self.layer: str | None = None
        self.kernel: str | None = None
        self.compute = "native"
        self.refusal: str | None = None
        self.crashes = False
        self.marks: dict[str, str] = {}
        self.prints: list[Print] = []
        self.because: list[str] = []

    @property
    def numeric(self) -> NumericPath:
        return NumericPath(self.weights, self.input, self.claim)


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
        family, dot, name = atom.partition(".")
        if not dot:
            return self._plain(atom)
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
        return UNKNOWN

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
            case "kernel":
                return (state.kernel or "").rpartition(":")[2]
            case "layer":
                return state.layer or ""
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
            case "kv_cache":
                return state.marks.get("kv") or order.flags.get("kv_cache_dtype") or "auto"
            case "kv":
                return format_of(state.kv) if state.kv else "none"
            case "kv_gran":
                return state.kv.strategy or "unnamed" if state.kv else "none"
            case "kv_dyn":
                return _dynamic(state.kv)
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
