"""Skimming yields the very records that a look at every record does, whichever detector is installed."""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import logscan.intake.reader as reader
from logscan.intake import open_source, scanner
from logscan.intake.scanner import Detector, HyperscanDetector, PythonDetector, detector
from logscan.model import Record

LITERALS = [b"Selected ", b"Error", b"startup", b"GPU KV cache size", b"kernel", b"ten", b"ends\r"]
CORE = b"(EngineCore pid=7) INFO 07-14 10:00:00 [core.py:9] "
PIECES = [
    CORE + b"Selected XKernel for Y",
    CORE + b"Engine 000: GPU KV cache usage: 1.0%",
    CORE + b"GPU KV cache size: 1 tokens",
    CORE + b"first\r\n" + CORE + b"Selected by a kernel\r\n" + CORE + b"last",
    CORE + b"goes on\r",
    b"\x1b[1;36m(A pid=1)\x1b[0;0m INFO 07-14 10:00:00 [a.py:1] Selec\x1b[0mted one",
    b"Traceback (most recent call last):\n" + b'  File "x.py", line 1\n    f()\n' * 20 + b"Oops: no kernel\nkernel",
    b"  kernel, printed",
    b"ValueError: x",
    b"INFO:     Application startup complete.",
    b'INFO:     1.2.3.4:5 - "POST /v1/completions HTTP/1.1" 200 OK',
    b"",
    b"bare print\rwritten",
    b"Loading: 100%|#| 1/1 [00:00<00:00,  1.00it/s]" + CORE + b"Selected glued",
]


def detectors() -> list[Detector]:
    pytest.importorskip("hyperscan")
    return [HyperscanDetector(LITERALS), PythonDetector(LITERALS)]


def log(rng: random.Random, lines: int) -> bytes:
    return b"\n".join([CORE + b"boot", *(rng.choice(PIECES) for _ in range(lines))]) + b"\n" * rng.randrange(2)


def naive(path: Path) -> list[Record]:
    return [r for r in open_source(str(path)).records() if any(literal in r.text for literal in LITERALS)]


@pytest.mark.parametrize("block", [1 << 18, 1 << 15])
def test_hits_are_those_of_every_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(reader, "BLOCK", block)
    path = tmp_path / "log"
    found = 0
    for seed in range(4):
        path.write_bytes(log(random.Random(seed), 3000))
        want = naive(path)
        for which in detectors():
            source = open_source(str(path))
            assert list(source.hits(which)) == want
            assert source.lines == path.read_bytes().removesuffix(b"\n").count(b"\n") + 1
        found += len(want)
    assert found > 4_000


@given(st.lists(st.sampled_from(PIECES), max_size=60), st.integers(200, 4000))
def test_hits_with_small_blocks(pieces: list[bytes], block: int) -> None:
    """Of any block size; what a traceback's lines are called may depend on how far back can be looked."""
    import tempfile

    with pytest.MonkeyPatch.context() as patch, tempfile.NamedTemporaryFile() as file:
        file.write(b"\n".join([CORE + b"boot", *pieces]))
        file.flush()
        want = [(r.line, r.text) for r in naive(Path(file.name))]
        patch.setattr(reader, "BLOCK", block)
        for which in detectors():
            assert [(r.line, r.text) for r in open_source(file.name).hits(which)] == want


@pytest.mark.parametrize("head", [b"[pod/p/c] ", b"2026-06-26T02:33:04Z stdout F ", b"vllm-1  | "])
def test_hits_within_envelopes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, head: bytes) -> None:
    monkeypatch.setattr(reader, "BLOCK", 1 << 15)
    path = tmp_path / "log"
    lines = log(random.Random(1), 3000).split(b"\n")
    path.write_bytes(b"".join(head + line + b"\n" for line in lines))
    want = naive(path)
    assert len(want) > 500
    for which in detectors():
        assert list(open_source(str(path)).hits(which)) == want


def test_skimming_may_begin_when_the_boot_is_decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "BLOCK", 4096)
    path = tmp_path / "log"
    path.write_bytes((CORE + b"x\n") * 1000 + CORE + b"Selected\n" + (CORE + b"x\n") * 1000)
    source = open_source(str(path))
    lines = []
    for record in source.records():
        lines.append(record.line)
        if record.line == 10:
            source.skim(PythonDetector([b"Selected"]))
    assert lines == [*range(1, len(lines)), 1001]
    assert len(lines) < 200
    assert source.lines == 2001


@given(st.sets(st.binary(min_size=1, max_size=12).filter(lambda b: b"\n" not in b), min_size=1, max_size=20), st.data())
def test_detectors_agree(literals: set[bytes], data: st.DataObject) -> None:
    pytest.importorskip("hyperscan")
    text = b"".join(data.draw(st.lists(st.sampled_from(sorted(literals) + [b"\n", b"x"]), max_size=30)))
    for which in (HyperscanDetector(literals), PythonDetector(literals)):
        assert which.matches(text) == any(literal in text for literal in literals)
        starts = [0, *(i + 1 for i, byte in enumerate(text) if byte == 10)]
        lines = text.split(b"\n")
        ends = which.ends(text)
        assert ends == sorted(ends)
        for start, line in zip(starts, lines, strict=True):
            within = any(start < end <= start + len(line) for end in ends)
            assert within == any(literal in line for literal in literals)


def test_without_hyperscan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    assert isinstance(detector([b"x"]), PythonDetector)


@pytest.mark.parametrize("literals", [[], [b""], [b"a\nb"]])
def test_literals_that_cannot_be_found(literals: list[bytes]) -> None:
    with pytest.raises(ValueError, match="a detector needs literals"):
        detector(literals)


def test_detectors_of_different_literals_keep_their_databases_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("hyperscan._hs_ext")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for literals in ([b"one literal"], [b"another literal"]):
        HyperscanDetector(literals)
    compiled: list[Sequence[bytes]] = []
    monkeypatch.setattr(scanner, "_compiled", lambda literals: compiled.append(literals))
    for literals in ([b"one literal"], [b"another literal"]):
        HyperscanDetector(literals)
    assert compiled == []
