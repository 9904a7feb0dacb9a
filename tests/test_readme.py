"""The README keeps its word: its commands exist, and its example is what they print."""

import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from logscan.cli.commands import app

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
EXAMPLE = re.compile(r"(?<=<!-- example: begin -->\n```text\n).*?(?=```\n<!-- example: end -->)", re.DOTALL)


def commands():
    blocks = re.findall(r"```sh\n(.*?)```", README.read_text(), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


def test_the_example_is_what_the_command_prints(monkeypatch, request):
    """`pytest --snapshot-update` writes the example anew."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "80")
    (line,) = [c for c in commands() if "logscan triage fixtures/" in c]
    result = CliRunner().invoke(app, shlex.split(line.split("/bin/logscan ")[1]))
    assert result.exit_code == 0, "a found downgrade must not look like a command that failed"
    text = README.read_text()
    if request.config.option.update_snapshots:
        README.write_text(EXAMPLE.sub(lambda _: result.output, text))
        return
    assert EXAMPLE.search(text)[0] == result.output


def test_there_is_one_command_for_the_tests():
    found = [line for line in README.read_text().splitlines() if "/pytest" in line]
    assert found == ["python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && .venv/bin/pytest"]


@pytest.mark.parametrize("line", [c for c in commands() if re.match(r"(kubectl .*\| )?logscan ", c)])
def test_commands_and_options_exist(line):
    import typer

    words = shlex.split(line, comments=True)
    words = words[words.index("logscan") + 1 :]
    command = typer.main.get_command(app)
    while hasattr(command, "get_command"):
        name = words.pop(0)
        command = command.get_command(None, name)
        assert command is not None, name
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    assert {word for word in words if word.startswith("-") and word != "-"} <= known
