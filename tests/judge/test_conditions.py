"""The three-valued grammar: every form of test, and what an unknown does to each combination."""

from __future__ import annotations

from typing import Any

import pytest

from logscan.judge.compiling import compile_condition
from logscan.judge.conditions import UNKNOWN, Answer, Condition, Kind, evaluate, floors

KINDS: dict[str, Kind] = {"sm": "range", "cuda": "version", "pkg.humming": "flag", "env.X": "env", "method": "word"}


class Facts:
    def __init__(self, gates: dict[str, Condition] | None = None, **values: Any) -> None:
        self.values, self.gates = {k.replace("__", "."): v for k, v in values.items()}, gates or {}

    def value(self, atom: str) -> Any:
        return self.values.get(atom, None if atom.startswith("env.") else UNKNOWN)

    def gate(self, name: str) -> Condition | None:
        return self.gates.get(name)


def ask(table: dict[str, Any], gates: dict[str, Condition] | None = None, **values: Any) -> Answer:
    return evaluate(compile_condition(table, KINDS.get), Facts(gates, **values))


@pytest.mark.parametrize(
    ("test", "inside", "outside"),
    [
        ("75..88", (75, 80, 88), (74, 89, 120)),
        ("90", (90,), (89, 100)),
        (90, (90,), (91,)),
        (">=100", (100, 103, 121), (90,)),
        (">100", (101,), (100,)),
        ("<89", (75, 88), (89,)),
        ("<=89", (89,), (90,)),
        (["90", "100..109", "120..129"], (90, 100, 103, 109, 120, 121), (89, 91, 99, 110, 130)),
    ],
)
def test_families_and_ranges_of_sm(test: Any, inside: tuple[int, ...], outside: tuple[int, ...]) -> None:
    assert all(ask({"sm": test}, sm=sm).value is True for sm in inside)
    assert all(ask({"sm": test}, sm=sm).value is False for sm in outside)
    assert ask({"sm": test}) == Answer(None, frozenset({"sm"}))


def test_versions_of_cuda() -> None:
    assert ask({"cuda": ">=12.4"}, cuda=(12, 4)).value is True
    assert ask({"cuda": ">=12.4"}, cuda=(12, 3)).value is False
    assert ask({"cuda": ">=12.4,<13.0"}, cuda=(13, 0)).value is False
    assert ask({"cuda": ">=12.8"}, cuda=(13, 0)).value is True
    assert ask({"cuda": ">=12.4"}).value is None


def test_packages_in_dotted_and_nested_spelling() -> None:
    for table in ({"pkg.humming": True}, {"pkg": {"humming": True}}):
        assert ask(table, pkg__humming=True).value is True
        assert ask(table, pkg__humming=False).value is False
        assert ask(table) == Answer(None, frozenset({"pkg.humming"}))


@pytest.mark.parametrize(
    ("test", "unset", "one", "zero"),
    [
        ("on", False, True, False),
        ("!on", True, False, True),
        ("off", False, False, True),
        ("!off", True, True, False),
        ("set", False, True, True),
        (True, False, True, False),
        (False, True, False, True),
        ("1", False, True, False),
    ],
)
def test_environment(test: Any, unset: bool, one: bool, zero: bool) -> None:
    assert ask({"env.X": test}) == Answer(unset, frozenset(), frozenset({"env.X"}))
    assert ask({"env.X": test}, env__X="1") == Answer(one)
    assert ask({"env.X": test}, env__X="0") == Answer(zero)


def test_a_word_in_a_list_variable() -> None:
    assert ask({"env.X": "~B"}, env__X="A, B").value is True
    assert ask({"env.X": "~C"}, env__X="A, B").value is False


def test_words_wanted_and_unwanted() -> None:
    assert ask({"method": ["fp8", "awq"]}, method="awq").value is True
    assert ask({"method": ["fp8", "awq"]}, method="gptq").value is False
    assert ask({"method": "!fp8"}, method="awq").value is True
    assert ask({"method": ["!fp8", "!awq"]}, method="awq").value is False


def test_an_unknown_part_matters_only_where_it_decides() -> None:
    both = {"sm": ">=90", "cuda": ">=12.0"}
    assert ask(both, sm=80) == Answer(False)
    assert ask(both, cuda=(11, 8)) == Answer(False)
    assert ask(both, sm=90) == Answer(None, frozenset({"cuda"}))
    either = {"any": [{"sm": ">=90"}, {"pkg": {"humming": True}}]}
    assert ask(either, sm=90) == Answer(True)
    assert ask(either, sm=80) == Answer(None, frozenset({"pkg.humming"}))
    assert ask(either) == Answer(None, frozenset({"sm", "pkg.humming"}))


def test_not_all_and_the_empty_condition() -> None:
    assert ask({"not": {"sm": "90"}}, sm=90).value is False
    assert ask({"not": {"sm": "90"}}).value is None
    assert ask({"all": [{"sm": "90"}, {"method": "fp8"}]}, sm=90, method="fp8").value is True
    assert ask({}).value is True


def test_gates_open_closed_and_unknown() -> None:
    gates = {"fp8": compile_condition({"sm": ">=89"}, KINDS.get)}
    assert ask({"gate": "fp8"}, gates, sm=90).value is True
    assert ask({"gate": "!fp8"}, gates, sm=90).value is False
    assert ask({"gate": ["fp8", "!fp8"]}, gates, sm=90).value is False
    assert ask({"gate": "fp8"}, gates) == Answer(None, frozenset({"sm"}))
    assert ask({"gate": "other"}, gates).value is None


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"colour": "red"}, "unknown atom 'colour'"),
        ({"sm": "8.9"}, "write a number"),
        ({"sm": ">=75..88"}, "write a number"),
        ({"cuda": "12"}, "version range"),
        ({"pkg.humming": "yes"}, "true or false"),
        ({"any": {"sm": "90"}}, "list of conditions"),
        ({"not": ["sm"]}, "one condition"),
        ({"any": [{"colour": "red"}]}, "colour"),
    ],
)
def test_what_is_no_condition(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        compile_condition(table, KINDS.get)


def test_a_bare_floor_is_found_wherever_it_hides() -> None:
    assert floors(compile_condition({"any": [{"not": {"sm": ">=100"}}]}, KINDS.get))
    assert not floors(compile_condition({"sm": ["90", "100..109"], "cuda": ">=12.0"}, KINDS.get))
