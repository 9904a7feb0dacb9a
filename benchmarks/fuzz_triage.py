"""Mutated boots through everything: intake, packs, verdicts, every report, and packs that are themselves mutated.

    python benchmarks/fuzz_triage.py [--cases N] [--seed S] [--jobs J] [LOG…]

Nothing but InputError may be raised, no case may take long, no report may hold what steers a terminal or a secret, and
memory must not grow. Cases are drawn from the given logs (by default those of `fixtures/`): some of their lines, those
that a pattern knows above all, wrapped or not, with bytes changed. A failing case is printed with its seed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import re
import resource
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import fuzz_intake

from logscan import document
from logscan.desk import Desk, Given, read_log
from logscan.intake import open_source
from logscan.model import VERDICTS_WORST_FIRST, InputError
from logscan.packs.load import load_pack
from logscan.redact import cleaner
from logscan.report import FORMATS, render

ROOT = Path(__file__).resolve().parents[1]
SLOW = 1.0  # seconds of CPU that a case may take; the first one loads what all need
GROWTH = 64  # MiB by which a worker may grow after its first cases
PACKS = 50  # of so many cases one mutates a pack
INVISIBLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
SECRETS = re.compile(r"\bhf_x{20}|\bhttps://a:b@")
MACHINES = (
    Given(), Given(gpu="A100"), Given(gpu="L40S", cuda="12.4"), Given(gpu="H100", cuda="12.8"), Given(gpu="sm_120"),
    Given(gpu="MI300X"), Given(gpu="cpu"), Given(gpu="B200", cuda="13.0", env={"VLLM_USE_DEEP_GEMM": "0"}),
    Given(engine="vllm==0.31.0"), Given(engine="sglang==0.5.14"), Given(engine="trtllm==1.2.0"),
)  # fmt: skip
PACK = b"""
[[pattern]]
id = "own.linear.kernel"
regex = '^Own kernel (?P<kernel>\\w{1,80}) for (?P<layer>\\w{1,80})'
literal = ["Own kernel "]
emits = "linear.kernel"
match = ["Own kernel A for B"]
nomatch = ["No kernel"]
[[pattern.site]]
engine = ">=0.10,<0.40"
source = "own/linear.py:choose"
level = "INFO"
means = "selected"
path = ["linear"]
"""
HEAD = b'id = "own"\nengine = "vllm"\nversion = "2026.1.0"\nreleases = ["0.24.0", "0.31.0"]\n'


class Seed(NamedTuple):
    """A log's lines, and the numbers of those that a pattern knows."""

    lines: list[bytes]
    known: list[int]


class Bench:
    """What the cases of one worker share."""

    def __init__(self, logs: Sequence[Path], folder: Path) -> None:
        self.folder = folder
        base = Desk.of(Given())
        self.seeds = [_seed(path, base) for path in logs]
        configs = [None, *(str(path) for path in sorted(ROOT.glob("fixtures/*/config.json")))]
        self.desks = [base.for_another(given._replace(ckpt=ckpt)) for given in MACHINES for ckpt in configs]

    def case(self, rng: random.Random) -> None:
        """One case. Raises AssertionError where a report is not as promised."""
        if rng.randrange(PACKS) == 0:
            self._pack(rng)
            return
        data = self._log(rng)
        path = self.folder / "boot.log"
        path.write_bytes(data)
        clean = cleaner()
        desk = rng.choice(self.desks)
        report = read_log(open_source(str(path)), desk)
        doc = document.document([report], desk.packs, desk.given.document(), rng.choice(("last", "all")), clean)
        _check_document(doc)
        for format in ("json", rng.choice(FORMATS)):
            _check_report(format, render(doc, format, boots="all", verbose=rng.random() < 0.5), doc)

    def _log(self, rng: random.Random) -> bytes:
        seed = rng.choice(self.seeds)
        some = set(rng.sample(range(len(seed.lines)), min(len(seed.lines), rng.randrange(1, 12))))
        known = rng.sample(seed.known, min(len(seed.known), rng.randrange(1, 25)))
        data = b"\n".join(seed.lines[i][:2000] for i in sorted(some | set(known))) + b"\n"
        if rng.random() < 0.1:
            data += b"\n".join(seed.lines[i][:500] for i in sorted(known)) + b"\n"
        return fuzz_intake.changed(rng, data)

    def _pack(self, rng: random.Random) -> None:
        own = self.folder / "own"
        own.mkdir(exist_ok=True)
        (own / "pack.toml").write_bytes(HEAD if rng.random() < 0.7 else fuzz_intake.changed(rng, HEAD))
        (own / "linear.toml").write_bytes(fuzz_intake.changed(rng, PACK))
        errors: list[str] = []
        pack = load_pack(own, "own", errors)
        assert (pack is None) == bool(errors), errors
        if pack is not None:
            list(pack.patterns)


def _seed(path: Path, desk: Desk) -> Seed:
    lines = path.read_bytes().split(b"\n")
    known = {r.line - 1 for r in open_source(str(path)).records() if desk.recogniser.events(r)}
    return Seed(lines, sorted(n for n in known if n < len(lines)) or [0])


def _check_document(doc: dict[str, Any]) -> None:
    assert doc["verdict"] is None or doc["verdict"] in VERDICTS_WORST_FIRST
    for log in doc["logs"]:
        lines = log["lines"]
        for boot in log["boots"]:
            assert 1 <= boot["lines"]["first"] <= boot["lines"]["last"] <= lines, boot["lines"]
            for row in boot["paths"]:
                assert row["verdict"] in VERDICTS_WORST_FIRST
                assert row["verdict"] != "downgraded" or row["kinds"], row
                assert row["verdict"] != "unproven" or row["reasons"], row
            for line in (e["line"] for part in (*boot["paths"], *boot["findings"]) for e in part["evidence"]):
                assert line is None or 1 <= line <= lines


def _check_report(format: str, text: str, doc: dict[str, Any]) -> None:
    assert not INVISIBLE.search(text), (format, INVISIBLE.findall(text)[:3])
    assert not SECRETS.search(text), (format, SECRETS.findall(text))
    text.encode()
    if format == "json":
        assert json.loads(text) == json.loads(json.dumps(doc))
    elif format == "jsonl":
        assert all(isinstance(json.loads(line), dict) for line in text.split("\n") if line)
    elif format == "junit":
        ET.fromstring(text)
    elif format == "github":
        assert all(line.startswith("::") for line in text.split("\n") if line), text


def work(first: int, cases: int, logs: Sequence[Path]) -> tuple[int, float, int]:
    """Run the cases of seeds `first`…; how many failed, the slowest (seconds of CPU), growth (MiB)."""
    failed, slowest, settled = 0, 0.0, 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        bench = Bench(logs, Path(folder))
        for seed in range(first, first + cases):
            before = time.process_time()
            try:
                bench.case(random.Random(seed))
            except InputError:
                pass
            except Exception as error:  # whatever it is, it is a finding
                failed += 1
                print(f"seed {seed}: {type(error).__name__}: {str(error)[:400]}", flush=True)
            spent = time.process_time() - before
            if seed > first + 100:
                slowest = max(slowest, spent)
            if spent > SLOW:
                failed += 1
                print(f"seed {seed}: {spent:.1f} s of CPU", flush=True)
            if seed == first + cases // 10:
                settled = _peak()
    return failed, slowest, _peak() - settled


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main() -> int:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--cases", type=int, default=20_000)
    args.add_argument("--seed", type=int, default=0)
    args.add_argument("--jobs", type=int, default=1)
    args.add_argument("logs", nargs="*", type=Path)
    opts = args.parse_args()
    logs = opts.logs or sorted(ROOT.glob("fixtures/*/boot.log"))
    each = -(-opts.cases // opts.jobs)
    start = time.monotonic()
    with multiprocessing.Pool(opts.jobs) as pool:
        done = pool.starmap(work, [(opts.seed + n * each, each, logs) for n in range(opts.jobs)])
    failed, grown = sum(f for f, _, _ in done), max(g for _, _, g in done)
    took = time.monotonic() - start
    print(
        f"{each * opts.jobs} cases, {failed} failed, slowest {max(s for _, s, _ in done) * 1000:.0f} ms, "
        f"{each * opts.jobs / took:.0f} a second, grown by {grown} MiB after the first tenth"
    )
    return 1 if failed or grown > GROWTH else 0


if __name__ == "__main__":
    sys.exit(main())
