"""Prometheus text format, for node_exporter's textfile collector: gauges per boot, row, and model and rule."""

from __future__ import annotations

from collections import Counter
from typing import Any

from logscan.report import view
from logscan.report.view import Json, Shown, clean

_HELP = {
    "logscan_boot_info": "A boot that counts, with what is known of it; always 1.",
    "logscan_boot_verdict": "Verdict of a boot: 1 for the one that holds.",
    "logscan_boot_status": "Status of a boot: 1 for the one that holds.",
    "logscan_row_verdict": "Verdict of a row (path, group, component) of a boot: 1 for the one that holds.",
    "logscan_findings": "Findings that are not waived, by model and rule.",
    "logscan_unrecognised_lines": "Lines that look like selections and are not known.",
    "logscan_logs_without_boot": "Logs in which nothing was recognised.",
}
Labels = tuple[tuple[str, str], ...]


def render(doc: Json, *, boots: str = "last", **_: Any) -> str:
    """Gauges of every boot that counts. Samples of equal labels are added up, as the format allows each only once."""
    samples: dict[str, Counter[Labels]] = {name: Counter() for name in _HELP}
    for item in view.shown(doc, boots):
        _add_boot(samples, item)
    samples["logscan_logs_without_boot"][()] = sum(not log["boots"] for log in doc["logs"])
    lines = []
    for name, values in samples.items():
        if values:
            lines += [f"# HELP {name} {_HELP[name]}", f"# TYPE {name} gauge"]
            lines += [f"{name}{_labels(labels)} {value}" for labels, value in values.items()]
    return "\n".join(lines) + "\n"


def _add_boot(samples: dict[str, Counter[Labels]], item: Shown) -> None:
    boot = item.boot
    engine, hardware = boot["engine"], boot["hardware"]
    model = ("model", clean(boot["model"] or "", 200))
    which = (
        ("log", clean(item.log["name"], 200)),
        ("source", clean(boot["source"] or "", 200)),
        ("boot", str(boot["index"])),
    )
    info = (("engine", engine["name"] or ""), ("version", engine["version"] or ""), ("gpu", hardware["gpu"] or ""))
    # A log may stand in the document twice: these are states, not counts.
    samples["logscan_boot_info"][(*which, model, *((k, clean(v, 120)) for k, v in info))] = 1
    samples["logscan_boot_verdict"][(*which, model, ("verdict", boot["verdict"]))] = 1
    samples["logscan_boot_status"][(*which, model, ("status", boot["status"]))] = 1
    for row in boot["paths"]:
        names = (("path", row["path"]), ("group", clean(row["group"] or "", 120)), ("component", row["component"]))
        samples["logscan_row_verdict"][(*which, model, *names, ("verdict", row["verdict"]))] = 1
    for finding in boot["findings"]:
        if finding["waived"] is None:
            rule = (("code", finding["code"]), ("slug", finding["slug"]), ("severity", finding["severity"]))
            samples["logscan_findings"][(model, *rule)] += 1
    samples["logscan_unrecognised_lines"][which] = len(boot["unrecognised"])


def _labels(labels: Labels) -> str:
    quoted = (f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{','.join(quoted)}}}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
