"""The shapes of what `triage` and `expect` return, for type checkers: plain dictionaries, the same as the JSON.

Nothing here runs. Keys may be added within version 1; none is changed or removed.
"""

from __future__ import annotations

from typing import Literal, Required, TypedDict

from logscan.model import Authority, Component, Means, Path, Severity, Status, Verdict

Cause = Literal["request", "hardware", "version", "build", "checkpoint", "unknown"]
Visibility = Literal["silent", "noted", "warned"]


class Given(TypedDict):
    """What was said beside the log."""

    ckpt: str | None
    gpu: str | None
    cuda: str | None
    engine: str | None
    env: dict[str, str]


class Evidence(TypedDict):
    """A line that a verdict or a finding rests on; `line` counts from 1."""

    line: int
    role: Literal["supports", "contradicts", "context"]
    means: Means
    pattern: str | None
    text: str
    distrusted_by: str | None


class Kernel(TypedDict):
    """A kernel or backend; several in a row: it cannot be told which, and all lead to the verdict."""

    name: str
    authority: Literal["logged", "derived"]


class Row(TypedDict):
    """Path × promise group × component."""

    path: Path
    group: str
    component: Component
    requested: str | None
    promised: str | None
    default: str | None
    ran: str | None
    against: Literal["request", "promise", "default"] | None
    verdict: Verdict
    extent: Literal["all", "some", "unknown"] | None
    kinds: list[str]
    cause: Cause | None
    visibility: Visibility | None
    authority: Authority | None
    kernels: list[Kernel]
    reasons: list[str]
    caveats: list[str]
    evidence: list[Evidence]
    refusal: str | None
    because: list[str]


class Finding(TypedDict):
    """Something worth telling, under its permanent code."""

    code: str
    slug: str
    severity: Severity
    path: Path | None
    group: str
    kind: str | None
    cause: Cause | None
    consequence: list[str]
    visibility: Visibility | None
    authority: Authority | None
    message: str
    fix: str
    evidence: list[Evidence]
    fingerprint: str
    waived: str | None


class Fact(TypedDict):
    """Something that a line says, by a stable dotted name."""

    name: str
    value: str
    line: int
    means: Means
    component: Component
    pattern: str


class Engine(TypedDict):
    """`version` as printed; `range` where only a range is known; `releases` at which it is evaluated."""

    name: Literal["vllm", "trtllm", "sglang"] | None
    version: str | None
    kind: Literal["release", "dev", "vendor", "unknown"]
    authority: Authority | None
    line: int | None
    range: str | None
    releases: list[str]


class Hardware(TypedDict):
    """The machine, and where each part is known from. `sm` is `9.0`, or `gfx942`."""

    gpu: str | None
    platform: str | None
    sm: str | None
    cuda: str | None
    authority: dict[str, Authority | None]


class Note(TypedDict):
    """A remark on a config that was accepted all the same."""

    code: str
    message: str


class Promise(TypedDict):
    """What the checkpoint promises, in one label."""

    source: str
    authority: Authority
    method: str | None
    label: str | None
    notes: list[Note]


class Lines(TypedDict):
    """Where a boot stands in its log; `interleaved`: lines of other boots stand between."""

    first: int
    last: int
    interleaved: bool


class Unrecognised(TypedDict):
    """A line that looks like a selection, and that no pattern owns."""

    line: int
    text: str


class Boot(TypedDict):
    """One start of one engine."""

    index: int
    source: str
    lines: Lines
    status: Status
    decided: int | None
    verdict: Verdict
    engine: Engine
    model: str | None
    hardware: Hardware
    promise: Promise | None
    paths: list[Row]
    findings: list[Finding]
    facts: list[Fact]
    unrecognised: list[Unrecognised]


class Census(TypedDict):
    """What was seen of a log, so that an absence can be judged."""

    records: int
    levels: dict[str, int]
    head: Literal["seen", "missing"]
    tail: Literal["seen", "missing"]
    sources: int


class Log(TypedDict):
    """One log, with every boot in it, in order."""

    name: str
    bytes: int
    lines: int
    sha256: str
    envelopes: list[str]
    notes: list[str]
    census: Census
    boots: list[Boot]


class Pack(TypedDict):
    """A pattern pack that read the log."""

    id: str
    version: str
    digest: str


class Tool(TypedDict):
    """Who read the log."""

    version: str
    packs: list[Pack]


class Triage(TypedDict):
    """`logscan.triage/1`. `verdict`, `status`, `worst` are None where nothing was recognised."""

    schema: Literal["logscan.triage/1"]
    tool: Tool
    verdict: Verdict | None
    status: Status | None
    worst: Severity | None
    given: Given
    logs: list[Log]


class Print(TypedDict):
    """A line that an outcome is known to print."""

    level: str
    text: str
    pattern: str | None
    distrusted_by: str | None  # the line is printed and not true


class ExpectedRow(Row):
    """A predicted row: the layer that the engine will use, and what will say so (nothing, where `prints` is empty)."""

    layer: str | None
    prints: list[Print]


class Expected(TypedDict):
    """The prediction for one release."""

    verdict: Verdict
    paths: list[ExpectedRow]
    findings: list[Finding]


class ExpectedRelease(Expected):
    """… of several: `engine` is `vllm==0.31.0`."""

    engine: str


class ExpectGiven(Given):
    """What a prediction was asked for."""

    have: list[str] | None
    flags: dict[str, str]


class Expect(TypedDict, total=False):
    """`logscan.expect/1`. One release: `verdict`, `paths`, `findings`; a range: `releases`, and none of the three."""

    schema: Required[Literal["logscan.expect/1"]]
    given: Required[ExpectGiven]
    verdict: Verdict
    paths: list[ExpectedRow]
    findings: list[Finding]
    releases: list[ExpectedRelease]
