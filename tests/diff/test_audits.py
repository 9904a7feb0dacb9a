"""Two audits: the same verdict on what got worse, over the tables that `audit -o` writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from logscan.cli import commands
from logscan.diff import audit_result

polars = pytest.importorskip("polars")
runner = CliRunner()


@pytest.fixture
def audits(logs: dict[str, str], config: str, tmp_path: Path) -> Path:
    """`old/` (native), `same/` (native again) and `new/` (marlin, and one log more), as stores."""
    for name, chosen in (("old", ["native"]), ("same", ["native"]), ("new", ["marlin", "failed"])):
        folder = tmp_path / f"logs-{name}"
        folder.mkdir()
        for n, log in enumerate(chosen):
            (folder / f"boot-{n}.log").write_text(Path(logs[log]).read_text())
        (folder / "config.json").write_text(Path(config).read_text())
        inputs = folder / "inputs.csv"
        inputs.write_text(f"glob,ckpt,gpu\n{folder}/*.log,{config},RTX 5090\n")
        command = ["audit", str(folder), "--inputs", str(inputs), "-o", str(tmp_path / name), "-j", "1"]
        result = runner.invoke(commands.app, [*command, "--fail-on", "never"])
        assert result.exit_code == 0, result.output
    return tmp_path


def diff(*arguments: str) -> Any:
    return runner.invoke(commands.app, ["diff", *arguments])


def test_the_same(audits: Path) -> None:
    result = diff(str(audits / "old"), str(audits / "same"), "--format", "json")
    doc = json.loads(result.stdout)
    assert (result.exit_code, doc["of"], doc["result"], doc["boots"]) == (0, "audit", "same", [])


def test_worse(audits: Path, schema_of_diff: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    result = diff(str(audits / "old"), str(audits / "new"), "--format", "json")
    doc = json.loads(result.stdout)
    schema_of_diff.validate(doc)
    assert (result.exit_code, doc["result"]) == (1, "worse")
    assert [change["change"] for change in doc["boots"]] == ["changed", "added"]
    assert diff(str(audits / "new"), str(audits / "old")).exit_code == 0
    monkeypatch.setenv("COLUMNS", "80")
    text = diff(str(audits / "old"), str(audits / "new")).stdout
    assert text.startswith("WORSE · 2 boots changed\n")
    assert "verdict   kept → downgraded" in text and "+ LS101" in text
    assert "kernels FlashInferCutlassNvFp4LinearKernel → MarlinNvFp4LinearKernel" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert "| `boot-0.log` |" in diff(str(audits / "old"), str(audits / "new"), "-f", "markdown").stdout


def test_a_directory_that_is_no_audit(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    result = diff(str(tmp_path / "a"), str(tmp_path / "a"))
    assert result.exit_code == 2 and "Traceback" not in result.output


def change(before: Any, after: Any, added: str = "", removed: str = "") -> dict[str, Any]:
    findings = {w: [{"severity": s}] if s else [] for w, s in (("added", added), ("removed", removed))}
    return {"boots": [{"before": before, "after": after, "findings": findings}]}


@pytest.mark.parametrize(
    ("doc", "result"),
    [
        ({"boots": []}, "same"),
        (change({"verdict": "kept"}, {"verdict": "unproven"}), "worse"),
        (change({"verdict": "downgraded"}, {"verdict": "kept"}), "better"),
        (change({"status": "ready"}, {"status": "failed"}), "worse"),
        (change({"outcome": "boot"}, {"outcome": "error"}), "worse"),
        (change({"outcome": "boot"}, None), "changed"),
        (change(None, {"verdict": "kept"}), "changed"),
        (change({}, {}, added="high"), "worse"),
        (change({}, {}, added="low"), "changed"),
        (change({}, {}, removed="critical"), "better"),
        (change({"model": "a"}, {"model": "b"}), "changed"),
    ],
)
def test_results(doc: dict[str, Any], result: str) -> None:
    assert audit_result(doc) == result
