"""Mutated logs through intake and redaction: nothing but InputError may be raised, nothing may hang or grow.

    python benchmarks/fuzz_intake.py [--cases N] [--seed S] [LOG…]

Cases are cut from the given logs (by default synthetic ones) and mutated; a failing case is printed with its seed.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import make_logs
import rewrap

from logscan.intake.framing import Framer
from logscan.intake.lines import LineCount, Splitter
from logscan.intake.scanner import PythonDetector, Skimmer
from logscan.intake.wrapping import Wrapping
from logscan.model import Record
from logscan.redact import printable, redact

_SLOW = 0.5  # seconds of CPU that a case of a few KiB may take
_TOKENS = [
    b"\n", b"\r\n", b"\r", b"\0", b"\x1b[31m", b"\x1b]8;;", b"\x9b", b"\xff\xfe", b"\xe2\x80\xae", b"{", b"}", b"[",
    b"]", b"\\u0000", b"\\ud800", b"INFO 07-14 10:00:00 [core.py:9] ", b"(EngineCore pid=1) ", b"INFO:     ",
    b"[rank0]: ",
    b"Traceback (most recent call last):", b" [repeated 99999999999x across cluster]", b"[pod/a/b] ", b"==> x <==",
    b"2026-06-26T02:33:04Z ", b"stdout P ", b"stdout F ", b"vllm-1  | ", b"Dec 07 18:59:10 h i[1]: ", b"<30>1 ",
    b'"', b" 5: ",
    b"99%|#| 1/2 [00:33<00:00,  2.50it/s]", b'"text": [', b'{"log": "', b'","stream": "stdout", "time": "1"}',
    b"%" * 50,
    b"api_key=", b"https://a:b@c", b"hf_" + b"x" * 30, b"(" * 40, b"[[[[[[[[", b"1" * 400,
]  # fmt: skip
_DETECTOR = PythonDetector([b"Selected ", b"Error", b"startup", b"kernel"])


class _Unseekable:
    rereadable = False

    def recount(self, start: int, stop: int) -> int:
        raise AssertionError("a stream is not read again")


def mutate(rng: random.Random, seeds: list[bytes]) -> bytes:
    """A piece of a log, changed."""
    log = rng.choice(seeds)
    start = rng.randrange(max(len(log) - 1, 1))
    return changed(rng, log[start : start + rng.randrange(1, 1500)])


def changed(rng: random.Random, log: bytes) -> bytes:
    """A log wrapped or not, with tokens put in, pieces repeated, cut and flipped."""
    data = bytearray(log)
    if rng.random() < 0.3:
        data[:] = rng.choice(list(rewrap.WRAPPERS.values())).wrap(bytes(data).split(b"\n"))[: 3 * len(data) + 4000]
    for _ in range(rng.randrange(6)):
        at = rng.randrange(len(data) + 1)
        kind = rng.random()
        if kind < 0.5:
            data[at:at] = rng.choice(_TOKENS)
        elif kind < 0.7:
            del data[at : at + rng.randrange(40)]
        elif kind < 0.85 and data:
            data[at % len(data)] = rng.randrange(256)
        else:
            data[at:at] = bytes(data[at : at + rng.randrange(60)]) * rng.randrange(4)
    return bytes(data)


def read(rng: random.Random, data: bytes) -> list[Record]:
    """As Source reads it, without a file: blocks of random size, skimmed from a random one on."""
    framer, splitter, count = Framer(), Splitter(), LineCount(_Unseekable())
    wrapping = Wrapping(framer)
    skimmer = Skimmer(_DETECTOR, framer, wrapping, count)
    records: list[Record] = []
    while data:
        size = rng.choice((1, 7, 60, 500, 5000))
        block, data = data[:size], data[size:]
        if rng.random() < 0.2 and wrapping.stateless:
            for span in splitter.spans(block):
                records += skimmer.span(span)
        else:
            lines = splitter.feed(block)
            records += framer.records(wrapping.unwrap(lines, count.lines + 1))
            count.add(len(lines), splitter.position)
            skimmer.framed_to = count.lines
    records += framer.records(wrapping.unwrap(splitter.end(), count.lines + 1))
    records += framer.records(wrapping.flush())
    return records + list(framer.flush())


def check(rng: random.Random, data: bytes) -> None:
    """Raises AssertionError where a record is not as promised."""
    total = data.count(b"\n") + 1
    for record in read(rng, data):
        assert 1 <= record.line <= total, record
        assert b"\x1b" not in record.text, record
        assert record.repeats >= 1, record
        text = record.text.decode("utf-8", "replace")
        shown = printable(redact(text))
        assert shown.isprintable() or not set(shown) & set("\x1b\n\r\0\x9b\u202e"), record


def main() -> int:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--cases", type=int, default=20_000)
    args.add_argument("--seed", type=int, default=0)
    args.add_argument("logs", nargs="*", type=Path)
    opts = args.parse_args()
    seeds = [path.read_bytes() for path in opts.logs] or [make_logs.boot(60), make_logs.requests(random.Random(0), 60)]
    failed, slowest, start = 0, 0.0, time.process_time()
    for case in range(opts.seed, opts.seed + opts.cases):
        rng = random.Random(case)
        data = mutate(rng, seeds)
        before = time.process_time()
        try:
            check(rng, data)
        except Exception as error:  # whatever it is, it is a finding
            failed += 1
            print(f"seed {case}: {type(error).__name__}: {str(error)[:300]}\n  {data[:400]!r}")
        spent = time.process_time() - before
        slowest = max(slowest, spent)
        if spent > _SLOW:
            failed += 1
            print(f"seed {case}: {spent:.1f} s of CPU\n  {data[:400]!r}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    rate = opts.cases / max(time.process_time() - start, 1e-9)
    print(f"{opts.cases} cases, {failed} failed, slowest {slowest * 1000:.0f} ms, {rate:.0f} a second, peak {peak} MiB")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
