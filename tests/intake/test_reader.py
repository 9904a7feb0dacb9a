"""What can be opened, what cannot and why, and how much of it is read."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

import logscan.intake.reader as reader
from logscan.intake import Source, open_source
from logscan.model import InputError

LOG = b"INFO 07-14 10:00:00 [core.py:9] hello\nINFO:     Application startup complete.\n"


def write(tmp_path: Path, data: bytes, name: str = "vllm.log") -> str:
    path = tmp_path / name
    path.write_bytes(data)
    return str(path)


def texts(source: Source) -> list[bytes]:
    return [r.text for r in source.records()]


HELLO = [b"hello", b"Application startup complete."]


@pytest.mark.parametrize(
    "data",
    [
        LOG,
        gzip.compress(LOG),
        gzip.compress(LOG[:20]) + gzip.compress(LOG[20:]) + b"\0" * 100,
        zstandard.compress(LOG),
        zstandard.compress(LOG[:20]) + zstandard.compress(LOG[20:]),
        b"\xef\xbb\xbf" + LOG,
        LOG.decode().encode("utf-16"),
        LOG.decode().encode("utf-16-le"),
        LOG.decode().encode("utf-16-be"),
        b"\0" * 5000 + LOG,
    ],
    ids=["plain", "gz", "gz-members", "zst", "zst-frames", "bom", "utf16", "utf16-le", "utf16-be", "hole"],
)
def test_told_by_content(tmp_path: Path, data: bytes) -> None:
    source = open_source(write(tmp_path, data, "log.gz"))
    if data.startswith(b"\0\0"):
        assert texts(source)[1:] == HELLO[1:]
    else:
        assert texts(source) == HELLO
    assert (source.bytes, source.lines, source.notes) == (len(data), 2, ())
    assert source.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    ("data", "note"),
    [
        (gzip.compress(LOG * 2000)[:-200], "the gzip data are truncated: read as far as they go"),
        (gzip.compress(LOG) + b"junk", "bytes after the end of the gzip data were not read"),
        (gzip.compress(LOG)[:-8] + bytes(8),
         "the gzip data are damaged (incorrect data check): read as far as they go"),
    ],
)  # fmt: skip
def test_damaged_gzip_is_read_as_far_as_it_goes(tmp_path: Path, data: bytes, note: str) -> None:
    source = open_source(write(tmp_path, data))
    assert texts(source)[:2] == HELLO
    assert source.notes == (note,)


def test_truncated_zstd_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    data = zstandard.compress(os.urandom(1 << 18).hex().encode() + b"\n" + LOG)
    source = open_source(write(tmp_path, data[: len(data) // 2]))
    assert len(texts(source)) == 1
    assert source.notes == ("the zstd data are truncated: read as far as they go",)


def test_damaged_zstd(tmp_path: Path) -> None:
    data = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(os.urandom(1 << 18).hex().encode()))
    data[len(data) // 2] ^= 255
    source = open_source(write(tmp_path, bytes(data)))
    list(source.records())
    assert source.notes[0].startswith("the zstd data are damaged")


def test_a_bomb_is_capped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_BOMB", 1 << 20)
    for data in (
        gzip.compress((b"x" * 1023 + b"\n") * (16 * 4096)),
        zstandard.compress((b"x" * 1023 + b"\n") * (16 * 4096)),
    ):
        source = open_source(write(tmp_path, data))
        read = sum(1 for _ in source.records())
        assert 1024 <= read < 16 * 4096
        assert re.match("stopped after [0-9]+ MiB: it unpacks to more than 200 times its size", source.notes[0])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PK\x03\x04rest", "is a zip archive, not a log; unpack it and give the log inside"),
        (b"\xfd7zXZ\0rest", "is xz-compressed, not a log; give the plain log: xz -dc FILE | logscan triage -"),
        (b"\x7fELF" + bytes(range(256)), "is a program (ELF), not a log; give the engine's log"),
        (
            (60).to_bytes(8, "little") + b'{"x":1}' + bytes(range(256)) * 40,
            "is model weights (safetensors), not a log; give the engine's log as text, .gz or .zst",
        ),
        (bytes(range(256)) * 20, "is binary, not a log; give the engine's log as text, .gz or .zst"),
        (b"\0" * 4096, "holds only NUL bytes, not a log; give the engine's log as text"),
        (gzip.compress(bytes(range(256)) * 20), "is binary, not a log; give the engine's log as text, .gz or .zst"),
    ],
)
def test_what_is_no_log_says_so(tmp_path: Path, data: bytes, message: str) -> None:
    path = write(tmp_path, data)
    with pytest.raises(InputError) as error:
        list(open_source(path).records())
    assert str(error.value) == f"{path}: {message}"


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.log: no such file; give a log file, or - to read standard input"):
        open_source(str(tmp_path / "no.log"))
    with pytest.raises(InputError, match="is a directory; give the log file inside it"):
        open_source(str(tmp_path))
    with pytest.raises(InputError, match="cannot be opened: .*embedded null"):
        open_source("a\0b")
    with pytest.raises(InputError, match=r"cannot be opened: Not a directory"):
        open_source(write(tmp_path, LOG) + "/x")


def test_an_empty_log_is_no_error(tmp_path: Path) -> None:
    source = open_source(write(tmp_path, b""))
    assert (texts(source), source.bytes, source.lines, source.sha256[:8]) == ([], 0, 0, "e3b0c442")


def test_latin1_and_nul_are_text(tmp_path: Path) -> None:
    assert texts(open_source(write(tmp_path, b"caf\xe9 \0 au lait\n" + LOG))) == [b"caf\xe9 \0 au lait", *HELLO]


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The writing end of a pipe that is standard input."""
    read, write = os.pipe()
    saved = os.dup(0)
    os.dup2(read, 0)
    os.close(read)
    yield write
    os.dup2(saved, 0)
    os.close(saved)


def test_records_come_as_soon_as_their_line_is_complete(pipe: int) -> None:
    source = open_source("-")
    records = source.records()
    os.write(pipe, b"INFO 07-14 10:00:00 [core.py:9] one\nINFO 07-14 10:00:00 [core.py:9] tw")
    assert next(records).text == b"one"
    os.write(pipe, b"o\n")
    assert next(records).text == b"two"
    os.write(pipe, b"INFO:     Application startup complete.\nno end")
    assert next(records).text == b"Application startup complete."
    os.close(pipe)
    assert [r.text for r in records] == [b"no end"]
    assert (source.live, source.lines, source.bytes) == (True, 4, 118)
    assert len(source.sha256) == 64


def test_compressed_standard_input(pipe: int) -> None:
    os.write(pipe, gzip.compress(LOG))
    os.close(pipe)
    assert texts(open_source("-")) == HELLO


def test_a_long_pipe_is_not_hashed(pipe: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_HASHED", 100)
    os.write(pipe, LOG * 2)
    os.close(pipe)
    source = open_source("-")
    assert len(texts(source)) == 4
    assert source.sha256 == ""


def test_a_file_as_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fd = os.open(write(tmp_path, LOG), os.O_RDONLY)
    saved = os.dup(0)
    os.dup2(fd, 0)
    os.close(fd)
    try:
        source = open_source("-")
        assert texts(source) == HELLO
        assert (source.live, source.sha256) == (False, hashlib.sha256(LOG).hexdigest())
    finally:
        os.dup2(saved, 0)
        os.close(saved)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux'")
def test_memory_is_constant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of 64 MiB, and a gzip that unpacks to one, need no more than their clipped ends."""
    import subprocess

    path = tmp_path / "long.log"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b"x" * (1 << 20))
        file.write(b"\nINFO:     Application startup complete.\n")
    code = (
        "import sys\nfrom logscan.intake import open_source\ns = open_source(sys.argv[1])\nr = list(s.records())\n"
        "peak = next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1]\n"
        "print(len(r), len(r[0].text), r[1].line, s.notes, int(peak) >> 10)"
    )
    root = str(Path(__file__).resolve().parents[2])
    out = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, env={"PYTHONPATH": root}
    ).stdout
    count, size, line, *_, rss = out.split()
    assert (int(count), int(size), int(line)) == (2, 1 << 18, 2)
    assert "1 line is longer than a record may be" in out
    assert int(rss) < 64


def test_recount_reads_the_file_again(tmp_path: Path) -> None:
    source = reader.Reader(write(tmp_path, b"\xef\xbb\xbfa\nb\nc\n"))
    assert b"".join(source.text()) == b"a\nb\nc\n"
    assert (source.recount(0, 6), source.recount(2, 4), source.recount(3, 3)) == (3, 1, 0)
    source.close()
