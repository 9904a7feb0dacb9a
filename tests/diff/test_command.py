"""The command: inputs of every sort, exit codes, and what people read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from logscan.cli import commands

runner = CliRunner()


def diff(*arguments: str, **options: Any) -> Any:
    return runner.invoke(commands.app, ["diff", *arguments], **options)


@pytest.mark.parametrize(
    ("old", "new", "code"), [("native", "marlin", 1), ("marlin", "native", 0), ("native", "native", 0)]
)
def test_exit_1_if_it_got_worse(logs: dict[str, str], config: str, old: str, new: str, code: int) -> None:
    assert diff(logs[old], logs[new], "--ckpt", config, "--gpu", "RTX 5090").exit_code == code


def test_never(logs: dict[str, str], config: str) -> None:
    given = ("--ckpt", config, "--gpu", "RTX 5090", "--fail-on", "never")
    assert diff(logs["native"], logs["marlin"], *given).exit_code == 0


@pytest.mark.parametrize("width", ["80", "160"])
def test_what_people_read(logs: dict[str, str], config: str, width: str, snapshot: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", width)
    monkeypatch.chdir(Path(config).parent)
    result = diff("native.log", "marlin.log", "--ckpt", "config.json", "--gpu", "RTX 5090")
    assert result.output == snapshot
    assert max(map(len, result.output.splitlines())) <= int(width)


def test_two_releases(logs: dict[str, str], config: str, snapshot: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(Path(config).parent)
    assert diff("native.log", "newer.log", "--ckpt", "config.json", "--gpu", "RTX 5090").output == snapshot


def test_markdown(logs: dict[str, str], config: str, snapshot: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(Path(config).parent)
    result = diff("native.log", "marlin.log", "--ckpt", "config.json", "--gpu", "RTX 5090", "--format", "markdown")
    assert result.output == snapshot


def test_documents_of_triage_are_read_like_logs(logs: dict[str, str], config: str, tmp_path: Path) -> None:
    for name in ("native", "marlin"):
        report = ["triage", logs[name], "--ckpt", config, "--gpu", "RTX 5090", "--format", "json", "--fail-on", "never"]
        assert runner.invoke(commands.app, [*report, "-o", str(tmp_path / f"{name}.json")]).exit_code == 0
    from_logs = json.loads(
        diff(logs["native"], logs["marlin"], "--ckpt", config, "--gpu", "RTX 5090", "-f", "json").stdout
    )
    result = diff(str(tmp_path / "native.json"), str(tmp_path / "marlin.json"), "--format", "json")
    assert result.exit_code == 1
    from_documents = json.loads(result.stdout)
    assert from_documents["rows"] == from_logs["rows"]
    assert [c["name"] for c in from_documents["changes"]] == [c["name"] for c in from_logs["changes"]]


def test_two_boots_of_one_log(logs: dict[str, str], config: str, tmp_path: Path, boot_text: Any) -> None:
    both = tmp_path / "both.log"
    second = Path(logs["marlin"]).read_text().replace("pid=1)", "pid=9)").replace("pid=123)", "pid=999)")
    both.write_text(Path(logs["native"]).read_text() + second)
    given = ("--ckpt", config, "--gpu", "RTX 5090", "--format", "json")
    result = diff(str(both), str(both), "--boot-old", "1", "--boot-new", "2", *given)
    doc = json.loads(result.stdout)
    assert (doc["result"], doc["before"]["index"], doc["after"]["index"]) == ("worse", 1, 2)
    result = diff(str(both), str(both), "--boot-old", "3", *given)
    assert result.exit_code == 2 and "has no boot 3; it holds boots 1 to 2" in result.stderr


def test_each_side_may_have_its_own_machine(logs: dict[str, str], config: str) -> None:
    result = diff(
        logs["native"], logs["native"], "--ckpt", config, "--gpu", "RTX 5090", "--gpu-old", "B200", "--format", "json"
    )
    doc = json.loads(result.stdout)
    assert (doc["before"]["given"]["gpu"], doc["after"]["given"]["gpu"]) == ("B200", "RTX 5090")
    assert {"hardware.gpu", "hardware.sm"} <= {c["name"] for c in doc["changes"]}


def test_stdin_is_one_side(logs: dict[str, str], config: str) -> None:
    command = [sys.executable, "-m", "logscan", "diff", logs["native"], "-", "--ckpt", config, "--gpu", "RTX 5090"]
    result = subprocess.run(command, input=Path(logs["marlin"]).read_bytes(), capture_output=True)
    assert result.returncode == 1 and b"WORSE" in result.stdout
    result = diff("-", "-")
    assert result.exit_code == 2 and "only one of OLD and NEW can be stdin" in result.stderr


def test_nothing_recognised_is_3(logs: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "other.log").write_text("hello\n")
    result = diff(logs["native"], str(tmp_path / "other.log"))
    assert result.exit_code == 3 and "other.log: no boot was recognised" in result.stderr


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("cut.json", '{"schema": "logscan.triage/1", "logs": [', "damaged triage document"),
        (
            "odd.json",
            '{"schema": "logscan.triage/1", "given": {}, "logs": [{"name": "x", "boots": [{}]}]}',
            "not a whole",
        ),
    ],
)
def test_damaged_documents(logs: dict[str, str], tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    result = diff(logs["native"], str(tmp_path / name))
    assert result.exit_code == 2 and message in result.stderr and "Traceback" not in result.output


def test_a_missing_log(logs: dict[str, str], tmp_path: Path) -> None:
    result = diff(logs["native"], str(tmp_path / "missing.log"))
    assert result.exit_code == 2 and "missing.log" in result.stderr


def test_a_directory_beside_a_log(logs: dict[str, str], tmp_path: Path) -> None:
    result = diff(logs["native"], str(tmp_path))
    assert result.exit_code == 2 and "not one of each" in result.stderr


def test_doubts_are_said(logs: dict[str, str], config: str, tmp_path: Path) -> None:
    lines = Path(logs["native"]).read_text().splitlines(keepends=True)
    (tmp_path / "cut.log").write_text("".join(lines[:3]))
    result = diff(logs["native"], str(tmp_path / "cut.log"), "--ckpt-old", config)
    assert "is incomplete" in result.stderr and "only one of the two has a checkpoint" in result.stderr
    assert diff(logs["native"], str(tmp_path / "cut.log"), "--ckpt-old", config, "-q").stderr == ""


def test_hostile_text_is_harmless(logs: dict[str, str], tmp_path: Path) -> None:
    text = Path(logs["native"]).read_text().replace("'org/model'", "'\x1b[2J[red]`|@me'")
    (tmp_path / "hostile.log").write_text(text)
    for format in ("table", "markdown", "json"):
        output = diff(logs["native"], str(tmp_path / "hostile.log"), "--format", format).stdout
        assert "\x1b" not in output
