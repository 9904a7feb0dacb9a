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
        try:
            code: int | None = getattr(import_module(module), function)(**arguments)
            if sys.stdout is not None:
                with to_stdout():
                    sys.stdout.flush()
        except InputError as error:
            print(f"logscan: {_told(str(error))}", file=sys.stderr, flush=True)
            code = 2
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        silence()
        code = 141
    return code or 0


def _told(message: str) -> str:
    """A message of one line a mistake, whatever the names of files hold: escapes, line feeds."""
    from logscan.redact import printable

    for word in sys.argv[1:]:
        message = message.replace(word, printable(word)) if "\n" in word else message
    return "\n".join(printable(line) for line in message.split("\n"))


def hold_closed_streams() -> None:
    """Keep the numbers of closed streams (`>&-`) from the files that are opened next; messages then go nowhere.

    A held stdin cannot be read and a held stdout not be written, as if they were closed.
    """
    for number, stream in enumerate((sys.stdin, sys.stdout, sys.stderr)):
        if stream is None:
            os.open(os.devnull, os.O_RDONLY if number else os.O_WRONLY)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - print() to None would write to stdout
