"""What a loader cannot see row by row: names that lead nowhere, rows never reached, facts without a source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from logscan.judge.conditions import Condition, floors
from logscan.judge.knowledge import FIRST_FITS, STAGES

Row = Mapping[str, Any]
_SOURCED = ("gate", "kernel", "candidates", "rewrite", "distrust", "domain")
_KEYS: Mapping[str, Mapping[str, Any]] = {
    "gate": {"id": str, "rows": tuple},
    "kernel": {"id": str, "needs": tuple},
    "candidates": {"id": str, "platform": (str, tuple), "rows": tuple},
    "rewrite": {"id": str, "stage": str, "set": Mapping},
    "distrust": {"id": str, "pattern": str, "truth": str, "because": str},
    "domain": {"atom": str, "values": tuple},
    "operand": {"id": str, "dtype": str, "bits": (int, float)},
}
_PARTS = ("needs", "effects", "crashes", "announces", "prints", "refusals", "selects")  # tables within a row
_TEXTS: Mapping[str, tuple[str, ...]] = {"prints": ("level", "text"), "announces": ("level", "text"),
                                         "crashes": ("because",), "refusals": ("text",)}  # fmt: skip
_WORDS: Mapping[Any, str] = {
    str: "a text",
    tuple: "a list",
    Mapping: "a table",
    (str, tuple): "a text or a list",
    (int, float): "a number",
}
_EFFECTS = {"keep", "none", "adapted", "token", "tensor"}  # what a row makes of an operand without naming one


def problems(raw: Mapping[str, tuple[Row, ...]]) -> list[str]:
    """Everything that is wrong with the compiled tables, with file and line; shapes first, for the rest reads them."""
    checks = (_shapes,) if any(_shapes(raw)) else (_names, _links, _floors, _shadowed)
    return [f"{row['where']}: {what}" for check in checks for row, what in check(raw)]


def _shapes(raw: Mapping[str, tuple[Row, ...]]) -> Iterator[tuple[Row, str]]:
    for table, keys in _KEYS.items():
        for row in raw[table]:
            for key, kind in keys.items():
                if not isinstance(row.get(key), kind):
                    yield row, f"[[{table}]] {row.get('id', '')!r}: {key} is missing or not {_WORDS[kind]}"
            for key in _PARTS:
                if key in row and (not isinstance(row[key], tuple) or not all(_is_part(key, p) for p in row[key])):
                    told = f" with {' and '.join(_TEXTS[key])}" if key in _TEXTS else ""
                    yield row, f"[[{table}]] {row.get('id', '')!r}: {key} is a list of tables{told}"
            for key, value in row["set"].items() if table == "rewrite" and isinstance(row.get("set"), Mapping) else ():
                if not _is_set(key, value):
                    yield row, f"[[rewrite]] {row.get('id', '')!r}: set.{key} is not {value!r}"
            for part in row.get("rows", ()) if isinstance(row.get("rows"), tuple) else ():
                if not isinstance(part, Mapping) or (
                    table == "candidates"
                    and not (isinstance(part.get("order"), tuple) and all(map(_is_place, part["order"])))
                ):
                    yield (
                        row,
                        f"[[{table}]] {row.get('id', '')!r}: rows are tables" + " with an order" * (table != "gate"),
                    )


def _is_place(place: Any) -> bool:
    return isinstance(place, str) or (isinstance(place, Mapping) and isinstance(place.get("kernel"), str))


def _is_set(key: str, value: Any) -> bool:
    if key == "mark":
        return isinstance(value, Mapping)
    return isinstance(value, str | bool)


def _is_part(key: str, part: Any) -> bool:
    return isinstance(part, Mapping) and all(isinstance(part.get(text), str) for text in _TEXTS.get(key, ()))


def _names(raw: Mapping[str, tuple[Row, ...]]) -> Iterator[tuple[Row, str]]:
    for table, rows in raw.items():
        seen: set[Any] = set()
        for row in rows:
            if table != "domain" and "id" not in row:
                yield row, f"[[{table}]] without an id"
                continue
            name = (row.get("id"), row.get("platform"))
            if table not in ("domain", "layer") and name in seen:
                yield row, f"[[{table}]] {row['id']!r} stands here a second time"
            seen.add(name)
            if table in _SOURCED and not row.get("source"):
                yield row, f"[[{table}]] {row.get('id', row.get('atom'))!r} has no source"


def _links(raw: Mapping[str, tuple[Row, ...]]) -> Iterator[tuple[Row, str]]:
    gates, kernels = ({row.get("id") for row in raw[table]} for table in ("gate", "kernel"))
    lists = {row.get("id") for row in raw["candidates"]}
    operands = {row.get("id") for row in raw["operand"]}
    for table in _SOURCED:
        for row in raw[table]:
            for condition in _conditions(row):
                for name in _gates(condition):
                    if name not in gates:
                        yield row, f"gate {name!r} has no row"
    for row in raw["rewrite"]:
        if row.get("stage") not in STAGES:
            yield row, f"stage {row.get('stage')!r}: one of {', '.join(STAGES)}"
        sets = row.get("set", {})
        if "list" in sets and sets["list"] not in lists:
            yield row, f"candidates {sets['list']!r} have no row"
        if sets.get("kernel") and sets["kernel"] not in kernels:
            yield row, f"kernel {sets['kernel']!r} has no row"
        for key in ("weights", "input", "kv"):
            if key in sets and sets[key] not in operands | _EFFECTS:
                yield row, f"operand {sets[key]!r} has no row"
    yield from _circles(raw["gate"])
    for row in raw["candidates"]:
        for entry in row["rows"]:
            for name in (o if isinstance(o, str) else o["kernel"] for o in entry["order"]):
                if name not in kernels:
                    yield row, f"kernel {name!r} has no row"


def _circles(gates: tuple[Row, ...]) -> Iterator[tuple[Row, str]]:
    """Gates that ask for themselves, through others or not."""
    asks = {row["id"]: {name for c in _conditions(row) for name in _gates(c)} for row in gates}
    for row in gates:
        reached: set[str] = set()
        new = asks[row["id"]]
        while new - reached:
            reached |= new
            new = {name for gate in new for name in asks.get(gate, ())}
        if row["id"] in reached:
            yield row, f"gate {row['id']!r} asks for itself"


def _floors(raw: Mapping[str, tuple[Row, ...]]) -> Iterator[tuple[Row, str]]:
    """A bare floor on `sm` takes in families that do not exist yet: the row must say that its source compares so."""
    for table in ("gate", "kernel", "rewrite"):
        for row in raw[table]:
            if not row.get("floor") and any(floors(condition) for condition in _conditions(row)):
                yield (
                    row,
                    f"{row['id']!r}: a bare floor on sm; name the families, or floor = true",
                )


def _shadowed(raw: Mapping[str, tuple[Row, ...]]) -> Iterator[tuple[Row, str]]:
    """Where the first row that fits is taken, a row with the same condition and range is never reached."""
    seen: dict[Any, str] = {}
    for row in raw["rewrite"]:
        if row.get("stage") in FIRST_FITS:
            key = (row["stage"], row.get("engine", ""), repr(row.get("if")))
            if key in seen:
                yield row, f"{row['id']!r} is never reached: {seen[key]!r} has the same condition"
            seen.setdefault(key, row["id"])


def _conditions(value: Any) -> Iterator[Condition]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "if":
                yield item
            else:
                yield from _conditions(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from _conditions(item)


def _gates(condition: Condition) -> Iterator[str]:
    if condition[0] == "gate":
        yield condition[1]
    elif condition[0] in ("all", "any", "not"):
        for part in condition[1:]:
            yield from _gates(part)
