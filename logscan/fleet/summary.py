"""An audit in numbers: `logscan.audit/1` from the tables of a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any

from logscan.fleet.columns import order
from logscan.fleet.store import Audit, Store, Tables
from logscan.model import SEVERITIES, VERDICTS_WORST_FIRST

if TYPE_CHECKING:
    import polars as pl

SCHEMA = "logscan.audit/1"
_COMMON = ("gpu", "version", "model", "promise")  # what boots with a finding may have in common
_EXAMPLES = 5
_TELLING = 0.25  # share of the boots with a value, from which on having it in common tells something
_MIN_ALIKE = 3  # boots that agree before another one is an outlier
_SHARE = 0.75  # of them that agree


def summary(store: Store, audit: Audit, tables: Tables, tool: Mapping[str, Any]) -> dict[str, Any]:
    """The document without its `boots` (see `boots_of`): totals, matrix, findings, outliers, trend, what went wrong."""
    boots = placed(tables.boots)
    counted = _counted(boots)
    found, worst = verdicts(tables), set(counted["worst"].drop_nulls())
    return {
        "schema": SCHEMA,
        "tool": dict(tool),
        "audit": {"id": audit.id, "finished": audit.finished, **audit.about},
        "verdict": next((v for v in VERDICTS_WORST_FIRST if v in found), None),
        "worst": next((s for s in reversed(SEVERITIES) if s in worst), None),
        "totals": {
            "logs": boots["log"].n_unique(),
            "boots": boots.filter(boots["outcome"] == "boot").height,
            "counted": counted.height,
            "errors": boots.filter(boots["outcome"] == "error").height,
            "nothing": boots.filter(boots["outcome"] == "nothing").height,
            "verdicts": found,
            "statuses": _counts(counted, "status"),
        },
        "matrix": matrix(counted),
        "findings": top_findings(counted, tables.findings, store),
        "outliers": outliers(counted, tables.paths),
        "unjoined": unjoined(counted),
        "errors": boots.filter(boots["outcome"] == "error").select("log", "error").to_dicts(),
        "nothing": boots.filter(boots["outcome"] == "nothing")["log"].to_list(),
        "trend": [
            {"audit": a.id, "finished": a.finished, "logs": len(a.logs), "verdicts": a.about.get("verdicts", {})}
            for a in store.audits()
            if a.about.get("shard") is None
        ],
    }


def verdicts(tables: Tables) -> dict[str, int]:
    """How many of the boots that count have each verdict, the worst first."""
    counts = _counts(_counted(tables.boots), "verdict")
    return _worst_first(counts)


def _worst_first(counts: Mapping[str, int]) -> dict[str, int]:
    return {verdict: counts[verdict] for verdict in VERDICTS_WORST_FIRST if verdict in counts}


def _counted(boots: pl.DataFrame) -> pl.DataFrame:
    return boots.filter((boots["outcome"] == "boot") & boots["counted"])


def placed(boots: pl.DataFrame) -> pl.DataFrame:
    """`boots` with what is unknown spelled out where people group by it, and one name for the hardware."""
    import polars as pl

    sm = pl.when(pl.col("sm").str.contains(r"^\d")).then("SM " + pl.col("sm")).otherwise(pl.col("sm"))
    unknown = pl.lit("unknown")
    return boots.with_columns(
        hardware=pl.coalesce("gpu", sm, "platform", unknown),
        model=pl.coalesce("model", unknown),
        engine=pl.coalesce("engine", unknown),
        version=pl.coalesce("version", "range", unknown),
    )


def _counts(frame: pl.DataFrame, column: str) -> dict[str, int]:
    found = frame.group_by(column).len().sort(["len", column], descending=[True, False])
    return {str(value): count for value, count in found.iter_rows() if value is not None}


def matrix(counted: pl.DataFrame) -> list[dict[str, Any]]:
    """Verdicts by model × GPU × engine version, those with the worst verdict first."""
    keys = ["model", "hardware", "engine", "version"]
    cells: dict[tuple[str, ...], dict[str, int]] = {}
    for *key, verdict, count in counted.group_by([*keys, "verdict"]).len().sort([*keys, "verdict"]).iter_rows():
        cells.setdefault(tuple(key), {})[verdict] = count
    rows = [
        {"model": m, "gpu": g, "engine": e, "version": v, "boots": sum(found.values()), "verdicts": _worst_first(found)}
        for (m, g, e, v), found in cells.items()
    ]
    return sorted(rows, key=lambda row: (min(map(VERDICTS_WORST_FIRST.index, row["verdicts"])), -row["boots"]))


def top_findings(counted: pl.DataFrame, findings: pl.DataFrame, store: Store) -> list[dict[str, Any]]:
    """A row for each rule that fired: how often, what those boots have in common, when it was first and last seen."""
    import polars as pl

    found = findings.filter(pl.col("waived").is_null()).join(
        counted.select("key", "boot", "hardware", "model", "engine", "version", "promise", "status"),
        on=["key", "boot"],
        how="inner",
        maintain_order="left",
    )
    seen = {code: (first, last) for code, first, last in store.seen().iter_rows()}
    rows = []
    for (code, slug), group in found.group_by("code", "slug", maintain_order=True):
        boots = group.unique(["key", "boot"], maintain_order=True)
        severity = max(group["severity"], key=SEVERITIES.index)
        first, last = seen.get(str(code), (None, None))
        messages = _messages(group)
        rows.append(
            {
                "code": code,
                "slug": slug,
                "severity": severity,
                "boots": boots.height,
                "causes": _counts(boots, "cause"),
                "common": list(_common(boots, counted)),
                "first_seen": first,
                "last_seen": last,
                "message": messages[0]["message"],
                "examples": messages[0]["examples"],
                "messages": messages[:_EXAMPLES],
                "more_messages": len(messages[_EXAMPLES:]),
            }
        )
    return sorted(rows, key=lambda row: (-SEVERITIES.index(row["severity"]), -row["boots"], row["code"]))


def _messages(findings: pl.DataFrame) -> list[dict[str, Any]]:
    """Each message of a rule with the boots that it is of, the most frequent first: one log's text is not another's."""
    found = []
    for (message,), group in findings.group_by("message", maintain_order=True):
        boots = group.unique(["key", "boot"], maintain_order=True)
        examples = boots["log"].unique(maintain_order=True).head(_EXAMPLES).to_list()
        found.append({"message": message, "boots": boots.height, "examples": examples})
    return sorted(found, key=lambda told: (-told["boots"], told["message"]))


def _common(boots: pl.DataFrame, counted: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """The values that all boots with a finding share and few others have; `of`: how many have that value at all."""
    for column in _COMMON:
        name = "hardware" if column == "gpu" else column
        values = boots[name].unique()
        if len(values) == 1 and values[0] is not None:
            of = counted.filter(counted[name] == values[0]).height
            if of < counted.height and boots.height >= _TELLING * of:
                yield {"column": column, "value": values[0], "boots": boots.height, "of": of}


def outliers(counted: pl.DataFrame, paths: pl.DataFrame) -> list[dict[str, Any]]:
    """Boots that ran another kernel, or another numeric path, than most of the same checkpoint and release did."""
    import polars as pl

    same = ["model", "promise", "engine", "version", "path", "group", "component"]
    rows = (
        paths.drop("evidence")
        .filter(pl.col("ran").is_not_null() | (pl.col("kernels").list.len() > 0))
        .with_columns(kernels=pl.col("kernels").list.eval(pl.element().struct.field("name")).list.join(", "))
        .join(
            counted.select("key", "boot", "hardware", "model", "engine", "version", "promise"),
            on=["key", "boot"],
            how="inner",
            maintain_order="left",
        )
    )
    found = []
    for key, group in rows.group_by(same, maintain_order=True):
        ways = [(way, boots) for way, boots in group.group_by("kernels", "ran", maintain_order=True)]
        ways.sort(key=lambda way: (-way[1].height, str(way[0])))
        (kernels, ran), usual = ways[0]
        if len(ways) < 2 or usual.height < _MIN_ALIKE or usual.height < _SHARE * group.height:
            continue
        for (other_kernels, other_ran), boots in ways[1:]:
            found.append(
                {
                    **dict(zip(same, key, strict=True)),
                    "usual": {"kernels": kernels, "ran": ran, "boots": usual.height, "gpus": _names(usual)},
                    "other": {"kernels": other_kernels, "ran": other_ran, "boots": boots.height, "gpus": _names(boots)},
                    "logs": boots["log"].head(_EXAMPLES).to_list(),
                }
            )
    return sorted(found, key=lambda row: (row["other"]["boots"], str(row["model"]), row["path"]))


def _names(rows: pl.DataFrame) -> list[str]:
    return sorted(rows["hardware"].unique())


def unjoined(counted: pl.DataFrame) -> list[dict[str, Any]]:
    """The boots that no checkpoint was found for, by reason and model."""
    import polars as pl

    rows = counted.filter(pl.col("unjoined").is_not_null())
    groups = rows.group_by("unjoined", "model", maintain_order=True)
    return [
        {"why": why, "model": model, "boots": boots.height, "examples": boots["log"].head(_EXAMPLES).to_list()}
        for (why, model), boots in groups
    ]


def boots_of(tables: Tables) -> Iterator[dict[str, Any]]:
    """Each row of `boots` with its `paths` and `findings`, in order."""
    nested = {name: _groups(getattr(tables, name)) for name in ("paths", "findings")}
    waiting = {name: next(groups, None) for name, groups in nested.items()}
    for boot in tables.boots.iter_rows(named=True):
        for name, groups in nested.items():
            # Both tables have the order of the boots: nothing but the rows at hand is ever held.
            found = waiting[name]
            if found is not None and found[0] == (boot["log"], boot["boot"]):
                boot[name], waiting[name] = found[1], next(groups, None)
            else:
                boot[name] = []
        yield boot


def _groups(rows: pl.DataFrame) -> Iterator[tuple[tuple[str, int], list[dict[str, Any]]]]:
    of_boot = ("key", "log", "boot", "source")
    for place, group in groupby(rows.iter_rows(named=True), key=order):
        yield place, [{name: value for name, value in row.items() if name not in of_boot} for row in group]


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """A table whose every value fits a CSV cell: lists joined by `; `, evidence as its lines."""
    import polars as pl

    columns = []
    for name, kind in frame.schema.items():
        column = pl.col(name)
        if kind == pl.List(pl.String):
            column = column.list.join("; ")
        elif name == "kernels":
            column = column.list.eval(pl.element().struct.field("name")).list.join("; ")
        elif isinstance(kind, pl.List):
            lines = pl.element().struct.field("line").cast(pl.String) + ": " + pl.element().struct.field("text")
            column = column.list.eval(lines).list.join("; ")
        columns.append(column)
    return frame.select(columns)
