"""Help pages: their examples fit a terminal, and name commands and options that exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from logscan.cli import commands

ROOT: Any = typer.main.get_command(commands.app)


def commands(command: Any = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    for name in command.list_commands(None):
        yield from commands(command.get_command(None, name), (*path, name))


ALL = {" ".join(path): command for path, command in commands()}


def examples(command: Any) -> list[str]:
    return [line for line in (command.epilog or "").split("\n") if re.match(r"  .*\blogscan ", line)]


@pytest.mark.parametrize("name", [name for name in ALL if not name.startswith("packs")])
def test_every_command_has_examples(name: str) -> None:
    assert examples(ALL[name])


@pytest.mark.parametrize("name", ALL)
def test_examples_fit_and_exist(name: str) -> None:
    for line in examples(ALL[name]):
        assert len(line) + 2 <= 80, line  # help indents an epilog by two
        words = shlex.split(line)
        words = words[words.index("logscan") + 1 :]
        words = words[: words.index("|")] if "|" in words else words
        assert " ".join(words).startswith(name), line
        known = {option for p in ALL[name].params for option in (*p.opts, *p.secondary_opts)}
        assert {word.split("=")[0] for word in words if re.match(r"--?[a-z]", word)} <= known, line


@pytest.mark.parametrize("name", ALL)
def test_options_say_what_they_do(name: str) -> None:
    for parameter in ALL[name].params:
        assert parameter.help or parameter.name == "help", (name, parameter.name)
