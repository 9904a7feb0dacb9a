"""`logscan promise P`: what a checkpoint promises, what it leaves open, and what each engine will read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from logscan.checkpoint.errors import printable
from logscan.checkpoint.reader import Checkpoint, read_checkpoint
from logscan.model import Group, Matcher, Operand, Promise

SCHEMA = "logscan.promise/1"
# Notes that are findings of the catalogue; the others are remarks.
FINDINGS: Mapping[str, str] = {
    "N_SIDECAR_DISAGREES": "LS702",
    "N_CONTRADICTED": "LS703",
    "N_TARGET_CLASH": "LS703",
    "N_NO_METHOD": "LS703",
    "N_PRESET": "LS703",
    "N_NO_EXPORT": "LS703",
    "N_KV_NO_SCHEME": "LS703",
    "N_KV_NOT_APPLIED": "LS703",
    "N_MIXED_NO_LAYERS": "LS703",
    "N_NESTED": "LS703",
    "N_SIDECAR_ALGO": "LS703",
    "N_SIDECAR_UNREADABLE": "LS703",
    "N_BOM": "LS703",
    "N_DUP_KEY": "LS703",
}
_ENGINE_NAMES = {"vllm": "vLLM", "sglang": "SGLang", "trtllm": "TensorRT-LLM"}
_SPELLING = {"regex": "re:{}", "substring": "*{}*", "prefix": "{}*", "suffix": "*{}", "component": "*.{}.*"}
_LONGEST = 2000
_CELL = 160
_SHOWN_GROUPS = 40
_SHOWN_OPEN = 8
_SHOWN_TARGETS = 4
_SHOWN_IGNORED = 12


def run(checkpoint: str, format: str = "table", output: Path | None = None) -> int:
    """Write the promise of `checkpoint` as text or JSON. Raises CheckpointError (exit 2) for what cannot be read."""
    from logscan.cli.output import write

    doc = document(read_checkpoint(checkpoint, tensors=True))
    write(json.dumps(doc, indent=2, ensure_ascii=True) + "\n" if format == "json" else render_text(doc), output)
    return 0


def document(checkpoint: Checkpoint | Promise) -> dict[str, Any]:
    """The promise as `logscan.promise/1`, a JSON object without NaN."""
    if isinstance(checkpoint, Promise):
        checkpoint = Checkpoint(checkpoint)
    promise = checkpoint.promise
    return {
        "schema": SCHEMA,
        "source": promise.source,
        "method": promise.method,
        "raw_method": promise.raw_method,
        "algo": promise.algo,
        "label": promise.label,
        "model": {"type": promise.model_type, "dtype": promise.model_dtype, "traits": _traits(promise)},
        "producer": promise.producer,
        "status": promise.status,
        "groups": [_group(g) for g in promise.groups],
        "kv_cache": {"label": promise.kv_cache.label, **_operand(promise.kv_cache.operand)}
        if promise.kv_cache
        else None,
        "ignore": [_matcher(m) for m in promise.ignore],
        "open": list(left_open(promise)),
        "sparsity": dict(promise.sparsity) if promise.sparsity is not None else None,
        "transforms": list(promise.transforms),
        "engines": [
            {"engine": engine, "source": reading.source, "label": reading.label}
            for engine, reading in checkpoint.readings.items()
        ],
        "tensors": checkpoint.tensors._asdict() if checkpoint.tensors is not None else None,
        "notes": [{"code": n.code, "message": n.message} for n in promise.notes],
        "findings": [_finding(n.code, n.message) for n in promise.notes if n.code in FINDINGS],
    }


def left_open(promise: Promise) -> Iterator[str]:
    """What the promise does not name, so that no engine can break it, one sentence each."""
    for group in promise.groups:
        numeric = group.numeric
        if numeric.input_claim == "unspecified":
            yield f"{group.name}: whether, and how, activations are quantized"
        elif numeric.input is not None and numeric.input.strategy is None:
            yield f"{group.name}: the granularity of the activation scales"
    if not promise.groups:
        yield "linear layers and experts: any quantization is the operator's request, not the checkpoint's promise"
    if promise.kv_cache is None:
        yield "KV cache: its type is the engine's choice"


def render_text(doc: Mapping[str, Any], width: int | None = None) -> str:
    """A `logscan.promise/1` document for people: what is promised, left open, not quantized, remarked."""
    return "\n".join(_lines(doc, width or min(shutil.get_terminal_size().columns, 120))) + "\n"


def _lines(doc: Mapping[str, Any], width: int) -> Iterator[str]:
    model = doc["model"]
    about = (doc["method"], doc["algo"], doc["producer"], model["type"], model["dtype"])
    yield _clean(doc["label"])
    yield f"  {_clean(doc['source'])} · {' · '.join(_clean(word) for word in about if word)}"
    if doc["groups"] or doc["kv_cache"]:
        yield from _section("Promised", _promised(doc))
    yield from _section("Left open", _cut(doc["open"], _SHOWN_OPEN), width)
    yield from _section("Not quantized", _few(doc["ignore"], _SHOWN_IGNORED))
    if doc["tensors"]:
        yield from _section("Stored", [_stored(doc["tensors"])], width)
    yield from _section("Engines read", _engines(doc["engines"]))
    for finding in doc["findings"]:
        yield from _section(f"{finding['code']} {finding['severity']}", [finding["message"], finding["fix"]], width)
    found = {f["message"] for f in doc["findings"]}
    yield from _section(
        "Notes", [f"{n['code']}  {n['message']}" for n in doc["notes"] if n["message"] not in found], width
    )


def _promised(doc: Mapping[str, Any]) -> list[str]:
    shown = doc["groups"][:_SHOWN_GROUPS]
    rows = [(g["name"], g["scope"], g["label"], ", ".join(_few(g["targets"], _SHOWN_TARGETS))) for g in shown]
    if len(doc["groups"]) > len(shown):
        rows.append((f"and {len(doc['groups']) - len(shown):,} more", "", "", ""))
    if doc["kv_cache"]:
        rows.append(("", "kv_cache", doc["kv_cache"]["label"], ""))
    cut = [tuple(printable(cell, _CELL) for cell in row) for row in rows]
    widths = [max(len(row[column]) for row in cut) for column in range(3)]
    return [
        "  ".join([*(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=False)), row[3]]).rstrip() for row in cut
    ]


def _section(title: str, entries: Iterable[str], width: int | None = None) -> Iterator[str]:
    import textwrap

    lines = [_clean(entry) for entry in entries]
    if not lines:
        return
    yield ""
    yield title
    for entry in lines:
        if width is None:
            yield f"  {entry}"
        else:
            yield from textwrap.wrap(
                entry, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
            )


def _few(matchers: Sequence[Mapping[str, str]], limit: int) -> list[str]:
    """The first matchers, those that match a part of a name with stars, and how many more there are."""
    shown = [_SPELLING.get(m["kind"], "{}").replace("{}", m["value"]) for m in matchers[:limit]]
    return shown + _more(len(matchers) - limit)


def _cut(entries: Sequence[str], limit: int) -> list[str]:
    return [*entries[:limit], *_more(len(entries) - limit)]


def _more(count: int) -> list[str]:
    return [f"and {count:,} more"] if count > 0 else []


def _engines(readings: Sequence[Mapping[str, str]]) -> list[str]:
    width = max((len(r["source"]) for r in readings), default=0)
    return [
        f"{_ENGINE_NAMES.get(r['engine'], r['engine']):<12}  {r['source']:<{width}}  {r['label']}" for r in readings
    ]


def _stored(tensors: Mapping[str, Any]) -> str:
    dtypes = ", ".join(f"{count:,} {dtype}" for dtype, count in tensors["dtypes"].items())
    scales = (
        f"{tensors['weight_scales']:,} weight, {tensors['input_scales']:,} input, {tensors['kv_scales']:,} KV scales"
    )
    partly = "" if tensors["complete"] else " (not every header was read)"
    files = "1 file" if tensors["files"] == 1 else f"{tensors['files']:,} files"
    return f"{tensors['tensors']:,} tensors in {files}: {dtypes}; {scales}{partly}"


def _group(group: Group) -> dict[str, Any]:
    numeric = group.numeric
    return {
        "name": group.name,
        "label": group.label,
        "scope": group.scope,
        "targets": [_matcher(m) for m in group.targets],
        "activation": numeric.input_claim,
        "weights": _operand(numeric.weights) if numeric.weights else None,
        "input": _operand(numeric.input) if numeric.input else None,
        "output": _operand(group.output) if group.output else None,
        "storage": group.storage,
        "algo": group.algo,
    }


def _operand(operand: Operand) -> dict[str, Any]:
    return {
        "dtype": operand.dtype,
        "bits": operand.bits,
        "strategy": operand.strategy,
        "group_size": operand.group_size,
        "block": list(operand.block) if operand.block else None,
        "symmetric": operand.symmetric,
        "dynamic": operand.dynamic,
        "scale_dtype": operand.scale_dtype,
        "scale_ub": operand.scale_ub,
    }


def _matcher(matcher: Matcher) -> dict[str, str]:
    return {"kind": matcher.kind, "value": matcher.value}


def _traits(promise: Promise) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, tuple) else value for key, value in promise.traits.items()}


def _finding(code: str, message: str) -> dict[str, Any]:
    from logscan import catalogue

    rule = catalogue.rule(FINDINGS[code])
    return {
        "code": rule.code,
        "slug": rule.slug,
        "severity": rule.severity,
        "cause": "checkpoint",
        "message": message,
        "fix": rule.fix_for("checkpoint"),
    }


def _clean(text: str) -> str:
    return printable(text, _LONGEST)
