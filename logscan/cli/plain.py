"""Plain command lines, read without typer: importing it takes longer than the triage of a boot log.

Plain is what needs no judgement: whole option names, each at most once, a value as the next word (spelled as its list
spells it), and logs. All else is typer's: help, `--name=value`, what repeats, what is wrong, completion. What is read
here repeats the declarations in `commands`, and a test holds both to the same arguments.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_FLAG = ()  # an option without a value
_SEVERITIES = ("info", "low", "medium", "high", "critical", "never")
_FORMATS = ("table", "json", "jsonl", "markdown", "junit", "github", "prom")
_BRIEF_FORMATS = ("table", "json")
_COLORS = ("auto", "always", "never")
_SHORT = {"-f": "--format", "-o": "--output", "-q": "--quiet", "-v": "--verbose"}

_Value = type[str] | type[Path] | tuple[str, ...]


class Plain(NamedTuple):
    """A command's function, its parameter for what is no option, and the options that are plain."""

    implementation: str
    positional: str | None
    many: bool
    options: dict[str, _Value]
    needed: tuple[str, ...] = ()


class Order(NamedTuple):
    """What is to run: `module:function`, and its arguments. Those left out have the function's defaults."""

    implementation: str
    arguments: dict[str, Any]


_COMMANDS = {
    "triage": Plain(
        "logscan.cli.triage:run",
        "logs",
        True,
        {
            "--ckpt": str,
            "--gpu": str,
            "--cuda": str,
            "--engine": str,
            "--format": _FORMATS,
            "--output": Path,
            "--fail-on": _SEVERITIES,
            "--strict": _FLAG,
            "--boots": ("last", "all"),
            "--until": ("ready", "end"),
            "--baseline": Path,
            "--config": Path,
            "--waivers": Path,
            "--isolated": _FLAG,
            "--quiet": _FLAG,
            "--verbose": _FLAG,
            "--color": _COLORS,
        },
    ),
    "expect": Plain(
        "logscan.cli.expect:run",
        None,
        False,
        {
            "--ckpt": str,
            "--gpu": str,
            "--engine": str,
            "--cuda": str,
            "--have": str,
            "--format": _BRIEF_FORMATS,
            "--output": Path,
            "--fail-on": _SEVERITIES,
            "--strict": _FLAG,
            "--verbose": _FLAG,
            "--color": _COLORS,
        },
        needed=("ckpt", "gpu", "engine"),
    ),
    "promise": Plain("logscan.cli.promise:run", "checkpoint", False, {"--format": _BRIEF_FORMATS, "--output": Path}),
}


def read(words: Sequence[str]) -> Order | None:
    """The order that the words behind `logscan` give, or None where they are not plain."""
    command = _COMMANDS.get(words[0]) if words else None
    if command is None or "_LOGSCAN_COMPLETE" in os.environ or os.name == "nt":
        return None
    arguments: dict[str, Any] = {}
    positional: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word == "-" or not word.startswith("-"):
            positional.append(word)
            continue
        option = _SHORT.get(word, word)
        name, value = option[2:].replace("-", "_"), command.options.get(option)
        if value is None or name in arguments:
            return None
        given = True if value == _FLAG else _value(next(rest, ""), value)
        if given is None:
            return None
        arguments[name] = given
    if command.positional is not None:
        if not positional or (len(positional) > 1 and not command.many):
            return None
        arguments[command.positional] = positional if command.many else positional[0]
    elif positional:
        return None
    return Order(command.implementation, arguments) if arguments.keys() >= set(command.needed) else None


def _value(word: str, value: _Value) -> Any:
    """As the option's function takes it; None where typer may see it otherwise."""
    if not word or word.startswith("-"):
        return None
    if isinstance(value, tuple):
        return word if word in value else None
    return value(word)
