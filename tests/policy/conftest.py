"""One boot as a document, and a run of the command in a folder of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

FIXTURE = Path(__file__).parents[2] / "fixtures" / "vllm-0.24.0-a100-fp8-dynamic"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with `boot.log` and `config.json` of a boot that was downgraded (LS101, high)."""
    for name in ("boot.log", "config.json"):
        shutil.copy(FIXTURE / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(here: Path) -> Callable[..., Any]:
    """`run("--require", …)`: the exit code, the document, and what stands on stderr."""
    from logscan.cli import commands

    def triage(*arguments: str) -> tuple[int, dict[str, Any], str]:
        command = ["triage", "boot.log", "--ckpt", "config.json", "--gpu", "A100", "--format", "json", *arguments]
        result = CliRunner().invoke(commands.app, command)
        assert "Traceback" not in result.output
        return result.exit_code, json.loads(result.stdout) if result.stdout else {}, result.stderr

    return triage


@pytest.fixture
def boot() -> dict[str, Any]:
    from logscan import desk

    doc = desk.triage(FIXTURE / "boot.log", ckpt=str(FIXTURE / "config.json"), gpu="A100")
    found: dict[str, Any] = doc["logs"][0]["boots"][0]
    return found


def codes(doc: dict[str, Any]) -> dict[str, str | None]:
    """code → why it is waived, of the document's only boot."""
    (found,) = doc["logs"][0]["boots"]
    return {f["code"]: f["waived"] for f in found["findings"]}


@pytest.fixture
def codes_of() -> Callable[[dict[str, Any]], dict[str, str | None]]:
    return codes
