"""One three-valued condition grammar for every table of knowledge.

In TOML a condition is a table. Its keys are atoms (`sm`, `cuda`, `pkg.humming`, `env.VLLM_USE_DEEP_GEMM`, `a_gran`,
…), all of which must hold; `any`, `all` (lists of conditions) and `not` (one condition) combine, and `gate` names a
gate (`"!x"`: closed).

    { platform = "cuda", any = [{ sm = ">=90", cuda = ">=12.0" }, { sm = "89", cuda = ">=12.4" }] }

`compile_condition` turns it into nested tuples (plain data: it survives `marshal`), `evaluate` answers True, False or
None with the unknown atoms that decided it. An environment variable that nobody named counts as unset, and is
reported as such.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol

Kind = Literal["range", "version", "flag", "word", "env"]
Condition = tuple[Any, ...]  # ("all", c…) ("any", c…) ("not", c) ("gate", name) (kind, atom, test)
ALWAYS: Condition = ("all",)
_COMBINE = ("any", "all", "not", "gate")
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_BOUND = re.compile(r"(>=|<=|>|<)?\s*(\d+)(?:\.\.(\d+))?\Z", re.A)
_VERSION = re.compile(r"\s*(>=|<=|==|!=|<|>)\s*(\d+)\.(\d+)\s*\Z", re.A)
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
        unknown |= answer.unknown
        unset |= answer.unset
    return Answer(None if unknown else not stop, unknown, unset)


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


# ---------------------------------------------------------------- compiling


def compile_condition(table: Mapping[str, Any], kind_of: Callable[[str], Kind | None]) -> Condition:
    """Compile a TOML condition. `kind_of` tells the kind of an atom, None for an atom that does not exist.

    Raises ValueError that names the atom or test that is wrong.
    """
    parts = [_compile_key(key, test, kind_of) for key, test in _flat(table)]
    return parts[0] if len(parts) == 1 else ("all", *parts)


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Dotted keys of nested tables (`pkg = { humming = true }` is `pkg.humming = true`)."""
    out: list[tuple[str, Any]] = []
    for key, test in table.items():
        if isinstance(test, Mapping) and not (not prefix and key in _COMBINE):
            out += _flat(test, f"{prefix}{key}.")
        else:
            out.append((prefix + key, test))
    return out


def _compile_key(key: str, test: Any, kind_of: Callable[[str], Kind | None]) -> Condition:
    if key in ("any", "all"):
        if not isinstance(test, list) or not all(isinstance(part, Mapping) for part in test):
            raise ValueError(f"{key!r} takes a list of conditions")
        return (key, *(compile_condition(part, kind_of) for part in test))
    if key == "not":
        if not isinstance(test, Mapping):
            raise ValueError("'not' takes one condition")
        return ("not", compile_condition(test, kind_of))
    if key == "gate":
        return ("all", *(_compile_gate(name) for name in _words(test)))
    kind = kind_of(key)
    if kind is None:
        raise ValueError(f"unknown atom {key!r}")
    return (kind, key, _COMPILE[kind](key, test))


def _compile_gate(name: str) -> Condition:
    return ("not", ("gate", name[1:])) if name.startswith("!") else ("gate", name)


def _words(test: Any) -> list[str]:
    return [str(word) for word in (test if isinstance(test, list) else [test])]


def _ranges(atom: str, test: Any) -> tuple[tuple[int | None, int | None], ...]:
    out = []
    for word in _words(test):
        m = _BOUND.match(word.strip())
        if m is None or (m[1] and m[3]):
            raise ValueError(f"{atom} = {word!r}: write a number, '75..88', '>=89' or a list of them")
        low, high = int(m[2]), int(m[3] or m[2])
        out.append(
            {">=": (low, None), ">": (low + 1, None), "<=": (None, low), "<": (None, low - 1)}.get(m[1], (low, high))
        )
    return tuple(out)


def _versions(atom: str, test: Any) -> tuple[tuple[str, tuple[int, int]], ...]:
    out = []
    for part in str(test).split(","):
        m = _VERSION.match(part)
        if m is None:
            raise ValueError(f"{atom} = {test!r}: write a version range like '>=12.4,<13.0'")
        out.append((m[1], (int(m[2]), int(m[3]))))
    return tuple(out)


def _flag(atom: str, test: Any) -> bool:
    if not isinstance(test, bool):
        raise ValueError(f"{atom} = {test!r}: write true or false")
    return test


def _env(_atom: str, test: Any) -> tuple[str, ...]:
    return ({True: "on", False: "!on"}[test],) if isinstance(test, bool) else tuple(_words(test))


def _word(_atom: str, test: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    words = _words(test)
    return tuple(w for w in words if not w.startswith("!")), tuple(w[1:] for w in words if w.startswith("!"))


_COMPILE: Mapping[str, Callable[[str, Any], Any]] = {
    "range": _ranges, "version": _versions, "flag": _flag, "env": _env, "word": _word,
}  # fmt: skip


def floors(condition: Condition, atom: str = "sm") -> bool:
    """Whether the condition holds a bare floor on `atom` (`>=100`), which takes in every later family too."""
    if condition[0] in ("all", "any", "not"):
        return any(floors(part, atom) for part in condition[1:])
    return bool(condition[0] == "range" and condition[1] == atom and any(high is None for _, high in condition[2]))
