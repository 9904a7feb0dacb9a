"""A log that was copied from a terminal: lines in rows of its width."""

from __future__ import annotations

import bench
import pytest

from logscan.intake.framing import Item, is_record
from logscan.intake.terminal import HardWrap, width_of

rewrap = bench.load("rewrap")
HEAD = b"(EngineCore pid=101) INFO 08-02 09:00:24 "
BOOT = [
    b"nohup: ignoring input",
    HEAD + b"[core.py:113] Initializing a V1 LLM engine (v0.24.0) with config: " + b"key='value', " * 60,
    HEAD + b"[__init__.py:210] Selected CutlassFP8ScaledMMLinearKernel for Fp8LinearMethod",
    b"",
    HEAD + b"[cuda.py:418] Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN', 'FLASHINFER']",
    "  a library prints ▄▄ ▄█".encode(),
    b"Traceback (most recent call last):",
    b'  File "/x.py", line 3, in f',
    b"ValueError: no",
    b"INFO:     Application startup complete.",
]


@pytest.mark.parametrize("width", [60, 80, 100, 132, 200])
def test_rows_are_joined(width: int) -> None:
    wrapper = rewrap._terminal(rewrap._screen(width=width))
    assert rewrap.compare(BOOT, rewrap.read(b"\n".join(BOOT) + b"\n"), wrapper) == []


def test_torn_words_are_proof_enough() -> None:
    """One warning again and again, in a log that holds nothing else."""
    warning = b"[TensorRT-LLM][WARNING] Fall back to unfused MHA for data_type = bf16, head_size = 64 in sm_120."
    rows = [row.encode() for cut in rewrap._screen(width=74)([warning] * 3) for row in cut]
    assert [r.text for r in rewrap.read(b"\n".join(rows) + b"\n")] == [
        warning.removeprefix(b"[TensorRT-LLM][WARNING] ")
    ] * 3


def test_a_long_text_of_somebody_else_is_proof_too() -> None:
    script = b"+ python -m trainer " + b" ".join(b"data.option_%d=value" % n for n in range(60))
    rows = [row.encode() for cut in rewrap._screen(width=80)([script, *BOOT]) for row in cut]
    assert rewrap.read(b"\n".join(rows) + b"\n")[0].text == script


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_the_last_rows_are_not_lost(end: bytes) -> None:
    rows = [row.encode() for cut in rewrap._screen(width=80)(BOOT[:3]) for row in cut]
    got = rewrap.read(b"\n".join(rows) + end)
    assert [r.text for r in got] == [r.text for r in rewrap.read(b"\n".join(BOOT[:3]) + b"\n")]


def test_a_record_that_fills_the_width_stays_one() -> None:
    full = (HEAD + b"[core.py:9] ").ljust(80, b"x")
    rows = [HEAD + b"[a.py:1] one", full, HEAD + b"[b.py:1] two", full, b"", b"end"]
    wrap = HardWrap(80, is_record)
    out = [item for n, row in enumerate(rows, 1) for item in wrap.peel(Item(n, row))] + list(wrap.flush())
    assert [(item.line, item.payload) for item in out] == list(enumerate(rows, 1))


RULER = b"=" * 80
LONG = HEAD + b"[core.py:9] " + b"x" * 600


@pytest.mark.parametrize(
    "lines",
    [
        [RULER, b"| GPU |".ljust(80), RULER] * 5,
        [f"| {n} {'N/A' * n}".ljust(78).encode() + b" |" for n in range(12)],
        [(HEAD + b"[core.py:9] ").ljust(80, b"x"), b"  warnings.warn("] * 5,
        [(HEAD + b"[core.py:%d] " % n).ljust(80, b"x") for n in range(9)],
        [b"step %d of 900: loss 1.%d, samples per second 12.5" % (n, n) for n in range(100, 130)],
        [LONG, *[(HEAD + b"[core.py:%d] " % n).ljust(80, b"x") for n in range(9)], b"and so on"],
        [b"short", b"lines"],
        [],
    ],
    ids=[
        "a table",
        "one with a frame",
        "one record again and again",
        "records of one length",
        "prints of one length",
        "a longer line",
        "short",
        "none",
    ],
)
def test_lines_of_one_length_are_no_rows(lines: list[bytes]) -> None:
    assert width_of(lines, is_record) is None


def test_a_wider_row_ends_it() -> None:
    """A launcher's command was wrapped; the log behind it was not, and a line of it may fill the width by chance."""
    command = b"+ python -m trainer " + b" ".join(b"data.option_%d=value" % n for n in range(60))
    rows = [row.encode() for cut in rewrap._screen(width=80)([command, *[b"short"] * 40]) for row in cut]
    after = [HEAD + b"[core.py:9] " + b"x" * 600, b"=" * 80, b"Fatal Python error: Segmentation fault"]
    got = rewrap.read(b"\n".join([*rows, *after]) + b"\n")
    assert [r.text for r in got[-2:]] == after[1:]


@pytest.mark.parametrize("words", [b"Traceback (most recent call last):", b"Fatal Python error: Bus error"])
def test_last_words_are_no_row(words: bytes) -> None:
    rows = [row.encode() for cut in rewrap._screen(width=80)(BOOT) for row in cut]
    got = rewrap.read(b"\n".join([*rows, b"=" * 80, words]) + b"\n")
    assert got[-1].text == words
