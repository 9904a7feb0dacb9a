"""Mutate quantization configs and read them: nothing but CheckpointError may come out, quickly, in bounded memory.

    python benchmarks/fuzz_checkpoint.py --cases 100000 [--seed 1] [DIR…]

Each case takes an example (the seeds beside the tests, and every *.json below the given directories), makes one to
three random edits (delete a key, put a value of another type, swap subtrees, damage bytes) and takes it through the
reader, the JSON document and the text. Prints counts by outcome, the slowest case, the peak memory; exit 1 on a leak.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import resource
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from logscan.checkpoint import CheckpointError, promise_from_dict
from logscan.checkpoint.file import parse_json
from logscan.cli.promise import document, render_text

SEEDS = Path(__file__).resolve().parents[1] / "tests" / "checkpoint" / "seeds.json"
SLOW = 1.0  # seconds a case may take
HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 3, 5, 16, 2**31, 2**70, 0.5, 1e308, float("nan"), float("inf"), "", "x", "local", "-1",
    "\x1b[2J\x1b]0;x\x07", "\ud800", "re:(a+)+$", "re:*(", "re:" + "(" * 200, "a" * 5000,
    "𝕏\u202e", [], [[]], [1], [128, 128],
    [0, 0], [-1, 1 << 40], ["Linear"], ["Linear", 5], [None], {}, {"": {}}, {"a": {"b": {}}}, {"quant_algo": "FP8"},
    {"num_bits": 4, "type": "float"}, {"dtype": "fp4", "qscheme": "per_group", "group_size": 32}, [{}, {}], "FP8",
    {"_type": "Int4WeightOnlyConfig", "_data": {"group_size": 128}},
)  # fmt: skip


def seeds(directories: list[Path]) -> list[dict[str, Any]]:
    """The examples to mutate."""
    found = [seed["config"] for seed in json.loads(SEEDS.read_text(encoding="utf-8")).values()]
    for directory in directories:
        for path in sorted(directory.rglob("*.json")):
            try:
                value, _ = parse_json(path.read_bytes())
            except CheckpointError:
                continue
            found.append(value)
    return found


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key path below `value`."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield (*path, key)
        yield from places(child, (*path, key))


def mutate(example: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """One to three edits of a copy."""
    value = copy.deepcopy(example)
    for _ in range(rng.randint(1, 3)):
        paths = list(places(value))
        if not paths:
            break
        *outer, key = rng.choice(paths)
        parent = value
        for step in outer:
            parent = parent[step]
        edit = rng.randrange(6)
        if edit == 0:
            del parent[key]
        elif edit == 1 and isinstance(parent, dict):
            parent[rng.choice(["x", "\x1b[31m", "", "quant_method", "bits", "dynamic", key])] = parent.pop(key)
        elif edit == 2:
            parent[key] = copy.deepcopy(_at(value, rng.choice(paths)))
        elif edit == 3 and isinstance(parent[key], str):
            parent[key] = _damage(parent[key], rng)
        else:
            parent[key] = copy.deepcopy(rng.choice(HOSTILE))
    return value


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    try:
        for step in path:
            value = value[step]
    except (KeyError, IndexError, TypeError):
        return None
    return value


def _damage(text: str, rng: random.Random) -> str:
    at = rng.randint(0, len(text))
    return text[:at] + rng.choice(["", "\x00", "ſ", "_", "-", " ", "x" * 70, text]) + text[at + 1 :]


def attempt(value: dict[str, Any], rng: random.Random) -> str:
    """The outcome of one case: `accepted`, or the code of its refusal. Anything else it raises is a leak."""
    try:
        if rng.random() < 0.2:
            data = bytearray(json.dumps(value).encode())
            for _ in range(rng.randint(0, 2)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            value, _ = parse_json(bytes(data))
        promise = promise_from_dict(value, source="config.json")
    except CheckpointError as refusal:
        text = str(refusal)
        assert text.isprintable() and len(text) < 1000, text
        return refusal.code
    doc = document(promise)
    json.dumps(doc, allow_nan=False)
    text = render_text(doc, 100)
    assert "\x1b" not in text
    text.encode()
    return "accepted"


def fuzz(cases: int, seed: int, examples: list[dict[str, Any]]) -> tuple[Counter[str], float, list[str]]:
    """Counts by outcome, the slowest case in seconds, and the tracebacks of distinct leaks."""
    rng = random.Random(seed)
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    leaks: dict[str, str] = {}
    for _ in range(cases):
        value = mutate(rng.choice(examples), rng)
        start = time.perf_counter()
        try:
            outcomes[attempt(value, rng)] += 1
        except Exception as error:
            outcomes["LEAK"] += 1
            frame = traceback.extract_tb(error.__traceback__)[-1]
            leaks.setdefault(f"{frame.filename}:{frame.lineno} {type(error).__name__}", traceback.format_exc())
        slowest = max(slowest, time.perf_counter() - start)
    return outcomes, slowest, [f"{where}\n{trace}" for where, trace in leaks.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("directories", nargs="*", type=Path)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start = time.perf_counter()
    outcomes, slowest, leaks = fuzz(options.cases, options.seed, seeds(options.directories))
    for name, count in outcomes.most_common():
        print(f"{count:>8}  {name}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{time.perf_counter() - start:.1f} s, slowest case {slowest * 1000:.1f} ms, peak {peak} MiB")
    for leak in leaks:
        print(leak, file=sys.stderr)
    return 1 if leaks or slowest > SLOW else 0


if __name__ == "__main__":
    sys.exit(main())
