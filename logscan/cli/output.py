"""Where a command's result goes: stdout, or a file that appears whole."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from logscan.model import InputError

_SUMMARY_LIMIT = 1 << 20
_MARKS = {
    "✗": "x",
    "✓": "ok",
    "–": "-",
    "—": "-",
    "·": "|",
    "│": "|",
    "→": "->",
    "×": "x",
    "…": "...",
    "≤": "<=",
    "\xa0": " ",
}


def write(text: str, output: Path | None = None) -> None:
    """Write to stdout, or to `output` through a temporary file beside it, so that readers never see half a report.

    Raises InputError where the file, or stdout, cannot be written.
    """
    if output is None:
        with to_stdout():
            sys.stdout.write(encodable(text, sys.stdout.encoding or "ascii"))
        return
    try:
        _to_file(text.encode("utf-8", "replace"), Path(os.path.realpath(output)))
    except OSError as error:
        raise InputError(f"{output}: cannot be written: {error.strerror}; give another file with -o") from error


def _to_file(data: bytes, target: Path) -> None:
    """Write a file whole, with the permissions that it has; what is no file (a pipe, a device) as it stands."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        target.write_bytes(data)
        return
    part = target.parent / f".logscan.{os.getpid()}.part"
    try:
        part.write_bytes(data)
        if mode is not None:
            part.chmod(stat.S_IMODE(mode))
        part.replace(target)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def encodable(text: str, encoding: str) -> str:
    """The text as an encoding can write it: our marks in ASCII (`?` is a mark of its own), all else as `?`.

    Log text is any Unicode; a stdout of another encoding (LANG=C) must not end in a traceback.
    """
    try:
        text.encode(encoding)
        return text
    except UnicodeEncodeError:
        for mark, ascii in _MARKS.items():
            if not mark.encode(encoding, "ignore"):
                text = text.replace(mark, ascii)
        return text.encode(encoding, "replace").decode(encoding)


@contextmanager
def to_stdout() -> Iterator[None]:
    """Around what writes to stdout: a full disk or a closed descriptor is an InputError; a closed pipe stays one."""
    try:
        if sys.stdout is None:
            raise InputError("stdout: is closed; leave it open, or give a file with -o")
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        silence()
        raise InputError(f"stdout: cannot be written: {error.strerror}") from error


def silence() -> None:
    """Let whatever is still to be written go nowhere: the interpreter flushes stdout once more on its way out."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def wants_color(when: str, output: Path | None = None) -> bool:
    """Whether to colour: as asked, or for `auto` only on a terminal that is not dumb and without NO_COLOR."""
    if when != "auto":
        return when == "always"
    return (
        output is None
        and sys.stdout is not None
        and sys.stdout.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def job_summary(markdown: str) -> bool:
    """Add a report to the summary of the GitHub Actions job that this runs in; False where it runs in none.

    GitHub refuses the whole summary of a step above 1 MiB, so a longer report is left out.
    """
    path = os.environ.get("GITHUB_STEP_SUMMARY")
    data = markdown.encode("utf-8", "replace")
    if not path or len(data) > _SUMMARY_LIMIT:
        return False
    try:
        with open(path, "ab") as file:
            file.write(data)
    except OSError as error:
        raise InputError(f"GITHUB_STEP_SUMMARY {path}: cannot be written: {error.strerror}") from error
    return True
