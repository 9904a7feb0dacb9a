"""The rows beside the GEMMs: attention and the KV cache.

A checkpoint rarely promises anything for attention: what ran there is a fact. The KV cache has its own yardsticks
(`--kv-cache-dtype`, a scheme in the checkpoint) and its own traps: the engine line shows the dtype before the layers
are built, and some releases change it afterwards without a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from logscan import labels
from logscan.judge import compare
from logscan.judge.derive import derive
from logscan.judge.evidence import Seen, cite
from logscan.judge.fmha import unfused
from logscan.judge.order import Ask, is_set, requested_path
from logscan.judge.reasons import unheard
from logscan.judge.requests import rows as request_rows
from logscan.judge.rows import Bench, visible
from logscan.model import Boot, Fact, Kernel, NumericPath, Operand, Order, Outcome, Promise, Row, replace

_CACHE = {  # the dtypes that SGLang allocates a cache in
    "torch.bfloat16": Operand("bf16", 16),
    "torch.float16": Operand("fp16", 16),
    "torch.float8_e4m3fn": Operand("fp8_e4m3", 8, dynamic=None),
    "torch.float8_e4m3fnuz": Operand("fp8_e4m3", 8, dynamic=None),
    "torch.float8_e5m2": Operand("fp8_e5m2", 8, dynamic=None),
    "torch.float4_e2m1fn_x2": Operand("fp4_e2m1", 4, dynamic=None),
}
_SCALED = NumericPath(Operand("fp8_e4m3", 8, "tensor", dynamic=False))  # what a stored k_scale is the scale of
_16BIT = {"torch.bfloat16": "bf16", "bfloat16": "bf16", "torch.float16": "fp16", "float16": "fp16", "half": "fp16"}
# attention/layer.py:Attention.__init__ (0.15 and later): layers of these methods set the cache's dtype once more
_LATE = frozenset({"compressed-tensors"})


class Stored(NamedTuple):
    """What the cache is stored in: the ways that cannot be excluded, and what they rest on."""

    outcomes: list[Outcome]
    authority: Literal["logged", "derived"] | None = None
    reasons: tuple[str, ...] = ()
    computes: frozenset[str] = frozenset()
    unexplained: bool = False  # the line says what no derivation leads to


def attention_row(ask: Ask, seen: Seen, bench: Bench) -> Row:
    """What served attention. Its verdict is no-promise unless the checkpoint promises something for attention."""
    names = dict.fromkeys(f.fields.get("backend") or f.value for f in seen.selected + seen.shared)
    row = Row(
        "attention",
        ask.group,
        "no-promise",
        promised=labels.path_label(ask.promised) if ask.promised else None,
        kernels=tuple(Kernel(n, "logged") for n in names),
        authority="logged" if names else None,
        evidence=tuple(cite(f) for f in seen.lines),
    )
    if seen.refused and not bench.ready:
        return _refused(row, seen)
    if bench.boot is not None and bench.boot.engine.name == "trtllm":
        row = unfused(row, bench.boot, bench.machine.sm)
        if row.kinds or row.refusal:
            return row
    outcomes = derive(ask.order, bench.machine, bench.releases, bench.tables) if not names else ()
    if outcomes:
        row = replace(row, kernels=_derived(outcomes), prints=outcomes[0].prints if len(outcomes) == 1 else ())
        if bench.boot is None and all(o.refusal for o in outcomes):
            row = replace(row, verdict="not-served", authority="derived", visibility="warned")
            return replace(row, refusal=outcomes[0].refusal)
    if ask.promised is not None:
        return replace(row, verdict="unproven", reasons=("not-printed-in-version",))
    if ask.unknown:
        return replace(row, verdict="unproven", reasons=("no-checkpoint",))
    return row


def kv_row(ask: Ask, seen: Seen, bench: Bench, lines: Sequence[Fact]) -> Row:
    """What the KV cache is stored in, against the request or the checkpoint's scheme. `lines`: the boot's facts."""
    shown = [f for f in lines if f.name in ("config.kv_cache_dtype", "kv.dtype", "kv.override", "kv.source")]
    dropped = [f for f in lines if f.name in ("kv.scale_dropped", "kv.ignored")]
    allocated = _allocated(ask, lines)
    if ask.unknown and ask.wanted is None and dropped and allocated and all(map(compare.is_16bit, allocated)):
        ask = ask._replace(promised=_SCALED, unknown=False)  # a scale in the checkpoint promises what it scales
    scale = [f for f in lines if f.name == "kv.scale" and f.component == "target"]
    query = [f for f in lines if f.name == "attention.query_dtype"]
    ran, authority, reasons, computes, unexplained = _stored(ask, shown, bench, allocated)
    role = "context" if authority == "derived" or "line-untrusted" in reasons else "supports"
    row = Row(
        "kv_cache",
        ask.group,
        "unproven",
        requested=_label(ask.requested),
        promised=_label(ask.promised),
        against=ask.against,  # type: ignore[arg-type]
        evidence=tuple(
            cite(f, role if f.name == "config.kv_cache_dtype" else "supports")
            for f in [*shown[:2], *scale[:1], *dropped[:2]]
        ),
    )
    if seen.refused and not bench.ready:
        return _refused(row, seen)
    wanted = ask.wanted.weights if ask.wanted else None
    if ask.requested is None and is_set(
        ask.order.flags.get("kv_cache_dtype")
    ):  # a dtype that no table knows was asked for
        return replace(row, reasons=("not-printed-in-version",))
    if not ran:
        if wanted is None and not ask.unknown:
            return replace(row, verdict="no-promise")
        return replace(row, reasons=reasons)
    if all(o.refusal for o in ran) and bench.boot is None:
        return replace(row, verdict="not-served", refusal=ran[0].refusal, authority="derived", visibility="warned")
    operands = list(dict.fromkeys(o.numeric.weights for o in ran if o.numeric is not None))
    row = replace(row, ran=labels.kv_label(operands[0]) if len(operands) == 1 and operands[0] else None)
    extra = _extra(ask, operands, scale or [f for f in dropped if f.name == "kv.scale_dropped"], query, computes)
    if wanted is None:
        if ask.unknown:
            return replace(row, reasons=("no-checkpoint",), kinds=extra)
        return replace(row, verdict="no-promise", authority=authority, kinds=extra)
    outcomes = {compare.kv_kinds(wanted, o) for o in operands if o is not None}
    if len(outcomes) != 1:
        return replace(row, reasons=reasons or ("not-printed-in-version",))
    kinds = outcomes.pop()
    static = ask.promised is not None and ask.promised.weights is not None and ask.promised.weights.dynamic is False
    moving = bool(kinds) or ("uncalibrated" in extra and static)
    levels = [f.level for f in (_telling(lines, dropped) if kinds else scale)]
    verdict = "downgraded" if moving else "kept"
    if not bench.ready and (verdict == "kept" or authority == "derived"):
        return replace(row, reasons=("boot-failed",) if _failed(bench) else ("tail-missing",))
    unsaid = "unknown" if moving and (unexplained or ask.order.numeric is None) else None  # no outcome to flip
    return replace(row, verdict=verdict, kinds=kinds + extra, authority=authority, extent="all" if moving else None,
                   cause=unsaid,
                   visibility=visible(verdict, levels))  # type: ignore[arg-type]  # fmt: skip


def _allocated(ask: Ask, lines: Sequence[Fact]) -> list[Operand]:
    """What the engine says that it allocated the cache in (SGLang), or that it fell back to."""
    values = [f.value for f in lines if f.name == "kv.dtype" and f.component == "target" and f.value in _CACHE]
    if not values and any(f.name == "kv.override" and "promised" not in f.fields for f in lines):
        values = ["torch.bfloat16"]  # `--kv-cache-dtype falls back to 'auto'`
    if not values and ask.requested is None and any(f.name == "kv.ignored" for f in lines):
        values = ["torch.bfloat16"]  # `Unrecognized 'kv_cache_scheme' …; KV-cache quant disabled.`
    return [_CACHE[v] for v in dict.fromkeys(values)]


def _telling(lines: Sequence[Fact], dropped: Sequence[Fact]) -> list[Fact]:
    """The lines that show a deviation of the cache's type: what it was allocated in, what of it was dropped."""
    return [*dropped, *(f for f in lines if f.name == "kv.override" or (f.name == "kv.dtype" and f.value in _CACHE))]


def _stored(ask: Ask, shown: Sequence[Fact], bench: Bench, allocated: Sequence[Operand]) -> Stored:
    """The ways the cache may be stored, derived from what the engine was configured with, and held against its line."""
    printed = next((f for f in shown if f.name == "config.kv_cache_dtype"), None)
    order = _configured(ask.order, printed, bench)
    outcomes = list(derive(order, bench.machine, bench.releases, bench.tables)) if order.method else []
    sglang = bench.boot is not None and bench.boot.engine.name == "sglang"
    if sglang and any(f.name == "kv.dtype" and f.component == "target" and f.value not in _CACHE for f in shown):
        return Stored([], reasons=("line-untrusted",))  # allocated in a dtype that no table knows
    if allocated:
        same = [o for o in outcomes if o.numeric and o.numeric.weights and o.numeric.weights.bits == allocated[0].bits]
        computes = frozenset(o.compute for o in same)
        return Stored([Outcome("kv_cache", None, NumericPath(o)) for o in allocated], "logged", (), computes)
    line = _printed(printed.value, bench) if printed is not None else None
    if printed is not None and line is None:  # a dtype that no table knows
        return Stored([], reasons=("not-printed-in-version",))
    if printed is not None and line is not None and _contradicts(ask, line, printed.value):
        return Stored([], reasons=("line-untrusted",))
    late = order.method in _LATE and bench.boot is not None and bench.boot.engine.name == "vllm"
    if late and ask.unknown:  # with a scheme that nobody showed, and without
        scheme = order._replace(kv=_SCALED.weights)
        outcomes += [o for o in derive(scheme, bench.machine, bench.releases, bench.tables) if o not in outcomes]
    if bench.ready and bench.boot is not None:
        outcomes = [o for o in outcomes if o.refusal is None]  # it was served, whatever the tables say
    if outcomes:
        reasons = ["no-checkpoint"] if late and ask.unknown else []
        reasons += [bench.tables.reason(a) for o in outcomes for a in o.assumed]
        found = _weighed(outcomes, line, tuple(dict.fromkeys(reasons)), late and (order.kv is not None or ask.unknown))
    elif line is None:
        return Stored([], reasons=_unprinted(ask, bench))
    elif compare.is_16bit(line) and ask.order.kv is not None:
        return Stored([], reasons=("not-printed-in-version",))
    else:
        found = Stored([Outcome("kv_cache", None, NumericPath(line))], "logged")
    explicit = printed is not None and is_set(printed.value) and found.authority == "logged"
    return Stored([], reasons=("line-untrusted",)) if explicit and _orphan(ask, line) else found


def _orphan(ask: Ask, line: Operand | None) -> bool:
    """Whether an explicit dtype on the line is neither the checkpoint's nor seen to be asked for."""
    promised = ask.promised.weights if ask.promised is not None and ask.requested is None else None
    return line is not None and promised is not None and not _alike(promised, line)


def _weighed(outcomes: list[Outcome], line: Operand | None, reasons: tuple[str, ...], late: bool) -> Stored:
    """Derived outcomes against the operand of the engine's line, which is final unless the layers come later."""
    computes = frozenset(o.compute for o in outcomes)
    if line is None:
        return Stored(outcomes, "derived", reasons, computes)
    agreed = [o for o in outcomes if o.numeric and o.numeric.weights and _alike(o.numeric.weights, line)]
    if len(agreed) == len(outcomes):
        return Stored(outcomes, "logged", reasons, computes)
    if late:
        return Stored(outcomes, "derived", reasons, computes)
    if agreed or all(o.refusal for o in outcomes):
        return Stored(agreed or outcomes, "logged", reasons, frozenset(o.compute for o in agreed))
    return Stored([Outcome("kv_cache", None, NumericPath(line))], "logged", reasons, unexplained=True)


def _configured(order: Order, printed: Fact | None, bench: Bench) -> Order:
    """The order with what the engine's line says that its flags came to: the model's dtype, an explicit KV dtype."""
    dtype = next((f.value for f in bench.boot.facts if f.name == "config.dtype"), None) if bench.boot else None
    flags = {**order.flags, "dtype": dtype} if dtype is not None else dict(order.flags)
    if printed is not None and is_set(printed.value):
        flags["kv_cache_dtype"] = printed.value
    return order._replace(flags=flags)


def _alike(one: Operand, other: Operand) -> bool:
    """Whether two operands may be one, told by different sources: a granularity that one does not name is no matter."""
    if compare.is_16bit(one) or compare.is_16bit(other):
        return compare.is_16bit(one) and compare.is_16bit(other)
    return one.dtype == other.dtype and (None in (one.strategy, other.strategy) or one.strategy == other.strategy)


def _contradicts(ask: Ask, line: Operand, value: str) -> bool:
    """Whether the engine's line shows another cache than the one that was asked for."""
    wanted = ask.requested.weights if ask.requested is not None else None
    if wanted is None or (wanted.dtype == line.dtype == "codebook"):
        return wanted is not None and value != ask.order.flags.get("kv_cache_dtype")
    return not _alike(wanted, line) or wanted.strategy != line.strategy


def asked_on_line(boot: Boot, promise: Promise | None) -> str | None:
    """The KV dtype that was asked for, where no line of arguments shows it: an explicit one on vLLM's engine line.

    None where the engine may have come to it by itself: from a ModelOpt checkpoint
    (utils/torch_utils.py:resolve_kv_cache_dtype_string, 0.14 and later), or for a model that has its own.
    """
    facts = {f.name: f.value for f in reversed(boot.facts) if f.name.startswith("config.") or f.name == "request.args"}
    value = facts.get("config.kv_cache_dtype")
    forced = any(f.name == "kv.dtype" and "model" in f.fields for f in boot.facts)
    if boot.engine.name != "vllm" or "request.args" in facts or forced or not is_set(value) or value is None:
        return None
    if (promise.method if promise else facts.get("config.quantization", "")).startswith("modelopt"):
        scheme = promise.kv_cache.operand if promise and promise.kv_cache else None
        asked = requested_path("kv_cache_dtype", value, "kv_cache", (), request_rows("vllm"))
        if promise is None or (scheme and asked and asked.weights and _alike(scheme, asked.weights)):
            return None
    return value


def _unprinted(ask: Ask, bench: Bench) -> tuple[str, ...]:
    """Why no line tells the cache's type. vLLM always prints it, at the head."""
    boot = bench.boot
    if boot is not None and (boot.engine.name in ("vllm", None) or boot.census.head == "missing"):
        return ("head-missing",)
    found = ["no-checkpoint"] if ask.unknown else []
    if boot is not None and unheard(boot):
        found.append("log-level")
    if bench.machine.platform is None and not ask.unknown:
        found.append("no-gpu")
    return tuple(found) or ("not-printed-in-version",)


def _printed(value: str, bench: Bench) -> Operand | None:
    """The operand that the engine line's `kv_cache_dtype=` names; `auto` is the model's 16-bit dtype."""
    if not is_set(value) or value in _16BIT:
        dtype = next((f.value for f in bench.boot.facts if f.name == "config.dtype"), "") if bench.boot else ""
        return Operand(_16BIT.get(value) or _16BIT.get(dtype, "bf16"), 16)
    asked = requested_path("kv_cache_dtype", value, "kv_cache", (), bench.requests)
    return asked.weights if asked else None


def _extra(
    ask: Ask, ran: Sequence[Operand | None], scale: Sequence[Fact], query: Sequence[Fact], computes: frozenset[str]
) -> tuple[str, ...]:
    """Deviations that do not turn the storage itself: scale 1.0, a 16-bit query over a quantized cache."""
    quantized = any(o is not None and not compare.is_16bit(o) for o in ran)
    out: list[str] = []
    if scale and quantized:
        out.append("uncalibrated")
    sixteen = query and all("float8" not in f.fields.get("decode", "") + f.fields.get("prefill", "") for f in query)
    if quantized and (sixteen or computes == {"storage-only"}):
        out.append("storage-only")
    return tuple(out)


def _refused(row: Row, seen: Seen) -> Row:
    evidence = tuple(cite(f) for f in seen.refused[:3]) + row.evidence
    return replace(row, verdict="not-served", refusal=seen.refused[0].text, authority="logged", visibility="warned",
                   evidence=evidence)  # fmt: skip


def _derived(outcomes: Sequence[Outcome]) -> tuple[Kernel, ...]:
    return tuple(Kernel(n, "derived") for n in dict.fromkeys(o.kernel for o in outcomes) if n)


def _label(numeric: NumericPath | None) -> str | None:
    return labels.kv_label(numeric.weights) if numeric is not None and numeric.weights is not None else None


def _failed(bench: Bench) -> bool:
    return bench.boot is not None and bench.boot.status == "failed"
