"""The nouns of logscan. Every room hands frozen values to the next one.

Vocabulary of operands is that of compressed-tensors (strategy, group, channel, token, tensor_group);
vocabulary of verdicts, kinds and reasons is that of the contract (docs: "The words of logscan").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeVar

Path = Literal["linear", "moe", "attention", "kv_cache"]
Component = Literal["target", "drafter", "encoder"]
Verdict = Literal["kept", "downgraded", "unproven", "not-served", "no-promise"]
Status = Literal["ready", "failed", "died", "incomplete"]
Severity = Literal["info", "low", "medium", "high", "critical"]
Authority = Literal["given", "logged", "derived"]
Means = Literal["available", "selected", "executed", "requested", "warned", "refused", "ready", "failed"]
Origin = Literal["engine", "uvicorn", "traceback", "print"]
Claim = Literal["none", "quantized", "unspecified"]

PATHS: tuple[Path, ...] = ("linear", "moe", "attention", "kv_cache")
VERDICTS_WORST_FIRST: tuple[Verdict, ...] = ("not-served", "downgraded", "unproven", "kept", "no-promise")
SEVERITIES: tuple[Severity, ...] = ("info", "low", "medium", "high", "critical")


_N = TypeVar("_N", bound="tuple[Any, ...]")


def replace(noun: _N, /, **changes: Any) -> _N:
    """The noun with some fields changed.

    Nouns are named tuples rather than frozen dataclasses: making a class costs 0.1 ms instead of 1.2 ms, and a start
    makes some forty of them.
    """
    return noun._replace(**changes)  # type: ignore[attr-defined, no-any-return]


class InputError(Exception):
    """Bad input of the user's: one line that says what was wrong, where, and what to give instead (exit 2)."""


# ---------------------------------------------------------------- bytes → records


class Record(NamedTuple):
    """One log record, its wrappers peeled.

    `text` is the message without ANSI escapes; continuation lines that the engine marked as such (CRLF) are
    joined with a bare LF, one for each physical line, so that `line + text[:i].count(b"\\n")` is the physical
    line of byte `i`.
    """

    line: int  # first physical LF-separated line, from 1
    text: bytes
    origin: Origin = "engine"
    level: str = ""  # DEBUG INFO WARNING ERROR CRITICAL, "" where the format has none
    file: str = ""  # `core.py`, `v1/.../mla/common.py`; "" where the format has none
    process: str = ""  # `EngineCore_DP0 pid=123` as printed, parentheses off
    source: str = ""  # stream identity: `pod/container`, `service`; "" for a single stream
    time: str = ""  # as printed
    repeats: int = 1  # of Ray's `[repeated Nx across cluster]`
    engine: str = ""  # engine whose record format this is, where the format tells: vllm trtllm sglang

    @property
    def speaker(self) -> str:
        """The process as the engine names it, without the rank that a launcher (mpirun, srun) put before it."""
        launched, _, rest = self.process.partition(" > ")
        return rest if launched.startswith("rank ") else self.process


class Event(NamedTuple):
    """A pattern that hit a record: text only, meaning comes with the version."""

    line: int  # physical line of the hit itself
    pattern: str  # pattern id
    fields: Mapping[str, str]  # named groups that took part
    record: Record
    text: str  # the physical line's message, decoded, clipped


class Census(NamedTuple):
    """What was seen of a stream, so that an absence can be judged."""

    records: int
    levels: Mapping[str, int]
    head: Literal["seen", "missing"]
    tail: Literal["seen", "missing"]
    sources: int
    voices: tuple[str, ...] = ()  # TensorRT-LLM's loggers that were heard at INFO or WARNING: python, c++


# ---------------------------------------------------------------- what a path computes


class Operand(NamedTuple):
    """How one operand of a GEMM (or the KV cache) is quantized. A field that is None was not named.

    `strategy`: tensor channel group block token tensor_group attn_head. `block` is (rows n, columns k).
    """

    dtype: str  # fp8_e4m3 fp8_e5m2 fp6_e2m3 fp6_e3m2 fp4_e2m1 int8 int4 int3 int2 nf4 codebook ternary bf16 fp16
    bits: float
    strategy: str | None = None
    group_size: int | None = None
    block: tuple[int, int] | None = None
    symmetric: bool | None = True
    dynamic: bool | Literal["local"] | None = False
    scale_dtype: str | None = None  # fp32 e8m0 fp8_e4m3
    scale_ub: float | None = None


class NumericPath(NamedTuple):
    """Weights and activations of a path. `input_claim`: `none` = activations stay 16-bit (weight-only),
    `quantized` = as `input` says, `unspecified` = the engine's choice."""

    weights: Operand | None
    input: Operand | None = None
    input_claim: Claim = "none"


# ---------------------------------------------------------------- a checkpoint's promise


class Matcher(NamedTuple):
    """A target or an ignore entry as the config wrote it; never expanded by the reader."""

    kind: Literal["all", "class", "name", "regex", "glob", "substring", "prefix", "suffix", "component"]
    value: str


class Group(NamedTuple):
    """One promise group: which layers, and what is promised for them."""

    name: str
    scope: Literal["linear", "moe_experts", "attention", "embedding"]
    targets: tuple[Matcher, ...]
    numeric: NumericPath
    label: str
    output: Operand | None = None
    storage: str | None = None  # packing word; never compared with a log
    algo: str | None = None  # modelopt quant_algo of this group, torchao _type …


class KVPromise(NamedTuple):
    """What the checkpoint promises for the KV cache."""

    operand: Operand
    label: str  # `FP8 per-tensor-static`


class Note(NamedTuple):
    """A remark on a config that was accepted all the same. Codes: N_…"""

    code: str
    message: str


class Promise(NamedTuple):
    """The normal form of a quantization config."""

    method: str  # canonical: compressed-tensors fp8 modelopt awq gptq mxfp4 bitsandbytes … "none" for unquantized
    label: str
    groups: tuple[Group, ...] = ()
    ignore: tuple[Matcher, ...] = ()
    kv_cache: KVPromise | None = None
    raw_method: str | None = None
    algo: str | None = None
    model_type: str | None = None
    model_dtype: str | None = None  # bfloat16 float16 float32
    source: str = ""  # `config.json#quantization_config`
    traits: Mapping[str, Any] = {}  # of the model: experts, head_dim, mla, sinks, architectures …
    producer: str | None = None
    status: str | None = None
    sparsity: Mapping[str, Any] | None = None
    transforms: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()


# ---------------------------------------------------------------- machine and order


class Machine(NamedTuple):
    """The hardware and software under an engine; None (or absent) is unknown, never false."""

    platform: str | None = None  # cuda rocm xpu cpu tpu
    gpu: str | None = None  # as given or logged
    sm: int | None = None  # 89, 103, 121
    gfx: str | None = None
    cuda: tuple[int, int] | None = None  # toolkit the engine was built with
    packages: Mapping[str, bool] = {}  # absent = unknown
    env: Mapping[str, str] = {}  # absent = assumed unset (caveat), unless env_complete
    authority: Mapping[str, Authority] = {}  # of gpu, sm, cuda


class Order(NamedTuple):
    """What the engine is handed for one row: a promise group joined with the request.

    `method` and `numeric` are those in force after the request (an online method replaces the checkpoint's
    when that is unquantized). `flags` are engine arguments by their underscore names, only those known.
    """

    path: Path
    group: str
    method: str
    numeric: NumericPath | None
    algo: str | None = None
    kv: Operand | None = None  # the checkpoint's KV promise
    flags: Mapping[str, str] = {}  # quantization linear_backend moe_backend kv_cache_dtype …
    traits: Mapping[str, Any] = {}


class Print(NamedTuple):
    """A line that an outcome is known to print."""

    level: str
    text: str
    pattern: str | None = None
    distrusted_by: str | None = None  # the row that says why it is not true, though it is printed


class Outcome(NamedTuple):
    """One way the order may have been carried out, and what was assumed to get there.

    `assumed` maps the unknown atoms on which this outcome rests to the value it takes for them, e.g.
    `{"sm": "<89", "pkg.humming": True}`; empty when nothing had to be assumed.
    """

    path: Path
    kernel: str | None  # class name (linear), backend as the log prints it (moe, attention)
    numeric: NumericPath | None  # what runs
    compute: str = "native"  # native weight-only emulated storage-only unfused
    layer: str | None = None  # layer class or scheme name the engine uses
    refusal: str | None = None  # error text, where the engine refuses or must crash
    crashes: bool = False  # selected, and known to fail when it runs
    assumed: Mapping[str, Any] = {}
    prints: tuple[Print, ...] = ()
    because: tuple[str, ...] = ()  # ids of the rows of knowledge it went through, in order
    releases: tuple[str, ...] = ()  # releases in which this is the outcome
    unset: tuple[str, ...] = ()  # environment variables that were taken as unset (caveat env-assumed-unset)
    also: tuple[str, ...] = ()  # kinds that the operands do not show: scales rounded anew


# ---------------------------------------------------------------- boots, rows, findings


class Fact(NamedTuple):
    """Something a pack read in a boot, after its version was known."""

    name: str
    value: str
    line: int
    means: Means
    pattern: str
    text: str
    component: Component = "target"
    path: str | None = None
    level: str = ""
    fields: Mapping[str, str] = {}


class Engine(NamedTuple):
    """The engine of a boot. `version` as printed; `range` where only a range is known."""

    name: str | None
    version: str | None
    kind: Literal["release", "dev", "vendor", "unknown"] = "unknown"
    authority: Authority | None = None
    line: int | None = None
    range: str | None = None
    releases: tuple[str, ...] = ()  # releases at which it is evaluated


class Evidence(NamedTuple):
    line: int
    role: Literal["supports", "contradicts", "context"]
    means: Means
    pattern: str
    text: str
    distrusted_by: str | None = None


class Boot(NamedTuple):
    """One start of one engine, from its first line to its last."""

    number: int  # from 1, in order of first lines
    source: str
    first: int
    last: int
    interleaved: bool  # lines of other boots stand between first and last
    status: Status
    engine: Engine
    model: str | None
    facts: tuple[Fact, ...]
    census: Census
    unrecognised: tuple[tuple[int, str], ...] = ()  # (line, text): looks like a selection, and no pattern owns it
    decided: int | None = None  # line of the event that decided the status


class Kernel(NamedTuple):
    """A kernel or backend that a row rests on."""

    name: str
    authority: Authority


class Row(NamedTuple):
    """Path × promise group × component: what was wanted, what ran, and the verdict with its evidence."""

    path: Path
    group: str
    verdict: Verdict
    component: Component = "target"
    requested: str | None = None
    promised: str | None = None
    default: str | None = None
    ran: str | None = None
    against: Literal["request", "promise", "default"] | None = None
    extent: Literal["all", "some", "unknown"] | None = None
    kinds: tuple[str, ...] = ()
    cause: str | None = None
    visibility: Literal["silent", "noted", "warned"] | None = None
    authority: Authority | None = None
    kernels: tuple[Kernel, ...] = ()
    reasons: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    refusal: str | None = None
    layer: str | None = None
    prints: tuple[Print, ...] = ()
    because: tuple[str, ...] = ()  # rows of knowledge that the verdict rests on
    disagreement: str | None = None  # the derivation against a trusted line, in words
    remedy: str | None = None  # what would restore the yardstick, where the derivation found it
    reuse: Literal["on", "off", "unknown"] | None = None  # of a cached prefix that would be ignored


class Finding(NamedTuple):
    """A deviation, a refusal, a failure or a conflict, under its permanent code."""

    code: str
    slug: str
    severity: Severity
    message: str
    fix: str
    path: Path | None = None
    kind: str | None = None
    cause: str | None = None
    consequence: tuple[str, ...] = ()
    visibility: str | None = None
    authority: Authority | None = None
    evidence: tuple[Evidence, ...] = ()
    fingerprint: str = ""
    waived: str | None = None
    group: str = ""
