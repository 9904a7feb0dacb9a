"""Promise and request → what each row was asked for.

A row is path × promise group. Its yardstick is the strongest statement that names an axis: the request (an online
quantization method, a KV dtype), else the promise. Flags that only name the checkpoint's own method or a backend are
handed on as flags: they are causes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from logscan import versions
from logscan.judge.scope import groups_on, has_experts
from logscan.model import NumericPath, Operand, Order, Path, Promise

_UNSET = ("", "None", "auto", "none")
# Methods whose config can carry a promise for attention or for the KV cache; the others have no field for it.
CAN_PROMISE_KV = frozenset(
    {"compressed-tensors", "modelopt", "modelopt_fp4", "modelopt_mixed", "modelopt_mxfp8", "quark", "fp8"}
)
CAN_PROMISE_ATTENTION = frozenset({"compressed-tensors", "quark"})


class Ask(NamedTuple):
    """One row's left side. `unknown`: a promise may exist that nobody showed (no checkpoint)."""

    path: Path
    group: str
    order: Order
    requested: NumericPath | None = None
    promised: NumericPath | None = None
    unknown: bool = False
    mixed: bool = False  # other groups stand on the same path
    refusal: str | None = None  # the release does not know what was asked for

    @property
    def wanted(self) -> NumericPath | None:
        return self.requested or self.promised

    @property
    def against(self) -> str | None:
        return "request" if self.requested else "promise" if self.promised else None


def is_set(value: str | None) -> bool:
    """Whether a flag's printed value names something."""
    return value is not None and value not in _UNSET


def asks(
    promise: Promise | None,
    flags: Mapping[str, str],
    releases: Sequence[str],
    requests: Sequence[Mapping[str, Any]],
    *,
    resolved: str | None = None,
    experts: bool = False,
    layers: Collection[str] = (),
) -> tuple[Ask, ...]:
    """The rows of a boot (or of an `expect`), in path order.

    `flags`: engine arguments by underscore name. `resolved`: the engine line's `quantization=`, `"None"` for an
    unquantized model, None when not seen. `experts`: the log shows experts. `requests`: rows of requests.toml.
    `layers`: layer classes that the log names; those of an online method show that the checkpoint is unquantized.
    """
    online_layers = {name for row in requests for name in row.get("layers", ())}
    online_seen = bool(online_layers & set(layers))
    unquantized = promise.method == "none" if promise is not None else resolved == "None" or online_seen
    out: list[Ask] = []
    online = requested_path("quantization", flags.get("quantization"), "linear", releases, requests)
    online_moe = requested_path("quantization", flags.get("quantization"), "moe", releases, requests)
    online_known = unquantized or flags.get("quantization", "").startswith(("fp8_per", "int8_per", "nvfp4_per"))
    if promise is None and resolved == "None":
        online_known = False
    method = flags.get("quantization", "") if (online or online_moe) and online_known else ""
    out += _gemm_asks("linear", promise, flags, resolved, unquantized, online if method else None, method)
    if (promise is not None and has_experts(promise)) or experts:
        out += _gemm_asks("moe", promise, flags, resolved, unquantized, online_moe if method else None, method)
    out.append(_attention_ask(promise, flags, resolved, unquantized))
    out.append(_kv_ask(promise, flags, resolved, unquantized, releases, requests))
    refusal = _unknown_method(flags.get("quantization"), releases, requests)
    return tuple(ask._replace(refusal=refusal) if ask.path in ("linear", "moe") else ask for ask in out)


def _unknown_method(value: str | None, releases: Sequence[str], requests: Sequence[Mapping[str, Any]]) -> str | None:
    """The refusal of a quantization method that exists, but in none of these releases.

    vllm/config/model.py:ModelConfig._verify_quantization raises it.
    """
    rows = [r for r in requests if r["flag"] == "quantization" and r["value"] == value]
    known = any(versions.contains(row.get("engine", ""), r) for row in rows for r in releases)
    return f"Unknown quantization method: {value}." if rows and releases and not known else None


def _gemm_asks(
    path: Path,
    promise: Promise | None,
    flags: Mapping[str, str],
    resolved: str | None,
    unquantized: bool,
    online: NumericPath | None,
    method: str,
) -> list[Ask]:
    traits = dict(promise.traits) if promise is not None else {}
    traits |= {"lora": flags.get("enable_lora") == "True", "ep": flags.get("enable_expert_parallel") == "True"}
    if unquantized or (promise is None and method):
        order = Order(path, "", method or "none", online, None, None, flags, traits)
        return [Ask(path, "", order, requested=online)]
    if promise is None:
        return [Ask(path, "", Order(path, "", resolved or "", None, None, None, flags, traits), unknown=True)]
    groups = groups_on(promise, path)
    if not groups:
        order = Order(path, "", "none", None, promise.algo, None, flags, traits)
        return [Ask(path, "", order, unknown=not promise.groups)]
    kv = promise.kv_cache.operand if promise.kv_cache else None
    return [
        Ask(
            path,
            g.name,
            Order(path, g.name, promise.method, g.numeric, g.algo or promise.algo, kv, flags, traits),
            promised=g.numeric,
            mixed=len(groups) > 1,
        )
        for g in groups
    ]


def _attention_ask(promise: Promise | None, flags: Mapping[str, str], resolved: str | None, unquantized: bool) -> Ask:
    traits = dict(promise.traits) if promise is not None else {}
    kv = promise.kv_cache.operand if promise is not None and promise.kv_cache else None
    method = promise.method if promise is not None else resolved or ""
    own = groups_on(promise, "attention") if promise is not None else ()
    numeric = own[0].numeric if own else None
    order = Order("attention", own[0].name if own else "", method, numeric, None, kv, flags, traits)
    unknown = promise is None and not unquantized and (resolved is None or resolved in CAN_PROMISE_ATTENTION)
    return Ask("attention", order.group, order, promised=numeric, unknown=unknown)


def _kv_ask(
    promise: Promise | None,
    flags: Mapping[str, str],
    resolved: str | None,
    unquantized: bool,
    releases: Sequence[str],
    requests: Sequence[Mapping[str, Any]],
) -> Ask:
    traits = dict(promise.traits) if promise is not None else {}
    kv = promise.kv_cache.operand if promise is not None and promise.kv_cache else None
    method = promise.method if promise is not None else resolved or ""
    requested = requested_path("kv_cache_dtype", flags.get("kv_cache_dtype"), "kv_cache", releases, requests)
    order = Order("kv_cache", "", method, requested or (NumericPath(kv) if kv else None), None, kv, flags, traits)
    unknown = promise is None and not unquantized and (resolved is None or resolved in CAN_PROMISE_KV)
    return Ask("kv_cache", "", order, requested, NumericPath(kv) if kv else None, unknown)


def requested_path(
    flag: str, value: str | None, path: str, releases: Sequence[str], requests: Sequence[Mapping[str, Any]]
) -> NumericPath | None:
    """What a flag's value asks for on a path, in any of the releases; None where it asks for nothing there."""
    if not is_set(value):
        return None
    for row in requests:
        values = row["value"] if isinstance(row["value"], (list, tuple)) else (row["value"],)
        if row["flag"] != flag or value not in values or path not in row["paths"]:
            continue
        if releases and not any(versions.contains(row.get("engine", ""), r) for r in releases):
            continue
        spec = row.get("input")
        return NumericPath(operand(row["weights"]), operand(spec) if spec else None, "quantized" if spec else "none")
    return None


def operand(row: Mapping[str, Any]) -> Operand:
    """An Operand from a row of data (`{ dtype = "fp8_e4m3", bits = 8, strategy = "token", dynamic = true }`)."""
    block = row.get("block")
    return Operand(
        row["dtype"],
        row["bits"],
        row.get("strategy"),
        row.get("group_size"),
        (int(block[0]), int(block[1])) if block else None,
        row.get("symmetric", True),
        None if row.get("dynamic") == "unnamed" else row.get("dynamic", False),
        row.get("scale_dtype"),
    )
