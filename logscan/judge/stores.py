"""The rows beside the GEMMs: attention and the KV cache.

A checkpoint rarely promises anything for attention: what ran there is a fact. The KV cache has its own yardsticks
(`--kv-cache-dtype`, a scheme in the checkpoint) and its own traps: the engine line shows the dtype before the layers
are built, and some releases change it afterwards without a line.
"""

from __future__ import annotations

from collections.abc import Sequence

from logscan import labels
from logscan.judge import compare
from logscan.judge.derive import derive
from logscan.judge.evidence import Seen, cite
from logscan.judge.fmha import unfused
from logscan.judge.order import Ask, is_set, requested_path
from logscan.judge.reasons import unheard
from logscan.judge.rows import Bench, visible
from logscan.model import Fact, Kernel, NumericPath, Operand, Outcome, Row, replace

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
    row = Row(
        "kv_cache",
        ask.group,
        "unproven",
        requested=_label(ask.requested),
        promised=_label(ask.promised),
        against=ask.against,  # type: ignore[arg-type]
        evidence=tuple(cite(f) for f in [*shown[:2], *scale[:1], *dropped[:2]]),
    )
    if seen.refused and not bench.ready:
        return _refused(row, seen)
    ran, authority, reasons, computes = _stored(ask, shown, bench, allocated)
    wanted = ask.wanted.weights if ask.wanted else None
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
    unsaid = "unknown" if moving and ask.order.numeric is None else None  # nothing to derive another outcome from
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


def _stored(
    ask: Ask, shown: Sequence[Fact], bench: Bench, allocated: Sequence[Operand]
) -> tuple[list[Outcome], str | None, tuple[str, ...], frozenset[str]]:
    """The ways the cache may be stored, derived and narrowed by the engine's lines: authority, reasons, computes."""
    outcomes = list(derive(ask.order, bench.machine, bench.releases, bench.tables)) if ask.order.method else []
    if allocated:
        same = [o for o in outcomes if o.numeric and o.numeric.weights and o.numeric.weights.bits == allocated[0].bits]
        computes = frozenset(o.compute for o in same)
        return [Outcome("kv_cache", None, NumericPath(o)) for o in allocated], "logged", (), computes
    if bench.ready and bench.boot is not None:
        outcomes = [o for o in outcomes if o.refusal is None]  # it was served, whatever the tables say
    printed = next((f for f in shown if f.name == "config.kv_cache_dtype"), None)
    if outcomes:
        computes = frozenset(o.compute for o in outcomes)
        reasons = tuple(dict.fromkeys(bench.tables.reason(a) for o in outcomes for a in o.assumed))
        return outcomes, "derived" if printed is None else "logged", reasons, computes
    if printed is None:
        return [], None, _unprinted(ask, bench), frozenset()
    operand = _printed(printed.value, bench)
    if operand is None:
        return [], None, ("not-printed-in-version",), frozenset()
    silent = compare.is_16bit(operand) and ask.order.kv is not None
    if silent:
        return [], None, ("not-printed-in-version",), frozenset()
    return [Outcome("kv_cache", None, NumericPath(operand))], "logged", (), frozenset()


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
