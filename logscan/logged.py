"""The promise that a log itself prints: TensorRT-LLM shows the quantization config it read.

Two forms: the whole dictionary (`Use quantization_config from …: quantization_config={…}`), or line by line what was
taken over from hf_quant_config.json (`Setting quant_algo=FP8 from HF quant config.`). Both are text that anybody may
have written.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from logscan.checkpoint import CheckpointError, promise_from_dict
from logscan.model import Boot, Fact, Promise

MAX_TEXT = 1 << 16  # characters of a printed dictionary
MAX_DEPTH = 32


def logged_promise(boot: Boot) -> Promise | None:
    """The promise in a boot's lines; None where they print none, or none that can be read.

    `Promise.source` is `log:LINE`. Never raises: what a log says need not be true, or whole.
    """
    whole = [f for f in boot.facts if f.name == "promise.override"] or [
        f for f in boot.facts if f.name == "promise.config"
    ]
    for fact in reversed(whole):
        config = literal(fact.value)
        if isinstance(config, dict):
            return _read(config, fact)
    algos = [f for f in boot.facts if f.name in ("promise.quant_algo", "promise.kv_cache_quant_algo")]
    if len({f.value for f in algos if f.name == "promise.quant_algo"}) > 1:
        return None  # of two models, and the lines do not tell which is which
    return _read(_sidecar(boot, algos), algos[0]) if algos else None


def literal(text: str) -> Any:
    """The value of a printed Python literal; None where it is none, too long, too deep or cut off. Nothing runs."""
    if len(text) > MAX_TEXT or _depth(text) > MAX_DEPTH:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _depth(text: str) -> int:
    depth = most = 0
    for c in text:
        if c in "[({":
            depth += 1
            most = max(most, depth)
        elif c in "])}":
            depth -= 1
    return most


def _sidecar(boot: Boot, algos: list[Fact]) -> dict[str, Any]:
    """hf_quant_config.json as far as its fields were printed. A value that was cut is left out."""
    quantization: dict[str, Any] = {}
    for fact in boot.facts:
        if fact.name == "promise.field":
            value = literal(fact.fields.get("value", ""))
            if value is not None:
                quantization[fact.fields.get("key", "")] = value
    for fact in algos:
        quantization[fact.name.removeprefix("promise.")] = None if fact.value == "None" else fact.value
    return {"producer": {"name": "modelopt"}, "quantization": quantization}


def _read(config: Mapping[str, Any], fact: Fact) -> Promise | None:
    try:
        return promise_from_dict(config, source=f"log:{fact.line}")
    except CheckpointError:
        return None
