"""What was given against what the log says: a wrong checkpoint gives wrong verdicts, so it is told first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from logscan.checkpoint.attribution import contradicts
from logscan.checkpoint.methods import FAMILIES, canonical
from logscan.judge.order import is_set
from logscan.model import Boot, Fact, Promise, Row, replace

# Methods that an engine gives another name than the checkpoint does (vllm/config/model.py, models/config.py).
_SAME = (
    frozenset({"fp8", "deepseek_v4_fp8"}),
    frozenset({"mxfp8", "modelopt"}),
    frozenset({"nvfp4", "modelopt"}),
    frozenset({"compressed-tensors", "mxfp4"}),
    frozenset({"fp8", "ptpc_fp8"}),
    frozenset({"compressed-tensors", "w8a8_fp8"}),  # sglang/srt/configs/model_config.py:_verify_quantization
    frozenset({"compressed-tensors", "w8a8_int8"}),
)
_ANY = frozenset({"humming", "moe_wna16", "online"})  # methods that take over another's checkpoint


class Mismatch(NamedTuple):
    """How the checkpoint that was given differs from the one in the log."""

    message: str
    facts: tuple[Fact, ...]


def mismatch(
    boot: Boot, promise: Promise | None, flags: Mapping[str, str], printed: Promise | None = None
) -> Mismatch | None:
    """Whether the log shows another promise than the given checkpoint's; None where they fit.

    It shows the method that the engine resolved, or (`printed`) the quantization config that it read.
    """
    other = _other_algo(boot, promise) or _other_request(boot, promise, flags) if promise is not None else None
    if other is not None:
        return other
    if promise is not None and printed is not None and _disagree(promise, printed):
        facts = tuple(f for f in boot.facts if f.name.startswith("promise.") and f.name != "promise.field")
        message = f"{promise.label} was given ({promise.source}), the log prints {printed.label} ({printed.source})"
        return Mismatch(message, facts)
    fact = next((f for f in boot.facts if f.name == "config.quantization"), None)
    if promise is None or (fact is not None and fact.value in _ANY):
        return None
    return _other_layers(boot, promise, flags) or (_other_method(fact, promise, flags) if fact is not None else None)


def _other_algo(boot: Boot, promise: Promise) -> Mismatch | None:
    """Algorithms that the log took over from a sidecar, none of which is the given one's."""
    facts = [f for f in boot.facts if f.name == "promise.quant_algo" and f.component == "target"]
    values = {f.value for f in facts}
    if promise.algo is None or not facts or values & {promise.algo, "MIXED_PRECISION", "None"}:
        return None
    message = f"{promise.label} was given ({promise.source}), the log took over quant_algo={facts[0].value}"
    return Mismatch(message, tuple(facts))


def _other_request(boot: Boot, promise: Promise, flags: Mapping[str, str]) -> Mismatch | None:
    """A method asked of SGLang that the given checkpoint is not of: it refuses such a one, so another one ran."""
    asked = flags.get("quantization")
    if boot.engine.name != "sglang" or promise.method == "none" or asked is None or not is_set(asked) or asked in _ANY:
        return None
    method = canonical(asked)
    if method == promise.method or {method, promise.method} in _SAME:
        return None
    facts = tuple(f for f in boot.facts if f.name == "request.quantization")
    return Mismatch(f"{promise.label} was given ({promise.source}), quantization={asked} was asked for", facts)


def _other_layers(boot: Boot, promise: Promise, flags: Mapping[str, str]) -> Mismatch | None:
    """Layer classes of another format than any of the promise's: of another model, or of one quantized online."""
    if promise.method == "none" or canonical(flags.get("quantization", promise.method)) != promise.method:
        return None
    names = ("linear.kernel", "linear.layer")
    facts = [f for f in boot.facts if f.name in names and f.component == "target" and "layer" in f.fields]
    other = [f for f in facts if contradicts(promise, f.fields["layer"])]
    if not other or len(other) < len(facts):
        return None
    message = f"{promise.label} was given ({promise.source}), the log shows layers of {other[0].fields['layer']}"
    return Mismatch(message, tuple(other[:1]))


def _other_method(fact: Fact, promise: Promise, flags: Mapping[str, str]) -> Mismatch | None:
    """Another method than the promise's on the engine line."""
    resolved = "none" if fact.value == "None" else canonical(fact.value)
    if resolved == promise.method or {resolved, promise.method} in _SAME:
        return None
    if promise.method == "none":
        asked = flags.get("quantization")
        if resolved not in FAMILIES or (asked is not None and canonical(asked) == resolved):
            return None  # an online method
    elif resolved != "none" and resolved not in FAMILIES:
        return None
    given = "an unquantized checkpoint" if promise.method == "none" else f"a {promise.method} checkpoint"
    ran = "an unquantized model" if resolved == "none" else f"quantization={fact.value}"
    return Mismatch(f"{given} was given ({promise.label}), the engine line shows {ran}", (fact,))


def _disagree(given: Promise, printed: Promise) -> bool:
    """Whether the two name other number formats; a log that prints an algorithm without its groups names none."""
    if given.algo is not None and given.algo == printed.algo:
        return False
    return bool(_formats(printed)) and _formats(given) != _formats(printed)


def _formats(promise: Promise) -> frozenset[tuple[str, str]]:
    """The number formats of weights and activations, group by group; a log need not print more than those."""
    return frozenset(
        (g.numeric.weights.dtype if g.numeric.weights else "", g.numeric.input.dtype if g.numeric.input else "")
        for g in promise.groups
        if g.scope in ("linear", "moe_experts") and g.numeric is not None
    )


def unjudged(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The rows of a boot whose checkpoint is not the one that was given: nothing can be held against it."""
    return tuple(
        row
        if row.verdict == "not-served"
        else replace(row, verdict="unproven", kinds=(), extent=None, cause=None, visibility=None, remedy=None,
                     reasons=("checkpoint-mismatch",), disagreement=None)
        for row in rows
    )  # fmt: skip
