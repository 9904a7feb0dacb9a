"""Where a command's result goes: stdout, or a file that appears whole."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from logscan.model import InputError


def write(text: str, output: Path | None = None) -> None:
    """Write to stdout, or to `output` through a temporary file beside it, so that readers never see half a report.

    Raises InputError where the file cannot be written.
    """
    if output is None:
        # Log text is any Unicode; a stdout of another encoding (LANG=C) must not end in a traceback.
        encoding = sys.stdout.encoding or "ascii"
        sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
        return
    part = output.with_name(f".{output.name}.{os.getpid()}")
    try:
        part.write_bytes(text.encode("utf-8", "replace"))
        part.replace(output)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{output}: cannot be written: {error.strerror}; give another file with -o") from error


def wants_color(when: str, output: Path | None = None) -> bool:
    """Whether to colour: as asked, or for `auto` only on a terminal that is not dumb and without NO_COLOR."""
    if when != "auto":
        return when == "always"
    return (
        output is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )
