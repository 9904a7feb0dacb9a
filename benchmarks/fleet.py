"""What an audit of a fleet costs, beside ripgrep over the same files, and whether it finds what is wrong.

    python benchmarks/fleet.py [--logs 10000] [--rounds 3] [--dir DIR] [--keep]

Makes a fleet out of the fixtures: pods of one deployment, 200 KB of boot and requests each, a tenth gzipped; and
plants anomalies of five kinds among them. Then, in turn: `rg -z -j1 -c -F -f literals`, and `logscan audit`. Prints CPU
seconds (children included), logs a second, and the peak of the memory of all processes together. At last the audit is
killed in the middle and started again: its tables must be those of the uninterrupted one.

Exit 1 where an anomaly is missed, something else is flagged, or the tables differ.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import make_logs

ROOT = Path(__file__).resolve().parents[1]
FIXTURE = ROOT / "fixtures" / "vllm-0.24.0-a100-fp8-dynamic"
SIZE = 200_000
KINDS = ("weight-only", "outlier", "failed", "cut", "unreadable")
_MARLIN = b"Your GPU does not have native support for FP8"
_SELECTED = b"(EngineCore pid=142) INFO 09-14 08:31:28 [__init__.py:280] Selected %s for CompressedTensorsW8A8Fp8\n"
_FAILED = b"(EngineCore pid=142) ERROR 09-14 08:31:40 [core.py:900] EngineCore failed to start.\n"


def boot(rng: random.Random, kind: str | None) -> bytes:
    """The fixture's boot as one pod prints it: on a Hopper, unless it is the one that is not; with its own measures."""
    lines = []
    for line in (FIXTURE / "boot.log").read_bytes().split(b"\n")[:-1]:
        if _MARLIN in line and kind != "weight-only":
            kernel = b"FlashInferFP8ScaledMMLinearKernel" if kind == "outlier" else b"CutlassFP8ScaledMMLinearKernel"
            lines.append(_SELECTED % kernel)
            continue
        lines.append(line + b"\n")
        if kind in ("failed", "cut") and b"Model loading took" in line:
            break
    text = b"".join(lines)
    for measure in (b"8.49", b"2.71", b"3.912455", b"62.31", b"510,432", b"29.87", b"41225"):
        digits = bytes(rng.choice(b"123456789") if chr(c).isdigit() else c for c in measure)
        text = text.replace(measure, digits)
    return text + _FAILED if kind == "failed" else text


def fleet(directory: Path, count: int, seed: int = 11) -> dict[str, str]:
    """Write the logs; name of each with an anomaly → its kind."""
    rng = random.Random(seed)
    fillers = [make_logs.requests(rng, 2600) for _ in range(24)]
    # Spread over the fleet, two of each kind at least.
    odd = rng.sample(range(count), max(2, count // 2000) * len(KINDS))
    planted = {number: KINDS[i % len(KINDS)] for i, number in enumerate(sorted(odd))}
    names = {}
    for number in range(count):
        kind = planted.get(number)
        text = boot(rng, kind)
        if kind not in ("failed", "cut"):
            filler = rng.choice(fillers)
            text = (text + filler)[:SIZE].rpartition(b"\n")[0] + b"\n"
        pod = directory / f"node-{number % 100:02}" / f"llm-{number:05}.log"
        pod.parent.mkdir(parents=True, exist_ok=True)
        if kind == "unreadable":
            text = rng.randbytes(4096)
        elif number % 10 == 3:
            pod = pod.with_name(pod.name + ".gz")
            text = gzip.compress(text, 6, mtime=0)
        pod.write_bytes(text)
        if kind:
            names[str(pod)] = kind
    return names


class Cost:
    """CPU seconds and peak memory of the rounds of one command."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.wall: list[float] = []
        self.rss = 0

    def run(self, argv: Sequence[str], **options: Any) -> None:
        """Run it to its end; processes that it waits for are counted."""
        before, start = os.times(), time.monotonic()
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, env=_environment(), **options)
        while process.poll() is None:
            self.rss = max(self.rss, memory(process.pid))
            time.sleep(0.25)
        after = os.times()
        self.cpu.append(after.children_user + after.children_system - before.children_user - before.children_system)
        self.wall.append(time.monotonic() - start)


def memory(pid: int) -> int:
    """Resident KiB of a process and all below it; shared pages count in each."""
    total = 0
    try:
        with open(f"/proc/{pid}/statm") as file:
            total += int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = [int(child) for child in file.read().split()]
    except OSError:
        return total
    return total + sum(memory(child) for child in children)


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))}


def literals(target: Path) -> Path:
    """The literals of the packaged patterns, one a line, as rg -f reads them."""
    from logscan.packs.load import load

    words = sorted({word.encode() for pack in load() for p in pack.patterns for word in p.literals})
    target.write_bytes(b"\n".join(words))
    return target


def audit_command(logs: Path, store: Path, inputs: Path, *more: str) -> list[str]:
    """The audit that is measured."""
    command = [sys.executable, "-m", "logscan", "audit", str(logs), "--inputs", str(inputs), "-o", str(store)]
    return [*command, "--format", "json", "--quiet", "--fail-on", "never", *more]


def flagged(store: Path) -> dict[str, set[str]]:
    """Every log that the audit says anything bad about, and what."""
    from logscan.fleet.store import Store
    from logscan.fleet.summary import summary

    opened = Store(store, create=False)
    audit = opened.audits()[-1]
    tables = opened.tables(audit.logs.values())
    found: dict[str, set[str]] = {}
    for row in tables.boots.iter_rows(named=True):
        if row["outcome"] != "boot":
            found.setdefault(row["log"], set()).add(row["outcome"])
        elif row["verdict"] != "kept" or row["status"] != "ready" or row["worst"] is not None:
            found.setdefault(row["log"], set()).add(f"{row['verdict']}/{row['status']}/{row['worst']}")
    for way in summary(opened, audit, tables, {})["outliers"]:
        for log in way["logs"]:
            found.setdefault(log, set()).add("outlier")
    return found


def right(planted: dict[str, str], found: dict[str, set[str]]) -> bool:
    """Whether the anomalies are flagged, each as what it is, and nothing else."""
    expected = {"weight-only": "downgraded/ready/high", "outlier": "outlier", "unreadable": "error"}
    missed = [f"{log}: {kind}" for log, kind in planted.items() if log not in found]
    missed += [f"{log}: {kind} as {found[log]}" for log, kind in planted.items()
               if log in found and kind in expected and expected[kind] not in found[log]]  # fmt: skip
    missed += [f"{log}: {kind} as {found[log]}" for log, kind in planted.items()
               if log in found and kind == "failed" and not any("/failed/" in f for f in found[log])]  # fmt: skip
    missed += [f"{log}: {kind} as {found[log]}" for log, kind in planted.items()
               if log in found and kind == "cut" and not any("/incomplete/" in f for f in found[log])]  # fmt: skip
    wrong = [f"{log}: {what}" for log, what in found.items() if log not in planted]
    print(
        f"\n{len(planted)} anomalies of {len(KINDS)} kinds planted, {len(missed)} missed, {len(wrong)} others flagged"
    )
    for line in [*missed[:5], *wrong[:5]]:
        print(f"  {line}")
    return not missed and not wrong


def killed(command: Sequence[str], store: Path, reference: Path, parts: int) -> bool:
    """Kill the audit when some of it is committed, run it again, and compare with an uninterrupted one."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=_environment())
    while process.poll() is None and len(list(store.glob("manifest/*.jsonl"))) < parts:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.5)
    kept = sum(len(file.read_text().split("\n")) - 1 for file in store.glob("manifest/*.jsonl"))
    subprocess.run(command, stdout=subprocess.DEVNULL, env=_environment(), check=False)
    from logscan.fleet.store import Store

    same = []
    for root in (store, reference):
        opened = Store(root, create=False)
        tables = opened.tables(opened.audits()[-1].logs.values())
        stored = sum(len(file.read_text().split("\n")) - 1 for file in root.glob("manifest/*.jsonl"))
        same.append((tables.boots, tables.paths, tables.findings, stored))
    equal = all(a.equals(b) for a, b in zip(same[0][:3], same[1][:3], strict=True)) and same[0][3] == same[1][3]
    print(f"killed with {kept:,} logs kept; after going on the tables are {'the same' if equal else 'NOT the same'}")
    return equal and kept > 0


def main() -> int:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--logs", type=int, default=10_000)
    args.add_argument("--rounds", type=int, default=3)
    args.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    args.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()) / "logscan-fleet")
    args.add_argument("--keep", action="store_true", help="leave the fleet and the stores there")
    opts = args.parse_args()
    logs, marks = opts.dir / f"logs-{opts.logs}", opts.dir / f"planted-{opts.logs}.json"
    if not marks.exists():
        shutil.rmtree(logs, ignore_errors=True)
        logs.mkdir(parents=True)
        marks.write_text(json.dumps(fleet(logs, opts.logs)))
    planted: dict[str, str] = json.loads(marks.read_text())
    inputs = opts.dir / "inputs.csv"
    odd = "".join(f"{log},{FIXTURE}/config.json,A100,12.8\n" for log, kind in planted.items() if kind == "weight-only")
    inputs.write_text(f"glob,ckpt,gpu,cuda\n{odd}*,{FIXTURE}/config.json,H100,12.8\n")
    listed = literals(opts.dir / "literals.txt")
    rg, audit = Cost(), Cost()
    for turn in range(opts.rounds):
        store = opts.dir / f"store-{turn}"
        shutil.rmtree(store, ignore_errors=True)
        if shutil.which("rg"):
            rg.run(["rg", "-z", "-j1", "-c", "-F", "-f", str(listed), str(logs)])
        audit.run(audit_command(logs, store, inputs, "--jobs", str(opts.jobs)))
    cpu, wall = statistics.median(audit.cpu), statistics.median(audit.wall)
    print(f"{opts.logs:,} logs, {opts.jobs} processes, median of {opts.rounds} rounds")
    print(f"  audit   {cpu:7.1f} s CPU   {wall:6.1f} s   {opts.logs / wall:7,.0f} logs/s   peak {audit.rss >> 10} MiB")
    if rg.cpu:
        base = statistics.median(rg.cpu)
        print(f"  rg      {base:7.1f} s CPU   {cpu / base:6.2f} times that")
    ok = right(planted, flagged(opts.dir / "store-0"))
    again = opts.dir / "store-killed"
    shutil.rmtree(again, ignore_errors=True)
    ok &= killed(
        audit_command(logs, again, inputs, "--jobs", str(opts.jobs)),
        again,
        opts.dir / "store-0",
        max(opts.logs // 128 // 3, 1),
    )
    if not opts.keep:
        shutil.rmtree(opts.dir, ignore_errors=True)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
