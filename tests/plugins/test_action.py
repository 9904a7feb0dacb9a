"""The GitHub Action: what it declares, and its script, run as a runner would."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
FIXTURE = ROOT / "fixtures" / "vllm-0.24.0-a100-fp8-dynamic"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = ACTION["runs"]["steps"]


def test_every_input_reaches_the_script() -> None:
    passed = {name: value for step in STEPS for name, value in step.get("env", {}).items()}
    named = {re.fullmatch(r"\$\{\{ inputs\.([\w-]+) \}\}", value)[1] for value in passed.values()}  # type: ignore[index]
    assert named == set(ACTION["inputs"]) - {"python"}
    script = (ROOT / "plugins" / "action.sh").read_text()
    assert {name for name in passed if name not in script} == set()


def test_no_input_is_text_of_a_script() -> None:
    """`${{ … }}` within `run` is how a file's name becomes a command."""
    assert not [step for step in STEPS if "${{" in step.get("run", "")]


def test_each_step_names_its_shell_or_an_action() -> None:
    for step in STEPS:
        assert ("run" in step) == ("shell" in step) and ("run" in step) != ("uses" in step)


def test_each_input_says_what_it_is() -> None:
    for entry in (*ACTION["inputs"].values(), *ACTION["outputs"].values()):
        assert entry["description"].endswith(".")


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[int, str, dict[str, str], str]]:
    """`run(LOG=…, GPU=…)`: exit code, annotations, outputs, and the job's summary."""
    bin = tmp_path / "bin"
    bin.mkdir()
    for name, command in (("logscan", f"{sys.executable} -m logscan"), ("python", sys.executable)):
        (bin / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (bin / name).chmod(0o755)

    def call(**inputs: str) -> tuple[int, str, dict[str, str], str]:
        summary, output = tmp_path / "summary", tmp_path / "output"
        environment = {
            "PATH": f"{bin}:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "HOME": str(tmp_path),
            "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"],
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(output),
            **{f"INPUT_{name}": value for name, value in inputs.items()},
        }
        command = ["bash", str(ROOT / "plugins" / "action.sh")]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
        lines = output.read_text().splitlines() if output.exists() else []
        outputs = dict(line.split("=", 1) for line in lines)
        return done.returncode, done.stdout, outputs, summary.read_text() if summary.exists() else ""

    return call


GIVEN = {"LOG": str(FIXTURE / "boot.log"), "CKPT": str(FIXTURE / "config.json")}


def test_a_downgrade_fails_and_is_annotated(run: Any, tmp_path: Path) -> None:
    code, shown, outputs, summary = run(**GIVEN, GPU="A100", JUNIT="report.xml")
    assert code == 1
    assert shown.startswith("::error file=") and "title=LS101 linear-weight-only (high)::" in shown
    assert outputs == {"verdict": "downgraded", "worst": "high", "report": "logscan.json"}
    assert summary.startswith("### logscan: **downgraded**")
    assert json.loads((tmp_path / "logscan.json").read_text())["given"]["gpu"] == "A100"
    assert 'failures="1"' in (tmp_path / "report.xml").read_text()


def test_what_is_fine_passes(run: Any) -> None:
    code, _, outputs, _ = run(**GIVEN, GPU="A100", FAIL_ON="critical")
    assert (code, outputs["verdict"]) == (0, "downgraded")


def test_requirements_are_lines(run: Any) -> None:
    facts = "attention.backend~=FLASH\n\nlinear.kernel~=Cut lass|x\n"
    code, shown, _, _ = run(**GIVEN, GPU="A100", FAIL_ON="critical", REQUIRE=facts)
    assert code == 1 and "LS801" in shown and "linear.kernel~=Cut lass|x is required" in shown


def test_strict(run: Any) -> None:
    assert run(LOG=GIVEN["LOG"], STRICT="true")[0] == 3
    assert run(LOG=GIVEN["LOG"], STRICT="false")[0] == 0


def test_logs_are_lines_and_globs_and_hold_anything(run: Any, tmp_path: Path) -> None:
    for name in ("a b.log", "a$(touch owned).log"):
        (tmp_path / name).write_bytes((FIXTURE / "boot.log").read_bytes())
    code, _, _, _ = run(LOG="a*.log\n", GPU="A100")
    doc = json.loads((tmp_path / "logscan.json").read_text())
    assert [log["name"] for log in doc["logs"]] == ["a b.log", "a$(touch owned).log"]
    assert code == 0 and not (tmp_path / "owned").exists()


@pytest.mark.parametrize("log", ["", "\n", "missing.log"])
def test_without_a_log(run: Any, log: str) -> None:
    assert run(LOG=log)[0] == 2


def test_the_hook_s_command_exists() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "entry", "language"} <= set(hook)
    import typer

    from logscan.cli import commands

    program, *words = hook["entry"].split()
    command: Any = typer.main.get_command(commands.app)
    for word in words:
        command = command.get_command(None, word)
    assert program == "logscan" and command is not None
