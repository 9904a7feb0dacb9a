"""One log → rows. What a worker holds between logs: packs, tables, promises, and what was judged before."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from copy import copy
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import blake2b, sha256
from pathlib import Path
from typing import NamedTuple

from logscan import __version__, document, hardware
from logscan.boots import Boots
from logscan.checkpoint import read_promise
from logscan.desk import Desk, Given, Watch, read_log
from logscan.document import Judged, LogReport
from logscan.fleet.columns import UNCHANGED, Row, blank, fill
from logscan.fleet.joins import Joined, Joins
from logscan.fleet.listing import Item, fetched
from logscan.fleet.memo import Memo, key_of
from logscan.intake import open_source
from logscan.model import SEVERITIES, Boot, InputError, Promise, Record
from logscan.packs import patterns_dir
from logscan.redact import cleaner

_DESKS = 4096
_TEXTS = 1 << 14
_DATED = re.compile(r"(\d{4})-(\d\d)-(\d\d)[ T](\d\d:\d\d:\d\d)")  # SGLang
_AMERICAN = re.compile(r"(\d\d)/(\d\d)/(\d{4})-(\d\d:\d\d:\d\d)")  # TensorRT-LLM
_YEARLESS = re.compile(r"(\d\d)-(\d\d) (\d\d:\d\d:\d\d)")  # vLLM


class Settings(NamedTuple):
    """What is the same for every log of an audit. Picklable, and small."""

    joins: Joins = Joins()
    packs: tuple[str, ...] = ()
    redact: bool = True
    memo: bool = True


class Scanner:
    """Scans logs one after the other. Raises InputError when it is made: bad pack; never while it scans."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._base = Desk.of(Given(), settings.packs)
        self._memo = Memo()
        self._desks: dict[str, _FleetDesk] = {}
        self._digests: dict[str, str] = {}
        self._promise = lru_cache(maxsize=_DESKS)(read_promise)
        self._text = lru_cache(maxsize=_TEXTS)(cleaner(settings.redact))
        self.tool = tool_digest(settings.packs)

    @property
    def hits(self) -> int:
        """Boots that were told from an equal one's judgement."""
        return self._memo.hits

    def given(self, joins: Joins) -> Scanner:
        """The same scanner, sharing all that it holds, for logs with which something else was given."""
        other = copy(self)
        other._settings = self._settings._replace(joins=joins)
        return other

    def scan(self, item: Item, known: Collection[str] = ()) -> list[Row]:
        """The rows of a log, at least one. A log with a key that is `known` is not read: its row says `unchanged`."""
        try:
            given, rule = self._settings.joins.of_log(item.name)
            with fetched(item) as path:
                inputs = self._inputs(given, rule)
                if known:
                    key = log_key(item.name, file_digest(path), self.tool, inputs)
                    if key in known:
                        return [blank(key, item.name, UNCHANGED)]
                try:
                    return self._read(item, path, self._desk(given, rule), inputs)
                except InputError as error:
                    key = log_key(item.name, file_digest(path), self.tool, inputs)
                    return [self._error(key, item, _told(error, item, path))]
        except Exception as error:
            # No digest to file it under: it is tried again, and told anew where it fails in another way.
            text = _told(error, item, item.location)
            key = log_key(item.name, text, self.tool, "")
            return [blank(key, item.name, UNCHANGED) if key in known else self._error(key, item, text)]

    def _inputs(self, given: Given, rule: str | None) -> str:
        name = self._name(given, rule)
        if name not in self._digests:
            self._digests[name] = self._settings.joins.digest_of_log(given, rule)
        return self._digests[name]

    def _name(self, given: Given, rule: str | None) -> str:
        return repr((given, rule is None, self._settings.joins.root))

    def _read(self, item: Item, path: str, desk: _FleetDesk, inputs: str) -> list[Row]:
        desk.joined.clear()
        clock = _Clock()
        report = read_log(open_source(path), desk, clock)
        digest = report.sha256 or file_digest(path)
        key = log_key(item.name, digest, self.tool, inputs)
        notes = [self._text(note) for note in report.notes]
        log = {
            "bytes": report.bytes,
            "lines": report.lines,
            "modified": item.modified,
            "sha256": digest,
            "notes": notes,
            "started": started(clock.printed, item.modified),
        }
        return [row | log for row in self._rows(key, item, report, desk)]

    def _error(self, key: str, item: Item, text: str) -> Row:
        row = blank(key, self._text(item.name), "error")
        return row | {"error": self._text(text)[:500], "modified": item.modified}

    def _desk(self, given: Given, rule: str | None) -> _FleetDesk:
        name = self._name(given, rule)
        desk = self._desks.get(name)
        if desk is None:
            machine = hardware.machine(given.gpu, given.cuda, given.env)
            desk = _FleetDesk(*self._base._replace(given=given, machine=machine))
            desk.joins, desk.rule, desk.joined, desk.read = self._settings.joins, rule, [], self._promise
            desk.memo = self._memo if self._settings.memo else None
            desk.digests = {}
            if len(self._desks) >= _DESKS:
                self._desks.clear()
            self._desks[name] = desk
        return desk

    def _rows(self, key: str, item: Item, report: LogReport, desk: _FleetDesk) -> Iterable[Row]:
        name = self._text(item.name)
        if not report.boots:
            what = "is empty" if not report.bytes else "nothing that an engine pack knows"
            yield blank(key, name, "nothing") | {"error": what}
            return
        counted = {id(judged) for judged in document.counting(report.boots, "last")}
        for judged, joined in zip(report.boots, desk.joined, strict=True):
            row = blank(key, name, "boot") | {"counted": id(judged) in counted}
            yield self._boot(row, judged, joined)

    def _boot(self, row: Row, judged: Judged, joined: Joined) -> Row:
        text = self._text
        boot, machine, promise = judged.boot, judged.machine, judged.promise
        severities = {f.severity for f in judged.judgement.findings if f.waived is None}
        row |= {
            "boot": boot.number,
            "source": text(boot.source),
            "verdict": judged.judgement.verdict,
            "status": boot.status,
            "worst": next((s for s in reversed(SEVERITIES) if s in severities), None),
            "engine": boot.engine.name,
            "version": text(boot.engine.version) if boot.engine.version else None,
            "range": boot.engine.range,
            "kind": boot.engine.kind,
            "model": text(boot.model) if boot.model is not None else None,
            "gpu": text(machine.gpu) if machine.gpu else None,
            "platform": machine.platform,
            "sm": f"{machine.sm // 10}.{machine.sm % 10}" if machine.sm else machine.gfx,
            "cuda": ".".join(map(str, machine.cuda)) if machine.cuda else None,
            "promise": promise.label if promise else None,
            "method": promise.method if promise else None,
            "ckpt": joined.ckpt,
            "joined": joined.how,
            "unjoined": joined.why,
            "first": boot.first,
            "last": boot.last,
        }
        return fill(
            row,
            (document.row_document(r, text) for r in judged.judgement.rows),
            (document.finding_document(f, text) for f in judged.judgement.findings),
        )


class _FleetDesk(Desk):
    """A desk that finds the checkpoint of each boot by its model, and remembers what it judged."""

    joins: Joins
    rule: str | None
    joined: list[Joined]  # of the boots of the log at hand, in order
    read: object
    memo: Memo | None
    digests: dict[str | None, bytes]  # of what is given beside the boot, by checkpoint

    def judged(self, boots: Iterable[Boot]) -> tuple[Judged, ...]:
        return tuple(self._judged_one(boot) for boot in boots)

    def _judged_one(self, boot: Boot) -> Judged:
        joined = self.joins.of_boot(self.given, self.rule, boot.model)
        promise: Promise | None = None
        if joined.ckpt is not None:
            try:
                promise = self.read(joined.ckpt)  # type: ignore[operator]
            except InputError as error:
                joined = Joined(None, None, str(error))
        self.joined.append(joined)
        key = key_of(boot, self._digest(joined.ckpt, promise)) if self.memo is not None else None
        if self.memo is not None and key is not None:
            found = self.memo.get(boot, key)
            if found is not None:
                return found
        (judged,) = Desk.judged(self._replace(promise=promise), [boot])
        if self.memo is not None and key is not None:
            self.memo.put(key, judged)
        return judged

    def _digest(self, ckpt: str | None, promise: Promise | None) -> bytes:
        digest = self.digests.get(ckpt)
        if digest is None:
            digest = blake2b(repr((promise, self.machine, self.given)).encode("utf-8", "replace")).digest()
            self.digests[ckpt] = digest
        return digest


class _Clock(Watch):
    """Reads a log to its end, and keeps the first time that is printed in it."""

    printed = ""

    def enough(self, record: Record, changed: bool, boots: Boots) -> bool:
        self.printed = self.printed or record.time
        return False


def started(printed: str, modified: str | None) -> str | None:
    """A printed time as ISO 8601 without a zone, which no engine prints. vLLM prints no year either: it is the last
    one in which the file may have been written at or after that time (a day is left for zones).
    """
    if m := _DATED.match(printed):
        return f"{m[1]}-{m[2]}-{m[3]}T{m[4]}"
    if m := _AMERICAN.match(printed):
        return f"{m[3]}-{m[1]}-{m[2]}T{m[4]}"
    if modified is None or not (m := _YEARLESS.match(printed)):
        return None
    latest = datetime.fromisoformat(modified).replace(tzinfo=None) + timedelta(days=1)
    for year in range(latest.year, latest.year - 9, -1):  # a 29th of February may be eight years ago
        with suppress(ValueError):
            found = datetime.fromisoformat(f"{year}-{m[1]}-{m[2]}T{m[3]}")
            if found <= latest:
                return found.isoformat()
    return None


def _told(error: Exception, item: Item, path: str) -> str:
    """What was wrong with a log. A defect of ours in one of ten thousand is told in its row, and the others go on."""
    if isinstance(error, InputError):
        return str(error).replace(path, item.name)
    return f"{item.name}: internal error, please report it: {type(error).__name__}: {error}"


@lru_cache(maxsize=8)
def tool_digest(packs: tuple[str, ...]) -> str:
    """Of everything but the log and what was given with it: the release, the packs, the tables."""
    digest = sha256(__version__.encode())
    for directory in (patterns_dir(), *map(Path, packs)):
        for file in sorted(directory.rglob("*.toml")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def log_key(name: str, digest: str, tool: str, inputs: str) -> str:
    """What the rows of a log are filed under: the same name, bytes, packs, release and inputs give the same rows."""
    parts = "\0".join((name, digest, tool, inputs))
    return blake2b(parts.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def file_digest(path: str) -> str:
    """SHA-256 of a file as it lies there. Raises InputError where it cannot be read."""
    import hashlib

    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be opened: {error.strerror}") from None


def given_of(gpu: str | None, cuda: str | None, engine: str | None, env: Mapping[str, str]) -> Given:
    """What holds for the whole fleet. Raises InputError for a GPU, a toolkit or an engine that is not known."""
    given = Given(None, gpu, cuda, engine, dict(env))
    Desk.of(given)
    return given
