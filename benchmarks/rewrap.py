"""Wraps a log in each envelope that logscan peels, and compares what is read: the same records at the right lines.

python benchmarks/rewrap.py LOG…              # exit 1 where an envelope changes a record
python benchmarks/rewrap.py --verdicts LOG…   # … or where it changes a boot, a verdict, or a line of evidence

A `config.json` beside a log is its checkpoint.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from logscan.desk import Desk, Given, read_log
from logscan.intake import open_source
from logscan.model import Record

Lines = list[bytes]
_TIME = b"2026-06-26T02:33:04.123456789Z"


class Wrapper(NamedTuple):
    """An envelope to put around a log."""

    wrap: Callable[[Lines], bytes]
    source: str = ""  # that every record must have
    shift: int = 0  # lines before the first
    label: str = ""  # of a rank
    places: Callable[[Lines], list[int]] | None = None  # where each line begins; left out: where it did, and the shift
    screen: bool = False  # shows no CR, and nothing that was overwritten

    def line(self, lines: Lines) -> Callable[[int], int]:
        """Where a line of the bare log begins in the wrapped one."""
        if self.places is None:
            return lambda n: n + self.shift
        found = self.places(lines)
        return lambda n: found[n - 1]

    def bare(self, lines: Lines) -> Lines:
        """What of the log is left to be read."""
        return [line.rstrip(b"\r").rpartition(b"\r")[2] for line in lines] if self.screen else lines


def _each(head: bytes) -> Callable[[Lines], bytes]:
    return lambda lines: b"".join(head + line + b"\n" for line in lines)


def _objects(make: Callable[[str], object]) -> Callable[[Lines], bytes]:
    """One JSON object a line; bytes that are no UTF-8 do not survive JSON."""
    return lambda lines: b"".join(json.dumps(make(line.decode("utf-8", "replace"))).encode() + b"\n" for line in lines)


def _cri(lines: Lines) -> bytes:
    out = []
    for line in lines:
        while len(line) > 8192:
            out.append(_TIME + b" stderr P " + line[:8192] + b"\n")
            line = line[8192:]
        out.append(_TIME + b" stderr F " + line + b"\n")
    return b"".join(out)


def _screen(head: bytes = b"", width: int = 120) -> Callable[[Lines], list[list[str]]]:
    """The rows that a terminal shows of each line: a bare CR overwrites, and a line that is wider goes on below."""

    def rows(lines: Lines) -> list[list[str]]:
        texts = [_text(head) + _text(line).rstrip("\r").rpartition("\r")[2] for line in lines]
        return [[text[i : i + width] for i in range(0, max(len(text), 1), width)] for text in texts]

    return rows


def _terminal(rows: Callable[[Lines], list[list[str]]], source: str = "") -> Wrapper:
    def places(lines: Lines) -> list[int]:
        return list(accumulate((len(cut) for cut in rows(lines)), initial=1))

    return Wrapper(
        lambda ls: "".join(f"{r}\n" for cut in rows(ls) for r in cut).encode(), source, places=places, screen=True
    )


def _cri_places(lines: Lines) -> list[int]:
    return list(accumulate((max(-(-len(line) // 8192), 1) for line in lines), initial=1))


def _kaggle(lines: Lines) -> bytes:
    objects = [json.dumps({"stream_name": "stderr", "time": 1.5, "data": f"{_text(line)}\n"}) for line in lines]
    return ("[" + "\n,".join(objects) + "]\n").encode()


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")


def _otel(text: str) -> object:
    attributes = [{"key": "k8s.pod.name", "value": {"stringValue": "llm-0"}}]
    records = [{"timeUnixNano": "1", "body": {"stringValue": text}}]
    return {"resourceLogs": [{"resource": {"attributes": attributes}, "scopeLogs": [{"logRecords": records}]}]}


_KUBERNETES = {"pod_name": "llm-0", "container_name": "vllm", "namespace_name": "default"}
_GCP_LABELS = {"pod_name": "llm-0", "container_name": "vllm"}
WRAPPERS: dict[str, Wrapper] = {
    "kubectl --prefix": Wrapper(_each(b"[pod/llm-0/vllm] "), "pod/llm-0/vllm"),
    "kubectl --timestamps": Wrapper(_each(_TIME + b" ")),
    "kubectl --prefix --timestamps": Wrapper(_each(b"[pod/llm-0/vllm] " + _TIME + b" "), "pod/llm-0/vllm"),
    "stern": Wrapper(_each(b"llm-7f9c4d-x2x7k vllm "), "pod/llm-7f9c4d-x2x7k/vllm"),
    "cri": Wrapper(_each(_TIME + b" stdout F ")),
    "cri in parts": Wrapper(_cri, places=_cri_places),
    "docker json-file": Wrapper(_objects(lambda t: {"log": t + "\n", "stream": "stderr", "time": _TIME.decode()})),
    "docker compose": Wrapper(_each(b"vllm-1  | "), "vllm-1"),
    "docker compose, coloured": Wrapper(_each(b"\x1b[36mvllm-1  |\x1b[0m "), "vllm-1"),
    "docker compose --timestamps": Wrapper(_each(b"vllm-1  | " + _TIME + b" "), "vllm-1"),
    "journald short": Wrapper(_each(b"Dec 07 18:59:10 host-1 vllm[10337]: "), "host-1/vllm"),
    "journald short-iso": Wrapper(_each(b"2026-06-26T02:33:04+0000 host-1 vllm[10337]: "), "host-1/vllm"),
    "journald short-full": Wrapper(_each(b"Sun 2025-12-07 18:59:10 EST host-1 vllm[10337]: "), "host-1/vllm"),
    "journald json": Wrapper(
        _objects(lambda t: {"MESSAGE": t, "_SYSTEMD_UNIT": "vllm.service", "__REALTIME_TIMESTAMP": "1"}), "vllm.service"
    ),
    "syslog RFC 3164": Wrapper(_each(b"<30>Dec  7 18:59:10 host-1 vllm[10337]: "), "host-1/vllm"),
    "syslog RFC 5424": Wrapper(_each(b"<30>1 2026-06-26T02:33:04Z host-1 vllm 10337 - - "), "host-1/vllm"),
    "loki": Wrapper(_each(b'2026-06-26T02:33:04Z {app="llm", container="vllm", pod="llm-0"} '), "llm-0/vllm"),
    "loki jsonl": Wrapper(
        _objects(lambda t: {"labels": {"pod": "llm-0", "container": "vllm"}, "line": t, "timestamp": _TIME.decode()}),
        "pod/llm-0/vllm",
    ),
    "fluent bit": Wrapper(
        _objects(lambda t: {"log": t + "\n", "stream": "stderr", "kubernetes": _KUBERNETES}), "pod/llm-0/vllm"
    ),
    "vector": Wrapper(
        _objects(lambda t: {"message": t, "kubernetes": _KUBERNETES, "timestamp": _TIME.decode()}), "pod/llm-0/vllm"
    ),
    "otel": Wrapper(_objects(_otel), "pod/llm-0"),
    "gcp": Wrapper(_objects(lambda t: {"textPayload": t, "resource": {"labels": _GCP_LABELS}}), "pod/llm-0/vllm"),
    "cloudwatch": Wrapper(_objects(lambda t: {"message": t, "timestamp": 1, "logStreamName": "ecs/vllm"}), "ecs/vllm"),
    "aws logs tail": Wrapper(_each(b"2026-06-26T02:33:04.123000+00:00 ecs/vllm/0123abcd "), "ecs/vllm/0123abcd"),
    "kaggle": Wrapper(_kaggle),
    "mpirun": Wrapper(_each(b"[1,5]<stderr>:"), label="rank 5"),
    "srun --label": Wrapper(_each(b" 5: "), label="rank 5"),
    "prefix": Wrapper(_each(b"    vLLM STDOUT: ")),
    "tail of several files": Wrapper(
        lambda lines: b"==> logs/vllm.out <==\n" + b"\n".join(lines) + b"\n", "logs/vllm.out", 1
    ),
    "terminal of 80 columns": _terminal(_screen(width=80)),
    "terminal of 200 columns": _terminal(_screen(width=200)),
    "kubectl --prefix in a terminal": _terminal(_screen(b"[pod/llm-0/vllm] "), "pod/llm-0/vllm"),
    "tty": Wrapper(lambda lines: b"".join(line + b"\r\n" for line in lines)),
    "BOM": Wrapper(lambda lines: b"\xef\xbb\xbf" + b"\n".join(lines) + b"\n"),
    "UTF-16": Wrapper(lambda lines: (b"\n".join(lines) + b"\n").decode("utf-8", "replace").encode("utf-16")),
    "gzip": Wrapper(lambda lines: gzip.compress(b"\n".join(lines) + b"\n")),
    "cri in fluent bit in compose": Wrapper(
        lambda lines: b"".join(
            b"fluent-1 | " + json.dumps({"log": "2026-06-26T02:33:04Z stderr F " + _text(line), "time": "1"}).encode()
            + b"\n" for line in lines
        ), "fluent-1",
    ),
    "mpirun in kubectl --prefix": Wrapper(_each(b"[pod/llm-0/vllm] [1,5]<stdout>:"), "pod/llm-0/vllm", label="rank 5"),
}  # fmt: skip


def read(data: bytes) -> list[Record]:
    """The records of a log given as bytes."""
    with tempfile.NamedTemporaryFile(suffix=".log") as file:
        file.write(data)
        file.flush()
        return list(open_source(file.name).records())


def compare(lines: Lines, bare: list[Record], wrapper: Wrapper) -> list[str]:
    """What the envelope changed, where it should not."""
    got = read(wrapper.wrap(lines))
    if wrapper.screen:
        bare = read(b"\n".join(wrapper.bare(lines)) + b"\n")
    place = wrapper.line(lines)
    want = []
    for r in bare:
        process = r.process if not wrapper.label else f"{wrapper.label} > {r.process}" if r.process else wrapper.label
        source = "/".join(s for s in (wrapper.source, r.source) if s)
        want.append(r._replace(line=place(r.line), process=process, source=source))
    if got == want:
        return []
    for g, w in zip(got, want, strict=False):
        if g != w:
            return [f"line {w.line}: {g!r} instead of {w!r}"[:600]]
    return [f"{len(got)} records instead of {len(want)}"]


def judged(desk: Desk, data: bytes, place: Callable[[int], int] = int) -> list[tuple[object, ...]]:
    """Status, and the rows with the lines of their evidence, of each boot of a log given as bytes."""
    with tempfile.NamedTemporaryFile(suffix=".log") as file:
        file.write(data)
        file.flush()
        boots = read_log(open_source(file.name), desk).boots
    return [
        (
            b.boot.status,
            [(r.path, r.group, r.verdict, r.kinds, [place(e.line) for e in r.evidence]) for r in b.judgement.rows],
        )
        for b in boots
    ]


def verdicts(path: Path, lines: Lines) -> list[str]:
    """The envelopes that change a boot of this log, its verdicts or the lines that they cite."""
    config = path.with_name("config.json")
    desk = Desk.of(Given(ckpt=str(config) if config.exists() else None))
    found = []
    for name, w in WRAPPERS.items():
        want = judged(desk, b"\n".join(w.bare(lines)) + b"\n", w.line(lines))
        if judged(desk, w.wrap(lines)) != want:
            found.append(name)
    return found


def main() -> int:
    wrong = unlike = 0
    judge, paths = "--verdicts" in sys.argv, [arg for arg in sys.argv[1:] if arg != "--verdicts"]
    for path in paths:
        lines = Path(path).read_bytes().removesuffix(b"\n").split(b"\n")
        clean = [line.decode("utf-8", "replace").encode() for line in lines]
        bare = read(b"\n".join(clean) + b"\n")
        for name, wrapper in WRAPPERS.items():
            for problem in compare(clean, bare, wrapper):
                wrong += 1
                print(f"{path}: {name}: {problem}")
        for name in verdicts(Path(path), clean) if judge else ():
            unlike += 1
            print(f"{path}: {name}: other verdicts")
    print(
        f"{len(paths)} logs in {len(WRAPPERS)} envelopes: {wrong} differ" + (f", {unlike} in verdicts" if judge else "")
    )
    return 1 if wrong or unlike else 0


if __name__ == "__main__":
    sys.exit(main())
