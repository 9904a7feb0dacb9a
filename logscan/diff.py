"""Two boots, before and after: what changed in what was ordered, what runs, and the verdicts.

Facts are compared by name as sets of values, so that order, repeats of ranks and line numbers make no difference. A
fact that only one side shows is told as such: a release may have stopped printing a line, and silence proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from logscan import __version__, reprs
from logscan.model import SEVERITIES

SCHEMA = "logscan.diff/1"
Json = Mapping[str, Any]

_STATUS_RANK = {"ready": 0, "incomplete": 1, "died": 2, "failed": 3}
# A path without an order cannot be worse than one whose order is kept.
_VERDICT_RANK = {"no-promise": 0, "kept": 0, "unproven": 1, "downgraded": 2, "not-served": 3}
_ROW_FIELDS = ("verdict", "requested", "promised", "default", "ran", "extent", "kinds", "cause", "visibility")
_SECTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("engine", ("engine.", "package.", "nccl.", "env.torch_cuda")),
    ("hardware", ("gpu.", "parallel.")),
    ("promise", ("promise.", "quant.")),
    ("request", ("request.", "env.")),
    ("config", ("config.", "build.")),
    ("kernels", ("linear.", "moe.", "attention.", "deepgemm.", "tuner.")),
    ("kv_cache", ("kv.", "dtype.")),
    ("features", ("feature.", "graph.")),
    ("boot", ("boot.",)),
)
SECTIONS = (*(name for name, _ in _SECTIONS), "capacity", "other")
# Numbers of the machine and the moment: they differ a little from boot to boot.
_CAPACITY = re.compile(
    r"kv\.(tokens|memory_gib|concurrency|blocks|allocated|bytes)|model\.gib|weights\.\w+|gpu\.memory"
)
_TOLERANCE = 0.05
_VOLATILE = re.compile(
    r"boot\.(start|engine|engine_ready|ready|routes|shutdown|tasks|drafter|memory)|engine\.(version|model|session)"
    r"|process\.\w+|model\.(loading|weights_seconds)|request\.(args|port|host|model|model_tag|uvicorn_log_level|ssl_\w+)"
    r"|config\.(model|tokenizer|served_model_name|download_dir)|engine\.args"
    r"|config\.\w+\.(cache_dir|local_cache_dir|debug_dump_path|inductor_compile_config|traced_files)"
)
_NESTED = re.compile(r"\s*(?:(\w+\()|\{)")


class Side(NamedTuple):
    """One of the two boots: the log it stands in, its document, and the lines' texts where the log itself was read."""

    log: str
    boot: Json
    given: Json
    texts: Mapping[int, str] = {}

    def text(self, line: int | None, value: str) -> str | None:
        """The text of a line that shows a value, as far as it is known: of a long line a part may be quoted."""
        if line is None:
            return None
        if line in self.texts:
            return self.texts[line]
        quoted = (e for part in ("paths", "findings") for item in self.boot[part] for e in item["evidence"])
        return next((str(e["text"]) for e in quoted if e["line"] == line and value in e["text"]), None)


def compare(old: Side, new: Side, fail_on: str = "high") -> dict[str, Any]:
    """The document `logscan.diff/1`. `result` is `worse`, `better`, `changed` or `same`.

    Worse: the status, the verdict or extent of a target row, or a finding at or above `fail_on` that is new or has
    become more severe.
    """
    rows = list(_rows(old.boot, new.boot))
    findings = list(_findings(old.boot, new.boot))
    changes = [*_identity(old, new), *_facts(old, new)]
    order = {name: n for n, name in enumerate(SECTIONS)}
    return {
        "schema": SCHEMA,
        "of": "boot",
        "tool": {"version": __version__},
        "result": _result(old.boot, new.boot, rows, findings, changes, fail_on),
        "before": _side(old),
        "after": _side(new),
        "changes": sorted(changes, key=lambda change: order[change["section"]]),
        "rows": rows,
        "findings": findings,
    }


def _side(side: Side) -> dict[str, Any]:
    keys = ("index", "source", "status", "verdict", "engine", "model", "hardware", "promise")
    return {"log": side.log, "given": side.given, **{key: side.boot[key] for key in keys}}


def _result(
    old: Json, new: Json, rows: Sequence[Json], findings: Sequence[Json], changes: Sequence[Json], fail_on: str
) -> str:
    status = _STATUS_RANK[new["status"]] - _STATUS_RANK[old["status"]]
    moved = {row["change"] for row in rows if (row["after"] or row["before"])["component"] == "target"}
    limit = SEVERITIES.index(fail_on) if fail_on in SEVERITIES else len(SEVERITIES)
    raised = [f for f in findings if _rank(f["after"]) >= limit and _rank(f["after"]) > _rank(f["before"])]
    lowered = [f for f in findings if _rank(f["before"]) >= limit and _rank(f["after"]) < _rank(f["before"])]
    if status > 0 or "worse" in moved or raised:
        return "worse"
    if status < 0 or "better" in moved or lowered:
        return "better"
    differs = changes or any(item["change"] != "same" for item in (*rows, *findings))
    return "changed" if differs else "same"


def _rank(finding: Json | None) -> int:
    """-1 for a finding that is not there, or is waived."""
    return -1 if finding is None or finding["waived"] is not None else SEVERITIES.index(finding["severity"])


def audit_result(doc: Json, fail_on: str = "high") -> str:
    """`worse`, `better`, `changed` or `same`, of the difference of two audits (`of` is `audit`), by the same measure.

    A boot that can no longer be read is worse; one that is gone is only a change.
    """
    steps = [step for change in doc["boots"] for step in _audit_steps(change, fail_on)]
    if "worse" in steps:
        return "worse"
    return "better" if "better" in steps else "changed" if doc["boots"] else "same"


def _audit_steps(change: Json, fail_on: str) -> Iterator[str]:
    before, after = change["before"] or {}, change["after"] or {}
    for name, ranks in (("verdict", _VERDICT_RANK), ("status", _STATUS_RANK)):
        if before.get(name) in ranks and after.get(name) in ranks:
            step = ranks[after[name]] - ranks[before[name]]
            yield "worse" if step > 0 else "better" if step < 0 else "same"
    if before.get("outcome") == "boot" and after.get("outcome", "boot") != "boot":
        yield "worse"
    limit = SEVERITIES.index(fail_on) if fail_on in SEVERITIES else len(SEVERITIES)
    for word, step_word in (("added", "worse"), ("removed", "better")):
        if any(SEVERITIES.index(f["severity"]) >= limit for f in change["findings"][word]):
            yield step_word


# ---------------------------------------------------------------- rows


def _rows(old: Json, new: Json) -> Iterator[dict[str, Any]]:
    before, after = _by_row(old), _by_row(new)
    # A group is named after the checkpoint's own; without a checkpoint on one side the only row of the path is meant.
    for key in [k for k in before if k not in after]:
        others = [k for k in after if k[::2] == key[::2]]
        if len(others) == 1 and others[0] not in before and sum(k[::2] == key[::2] for k in before) == 1:
            before[others[0]] = before.pop(key)
    for key in dict.fromkeys([*after, *before]):
        was, now = before.get(key), after.get(key)
        moved = _moved(was, now)
        path, group, component = key
        yield {
            "path": path,
            "group": group,
            "component": component,
            "change": _row_change(was, now, moved),
            "moved": moved,
            "before": was,
            "after": now,
        }


def _by_row(boot: Json) -> dict[tuple[str, str, str], Json]:
    return {(row["path"], row["group"], row["component"]): row for row in boot["paths"]}


def _moved(was: Json | None, now: Json | None) -> list[str]:
    """The fields of a row that differ; empty where one side has no such row."""
    if was is None or now is None:
        return []
    moved = [name for name in _ROW_FIELDS if was[name] != now[name]]
    if [k["name"] for k in was["kernels"]] != [k["name"] for k in now["kernels"]]:
        moved.append("kernels")
    return moved


def _row_change(was: Json | None, now: Json | None, moved: Sequence[str]) -> str:
    if was is None or now is None:
        alarming = now is not None and _VERDICT_RANK[now["verdict"]] > 0
        return "worse" if alarming else "added" if was is None else "removed"
    step = _badness(now) - _badness(was)
    if step:
        return "worse" if step > 0 else "better"
    return "changed" if moved else "same"


def _badness(row: Json) -> int:
    """Verdict first, then extent: more layers downgraded is worse, an extent that is not known is neither."""
    return 2 * _VERDICT_RANK[row["verdict"]] + int(row["extent"] == "all")


# ---------------------------------------------------------------- findings


def _findings(old: Json, new: Json) -> Iterator[dict[str, Any]]:
    before = {_finding_key(f): f for f in old["findings"]}
    after = {_finding_key(f): f for f in new["findings"]}
    for key in dict.fromkeys([*after, *before]):
        was, now = before.get(key), after.get(key)
        if was is None or now is None:
            change = "new" if was is None else "gone"
        else:
            same = (was["severity"], was["waived"] is None) == (now["severity"], now["waived"] is None)
            change = "same" if same else "changed"
        yield {"change": change, "before": was, "after": now}


def _finding_key(finding: Json) -> tuple[Any, ...]:
    """What makes two findings the same one: rule and row; beside the rows the patterns that show it.

    Not the fingerprint, which has the labels in it: the same deviation may end in another kernel's path.
    """
    if finding["path"] is not None:
        return finding["code"], finding["path"], finding["group"]
    if finding["code"].startswith(("LS5", "LS9")):
        return (finding["code"],)
    patterns = sorted({e["pattern"] for e in finding["evidence"] if e["pattern"]})
    return finding["code"], *(patterns or [finding["fingerprint"]])


# ---------------------------------------------------------------- what was read


def _identity(old: Side, new: Side) -> Iterator[dict[str, Any]]:
    """What each boot is: engine, model, hardware, promise; as `triage` resolved it."""
    for section, name, read in _IDENTITY:
        was, now = (read(side.boot) for side in (old, new))
        yield from _pair(section, name, old, new, was, now)


def _value(value: str | None, line: int | None) -> dict[str, int | None]:
    return {} if value is None else {value: line}


def _version(boot: Json) -> dict[str, int | None]:
    return _value(boot["engine"]["version"] or boot["engine"]["range"], boot["engine"]["line"])


_IDENTITY: tuple[tuple[str, str, Callable[[Json], dict[str, int | None]]], ...] = (
    ("engine", "engine.name", lambda boot: _value(boot["engine"]["name"], boot["engine"]["line"])),
    ("engine", "engine.version", _version),
    ("engine", "model", lambda boot: _value(boot["model"], None)),
    ("hardware", "hardware.gpu", lambda boot: _value(boot["hardware"]["gpu"], None)),
    ("hardware", "hardware.sm", lambda boot: _value(boot["hardware"]["sm"], None)),
    ("hardware", "hardware.cuda", lambda boot: _value(boot["hardware"]["cuda"], None)),
    ("promise", "promise.method", lambda boot: _value(boot["promise"] and boot["promise"]["method"], None)),
    ("promise", "promise.label", lambda boot: _value(boot["promise"] and boot["promise"]["label"], None)),
)


def _facts(old: Side, new: Side) -> Iterator[dict[str, Any]]:
    before, after = _values(old.boot), _values(new.boot)
    for key in dict.fromkeys([*before, *after]):
        name, component = key
        was, now = before.get(key, {}), after.get(key, {})
        if _CAPACITY.fullmatch(name):
            if not _close(was, now):
                yield from _pair("capacity", name, old, new, was, now, component)
            continue
        yield from _pair(_section(name), name, old, new, was, now, component)


def _values(boot: Json) -> dict[tuple[str, str], dict[str, int | None]]:
    """Fact and component → its values, each with the first line that shows it; nested reprs field by field."""
    found: dict[tuple[str, str], dict[str, int | None]] = {}
    for fact in boot["facts"]:
        if _VOLATILE.fullmatch(fact["name"]):
            continue
        for name, value in _fields(fact["name"], fact["value"]):
            if not _VOLATILE.fullmatch(name):
                found.setdefault((name, fact["component"]), {}).setdefault(value, fact["line"])
    return found


def _fields(name: str, value: str) -> Iterator[tuple[str, str]]:
    nested = _NESTED.match(value) if name.startswith(("config.", "request.")) and name.count(".") < 3 else None
    inner = reprs.pairs(value, "namespace" if nested[1] else "pydict") if nested else {}
    if not inner:
        yield name, value
    for key, text in inner.items():
        yield from _fields(f"{name}.{key}", text)


def _section(name: str) -> str:
    return next((section for section, prefixes in _SECTIONS if name.startswith(prefixes)), "other")


def _pair(
    section: str,
    name: str,
    old: Side,
    new: Side,
    was: Mapping[str, int | None],
    now: Mapping[str, int | None],
    component: str = "target",
) -> Iterator[dict[str, Any]]:
    if set(was) != set(now):
        yield {
            "section": section,
            "name": name,
            "component": component,
            "before": [{"value": v, "line": line, "text": old.text(line, v)} for v, line in was.items()],
            "after": [{"value": v, "line": line, "text": new.text(line, v)} for v, line in now.items()],
        }


def _close(was: Mapping[str, int | None], now: Mapping[str, int | None]) -> bool:
    """Whether the first numbers of both sides are within the tolerance; a side without any tells nothing."""
    if not was or not now:
        return True
    try:
        one, other = (float(list(values)[0].replace(",", "")) for values in (was, now))
    except ValueError:
        return set(was) == set(now)
    return abs(one - other) <= _TOLERANCE * max(abs(one), abs(other))
