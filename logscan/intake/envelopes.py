"""Envelopes that put a head before each line: one small class each, with `sniff` and `peel`.

Formats from the tools' own documentation: kubectl logs --prefix/--timestamps, stern, the CRI log format,
docker compose, journalctl -o short*, RFC 3164 and RFC 5424, logcli, mpirun --tag-output, srun --label.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Protocol

from logscan.intake.framing import Item

_COLOUR = rb"(?:\x1b\[[0-9;]*m)*"
_TIME = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)"
_PARTIAL = 1 << 20  # bytes of one line that may be pending in parts
_STREAMS = 256  # streams with pending parts


class Envelope(Protocol):
    """A wrapper around each line of a log."""

    name: str
    stateless: ClassVar[bool]  # peels each line without those before it

    def sniff(self, lines: Sequence[bytes]) -> int:
        """How many of these lines are wrapped so. Remembers nothing."""

    def peel(self, item: Item) -> Sequence[Item] | None:
        """What is inside: none where the line holds no text of its own; None where it is not wrapped so."""

    def flush(self) -> Sequence[Item]:
        """What is still pending at the end of the stream."""


class Head:
    """Base of the envelopes that are a head before each line."""

    name = ""
    stateless: ClassVar[bool] = True
    head: ClassVar[bytes] = b""

    def __init__(self) -> None:
        self._match = re.compile(self.head).match

    def sniff(self, lines: Sequence[bytes]) -> int:
        """How many lines have the head."""
        return sum(self._match(line) is not None for line in lines)

    def peel(self, item: Item) -> Sequence[Item] | None:
        """The line without its head."""
        m = self._match(item.payload)
        return None if m is None else self.inside(m, item._replace(payload=item.payload[m.end() :]))

    def inside(self, m: re.Match[bytes], item: Item) -> Sequence[Item]:
        """What the head says of the line."""
        return (item,)

    def flush(self) -> Sequence[Item]:
        """Nothing is pending."""
        return ()


def _named(item: Item, *names: bytes) -> tuple[Item]:
    source = "/".join(n.decode("utf-8", "replace") for n in names if n)
    return (item._replace(source=f"{item.source}/{source}" if item.source and source else source or item.source),)


class Parts:
    """Joins a line that was cut into parts, stream by stream."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[Item, list[bytes], int]] = {}

    def add(self, key: str, item: Item, complete: bool) -> Sequence[Item]:
        """The whole line once it is complete, numbered by its first part."""
        first, parts, size = self._open.pop(key, (item, [], 0))
        parts.append(item.payload)
        size += len(item.payload)
        if complete or size > _PARTIAL or len(self._open) >= _STREAMS:
            return (first._replace(payload=b"".join(parts)),)
        self._open[key] = (first, parts, size)
        return ()

    def flush(self) -> Sequence[Item]:
        """The lines that never ended."""
        left = [first._replace(payload=b"".join(parts)) for first, parts, _ in self._open.values()]
        self._open.clear()
        return left


class KubectlPrefix(Head):
    """`[pod/llm-7f/vllm] INFO …` (kubectl logs --prefix, --all-containers with several pods)."""

    name = "kubectl-prefix"
    head = rb"\[(pod/[^/\]\s]+/[^\]\s]+)\] ?"

    def inside(self, m: re.Match[bytes], item: Item) -> Sequence[Item]:
        return _named(item, m[1])


class Cri(Head):
    """`2026-06-26T02:33:04.123456789Z stdout F INFO …`; `P` marks a part of a line."""

    name = "cri"
    stateless = False
    head = _TIME + rb" (stdout|stderr) ([FP])(?::\S*)?(?: |$)"

    def __init__(self) -> None:
        super().__init__()
        self._parts = Parts()

    def inside(self, m: re.Match[bytes], item: Item) -> Sequence[Item]:
        return self._parts.add(f"{m[1]!r}{item.source}", item, m[2] == b"F")

    def flush(self) -> Sequence[Item]:
        return self._parts.flush()


class Journald(Head):
    """`Dec 07 18:59:10 host vllm[10337]: INFO …`, also with ISO, precise or full times: journalctl, syslog files."""

    name = "journald"
    head = (
        rb"(?:(?:[A-Z][a-z]{2} (?:[A-Z][a-z]{2} )?[ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|[A-Z][a-z]{2} "
        rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [A-Z]+) ([\w.:-]+) ([A-Za-z_][^\s\[\]:{}(]*)(?:\[\d+\])?: ?|"
        + _TIME
        + rb" ([\w.:-]+) (?:([A-Za-z_][^\s\[\]:{}(]*)\[\d+\]|kernel): ?)"
    )

    def inside(self, m: re.Match[bytes], item: Item) -> Sequence[Item]:
        return _named(item, m[1] or m[3], m[2] or m[4] or b"kernel")


class Syslog(Head):
    """RFC 3164 and RFC 5424: `<34>Dec  7 18:59:10 host vllm[1]: …`, `<34>1 2026-… host vllm 1 - - …`"""

    name = "syslog"
    head = (
        rb"<\d{1,3}>(?:1 (?:" + _TIME + rb"|-) (\S+) (\S+) \S+ \S+ (?:-|(?:\[[^\]]*\])+)(?: \xef\xbb\xbf| |$)"
        rb"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d (\S+) ([^\s\[:]+)(?:\[\d+\])?: ?)"
    )

    def inside(self, m: re.Match[bytes], item: Item) -> Sequence[Item]:
        return _named(item, m[1] or m[3], m[2] or m[4])


class LokiCli(Head):
    """`2026-06-26T02:33:04Z {app="vllm", pod="llm-7f"} INFO …` (logcli query)."""

    name = "loki"
    head = _TIME + rb" (\{[^{}]*\}) ?"
    _label = rb'(?:^|[{ ,])%s="([^"]*)"'

    def inside(self, m: re.Match[bytes], item: Item) -> Sequence[Item]:
        found = (re.search(self._label % key, m[1]) for key in (b"pod", b"container"))
        return _named(item, *(f[1] for f in found if f))


class KubectlTimestamps(Head):
    """`2026-06-26T02:33:04.123456789Z INFO …` (kubectl logs --timestamps, docker logs -t, compose logs -t)."""

    name = "kubectl-timestamps"
    head = _TIME + rb"(?: |\t|$)"


class AwsLogsTail(Head):
    """`2026-06-26T02:33:04.123000+00:00 ecs/vllm/0123abcd INFO …` (aws logs tail)."""

    name = "cloudwatch"
    head = rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?\+00:00 (\S+)(?: |$)"

    def inside(self, m: re.Match[bytes], item: Item) -> Sequence[Item]:
        return _named(item, m[1])


class Mpirun(Head):
    """`[1,5]<stderr>:INFO …` (mpirun --tag-output, prterun)."""

    name = "mpirun"
    head = rb"\[(?:[\w.-]+@)?\d+,(\d+)\]<(?:stdout|stderr)>:(?: (?=[(\[]|DEBUG |INFO |WARNING |ERROR |CRITICAL ))?"

    def inside(self, m: re.Match[bytes], item: Item) -> Sequence[Item]:
        return (item._replace(label=f"rank {m[1].decode()}"),)


class Tail(Head):
    """`==> logs/vllm.out <==` before the lines of each file (tail -F of several)."""

    name = "tail"
    stateless = False
    head = rb"==> (.{1,200}) <==\r?$"

    def __init__(self) -> None:
        super().__init__()
        self._file = b""

    def peel(self, item: Item) -> Sequence[Item]:
        if m := self._match(item.payload):
            self._file = m[1]
            return ()
        return _named(item, self._file)


class Srun(Head):
    """` 5: INFO …` (srun --label)."""

    name = "slurm"
    head = rb" {0,4}(\d{1,5}): ?"

    def inside(self, m: re.Match[bytes], item: Item) -> Sequence[Item]:
        return (item._replace(label=f"rank {m[1].decode()}"),)


class Compose(Head):
    """`vllm-1  | INFO …` (docker compose logs, up)."""

    name = "docker-compose"
    head = _COLOUR + rb"([A-Za-z0-9][\w.-]*) *" + _COLOUR + rb" *\|" + _COLOUR + rb"(?: |$)"

    def inside(self, m: re.Match[bytes], item: Item) -> Sequence[Item]:
        return _named(item, m[1])


class Stern(Head):
    """`llm-7f9c4d-x2x7k vllm INFO …`, and the notices `+ pod › container` (stern)."""

    name = "stern"
    head = (
        _COLOUR
        + rb"(?:([a-z0-9][a-z0-9.-]*-[a-z0-9]{1,16})"
        + _COLOUR
        + rb" "
        + _COLOUR
        + rb"([a-z0-9][a-z0-9-]*)"
        + _COLOUR
        + rb" |[+-] [a-z0-9.-]+ \xe2\x80\xba [a-z0-9-]+"
        + _COLOUR
        + rb"$)"
    )

    def inside(self, m: re.Match[bytes], item: Item) -> Sequence[Item]:
        return _named(item, b"pod", m[1], m[2]) if m[1] else ()


class Constant(Head):
    """A constant text before each line: a wrapper of its own, or VLLM_LOGGING_PREFIX."""

    name = "prefix"

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._match = re.compile(re.escape(text)).match


STRONG: tuple[type[Head], ...] = (
    KubectlPrefix,
    Cri,
    Syslog,
    Journald,
    LokiCli,
    AwsLogsTail,
    KubectlTimestamps,
    Mpirun,
    Tail,
)
# They look like ordinary text: taken only where what is inside frames as a record.
WEAK: tuple[type[Head], ...] = (Compose, Stern, Srun)
