"""Whatever the bytes, reading raises nothing but InputError, and every line is where it was."""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from logscan.intake import Source, open_source
from logscan.model import InputError

TOKENS = [
    b"\n", b"\r\n", b"\r", b"\0", b"\x1b[31m", b"\x1b]0;", b"\xff\xfe", b"\xe2\x96\x88", b" ", b"{", b"[", b'"', b"(",
    b"INFO 07-14 10:00:00 [core.py:9] ", b"(EngineCore pid=1) ", b"INFO:     ", b"[2026-09-30 14:27:37 TP0] ",
    b"[TensorRT-LLM][WARNING] ", b"[rank0]: ", b"Traceback (most recent call last):", b"ValueError: ",
    b" [repeated 3x across cluster]", b"[pod/a/b] ", b"2026-06-26T02:33:04Z ", b"stdout P ", b"stdout F ",
    b"vllm-1  | ", b"Dec 07 18:59:10 h i[1]: ", b"<30>1 ", b'{"log": "x\\n", "stream": "stdout", "time": "1"}',
    b'{"MESSAGE": [1, 2], "__REALTIME_TIMESTAMP": "1"}', b"==> x <==", b"[1,5]<stderr>:", b" 5: ",
    b"99%|#| 1/2 [00:33<00:00,  2.50it/s]", b'"text": [', b'{"levelname": 1, "message": "m"}',
]  # fmt: skip
BYTES = st.lists(st.sampled_from(TOKENS) | st.binary(max_size=6), max_size=60).map(b"".join)


def source(data: bytes) -> tuple[Source, list[tuple[int, bytes]]]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        opened = open_source(file.name)
        return opened, [(r.line, r.text) for r in opened.records()]


@settings(max_examples=400)
@given(BYTES)
@example(b"\n*M\x18")  # all but one byte of zstd's mark
def test_no_input_raises(data: bytes) -> None:
    try:
        opened, records = source(data)
    except InputError as error:
        assert "not a log" in str(error)
        return
    if not data.startswith((b"\xff\xfe", b"\xfe\xff", b"\x28\xb5\x2f\xfd", b"\x1f\x8b")) and b"\0" not in data:
        assert opened.lines == data.count(b"\n") + (len(data) > 0 and not data.endswith(b"\n"))
    assert all(1 <= line <= opened.lines for line, _ in records)
    assert opened.bytes == len(data)


WORDS = st.text("abc XYZ.", min_size=1, max_size=20).map(str.encode)


@given(st.lists(WORDS, max_size=40), st.sampled_from([b"", b"INFO 07-14 10:00:00 [core.py:9] ", b"INFO:     "]))
def test_lines_are_numbered_as_they_stand(words: list[bytes], head: bytes) -> None:
    lines = [head + word for word in words]
    _, records = source(b"\n".join(lines))
    assert records == [(i, word) for i, word in enumerate(words, 1)]


@given(st.lists(st.sampled_from([1, 2, 5]), max_size=12))
def test_messages_of_many_lines_keep_the_count(sizes: list[int]) -> None:
    """`line + text[:i].count(LF)` is the physical line of byte i."""
    out: list[bytes] = []
    for n, size in enumerate(sizes):
        head = f"(EngineCore pid=1) INFO 07-14 10:00:{n:02d} [core.py:9] ".encode()
        out += [head + f"line {len(out) + i + 1}".encode() + b"\r" * (i + 1 < size) for i in range(size)]
    _, records = source(b"\n".join(out))
    assert len(records) == len(sizes)
    for line, text in records:
        for row, part in enumerate(text.split(b"\n")):
            assert part == f"line {line + row}".encode()


@pytest.mark.parametrize(
    "token",
    [
        *TOKENS,
        b"(a pid=1) ",
        b"1%<",
        b"1%[1<",
        b"1% [0:0<",
        b"a.A",
        b"\x1b",
        b"\x1b[",
        b"(a ",
        b'"a": ',
        b"A1 ",
        b'\\"',
    ],
)
def test_long_lines_take_linear_time(token: bytes) -> None:
    """128 KiB of any token: what is quadratic takes minutes."""
    start = time.process_time()
    with suppress(InputError):  # some make no log
        source((token * (1 << 17))[: 1 << 17])
    assert time.process_time() - start < 5
