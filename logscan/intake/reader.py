"""Bytes of a file, a pipe or a compressed stream, as blocks of text in constant memory."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from logscan.model import InputError

BLOCK = 1 << 19  # bytes per read: of 128 KiB to 1 MiB the quickest, and it stays in the L2 cache
_BOMB = 1 << 30  # bytes unpacked before the ratio is looked at
_BOMB_RATIO = 200  # progress bars pack 100 : 1; gzip's limit is 1032 : 1
_GZIP = b"\x1f\x8b"
_ZSTD = (b"\x28\xb5\x2f\xfd", *(bytes((low,)) + b"\x2a\x4d\x18" for low in range(0x50, 0x60)))  # skippable frames too
_HASHED = 1 << 26  # bytes of a pipe that are hashed: more would cost as much as reading it
_PIPE = 1 << 20  # bytes a pipe may hold, where the system lets us ask (Linux)
_SLICE = 512  # bytes of zstd data unpacked at a time
_WINDOW = 1 << 27  # bytes a zstd frame may make the decoder keep (zstd's own default limit)
_FOREIGN = (
    (b"PK\x03\x04", "a zip archive", "unpack it and give the log inside"),
    (b"\xfd7zXZ\0", "xz-compressed", "give the plain log: xz -dc FILE | logscan triage -"),
    (b"BZh", "bzip2-compressed", "give the plain log: bzip2 -dc FILE | logscan triage -"),
    (b"7z\xbc\xaf", "a 7z archive", "unpack it and give the log inside"),
    (b"\x7fELF", "a program (ELF)", "give the engine's log"),
    (b"%PDF", "a PDF", "give the log as text"),
    (b"\x89PNG", "a picture (PNG)", "give the log as text"),
    (b"\xff\xd8\xff", "a picture (JPEG)", "give the log as text"),
    (b"PAR1", "a Parquet file", "give the engine's log"),
    (b"SQLite format 3", "an SQLite database", "give the engine's log"),
    (b"GGUF", "model weights (GGUF)", "give the engine's log; a checkpoint's config.json goes to --ckpt"),
)
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\x08\x0b\x0c\x1b") | {127})


class Reader:
    """Opens `path` (`-`: stdin) and yields its text. `bytes` and `digest` are those of the file as it lies there."""

    def __init__(self, path: str) -> None:
        self.name = path
        self.spoken = "stdin" if path == "-" else path
        self.bytes = 0
        self.notes: list[str] = []
        self.live = False  # a pipe or terminal: more may come at any time
        self.rereadable = False  # a plain file: the text's offsets are the file's, but for a byte order mark
        self.deadline: float | None = None  # of `time.monotonic()`; a live stream ends there, idle or not
        self._mark = 0  # bytes of that
        self._hash: Any = None
        self._fd = 0 if path == "-" else _open(path)
        mode = _mode(self._fd, self.spoken)
        if stat.S_ISDIR(mode):
            self.close()
            raise InputError(f"{path}: is a directory; give the log file inside it")
        self.live = not stat.S_ISREG(mode)
        self.rereadable = self._file = path != "-" and not self.live
        if stat.S_ISFIFO(mode):
            _widen(self._fd)

    def close(self) -> None:
        """Close the file; stdin stays open."""
        if self.name != "-" and self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    @property
    def sha256(self) -> str:
        """Of the bytes as read; "" for a pipe that brought more than 64 MiB. A file is read again for it."""
        if self._hash is None and self._file:
            self._hash = _digest(self.name, self.bytes)
        return self._hash.hexdigest() if self._hash is not None else ""

    def recount(self, start: int, stop: int) -> int:
        """Lines between two offsets of the text."""
        fd = _open(self.name)
        lines = 0
        try:
            os.lseek(fd, start + self._mark, os.SEEK_SET)
            while start < stop and (block := os.read(fd, min(BLOCK, stop - start))):
                lines += block.count(b"\n")
                start += len(block)
        finally:
            os.close(fd)
        return lines

    def raw(self) -> Iterator[bytes]:
        """Blocks as they lie in the file; of a pipe, whatever is there."""
        digest = None
        if not self._file:
            import hashlib

            digest = self._hash = hashlib.sha256()
        try:
            while self._in_time() and (block := os.read(self._fd, BLOCK)):
                self.bytes += len(block)
                if digest is not None:
                    digest.update(block)
                    if self.bytes > _HASHED:
                        digest = self._hash = None
                yield block
        except OSError as error:
            raise InputError(f"{self.spoken}: cannot be read: {error.strerror}") from None

    def _in_time(self) -> bool:
        """Wait for a live stream to bring something, no longer than until the deadline."""
        if self.deadline is None or not self.live:
            return True
        return bool(select.select([self._fd], [], [], max(self.deadline - time.monotonic(), 0))[0])

    def text(self) -> Iterator[bytes]:
        """Blocks of text: unpacked, and UTF-16 made UTF-8. Raises InputError on what is no log."""
        blocks = self.raw()
        first = next(blocks, b"")
        while 0 < len(first) < 4 and (more := next(blocks, b"")):
            first += more
        if first.startswith(_GZIP):
            self.rereadable = False
            stream = self._bounded(_gunzip(_chain(first, blocks), self._note))
        elif first.startswith(_ZSTD):
            self.rereadable = False
            stream = self._bounded(_unzstd(_chain(first, blocks), self._note))
        else:
            stream = _chain(first, blocks)
        first = next(stream, b"")
        encoding = self._judge(first)
        if encoding:
            self.rereadable = False
            yield from _transcode(_chain(first, stream), encoding)
            return
        text = first.removeprefix(b"\xef\xbb\xbf")
        self._mark = len(first) - len(text)
        yield text
        yield from stream

    def _note(self, text: str) -> None:
        self.notes.append(text)

    def _bounded(self, stream: Iterator[bytes]) -> Iterator[bytes]:
        total = 0
        for block in stream:
            total += len(block)
            yield block
            if total > _BOMB and total > _BOMB_RATIO * self.bytes:
                self._note(
                    f"stopped after {total >> 20} MiB: it unpacks to more than {_BOMB_RATIO} times its size; "
                    "unpack it yourself and give the plain file if that is meant"
                )
                return

    def _judge(self, head: bytes) -> str:
        """The encoding to convert from, "" for bytes that are text as they are. Raises InputError on binaries."""
        for magic, what, instead in _FOREIGN:
            if head.startswith(magic):
                raise InputError(f"{self.spoken}: is {what}, not a log; {instead}")
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            return "utf-16"
        even, odd = head[:4096:2], head[1:4096:2]
        for encoding, zeros, letters in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
            if len(odd) > 8 and zeros.count(0) > 0.9 * len(zeros) and letters.count(0) < 0.1 * len(letters):
                return encoding
        sample = head[:65536].replace(b"\0", b"")  # a rotated log may begin with a hole of NULs
        if head and not sample:
            raise InputError(f"{self.spoken}: holds only NUL bytes, not a log; give the engine's log as text")
        control = len(sample) - len(sample.translate(None, _CONTROL))
        broken = sample.decode("utf-8", "replace").count("\ufffd") if not sample.isascii() else 0
        if control > len(sample) * 0.1 or broken > len(sample) * 0.25:
            what = "model weights (safetensors)" if head[8:10] == b'{"' else "binary"
            raise InputError(f"{self.spoken}: is {what}, not a log; give the engine's log as text, .gz or .zst")
        return ""


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give a log file, or - to read standard input") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{path}: cannot be opened: {reason}") from None


def _mode(fd: int, path: str) -> int:
    try:
        return os.fstat(fd).st_mode
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _widen(fd: int) -> None:
    """A wider pipe saves most of the switching between its writer and us."""
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):
            fcntl.fcntl(fd, getattr(fcntl, "F_SETPIPE_SZ", 1031), _PIPE)


def _digest(path: str, size: int) -> Any:
    import hashlib

    digest = hashlib.sha256()
    fd = _open(path)
    try:
        while size > 0 and (block := os.read(fd, min(BLOCK, size))):
            digest.update(block)
            size -= len(block)
    finally:
        os.close(fd)
    return digest


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    if first:
        yield first
    yield from rest


def _gunzip(blocks: Iterator[bytes], note: Callable[[str], None]) -> Iterator[bytes]:
    """Unpack gzip members one after the other, at most BLOCK bytes at a time."""
    import zlib

    member, done = zlib.decompressobj(31), False
    for block in blocks:
        while block:
            if done:
                block = block.lstrip(b"\0")  # padding of tape and block devices
                if not block:
                    break
                if not block.startswith(_GZIP[: len(block)]):
                    note("bytes after the end of the gzip data were not read")
                    return
                member, done = zlib.decompressobj(31), False
            before = member.copy()
            try:
                out = member.decompress(block, BLOCK)
            except zlib.error as error:
                yield from _salvaged(before, block)
                note(f"the gzip data are damaged ({str(error).rpartition(': ')[2]}): read as far as they go")
                return
            if out:
                yield out
            done = member.eof
            block = member.unused_data if done else member.unconsumed_tail
    if not done:
        note("the gzip data are truncated: read as far as they go")


def _salvaged(member: Any, block: bytes) -> Iterator[bytes]:
    """What can be unpacked of a damaged block; zlib gives nothing of the call that meets the damage."""
    for i in range(len(block)):
        try:
            out = member.decompress(block[i : i + 1])
        except Exception:  # zlib.error, which is not imported here
            return
        if out:
            yield out


def _unzstd(blocks: Iterator[bytes], note: Callable[[str], None]) -> Iterator[bytes]:
    """Unpack zstd frames one after the other. A slice of the input may unpack to 128 KiB for each 4 bytes."""
    import zstandard

    unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    frame: Any = None
    try:
        for block in blocks:
            for i in range(0, len(block), _SLICE):
                piece = block[i : i + _SLICE]
                while piece:
                    frame = frame or unpacker.decompressobj()
                    if out := frame.decompress(piece):
                        yield out
                    piece, frame = (frame.unused_data, None) if frame.eof else (b"", frame)
        if frame is not None:
            note("the zstd data are truncated: read as far as they go")
    except zstandard.ZstdError as error:
        note(f"the zstd data are damaged ({str(error).rpartition(': ')[2]}): read as far as they go")


def _transcode(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    import codecs

    decoder = codecs.getincrementaldecoder(encoding)("replace")
    for block in blocks:
        yield decoder.decode(block).encode("utf-8", "replace")
    yield decoder.decode(b"", True).encode("utf-8", "replace")
