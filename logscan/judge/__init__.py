"""A boot meets its order: rows with verdicts, and findings. Pure: a boot may be judged again when it has grown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from logscan.judge.causes import explain
from logscan.judge.evidence import Seen, gather
from logscan.judge.findings import findings
from logscan.judge.inputs import mismatch, unjudged
from logscan.judge.knowledge import Knowledge
from logscan.judge.limits import bounded, denied, limited, uncovered, unheard_of
from logscan.judge.order import Ask, asks, is_set
from logscan.judge.remarks import remarked
from logscan.judge.requests import rows as request_rows
from logscan.judge.rows import Bench, gemm_row
from logscan.judge.stores import asked_on_line, attention_row, kv_row
from logscan.model import VERDICTS_WORST_FIRST, Boot, Finding, Machine, Promise, Row, Verdict

__all__ = ["Judgement", "judge", "predict", "worst_verdict"]


class Judgement(NamedTuple):
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    verdict: Verdict

    def without(self, facts: Iterable[str]) -> Judgement:
        """The same where patterns that emit these facts were given up: what they might have told keeps nothing."""
        rows = unheard_of(self.rows, facts)
        return self._replace(rows=rows, verdict=worst_verdict(rows))


def judge(
    boot: Boot,
    promise: Promise | None,
    machine: Machine,
    tables: Knowledge,
    given: Machine | None = None,
    known: tuple[str, ...] = (),
    printed: Promise | None = None,
) -> Judgement:
    """Verdicts of one boot. `promise` None: no checkpoint was given and the log states none.

    `machine` is what is known of the hardware, `given` what of it the user said (the log may contradict it),
    `known` all releases of the engine, ascending, `printed` the promise that the log itself prints.
    """
    flags = flags_of(boot, promise)
    resolved = next((f.value for f in boot.facts if f.name == "config.quantization"), None)
    experts = any(f.name.startswith("moe.") and f.component == "target" for f in boot.facts)
    requests = request_rows(boot.engine.name)
    bench = Bench(machine, tables, boot.engine.releases, boot, known, requests)
    layers = {f.fields["layer"] for f in boot.facts if f.name == "linear.kernel" and "layer" in f.fields}
    rows_asked = asks(promise, flags, boot.engine.releases, requests, resolved=resolved, experts=experts, layers=layers)
    rows = tuple(_row(ask, rows_asked, bench, promise) for ask in rows_asked)
    wrong = mismatch(boot, promise, flags, printed)
    if wrong is not None:
        rows = unjudged(rows)
    outside = denied(boot, given, known)
    rows = limited(rows, boot, known, outside)
    return Judgement(rows, findings(boot, rows, promise, wrong, outside), worst_verdict(rows))


def predict(
    promise: Promise | None,
    flags: Mapping[str, str],
    machine: Machine,
    releases: tuple[str, ...],
    tables: Knowledge,
    known: tuple[str, ...] = (),
    engine: str = "vllm",
    version: str | None = None,
) -> tuple[Row, ...]:
    """The rows that an order will get, before anything ran: every one of them derived.

    `version`: the release that was asked for, where it may lie outside those in `known`.
    """
    bench = Bench(machine, tables, releases, None, known, request_rows(engine))
    rows_asked = asks(promise, flags, releases, bench.requests)
    rows = tuple(_row(ask, rows_asked, bench, promise) for ask in rows_asked)
    return rows if uncovered(version, known) is None else bounded(rows, "version-not-covered", logged=True)


def _row(ask: Ask, rows_asked: tuple[Ask, ...], bench: Bench, promise: Promise | None) -> Row:
    boot = bench.boot
    seen = gather(ask, rows_asked, boot, promise, bench.machine, bench.tables) if boot is not None else Seen()
    if ask.path == "attention":
        return attention_row(ask, seen, bench)
    if ask.path == "kv_cache":
        return explain(kv_row(ask, seen, bench, boot.facts if boot else ()), ask, bench)
    row = gemm_row(ask, seen, bench)
    return explain(remarked(row, ask, boot.facts) if boot is not None else row, ask, bench)


def flags_of(boot: Boot, promise: Promise | None = None) -> dict[str, str]:
    """The engine arguments that the boot shows, by underscore name; a later line wins over an earlier one."""
    flags = {f.name[8:]: f.value for f in boot.facts if f.name.startswith("request.") and f.name != "request.args"}
    for key in ("enable_lora", "tensor_parallel_size", "enable_expert_parallel", "data_parallel_size"):
        shown = next((f.value for f in boot.facts if f.name == f"config.{key}"), None)
        if shown is not None:
            flags.setdefault(key, shown)
    asked = asked_on_line(boot, promise)
    if asked is not None:
        flags.setdefault("kv_cache_dtype", asked)
    override = next((f.fields for f in boot.facts if f.name == "kv.override" and "promised" in f.fields), None)
    if override is not None:  # TensorRT-LLM shows the dtype that was asked for where it beats the checkpoint's
        flags["kv_cache_dtype"] = override["dtype"].lower()
    return {k: v for k, v in flags.items() if is_set(v) or k == "quantization"}


def worst_verdict(rows: tuple[Row, ...]) -> Verdict:
    """The verdict of a boot: that of its worst target row."""
    verdicts = [r.verdict for r in rows if r.component == "target"]
    return min(verdicts, key=VERDICTS_WORST_FIRST.index, default="no-promise")
