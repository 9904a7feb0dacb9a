"""How every command runs and ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def run(implementation: str, arguments: Mapping[str, Any]) -> int:
    """The exit code of `module:function` (None is 0).

    Bad input of the user's is one line on stderr and exit 2; Ctrl-C is 130 and a closed pipe 141, both without a word,
    as a shell reports a process that dies of the signal.
    """
    from logscan.cli.output import silence, to_stdout
    from logscan.model import InputError

    module, _, function = implementation.partition(":")
    try:
        code: int | None = getattr(import_module(module), function)(**arguments)
        if sys.stdout is not None:
            with to_stdout():
                sys.stdout.flush()
    except InputError as error:
        print(f"logscan: {error}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        silence()
        code = 141
    return code or 0


def hold_closed_streams() -> None:
    """Keep the numbers of closed streams (`>&-`) from the files that are opened next; messages then go nowhere.

    A held stdin cannot be read and a held stdout not be written, as if they were closed.
    """
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            os.open(os.devnull, os.O_RDONLY if number else os.O_WRONLY)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - print() to None would write to stdout
