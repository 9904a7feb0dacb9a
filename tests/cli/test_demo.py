"""The demonstration: its commands can be typed, and print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from logscan.cli.commands import app

ROOT = Path(__file__).parents[2]
runner = CliRunner()


@pytest.fixture(autouse=True)
def _screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(ROOT)


def test_it_needs_no_arguments(snapshot: Any) -> None:
    result = runner.invoke(app, ["demo"])
    assert result.exit_code == 0
    assert result.output == snapshot


def test_its_commands_print_what_it_shows() -> None:
    shown = runner.invoke(app, ["demo"]).stdout
    commands = re.findall(r"^\$ logscan (.*)$", shown, re.M)
    assert [command.split()[0] for command in commands] == ["triage", "triage", "triage", "diff"]
    for command in commands:
        assert runner.invoke(app, shlex.split(command)).stdout in shown


def test_each_scene_is_what_it_says() -> None:
    shown = runner.invoke(app, ["demo"]).stdout
    verdicts = re.findall(r"^(KEPT|DOWNGRADED|WORSE) · ", shown, re.M)
    assert verdicts == ["KEPT", "DOWNGRADED", "DOWNGRADED", "WORSE"]
    assert "· warned" in shown and "· silent" in shown


def test_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = runner.invoke(app, ["demo"]).stdout
    (command,) = re.findall(r"^\$ logscan (diff .*)$", shown, re.M)
    assert runner.invoke(app, shlex.split(command)).exit_code == 1
