"""What was judged once is told again with the lines of the boot at hand, and of no other."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from beside import SHARED, needs

from logscan.desk import Given
from logscan.fleet.joins import Joins
from logscan.fleet.listing import Item
from logscan.fleet.scan import Scanner, Settings

LOGS = sorted((Path(__file__).parents[2] / "fixtures").glob("*/boot.log"))


def scanners(joins):
    return Scanner(Settings(joins)), Scanner(Settings(joins, memo=False))


def rows(scanner, log):
    return scanner.scan(Item(str(log), str(log)))


def remeasured(text, rng):
    """The log as another pod prints it: other measures in the same words, other lines between."""
    for words in (rb"took (\d+\.\d+)", rb"memory: (\d+\.\d+)", rb"cache size: ([\d,]+)"):
        text = re.sub(words, lambda m: m[0].replace(m[1], re.sub(rb"\d", b"%d" % rng.randint(1, 9), m[1])), text)
    lines = text.split(b"\n")
    for _ in range(5):
        lines.insert(rng.randrange(len(lines)), b"a line of nobody's")
    return b"\n".join(lines)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.parent.name)
def test_the_rows_are_those_of_judging_each_boot(log, tmp_path):
    config = log.with_name("config.json")
    fast, slow = scanners(Joins(Given(str(config) if config.exists() else None, "A100")))
    rng = random.Random(5)
    for i in range(6):
        copy = tmp_path / f"{i}.log"
        copy.write_bytes(remeasured(log.read_bytes(), rng) if i else log.read_bytes())
        assert rows(fast, copy) == rows(slow, copy)


def test_pods_of_one_deployment_are_judged_once(fleet):
    fast, _ = scanners(Joins(Given(str(fleet.ckpt), "H100", "12.8")))
    for i in range(5):
        rows(fast, fleet.add(f"{i}.log", core_pid=100 + i))
    assert fast.hits == 4


@pytest.mark.parametrize(
    "other",
    [
        {"version": "0.25.0"},
        {"lines": "marlin"},
        {"lines": "flashinfer"},
        {"end": "cut"},
        {"end": "failed"},
        {"kv": "fp8"},
        {"args": {"enforce_eager": "True"}},
        {"args": {"model": "org/other"}},
    ],
    ids=str,
)
def test_another_boot_is_judged_anew(fleet, other):
    fast, slow = scanners(Joins(Given(str(fleet.ckpt), "H100", "12.8")))
    rows(fast, fleet.add("first.log"))
    if isinstance(other.get("lines"), str):
        other = {**other, "lines": getattr(fleet, other["lines"])}
    log = fleet.add("second.log", **other)
    assert rows(fast, log) == rows(slow, log)
    assert fast.hits == 0


def test_what_was_given_is_part_of_it(fleet):
    fleet.add("a.log"), fleet.add("b.log")
    joins = [Joins(Given(str(fleet.ckpt), gpu, "12.8")) for gpu in ("H100", "A100")]
    fast, slow = scanners(joins[0])
    for one in joins:
        for name in ("a.log", "b.log"):
            assert rows(fast.given(one), fleet.logs / name) == rows(slow.given(one), fleet.logs / name)


@needs("corpus")
def test_the_corpus_twice_over():
    fast, slow = scanners(Joins())
    for _ in range(2):
        for log in sorted((SHARED / "corpus").glob("*/boot.log"))[:40]:
            if log.stat().st_size < 300_000:
                assert rows(fast, log) == rows(slow, log), log.parent.name
    assert fast.hits > 10
