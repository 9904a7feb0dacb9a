"""The console script: a plain command line at once, any other through typer."""

from __future__ import annotations

import errno
import gc
import os
import sys
from contextlib import suppress
from typing import NoReturn

from logscan.cli import plain
from logscan.cli.running import hold_closed_streams, run

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def main() -> None:
    """Run the command line of this process, whatever became of its standard streams, and leave with its exit code."""
    gc.set_threshold(50_000)  # a start makes many objects and no garbage: looking for it is 3 % of the time
    hold_closed_streams()
    try:
        order = plain.read(sys.argv[1:])
        if order is not None:
            _leave(run(order.implementation, order.arguments))
        from logscan.cli.commands import app

        app(prog_name="logscan")
    except KeyboardInterrupt:  # before a command runs; it ends by itself
        os._exit(130)
    except OSError as error:
        # Of a help page or a message only: commands tell of their own. Nothing can be told where stderr is the one.
        if error.errno not in _UNWRITABLE or error.filename is not None:
            raise
        _silence(error)
        sys.exit(2)


def _leave(code: int) -> NoReturn:
    """Exit without taking the interpreter apart, which is a tenth of a short run; all output is flushed."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.flush()
    os._exit(code)


def _silence(error: OSError) -> None:
    from logscan.cli.output import silence

    silence()
    try:
        print(f"logscan: cannot write: {error.strerror}", file=sys.stderr)
    except OSError:
        return
