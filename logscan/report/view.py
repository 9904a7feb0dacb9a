"""What the formats share: which boots are shown, in what order, and text that is safe to show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from logscan.model import SEVERITIES, VERDICTS_WORST_FIRST
from logscan.redact import printable

Json = Mapping[str, Any]


class Shown(NamedTuple):
    """A boot with the log that it stands in; `of` is the number of boots of its source in that log."""

    log: Json
    boot: Json
    of: int


def clean(value: object, limit: int = 400) -> str:
    """Text of a log or a checkpoint on one line: nothing that steers a terminal, at most `limit` characters."""
    text = " ".join(printable(str(value)[: 4 * limit]).replace("\ufffe", "").replace("\uffff", "").split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def many(count: int, noun: str) -> str:
    """`1 line`, `2,000 lines`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def log_name(name: str) -> str:
    """A log as people call it: `-` is what they pipe in."""
    return "stdin" if name == "-" else clean(name, 200)


def no_findings(boots: Iterable[Json]) -> str:
    """What is said of boots without a severity: no findings, or only waived ones."""
    waived = sum(finding["waived"] is not None for boot in boots for finding in boot["findings"])
    return f"{waived} waived" if waived else "no findings"


def ran(row: Json) -> str:
    """What ran and by which kernel or backend: `W8A16-FP8 by Marlin`, `unknown: FLASH_ATTN`; "" for no promise and
    no kernel.
    """
    kernels = " or ".join(clean(kernel["name"], 80) for kernel in row["kernels"])
    if row["ran"]:
        return clean(row["ran"], 200) + (f" by {kernels}" if kernels else "")
    if row["verdict"] == "no-promise":
        return kernels
    return f"unknown: {kernels}" if kernels else "unknown"


def shown(doc: Json, boots: str = "last") -> list[Shown]:
    """The boots that count: all, or the last one of each source of each log; in log order."""
    found = []
    for log in doc["logs"]:
        last: dict[str, int] = {}
        count: dict[str, int] = {}
        for boot in log["boots"]:
            last[boot["source"]] = boot["index"]
            count[boot["source"]] = count.get(boot["source"], 0) + 1
        found += [
            Shown(log, boot, count[boot["source"]])
            for boot in log["boots"]
            if boots == "all" or boot["index"] == last[boot["source"]]
        ]
    return found


def worst_first(boots: Sequence[Shown]) -> list[Shown]:
    """Boots by verdict, then by severity, the worst first; equals keep their order."""
    return sorted(boots, key=lambda s: (verdict_rank(s.boot["verdict"]), -severity_rank(worst(s.boot))))


def rows(boot: Json) -> list[Json]:
    """Rows of a boot, the worst verdict first; those of the target before those that do not count."""
    return sorted(boot["paths"], key=lambda row: (row["component"] != "target", verdict_rank(row["verdict"])))


def findings(boot: Json) -> list[Json]:
    """Findings of a boot, the most severe first, waived ones last."""
    return sorted(boot["findings"], key=lambda f: (f["waived"] is not None, -severity_rank(f["severity"]), f["code"]))


def worst(boot: Json) -> str | None:
    """Highest severity of a boot's findings that are not waived."""
    found = [f["severity"] for f in boot["findings"] if f["waived"] is None]
    return max(found, key=severity_rank, default=None)


def verdict_rank(verdict: str) -> int:
    """0 for the worst verdict."""
    order: Sequence[str] = VERDICTS_WORST_FIRST
    return order.index(verdict) if verdict in order else len(order)


def severity_rank(severity: str | None) -> int:
    """0 for info, -1 for none."""
    order: Sequence[str] = SEVERITIES
    return order.index(severity) if severity in order else -1


def findings_of(row: Json, boot: Json) -> list[Json]:
    """The findings about a row: of its path, of one of its kinds if of any, and of its group if they name one."""
    return [
        f
        for f in findings(boot)
        if f["path"] == row["path"]
        and (f["kind"] is None or f["kind"] in row["kinds"])
        and f.get("group", row["group"]) == row["group"]
        and f.get("component", row["component"]) == row["component"]
    ]


def alike(lines: Sequence[Json]) -> list[tuple[Json, int]]:
    """Lines of equal text and weight once, where they stand first, with how often they stand: ranks repeat them."""
    found: dict[tuple[Any, ...], list[Any]] = {}
    for item in lines:
        found.setdefault((item["text"], item.get("role"), item.get("means")), [item, 0])[1] += 1
    return [(item, count) for item, count in found.values()]


def engine_name(engine: Json) -> str:
    """`vLLM 0.24.0`, as people write it."""
    names = {"vllm": "vLLM", "trtllm": "TensorRT-LLM", "sglang": "SGLang", None: "unknown engine"}
    version = engine["version"] or (engine.get("range") and f"({engine['range']})") or "of unknown version"
    return clean(f"{names.get(engine['name'], engine['name'])} {version}", 120)


def yardstick(row: Json) -> str | None:
    """The label that the row was measured against."""
    column = {"request": "requested", "promise": "promised", "default": "default"}.get(row["against"] or "")
    label = row[column] if column else row["requested"] or row["promised"] or row["default"]
    return clean(label, 200) if label else None


def one_line(row: Json) -> str:
    """`linear group_0: W8A8-FP8 … → W8A16-FP8 …`."""
    order, told = yardstick(row), ran(row) or "unknown"
    return f"{title(row)}: {order} → {told}" if order else f"{title(row)}: {told}"


def title(row: Json) -> str:
    """Path, group and, where it is not the target, component."""
    parts = [row["path"], row["group"], row["component"] if row["component"] != "target" else ""]
    return clean(" ".join(p for p in parts if p), 120)
