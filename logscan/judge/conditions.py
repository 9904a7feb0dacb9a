"""One three-valued condition grammar for every table of knowledge.

In TOML a condition is a table. Its keys are atoms (`sm`, `cuda`, `pkg.humming`, `env.VLLM_USE_DEEP_GEMM`, `a_gran`,
…), all of which must hold; `any`, `all` (lists of conditions) and `not` (one condition) combine, and `gate` names a
gate (`"!x"`: closed).

    { platform = "cuda", any = [{ sm = ">=90", cuda = ">=12.0" }, { sm = "89", cuda = ">=12.4" }] }

`compiling` turns it into nested tuples (plain data: it survives `marshal`), `evaluate` answers True, False or
None with the unknown atoms that decided it. An environment variable that nobody named counts as unset, and is
reported as such.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol

Kind = Literal["range", "version", "flag", "word", "env"]
Condition = tuple[Any, ...]  # ("all", c…) ("any", c…) ("not", c) ("gate", name) (kind, atom, test)
ALWAYS: Condition = ("all",)
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_FALSY = frozenset({"", "0", "false", "False", "no", "off"})


class Unknown:
    """The type of UNKNOWN, the value of an atom that nobody named."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


class Atoms(Protocol):
    """What a condition is asked about."""

    def value(self, atom: str) -> Any:
        """An int, (major, minor), bool or str; UNKNOWN when nobody named it; None for a variable that is unset."""

    def gate(self, name: str) -> Condition | None:
        """The condition of a gate, or None when no row covers the release (the gate's answer is unknown)."""


class Answer(NamedTuple):
    """True, False or None (unknown); the unknown atoms that mattered; the variables that were taken as unset."""

    value: bool | None
    unknown: frozenset[str] = frozenset()
    unset: frozenset[str] = frozenset()


_NOTHING: frozenset[str] = frozenset()
_TRUE, _FALSE = Answer(True), Answer(False)


def evaluate(condition: Condition, atoms: Atoms) -> Answer:
    """Answer a compiled condition. False needs one false part, True all: an unknown part matters only if it decides."""
    head = condition[0]
    if head == "all" or head == "any":
        return _combine(condition[1:], atoms, stop=head == "any")
    if head == "not":
        inner = evaluate(condition[1], atoms)
        return inner if inner.value is None else inner._replace(value=not inner.value)
    if head == "gate":
        row = atoms.gate(condition[1])
        return Answer(None, frozenset({f"gate.{condition[1]}"})) if row is None else evaluate(row, atoms)
    kind, atom, test = condition
    value = atoms.value(atom)
    if value is UNKNOWN:
        return Answer(None, frozenset({atom}))
    if kind == "env" and value is None:
        return Answer(_holds(kind, None, test), _NOTHING, frozenset({atom}))
    return _TRUE if _holds(kind, value, test) else _FALSE


def _combine(parts: tuple[Condition, ...], atoms: Atoms, *, stop: bool) -> Answer:
    """All (stop=False) or any (stop=True) of the parts: the first part that equals `stop` decides."""
    unknown: frozenset[str] = _NOTHING
    unset: frozenset[str] = _NOTHING
    for part in parts:
        answer = evaluate(part, atoms)
        if answer.value is stop:
            return answer
        if answer.unknown:
            unknown |= answer.unknown
        if answer.unset:
            unset |= answer.unset
    if unknown or unset:
        return Answer(None if unknown else not stop, unknown, unset)
    return _FALSE if stop else _TRUE


def _holds(kind: str, value: Any, test: Any) -> bool:
    if kind == "range":
        return any((low is None or value >= low) and (high is None or value <= high) for low, high in test)
    if kind == "version":
        return all(_OPERATORS[op](tuple(value), bound) for op, bound in test)
    if kind == "flag":
        return bool(value) is test
    if kind == "env":
        return any(_env_is(value, word) for word in test)
    return _is_word(value, test)


def _env_is(value: str | None, word: str) -> bool:
    if word.startswith("!"):
        return not _env_is(value, word[1:])
    if word == "on":
        return value is not None and value not in _FALSY
    if word == "off":
        return value is not None and value in _FALSY
    if word == "set":
        return value is not None
    if word.startswith("~"):  # a comma-separated list that holds the word
        return value is not None and word[1:] in (part.strip() for part in value.split(","))
    return value == word


def _is_word(value: Any, test: tuple[tuple[str, ...], tuple[str, ...]]) -> bool:
    wanted, unwanted = test
    text = str(value)
    return text not in unwanted and (not wanted or text in wanted)


def possible(condition: Condition, known: Mapping[str, str]) -> bool:
    """Whether a condition may hold where these words are known; the parts about anything else are left open."""
    if condition[0] == "all":
        return all(possible(part, known) for part in condition[1:])
    if condition[0] == "any":
        return any(possible(part, known) for part in condition[1:])
    if condition[0] == "word" and condition[1] in known:
        return _is_word(known[condition[1]], condition[2])
    return True


def floors(condition: Condition, atom: str = "sm") -> bool:
    """Whether the condition holds a bare floor on `atom` (`>=100`), which takes in every later family too."""
    if condition[0] in ("all", "any", "not"):
        return any(floors(part, atom) for part in condition[1:])
    return bool(condition[0] == "range" and condition[1] == atom and any(high is None for _, high in condition[2]))
