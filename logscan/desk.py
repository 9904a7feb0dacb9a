"""Triage: logs in, one document out. The library's main function, and what the command runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from logscan import document, hardware, observed, versions
from logscan.boots import Boots
from logscan.intake import open_source
from logscan.intake.source import Source
from logscan.judge import judge
from logscan.judge.knowledge import tables
from logscan.model import Boot, InputError, Machine, Promise, Record, replace
from logscan.packs.load import load
from logscan.packs.schema import Pack
from logscan.recognise import Recogniser
from logscan.redact import cleaner

if TYPE_CHECKING:
    from logscan.results import Triage


class Given(NamedTuple):
    """What the user says beside the log. It wins over what the log says, and a conflict is a finding."""

    ckpt: str | None = None
    gpu: str | None = None
    cuda: str | None = None
    engine: str | None = None
    env: Mapping[str, str] = {}

    def document(self) -> dict[str, Any]:
        """As it stands under `given` in every document."""
        return {"ckpt": self.ckpt, "gpu": self.gpu, "cuda": self.cuda, "engine": self.engine, "env": dict(self.env)}


class Desk(NamedTuple):
    """Everything that one run needs and no log changes: packs, the promise, the machine.

    The tables of an engine are read when a boot of it is judged.
    """

    packs: tuple[Pack, ...]
    given: Given
    promise: Promise | None
    machine: Machine
    recogniser: Recogniser
    dirs: tuple[Path, ...] = ()

    @classmethod
    def of(cls, given: Given, packs: Sequence[str | Path] = ()) -> Desk:
        """Load packs, read the checkpoint, resolve the hardware. Raises InputError for any of them.

        Tables of the user's own are checked here, whichever engine the log turns out to be of.
        """
        dirs = tuple(Path(p) for p in packs)
        loaded = load(dirs, examples=False)
        for engine in {p.engine for p in loaded} if dirs else ():
            tables(dirs, engine)
        return cls(loaded, given, _promise(given), _machine(given), Recogniser(loaded), dirs)

    def for_another(self, given: Given) -> Desk:
        """The same packs and tables, with another checkpoint or machine. Raises InputError as `of` does."""
        return self._replace(given=given, promise=_promise(given), machine=_machine(given))

    def judged(self, boots: Iterable[Boot]) -> tuple[document.Judged, ...]:
        """The verdicts of boots. Pure: may be asked again when a boot has grown."""
        out = []
        for boot in boots:
            boot = _engine_override(boot, self.given.engine, self.packs)
            machine = observed.observe(self.machine, boot)
            known = next((p.releases for p in self.packs if p.engine == boot.engine.name), ())
            knowledge = tables(self.dirs, boot.engine.name or "")
            printed = _printed_promise(boot)
            promise = self.promise or printed
            judgement = judge(boot, promise, machine, knowledge, self.machine, known, printed)
            if self.recogniser.given_up:
                judgement = judgement.without(self.recogniser.given_up.values())
            out.append(document.Judged(boot, promise, machine, judgement))
        return tuple(out)


def _promise(given: Given) -> Promise | None:
    if given.ckpt is None:
        return None
    from logscan.checkpoint import read_promise

    return read_promise(given.ckpt)


def _printed_promise(boot: Boot) -> Promise | None:
    """The promise that the log prints. Its reader is imported where there is one."""
    if not any(f.name.startswith("promise.") for f in boot.facts):
        return None
    from logscan.logged import logged_promise

    return logged_promise(boot)


def _machine(given: Given) -> Machine:
    if given.engine is not None:
        _engine_given(given.engine)
    return hardware.machine(given.gpu, given.cuda, given.env)


def triage(
    *logs: str | os.PathLike[str],
    ckpt: str | None = None,
    gpu: str | None = None,
    cuda: str | None = None,
    engine: str | None = None,
    env: Mapping[str, str] | None = None,
    boots: str = "last",
    packs: Sequence[str | Path] = (),
    redact: bool = True,
) -> Triage:
    """A verdict for each boot in `logs` (paths; `-` is stdin), as the document `logscan.triage/1`.

    `ckpt`: a config.json, hf_quant_config.json, params.json or a directory. `gpu`: a name, `sm_89`, `gfx942`, `cpu`.
    `cuda`: the toolkit the engine was built with. `boots`: which boots decide the top verdict, `last` or `all`.
    Raises InputError for input that cannot be read; a log in which nothing is recognised has no boots.
    """
    desk = Desk.of(Given(ckpt, gpu, cuda, engine, dict(env or {})), packs)
    reports = [read_log(open_source(os.fspath(log)), desk) for log in logs]
    return cast("Triage", document.document(reports, desk.packs, desk.given.document(), boots, cleaner(redact)))


def read_log(source: Source, desk: Desk, watch: Watch | None = None) -> document.LogReport:
    """Read one log to its end (or as far as `watch` wants) and judge its boots.

    When its boots are decided the rest of a long log is skimmed for a restart, a death; one whose boot is not decided
    after some MiB, because its head or its end was cut off, for what any pattern may own.
    Ctrl-C ends a live stream; what was read is reported.
    """
    boots = Boots(desk.packs, desk.recogniser)
    if watch is not None and watch.deadline is not None:
        source.until(watch.deadline)
    coarse = False
    desk.recogniser.begin()
    try:
        for record in source.records():
            if source.skimmed_to:
                boots.passed(source.skimmed_to)
            changed = boots.feed(record)
            if changed and boots.decided and (coarse or not source.skimming):
                coarse = False
                source.skim_late(lambda long: desk.recogniser.late(boots.ready, long) if boots.decided else None)
            elif record.line % 64 == 0 and source.plodding:
                coarse = True
                source.skim_late(lambda _: desk.recogniser.all())
            if watch is not None and watch.enough(record, changed, boots):
                break
    except KeyboardInterrupt:
        if not source.live:
            raise
    source.close()
    boots.end(source.lines)
    return document.LogReport(
        source.name,
        source.bytes,
        source.lines,
        source.sha256,
        source.envelopes,
        boots.census(),
        desk.judged(boots.snapshot()),
        (
            *source.notes,
            *(f"{name}: this pattern was given up, it takes too long" for name in desk.recogniser.given_up),
        ),
    )


class Watch(NamedTuple):
    """When to stop reading a log that has no end: at ready, at a deadline."""

    until_ready: bool = False
    deadline: float | None = None
    changed: Callable[[Boots], None] | None = None

    def enough(self, record: Record, changed: bool, boots: Boots) -> bool:
        """Whether what was read suffices."""
        if changed and self.changed is not None:
            self.changed(boots)
        if changed and self.until_ready and boots.decided:
            return True
        return self.deadline is not None and record.line % 64 == 0 and time.monotonic() > self.deadline


def _engine_given(text: str) -> tuple[str, str | None]:
    name, _, version = text.partition("==")
    if name not in ("vllm", "trtllm", "sglang") or (version and versions.parse(version) is None):
        raise InputError(f"--engine {text!r}: write vllm, trtllm or sglang, with a release: vllm==0.31.0")
    return name, version or None


def _engine_override(boot: Boot, given: str | None, packs: Sequence[Pack]) -> Boot:
    """`--engine` overrides detection: the release that the user names, at its own or its neighbours' rows."""
    if given is None:
        return boot
    name, text = _engine_given(given)
    version = versions.parse(text) if text else None
    pack = next((p for p in packs if p.engine == name), None)
    if version is None or pack is None:
        return replace(boot, engine=replace(boot.engine, name=name))
    engine = replace(
        boot.engine,
        name=name,
        version=text,
        kind=versions.kind(version),
        authority="given",
        range=None,
        releases=versions.around(version, pack.releases),
    )
    return replace(boot, engine=engine)
