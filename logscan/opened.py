"""A boot that is being read: what it said so far, and what it may still say."""

from __future__ import annotations

from collections import Counter

from logscan import versions
from logscan.model import Component, Event, Record, Status
from logscan.packs.schema import Pattern

_STREAM_PREFIX = ((0, 10, 1), (0, 31))  # releases in which every line of a process carries its prefix
_V1_ANNOUNCES = (0, 6, 5)  # release since which V1's core prints `init engine … took` (core.py:_initialize_kv_caches)
_V1_ONLY = (0, 11)  # release since which there is no V0, whose pooling models print no such line


class Open:
    """A boot being read. Mutable, and nobody's but that of the boots' reader. (A dataclass costs 5 ms to import.)"""

    def __init__(self, source: str, first: int, own_last: int) -> None:
        self.source = source
        self.first = first
        self.last = 0
        self.own_last = own_last  # last line that surely is this boot's: an event, or a known process
        self.events: list[tuple[Event, Component]] = []
        self.hits: Counter[str] = Counter()
        self.levels: Counter[str] = Counter()
        self.voices: set[str] = set()
        self.nodes: set[bytes] = set()  # of SGLang: those that printed their arguments
        self.records = 0
        self.foreign = False
        self.marks: dict[str, int] = {}
        self.starter: dict[str, frozenset[str]] = {}
        self.actor = ""
        self.model = ""
        self.server = False
        self.drafting = False
        self.stream_prefix = False
        self.announced = False  # the release prints a last line of the engine's own start-up, here
        self.status: Status = "incomplete"
        self.decided: int | None = None
        self.unrecognised: list[tuple[int, str]] = []

    @property
    def over(self) -> bool:
        """Whether a new start marker can no longer belong here."""
        offline_ready = "engine_ready" in self.marks and not self.server
        return self.status != "incomplete" or "exception" in self.marks or offline_ready

    @property
    def outcome(self) -> tuple[Status, int | None]:
        """The status as the log stands, and its line: without an API server the engine's own last line is ready."""
        if self.status == "incomplete" and "engine_ready" in self.marks and not self.server:
            return "ready", self.marks["engine_ready"]
        if self.status == "incomplete" and "exception" in self.marks:
            return "failed", self.marks["exception"]  # nothing came after it that makes it a caught one
        return self.status, self.decided

    def learn(self, kind: str, version: str, record: Record) -> None:
        """What vLLM's release prints, from a start marker that names it."""
        parsed = versions.parse(version)
        if parsed is None or record.engine != "vllm":
            return
        release = parsed.key[0]
        if kind == "boot.engine" and "pid=" in record.process:
            self.stream_prefix = self.stream_prefix or _STREAM_PREFIX[0] <= release < _STREAM_PREFIX[1]
        v1 = record.file.endswith("core.py") and release >= _V1_ANNOUNCES
        self.announced = self.announced or v1 or release >= _V1_ONLY

    def deaf_to(self, record: Record, pattern: Pattern) -> bool:
        """Whether a record's hit of a pattern tells nothing of this boot."""
        if self._foreign_server(record) or self._too_late(record, pattern):
            return True
        vouched = record.origin == "uvicorn" and "pid=" in record.process  # vLLM's own server by its prefix
        return pattern.emits == "boot.ready" and self.announced and not vouched and "engine_ready" not in self.marks

    def _too_late(self, record: Record, pattern: Pattern) -> bool:
        """Whether a pattern of the start is met after it: request traffic may quote anything.

        The traceback that says why a boot failed comes after the line that says that it did.
        """
        if self.status == "incomplete" or pattern.phase == "any" or pattern.emits == "boot.ready":
            return False
        return not (self.status == "failed" and (record.origin == "traceback" or record.level in ("ERROR", "CRITICAL")))

    def _foreign_server(self, record: Record) -> bool:
        """Whether a uvicorn line without a process prefix is another service's.

        In 0.10.1–0.30 vLLM prefixes every line that its API server writes, uvicorn's too (`_add_prefix` patches
        stdout); later only its own records.
        """
        return record.origin == "uvicorn" and not record.speaker and self.stream_prefix

    def settle(self, emits: str, line: int) -> None:
        """Take what a line says of the boot's course."""
        if emits == "boot.engine_ready":
            self.marks.setdefault("engine_ready", line)
            self.drafting = False
        elif emits == "boot.ready" and self.status == "incomplete":
            self.status, self.decided = "ready", line
        elif emits == "boot.failed" and self.status == "incomplete":
            self.status, self.decided = "failed", line
        elif emits == "boot.exception":
            self.marks["exception"] = line
        elif emits == "boot.died" and self.status != "died":
            if self.status == "ready" or ("engine_ready" in self.marks and not self.server):
                self.status, self.decided = "died", line
            elif self.status == "incomplete":
                self.status, self.decided = "failed", line
