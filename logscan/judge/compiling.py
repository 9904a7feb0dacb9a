"""From TOML to plain data: conditions, and the tables of knowledge. Imported where the cache does not have them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from logscan import versions
from logscan.judge.conditions import Condition, Kind
from logscan.judge.knowledge import Raw
from logscan.model import InputError

_COMBINE = ("any", "all", "not", "gate")
_BOUND = re.compile(r"(>=|<=|>|<)?\s*(\d+)(?:\.\.(\d+))?\Z", re.A)
_VERSION = re.compile(r"\s*(>=|<=|==|!=|<|>)\s*(\d+)\.(\d+)\s*\Z", re.A)
_TABLES = ("atom", "domain", "operand", "gate", "kernel", "candidates", "rewrite", "distrust", "layer")
_ELSEWHERE = (
    "gpu",
    "rule",
    "request",
    "kind",
    "reason",
    "caveat",
    "fmha",
)  # tables of other rooms, kept in the same directory
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*(\w+)[ \t]*\]\]", re.M)


def compile_tables(files: Sequence[tuple[Path, bytes]]) -> Raw:
    """The tables in `files` (TOML), frozen: lists are tuples, each `if` a condition. Raises InputError that lists every
    mistake with its file and line.
    """
    from logscan.judge.lint import problems

    raw: dict[str, list[dict[str, Any]]] = {table: [] for table in _TABLES}
    faults: list[str] = []
    for path, data in files:
        for table, row, where in _rows(path, data, faults):
            raw[table].append({**row, "where": where})
    kinds = {row["id"]: row.get("kind", "word") for row in raw["atom"] if "id" in row}

    def kind_of(atom: str) -> Kind | None:
        return kinds.get(atom) or kinds.get(atom.split(".", 1)[0] + ".*")

    compiled = {
        table: tuple(_frozen(row, kind_of, row["where"], faults) for row in rows) for table, rows in raw.items()
    }
    if not faults:
        faults += problems(compiled)
    if faults:
        raise InputError("\n".join(faults))
    return compiled


def _rows(path: Path, data: bytes, faults: list[str]) -> Iterator[tuple[str, dict[str, Any], str]]:
    try:
        text = data.decode()
        document = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        faults.append(f"{path}: not TOML: {error}")
        return
    lines: dict[str, list[int]] = {}
    for m in _HEADER.finditer(text):
        lines.setdefault(m[1], []).append(text.count("\n", 0, m.start()) + 1)
    for table, rows in document.items():
        if table in _ELSEWHERE:
            continue
        if table not in _TABLES or not isinstance(rows, list):
            faults.append(f"{path}: [[{table}]] is no table of knowledge; known: {', '.join(_TABLES)}")
            continue
        known = lines.get(table, []) if len(lines.get(table, [])) == len(rows) else [0] * len(rows)
        for row, line in zip(rows, known, strict=True):
            where = f"{path}:{line}" if line else f"{path}"
            if isinstance(row, dict):
                yield table, row, where
            else:
                faults.append(f"{where}: [[{table}]] is a table, not {row!r}")


def _frozen(value: Any, kind_of: Any, where: str, faults: list[str]) -> Any:
    """Lists become tuples, and every `if` its compiled condition."""
    if isinstance(value, list):
        return tuple(_frozen(item, kind_of, where, faults) for item in value)
    if not isinstance(value, dict):
        if not isinstance(value, str | int | float):
            faults.append(f"{where}: {value} is a {type(value).__name__}; no table of knowledge takes one")
        return value
    out: dict[str, Any] = {}
    for key, item in value.items():
        if key == "if":
            try:
                out[key] = compile_condition(item, kind_of)
            except (ValueError, AttributeError) as error:
                faults.append(f"{where}: {error}")
        else:
            if key == "engine":
                try:
                    versions.clauses(item)
                except ValueError as error:
                    faults.append(f"{where}: engine: {error}")
                except AttributeError:
                    faults.append(f"{where}: engine: write a range as a text, like '>=0.15,<0.17'")
            out[key] = _frozen(item, kind_of, where, faults)
    return out


# ---------------------------------------------------------------- conditions


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
