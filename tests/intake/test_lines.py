"""Blocks are split at LF wherever they are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logscan.intake.lines import CLIP, LineCount, Splitter

BLOCKS = st.lists(st.lists(st.sampled_from([b"a", b"bc", b"\n", b"\r\n", b"\r"]), max_size=8).map(b"".join), max_size=8)


@given(BLOCKS)
def test_feed_is_split(blocks: list[bytes]) -> None:
    splitter = Splitter()
    lines = [line for block in blocks for line in splitter.feed(block)]
    whole = b"".join(blocks)
    assert b"".join(line + b"\n" for line in lines) == whole[: splitter.position]
    lines += splitter.end()
    want = whole.split(b"\n")
    assert lines == (want if want[-1] else want[:-1])


@given(BLOCKS)
def test_spans_hold_the_same_lines(blocks: list[bytes]) -> None:
    splitter = Splitter()
    text = b""
    for block in blocks:
        for data, start, stop, position, _ in splitter.spans(block):
            assert data[stop - 1 : stop] == b"\n"
            text += data[start:stop]
            assert len(text) == position
    lines = splitter.end()
    assert text + b"\n".join(lines) in (b"".join(blocks), b"".join(blocks).removesuffix(b"\n"))


@given(BLOCKS, st.data())
def test_feed_and_spans_may_alternate(blocks: list[bytes], data: st.DataObject) -> None:
    splitter = Splitter()
    lines: list[bytes] = []
    for block in blocks:
        if data.draw(st.booleans()):
            lines += splitter.feed(block)
        else:
            for span in splitter.spans(block):
                lines += span.data[span.start : span.stop].split(b"\n")[:-1]
    lines += splitter.end()
    want = b"".join(blocks).split(b"\n")
    assert lines == (want if want[-1] else want[:-1])


def test_a_message_that_goes_on_is_not_cut() -> None:
    splitter = Splitter()
    spans = splitter.spans(b"a\nb\r\nc\r\n")
    assert [s.data[s.start : s.stop] for s in spans] == [b"a\n"]
    assert splitter.position == 2
    assert [s.data[s.start : s.stop] for s in splitter.spans(b"d\n")] == [b"b\r\nc\r\nd\n"]


def test_a_long_line_keeps_both_ends() -> None:
    for size in (1, 3 * CLIP, 50_000):
        splitter = Splitter()
        line = b"<" + b"x" * (9 * CLIP) + b">"
        blocks = [line[i : i + max(size, 1000)] for i in range(0, len(line), max(size, 1000))]
        got = [piece for block in [*blocks, b"\nnext\n"] for piece in splitter.feed(block)]
        assert [len(piece) for piece in got] == [2 * CLIP, 4]
        assert (got[0][:1], got[0][-1:], splitter.clipped) == (b"<", b">", 1)


def test_one_block_with_a_long_line() -> None:
    splitter = Splitter()
    got = splitter.feed(b"a\n" + b"x" * (3 * CLIP) + b"\nb\n")
    assert [len(line) for line in got] == [1, 2 * CLIP, 1]
    assert splitter.clipped == 1


class Text:
    """Counts how often it is read again."""

    def __init__(self, data: bytes, rereadable: bool) -> None:
        self.data, self.rereadable, self.reads = data, rereadable, 0

    def recount(self, start: int, stop: int) -> int:
        self.reads += 1
        return self.data.count(b"\n", start, stop)


def test_skipped_lines_are_counted_when_asked() -> None:
    for rereadable, reads in ((True, 2), (False, 0)):
        text = Text(b"a\nb\nc\nd\ne\n", rereadable)
        splitter, count = Splitter(), LineCount(text)
        count.add(len(splitter.feed(text.data[:2])), splitter.position)
        for block in (text.data[2:5], text.data[5:8]):
            for span in splitter.spans(block):
                count.skip(span)
        assert (count.lines, count.lines) == (4, 4)
        for span in splitter.spans(text.data[8:]):
            count.skip(span)
        count.add(2, 14)
        assert (count.lines, text.reads) == (7, reads)
