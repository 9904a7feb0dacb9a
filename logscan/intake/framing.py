"""A line's payload → Record: the record formats and process prefixes of the engines, release by release.

Formats (engine sources, and `fixtures/`):
- vLLM ≤0.7.3 `INFO 07-14 10:00:00 worker.py:267] msg`, 0.8+ `INFO 07-14 10:00:00 [worker.py:267] msg`; ≤0.30 the
  stream puts `(EngineCore pid=1) ` before every line of a process, 0.31+ it is part of the format. NIM adds the year
  or milliseconds.
- SGLang `[2026-09-30 14:27:37 TP0] msg`; TensorRT-LLM `[TensorRT-LLM][WARNING][0] msg`, `[05/04/2025-10:58:17]
  [TRT-LLM] [RANK 0] [W] msg`; Triton (glog) `I0410 16:58:08.485508 1 file.cc:849] msg`; uvicorn `INFO:     msg`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from logscan.intake.tracebacks import Tracebacks
from logscan.model import Origin, Record

_PROCESSES = rb"((?:\((?:[^()\s]{1,99} ){0,2}pid=\d{1,20}(?:, ip=[^()\s]{1,99})?\) ?){0,6})"
_STAMP = rb"(?:\d{4}-)?\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?"
_VLLM = rb"(DEBUG|INFO|WARNING|ERROR|CRITICAL) (" + _STAMP + rb") \[?([^\s\[\]:]+):\d+\](?: |(?=\r?$))"
_UVICORN = rb"(DEBUG:    |INFO:     |WARNING:  |ERROR:    |CRITICAL: )"
_BAR = rb"\d%[^\[\]]{0,300}\[\d[\d:]{0,12}<[^\[\]]{0,300}\]"  # tqdm: `99%|█████▉| 66/67 [00:33<00:00,  2.50it/s]`
_LEVELS = {
    word + tail: word.decode()
    for word in (b"DEBUG", b"INFO", b"WARNING", b"ERROR", b"CRITICAL")
    for tail in (b"", b": ", b":  ", b":    ", b":     ")
}
_UVICORN_FILES = frozenset(("on.py", "server.py", "h11_impl.py", "httptools_impl.py"))
_LETTERS = {b"F": "CRITICAL", b"E": "ERROR", b"W": "WARNING", b"I": "INFO", b"V": "DEBUG", b"D": "DEBUG", b"T": "DEBUG"}
_REPEATED = rb" ?\[repeated (\d+)x across (?:the )?cluster\](?: \(Ray deduplicates logs[^\n]*)?$"
_CACHED = 4096  # distinct process or file texts remembered; a hostile log has more


_JOINED = 4096  # lines of one message
_tuple = tuple.__new__  # a NamedTuple made without its Python-level constructor: half the time


class Item(NamedTuple):
    """A payload that came out of its envelopes."""

    line: int  # first physical line, from 1
    payload: bytes
    source: str = ""
    label: str = ""  # of a rank, from srun or mpirun


class Framed(NamedTuple):
    """A record, with its complete prefix where it is an engine's: the mark of its continuation lines."""

    record: Record
    head: bytes = b""


@lru_cache(maxsize=8)
def _main(prefix: bytes) -> re.Pattern[bytes]:
    """Process prefixes, then vLLM's or uvicorn's head, or nothing. `prefix`: a VLLM_LOGGING_PREFIX that was learned."""
    own = b"(?:" + re.escape(prefix) + b")?" if prefix else b""
    return re.compile(own + _PROCESSES + own + b"(?:" + _VLLM + b"|" + _UVICORN + b"|)")


@lru_cache(maxsize=64)
def _compiled(pattern: bytes) -> re.Pattern[bytes]:
    """Formats met in few logs are compiled when met: start-up is most of the run time."""
    return re.compile(pattern)


_ANSI = rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[PX^_][^\x1b\n]*(?:\x1b\\)?|[ -/]*[0-~])?"
_SGLANG = (
    rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)((?: [A-Z_]+\d+)*)\] "
    rb"(?:(DEBUG:    |INFO:     |WARNING:  |ERROR:    |CRITICAL: )|"
    rb"(DEBUG|INFO|WARNING|ERROR|CRITICAL) ([\w./-]+):\d+: )?"
)
_TRT_CPP = rb"\[TensorRT-LLM\]\[(TRACE|DEBUG|INFO|WARNING|ERROR)\](?:\[(\d+)\])? ?"
_TRT_PY = (
    rb"\[(\d\d/\d\d/\d{4}-\d\d:\d\d:\d\d)\] \[(?:TRT-LLM|TRT|TensorRT-LLM)\]"
    rb"(?: \[((?:MPI_)?R(?:ank|ANK)[ _]\w+)\])? \[([FEWIVD])\] ?"
)
_RANK = rb"\[(rank\d+)\]: ?"
_GLOG = rb"([IWEFV])\d{4} (\d\d:\d\d:\d\d\.\d+) +\d+ ([^\s\]]+):\d+\] ?"
_PYLOG = (
    rb"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+) - (?:[\w.]+ - )?(DEBUG|INFO|WARNING|ERROR|CRITICAL) - (?:([\w./]+):\d+ - )?"
)


class Framer:
    """Turns payloads into records. Remembers between lines: open tracebacks, a message that goes on."""

    def __init__(self) -> None:
        self.prefix = b""
        self.framed = 0  # records of an engine's logger so far
        self.ray = False
        self._match = _main(b"").match
        self._processes: dict[bytes, str] = {b"": ""}
        self._files: dict[bytes, str] = {}
        self._tracebacks = Tracebacks()
        self._held: list[Record] = []  # records of one message, joined when it ends
        self._head = b""  # complete prefix of the held record

    def learn(self, prefix: bytes) -> None:
        """Accept a VLLM_LOGGING_PREFIX, before the process or before the level."""
        self.prefix = prefix
        self._match = _main(prefix).match

    def records(self, items: Iterable[Item]) -> Iterator[Record]:
        """The records of a run of payloads. A record whose message goes on (CRLF) is kept until its last line."""
        frame, held = self.frame, self._held
        for n, raw, source, label in items:
            record, head = frame(n, raw, source, label)
            if held:
                if head == self._head and source == held[0].source and held[-1].line + 1 >= n:
                    held.append(record)
                    if raw[-1:] != b"\r" or len(held) >= _JOINED:
                        yield self._joined()
                    continue
                yield self._joined()
            if raw[-1:] == b"\r" and head:
                held.append(record)
                self._head = head
            else:
                yield record

    def is_head(self, payload: bytes) -> bool:
        """Whether a payload starts a record of vLLM or uvicorn."""
        m = self._match(payload)
        return m is not None and (m.lastindex or 1) > 1

    @property
    def holding(self) -> bool:
        """Whether a message is open that may go on in the next line."""
        return bool(self._held)

    def forget(self) -> None:
        """Lines were left out: what was open is over."""
        self._tracebacks.open.clear()

    def flush(self) -> Iterator[Record]:
        """The record still held when the stream ends."""
        if self._held:
            yield self._joined()

    def _joined(self) -> Record:
        held = self._held
        first = held[0]
        if len(held) > 1:
            first = first._replace(text=b"\n".join(r.text for r in held))
        held.clear()
        return first

    def frame(self, n: int, raw: bytes, source: str = "", label: str = "") -> Framed:
        """The record of one payload."""
        if b"\x1b" in raw:
            raw = strip_escapes(raw)
        m = self._match(raw)
        assert m is not None  # the last alternative is empty
        printed, level, time, file, uvicorn = m.groups()
        end = m.end()
        process = self._processes.get(printed) or self._process(printed)
        if label:
            process = f"{label} > {process}" if process else label
        if level is not None:
            self.framed += 1
            if self._tracebacks.open:
                self._tracebacks.open.clear()
            text = raw[end:-1] if raw[-1:] == b"\r" else raw[end:]
            repeats = 1
            if b"[repeated " in text:
                text, repeats = self._repeated(text)
            name = self._files.get(file) or self._file(file)
            origin = "uvicorn" if len(time) > 18 and name in _UVICORN_FILES else "engine"
            fields = (n, text, origin, _LEVELS[level], name, process, source, time.decode(), repeats, "vllm")
            return _tuple(Framed, (_tuple(Record, fields), raw[:end]))
        rest = raw[end:]
        if raw[-1:] == b"\r":
            rest = rest.rstrip(b"\r")
        if uvicorn is not None:
            self._tracebacks.open.clear()
            fields = (n, rest, "uvicorn", _LEVELS[uvicorn], "", process, source, "", 1, "")
            return _tuple(Framed, (_tuple(Record, fields), b""))
        return Framed(self._other(n, rest, source, process, label))

    def _other(self, n: int, rest: bytes, source: str, process: str, label: str) -> Record:
        """A line that is neither vLLM's nor uvicorn's record."""
        if b"\r" in rest or (b"%" in rest and b"<" in rest):
            shown = _shown(rest)
            if len(shown) < len(rest):
                record = self.frame(n, shown, source, label).record
                return record._replace(process=process) if record.process == label else record
        if rest.startswith(b"[rank") and (m := _compiled(_RANK).match(rest)):
            process = _named(process, m[1].decode())
            rest = rest[m.end() :]
        head = rest[:1]
        found: Record | None = None
        if head == b"[":
            found = self._bracketed(n, rest, source, process)
        elif rest[1:5].isdigit() and (m := _compiled(_GLOG).match(rest)):
            found = Record(
                n, rest[m.end() :], "engine", _LETTERS[m[1]], self._file(m[3]), process, source, m[2].decode()
            )
        elif head.isdigit() and (m := _compiled(_PYLOG).match(rest)):
            file = self._file(m[3]) if m[3] else ""
            found = Record(n, rest[m.end() :], "print", m[2].decode(), file, process, source, m[1].decode())
        if found is not None:
            if found.origin == "engine":
                self.framed += 1
                self._tracebacks.open.clear()
            return found
        text, repeats = self._repeated(rest) if b"[repeated " in rest else (rest, 1)
        origin = self._tracebacks.origin(source, process, text)
        return Record(n, text, origin, "", "", process, source, "", repeats)

    def _bracketed(self, n: int, rest: bytes, source: str, process: str) -> Record | None:
        if m := _compiled(_SGLANG).match(rest):
            stamp, tags, uvicorn, level, file = m.groups()
            # transformers logs `[time] LEVEL file:line: msg` too, inside a vLLM process
            engine = "" if process.endswith(tuple("0123456789")) and "pid=" in process else "sglang"
            who = _named(process, tags.decode().strip())
            name = (uvicorn or level or b"").rstrip(b": ").decode()
            origin: Origin = "uvicorn" if uvicorn else "engine" if engine else "print"
            return Record(
                n,
                rest[m.end() :],
                origin,
                name,
                self._file(file) if file else "",
                who,
                source,
                stamp.decode(),
                1,
                engine,
            )
        if m := _compiled(_TRT_CPP).match(rest):
            level = m[1].decode().replace("TRACE", "DEBUG")
            who = _named(process, f"rank {m[2].decode()}") if m[2] else process
            return Record(n, rest[m.end() :], "engine", level, "", who, source, "", 1, "trtllm")
        if m := _compiled(_TRT_PY).match(rest):
            who = _named(process, m[2].decode()) if m[2] else process
            return Record(n, rest[m.end() :], "engine", _LETTERS[m[3]], "", who, source, m[1].decode(), 1, "trtllm")
        if rest.startswith(b"[TensorRT-LLM] "):
            return Record(n, rest, "print", "", "", process, source, "", 1, "trtllm")
        return None

    def _process(self, printed: bytes) -> str:
        """`(A pid=1) (B pid=2) ` → `A pid=1 > B pid=2`."""
        known = self._processes.get(printed)
        if known is None:
            if len(self._processes) > _CACHED:
                self._processes.clear()
            parts = [p for p in re.split(r"[()] ?", printed.decode("utf-8", "replace")) if p]
            self.ray = self.ray or any(p.startswith(("pid=", "Ray")) or ", ip=" in p for p in parts)
            known = self._processes[printed] = " > ".join(parts)
        return known

    def _file(self, printed: bytes) -> str:
        known = self._files.get(printed)
        if known is None:
            if len(self._files) > _CACHED:
                self._files.clear()
            known = self._files[printed] = printed.decode("utf-8", "replace")
        return known

    def _repeated(self, text: bytes) -> tuple[bytes, int]:
        """Peel Ray's note that other ranks printed the same line."""
        m = _compiled(_REPEATED).search(text[-400:])
        if m is None:
            return text, 1
        self.ray = True
        return text[: len(text) - len(m[0])], min(int(m[1][:9]), 1 << 30)


def _named(process: str, within: str) -> str:
    """A process, and what of it the record's own format names."""
    return f"{process} > {within}" if process and within else process or within


def strip_escapes(data: bytes) -> bytes:
    """`data` without terminal escapes; line feeds stay."""
    return _compiled(_ANSI).sub(b"", data)


def is_record(payload: bytes, prefix: bytes = b"") -> bool:
    """Whether a payload is a record as it stands: an engine's or uvicorn's."""
    framer = Framer()
    if prefix:
        framer.learn(prefix)
    record = framer.frame(0, payload).record
    return record.origin == "uvicorn" or (record.origin == "engine" and bool(record.engine))


def _shown(text: bytes) -> bytes:
    """What a terminal shows last of a line: after the last bare CR, or the record glued to a progress bar."""
    if b"\r" in text:
        text = next((part for part in reversed(text.split(b"\r")) if part.strip()), b"")
    bars = [m.end() for m in _compiled(_BAR).finditer(text)] if b"%" in text else []
    return text[bars[-1] :] if bars and text[bars[-1] :].strip() else text
