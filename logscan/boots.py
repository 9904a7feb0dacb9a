"""Events → boots: where a start begins and ends, which process belongs to it, and how it went.

An engine prints no line that says "new start". A boot begins at a start marker (the API server's banner, its arguments,
an engine line) that the boot at hand cannot own: it is decided already, or has that marker from another process. DP
replicas, a V0↔V1 fallback and a drafter print further engine lines inside one boot.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from logscan.meaning import distinct_kernels, engine_of, facts_of, same_image
from logscan.model import Boot, Census, Component, Event, Fact, Record
from logscan.opened import Open
from logscan.packs.schema import Pack, Pattern
from logscan.recognise import SELECTING, START, Recogniser

_PID = re.compile(r"pid=(\d+)")
_REPLICA = re.compile(r"EngineCore_DP(\d+)|ApiServer_(\d+)|APIServer_(\d+)")
_MODEL = re.compile(r"\bmodel'?[:=] ?'([^']{1,500})'")
_SERVER = re.compile(r"^(?:APIServer|ApiServer_|APIServer_|DPSupervisor)")
_RAY_ACTOR = re.compile(r"^(?!APIServer|ApiServer|EngineCore|Worker|VllmWorker|DPSupervisor|MainProcess)\w+ pid=(\d+)")
_SELECTION = re.compile(
    rb"(?:Using|Selected|Selecting) [^\n]{0,120}?(?:[Kk]ernel|[Bb]ackend)\b|[Ff]alling back|not supported|[Dd]isabled\b"
)
_NODE = re.compile(rb"node_rank'?[:=] ?(\d{1,6})")
EVENTS_PER_PATTERN = 200
UNRECOGNISED = 50


class Boots:
    """Feed records in order; `finish()` (or `snapshot()` at any time) gives the boots seen so far."""

    def __init__(self, packs: Sequence[Pack], recogniser: Recogniser | None = None) -> None:
        self._packs = {p.engine: p for p in reversed(packs)}  # the packaged one of an engine: it comes first
        self._recogniser = recogniser or Recogniser(packs)
        self._open: list[Open] = []
        self._current: dict[str, Open] = {}
        self._owner: dict[tuple[str, str], Open] = {}
        self._pids: dict[str, frozenset[str]] = {"": frozenset()}
        self._before: dict[str, list[Record]] = {}
        self._routes: dict[tuple[str, str], Open] = {}  # whose a record without events is, until the next start
        self._records = 0
        self._levels: Counter[str] = Counter()
        self._sources: set[str] = set()

    def feed(self, record: Record) -> bool:
        """Take one record. True when it changed a boot's status."""
        self._records += record.repeats
        self._levels[record.level] += record.repeats
        self._sources.add(record.source)
        events = self._recogniser.events(record)
        route = (record.source, record.process)
        boot = self._routes.get(route) if not events else None
        pids = self._pids_of(record.process)
        if boot is None:
            boot = self._assign(record, events, pids)
            if boot is None:
                return False
            self._routes[route] = boot
        boot.last = max(boot.last, record.line + record.text.count(b"\n"))
        boot.records += record.repeats
        if record.level:
            boot.levels[record.level] += record.repeats
            if record.engine == "trtllm" and record.level in ("INFO", "WARNING"):
                boot.voices.add("python" if record.time else "c++")  # its C++ logger prints no time
        if pids or (events and (not boot.over or any(self._is_failure(e) for e in events))):
            boot.own_last = boot.last
        before = boot.status
        started = boot.status != "incomplete"
        for event in events:
            pattern = self._recogniser.pattern(event.pattern)
            if boot.deaf_to(record, pattern):
                continue
            self._take(boot, event, pattern)
        if not events and not started and record.origin == "engine" and _selects(record.text):
            boot.unrecognised.append((record.line, record.text.decode("utf-8", "replace")[:500]))
            del boot.unrecognised[UNRECOGNISED:]
        return boot.status != before

    def passed(self, line: int) -> None:
        """Lines up to this one were skimmed: they are no new boot's head, and the boots that go on have reached it."""
        for boot in self._current.values():
            if boot.own_last < line:
                boot.own_last, boot.last = line, max(boot.last, line)

    def _is_failure(self, event: Event) -> bool:
        """Whether a line tells how a boot ended: a refusal may come after the record that says it is over."""
        emits = self._emits(event)
        return emits in ("boot.failed", "boot.died", "boot.exception") or emits.endswith(".refused")

    def _pids_of(self, process: str) -> frozenset[str]:
        pids = self._pids.get(process)
        if pids is None:
            pids = self._pids[process] = frozenset(_PID.findall(process))
        return pids

    # ------------------------------------------------------------ whose record is it

    def _assign(self, record: Record, events: Sequence[Event], pids: frozenset[str]) -> Open | None:
        source = record.source
        owners = [self._owner[(source, p)] for p in pids if (source, p) in self._owner]
        current = self._current.get(source)
        boot = max(owners, key=lambda b: b.first) if owners else current
        start = next((e for e in events if self._emits(e) in START), None)
        if start is not None:
            self._routes.clear()
            boot = self._started(record, start, self._waiting(start, source, boot), pids)
        if boot is None:
            if all(record.origin == "uvicorn" or self._emits(e) == "boot.exception" for e in events):
                self._wait(record)  # any web service, any Python program
                return None
            boot = self._new(record, record.line)
        for p in pids:
            self._owner.setdefault((source, p), boot)
            if start is not None:
                self._owner[(source, p)] = boot
        if boot is not current and current is not None:
            current.foreign = current.foreign or boot.first < current.first
            boot.foreign = boot.foreign or boot.first < current.first
        return boot

    def _waiting(self, start: Event, source: str, boot: Open | None) -> Open | None:
        """The boot that a start marker may continue: for an engine line the oldest that has none, of its model if any.

        Containers reuse their pids, so a process that belonged to a boot that is over may be of the next one.
        """
        if self._emits(start) != "boot.engine":
            current = self._current.get(source)
            return current if boot is not None and boot.over else boot
        waiting = [b for b in self._open if b.source == source and not b.over and "boot.engine" not in b.marks]
        model = _MODEL.search(start.fields.get("args", ""))
        same = [b for b in waiting if model and b.model == model[1]]
        return (same or waiting or [boot])[0]  # type: ignore[list-item]

    def _wait(self, record: Record) -> None:
        """Keep count of what stands before the first event: it is the first boot's head."""
        self._before.setdefault(record.source, []).append(record._replace(text=b""))
        del self._before[record.source][:-4000]

    def _emits(self, event: Event) -> str:
        return self._recogniser.pattern(event.pattern).emits

    def _started(self, record: Record, start: Event, boot: Open | None, pids: frozenset[str]) -> Open:
        kind = self._emits(start)
        if boot is None:
            boot = self._new(record, record.line)
        elif self._is_new(boot, kind, record, pids):
            boot = self._follow(boot, record)
        boot.nodes |= self._node(kind, record)
        boot.marks.setdefault(kind, record.line)
        boot.starter.setdefault(kind, pids)
        model = _MODEL.search(start.fields.get("args", ""))
        boot.model = boot.model or (model[1] if model else "")
        boot.learn(kind, start.fields.get("version", ""), record)
        boot.server = boot.server or kind == "boot.start" or bool(_SERVER.match(record.speaker))
        actor = _RAY_ACTOR.match(record.speaker)
        boot.actor = boot.actor or (actor[1] if actor else "")
        return boot

    def _is_new(self, boot: Open, kind: str, record: Record, pids: frozenset[str]) -> bool:
        if boot.over:
            replica = kind != "boot.start" and _REPLICA.search(record.process)
            return not (replica and pids & boot.starter.get(kind, pids))
        actor = _RAY_ACTOR.match(record.speaker)
        if actor and boot.actor and actor[1] != boot.actor and kind == "boot.engine" and "boot.engine" in boot.marks:
            return True
        if kind == "boot.engine" or kind not in boot.marks:
            return kind != "boot.engine" and "boot.engine" in boot.marks
        if self._node(kind, record) & boot.nodes:
            return True
        other = bool(pids and boot.starter[kind] and not pids & boot.starter[kind])
        if _REPLICA.search(record.process) and other:
            return False
        if kind == "boot.start" and record.line - boot.marks[kind] <= 12 and pids == boot.starter[kind]:
            return False  # the rows of one banner
        return kind == "boot.start" or other or "boot.engine" in boot.marks

    @staticmethod
    def _node(kind: str, record: Record) -> set[bytes]:
        """The node whose arguments SGLang prints, which each does once in a start: a second time is another start."""
        if kind != "request.args" or record.engine != "sglang":
            return set()
        m = _NODE.search(record.text)
        return {m[1] if m else b""}

    def _follow(self, over: Open, record: Record) -> Open:
        """A new boot after one that is over. What none of that one's processes said before the marker is its head."""
        boot = self._new(record, record.line if over.foreign else min(over.own_last + 1, record.line))
        boot.events = [e for e in over.events if e[0].line >= boot.first]
        over.events = [e for e in over.events if e[0].line < boot.first]
        over.last = min(over.last, boot.first - 1)
        return boot

    def _new(self, record: Record, first: int) -> Open:
        self._routes.clear()
        head = self._before.pop(record.source, [])
        boot = Open(record.source, min([first, *(r.line for r in head[:1])]), record.line)
        for r in head:
            boot.records += r.repeats
            if r.level:
                boot.levels[r.level] += r.repeats
        self._open.append(boot)
        self._current[record.source] = boot
        return boot

    # ------------------------------------------------------------ how did it go

    def _take(self, boot: Open, event: Event, pattern: Pattern) -> None:
        boot.hits[event.pattern] += event.record.repeats
        emits = pattern.emits
        if emits == "boot.drafter":
            boot.drafting = True
        if emits.startswith("boot."):
            boot.settle(emits, event.line)
        if boot.hits[event.pattern] <= EVENTS_PER_PATTERN:
            boot.events.append((event, "drafter" if boot.drafting else "target"))

    # ------------------------------------------------------------ results

    @property
    def decided(self) -> bool:
        """Whether the last boot of every source is ready, or over."""
        return bool(self._current) and all(b.outcome[0] != "incomplete" for b in self._current.values())

    @property
    def ready(self) -> bool:
        """Whether every boot so far got ready, in a stream of one source: another's head may be cut off."""
        return self._sources == {""} and bool(self._open) and all(b.outcome[0] == "ready" for b in self._open)

    def end(self, line: int) -> None:
        """The stream has ended at this line: it belongs to the only source's last boot."""
        if len(self._current) == 1:
            (boot,) = self._current.values()
            boot.last = max(boot.last, line)

    def census(self) -> Census:
        """What was seen of the whole stream, boots or none."""
        last = list(self._current.values())
        return Census(
            self._records,
            {k: n for k, n in sorted(self._levels.items()) if k},
            "seen" if self._open and all(any(k in b.marks for k in START) for b in self._open[:1]) else "missing",
            "seen" if last and all(b.outcome[0] != "incomplete" for b in last) else "missing",
            len(self._sources),
        )

    def snapshot(self) -> tuple[Boot, ...]:
        """The boots so far, in order of their first lines; a later call may tell more of the last of each source."""
        opened = sorted(self._open, key=lambda b: b.first)
        sources = len({b.source for b in opened})
        boots = [self._boot(i, b, sources) for i, b in enumerate(opened, 1)]
        return tuple(same_image(boots))

    def _boot(self, index: int, boot: Open, sources: int) -> Boot:
        name = self._engine_name(boot)
        pack = self._packs.get(name or "")
        own = [(e, c) for e, c in boot.events if self._recogniser.engine(e.pattern) == name]
        engine = engine_of(name, self._version(own), (e for e, _ in own), pack)
        facts: list[Fact] = []
        for event, component in own:
            facts += facts_of(event, self._recogniser.pattern(event.pattern), engine, component)
        facts = distinct_kernels(sorted(facts, key=lambda f: f.line))
        status, decided = boot.outcome
        census = Census(
            boot.records,
            dict(boot.levels),
            "seen" if any(k in boot.marks for k in START) else "missing",
            "seen" if status != "incomplete" else "missing",
            sources,
            tuple(sorted(boot.voices)),
        )
        model = next((f.value for f in facts if f.name in ("engine.model", "config.model", "request.model")), None)
        return Boot(
            index,
            boot.source,
            boot.first,
            boot.last,
            boot.foreign,
            status,
            engine,
            model,
            tuple(facts),
            census,
            tuple(boot.unrecognised),
            decided,
        )

    def _engine_name(self, boot: Open) -> str | None:
        counts: Counter[str] = Counter()
        for event, _ in boot.events:
            engine = self._recogniser.engine(event.pattern)
            emits = self._emits(event)
            identity = emits in ("boot.engine", "engine.version") and event.record.origin == "engine"
            counts[engine] += 100 if identity else 10 if event.record.engine else 1
        return counts.most_common(1)[0][0] if counts else None

    def _version(self, events: Iterable[tuple[Event, Component]]) -> tuple[str, int] | None:
        """The engine line's version before the banner's: it is printed by the process that runs the model."""
        best: tuple[int, str, int] | None = None
        for event, _ in events:
            text = event.fields.get("version")
            emits = self._emits(event)
            rank = {"boot.engine": 0, "boot.start": 1, "engine.version": 1}.get(emits)
            if text and rank is not None and (best is None or rank < best[0]):
                best = (rank, text, event.line)
        return (best[1], best[2]) if best else None


def _selects(text: bytes) -> bool:
    """Whether a text looks like a selection, a fallback or a refusal. Most do not: the regex is asked last."""
    a, b, c, d, e = SELECTING
    return (a in text or b in text or c in text or d in text or e in text) and _SELECTION.search(text) is not None
