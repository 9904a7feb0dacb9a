"""How fast a log is read, beside ripgrep and a bare interpreter: CPU seconds of children in interleaved rounds.

    python benchmarks/scan.py [--size MIB] [--rounds N] [--dir DIR] [--only big|pipe|start|oracle]

Needs ripgrep (`rg`) for the first two. Read the ratios; absolute times depend on the machine and on who shares it.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import make_logs

_SCAN = """
import sys
from logscan.intake import open_source
from logscan.intake.scanner import detector
with open(sys.argv[1], "rb") as file:
    literals = file.read().split(b"\\n")
print(sum(1 for _ in open_source(sys.argv[2]).hits(detector(literals))))
"""
# What a console script does; `python -m` would add the cost of runpy.
_SCRIPT = "from logscan.cli.main import main; main()"
_TYPER = "import typer\napp = typer.Typer()\n@app.command()\ndef main(name: str = ''): print(name)\napp()"


class Spent:
    """CPU seconds and peak RSS of the rounds of one command."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.rss = 0

    @property
    def median(self) -> float:
        return statistics.median(self.cpu)


def run(spent: Spent, argv: Sequence[str], cat: str | None = None) -> bytes:
    """Run a command (behind `cat FILE |` where a file is given, whose time counts too) and note what it spent."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1]), "PYTHONDONTWRITEBYTECODE": ""}
    out_read, out_write = os.pipe()
    children = []
    stdin = os.open(os.devnull, os.O_RDONLY)
    if cat:
        stdin, write = os.pipe()
        children.append(os.posix_spawnp("cat", ["cat", cat], env, file_actions=[(os.POSIX_SPAWN_DUP2, write, 1)]))
        os.close(write)
    actions = [(os.POSIX_SPAWN_DUP2, stdin, 0), (os.POSIX_SPAWN_DUP2, out_write, 1), (os.POSIX_SPAWN_CLOSE, out_read)]
    children.append(os.posix_spawnp(argv[0], list(argv), env, file_actions=actions))
    os.close(stdin)
    os.close(out_write)
    output = b""
    while block := os.read(out_read, 1 << 16):
        output = (output + block)[-1 << 16 :]
    os.close(out_read)
    cpu = 0.0
    for child in children:
        usage = os.wait4(child, 0)[2]
        cpu += usage.ru_utime + usage.ru_stime
    spent.cpu.append(cpu)
    spent.rss = max(spent.rss, usage.ru_maxrss)
    return output


def rounds(count: int, commands: dict[str, Callable[[Spent], bytes]]) -> dict[str, Spent]:
    """Every command once a round, in turn; the first round only warms up."""
    spent = {name: Spent() for name in commands}
    for turn in range(count + 1):
        for name, command in commands.items():
            command(spent[name])
        if turn == 0:
            spent = {name: Spent() for name in commands}
    return spent


def table(title: str, spent: dict[str, Spent], base: str) -> None:
    """Ratios to `base`."""
    print(f"\n{title} (CPU, relative to {base})")
    for name, s in spent.items():
        print(f"  {name:34} {s.median / spent[base].median:6.2f}   {s.median * 1000:8.1f} ms   {s.rss >> 10:5} MiB")


def literals_of_packs() -> list[bytes]:
    """The literals of the packaged patterns, less those that every other request line holds (`GPU `)."""
    from logscan.packs.load import load

    steady = make_logs.requests(random.Random(0), 100)
    found = {literal.encode() for pack in load() for p in pack.patterns for literal in p.literals}
    return sorted(literal for literal in found if literal not in steady)


def oracle(log: Path, literals: list[bytes]) -> bool:
    """Whether skimming yields the records that a look at every record does, with either detector."""
    from logscan.intake import open_source
    from logscan.intake.scanner import HyperscanDetector, PythonDetector

    want = [r for r in open_source(str(log)).records() if any(literal in r.text for literal in literals)]
    same = True
    for make in (HyperscanDetector, PythonDetector):
        got = list(open_source(str(log)).hits(make(literals)))
        same &= got == want
        verdict = "identical to" if got == want else "NOT"
        print(f"  {make.__name__:34} {len(got)} records, {verdict} those of {len(want)} line by line")
    return same


def main() -> int:
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--size", type=int, default=1024, help="MiB of the big log")
    args.add_argument("--rounds", type=int, default=5)
    args.add_argument("--dir", type=Path, default=Path(tempfile.gettempdir()) / "logscan-bench")
    args.add_argument("--literals", type=Path, help="a file with a literal a line, instead of the packs'")
    args.add_argument("--only", choices=("big", "pipe", "start", "oracle"))
    opts = args.parse_args()
    opts.dir.mkdir(exist_ok=True)
    wanted = {opts.only} if opts.only else {"big", "pipe", "start", "oracle"}
    literals = opts.literals.read_bytes().split(b"\n") if opts.literals else literals_of_packs()
    listed = opts.dir / "literals.txt"
    listed.write_bytes(b"\n".join(literals))
    python, rg = sys.executable, shutil.which("rg")
    print(f"{len(literals)} literals, {opts.rounds} rounds")
    if {"big", "pipe"} & wanted:
        log = str(make_logs.write(opts.dir / f"big-{opts.size}.log", opts.size << 20))
        grep = [rg or "rg", "-c", "-F", "-f", str(listed)]
        scan = [python, "-c", _SCAN, str(listed)]
        if "big" in wanted:
            commands: dict[str, Callable[[Spent], bytes]] = {"logscan": lambda s: run(s, [*scan, log])}
            if rg:
                commands["rg -c -F -f literals"] = lambda s: run(s, [*grep, log])
            commands["wc -l"] = lambda s: run(s, ["wc", "-l", log])
            table(f"{opts.size} MiB log", rounds(opts.rounds, commands), "rg -c -F -f literals" if rg else "wc -l")
        if "pipe" in wanted and rg:
            commands = {
                "cat | logscan": lambda s: run(s, [*scan, "-"], log),
                "cat | rg -c -F -f literals": lambda s: run(s, grep, log),
            }
            table(f"{opts.size} MiB through a pipe", rounds(opts.rounds, commands), "cat | rg -c -F -f literals")
    if "start" in wanted:
        small = opts.dir / "boot.log"
        small.write_bytes(make_logs.boot(1500))
        triage = [python, "-c", _SCRIPT, "triage", str(small), "--fail-on", "never"]
        read = "import sys\nfrom logscan.intake import open_source\nfor _ in open_source(sys.argv[1]).records(): pass"
        commands = {
            "python -c pass": lambda s: run(s, [python, "-c", "pass"]),
            "bare typer app": lambda s: run(s, [python, "-c", _TYPER]),
            "records of a boot log (1,500 lines)": lambda s: run(s, [python, "-c", read, str(small)]),
            "triage, table": lambda s: run(s, triage),
            "triage --format json": lambda s: run(s, [*triage, "--format", "json"]),
        }
        table("boot log of 1,500 lines", rounds(max(opts.rounds, 9), commands), "python -c pass")
    if "oracle" in wanted:
        print("\nskimming against every record")
        return 0 if oracle(make_logs.write(opts.dir / "oracle.log", 24 << 20), literals) else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
