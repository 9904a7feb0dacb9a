"""Recognition over the catalogued lines of both engines, and over vLLM's: every one owned, none by the wrong engine."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from logscan.model import Boot

# What a line's signal must mean, in the words of the packs.
MEANINGS = {
    "hard-failure": {"refused", "failed", "warned"},
    "slower-path": {"selected", "executed", "warned", "available"},
    "weaker-numerics": {"selected", "warned"},
    "feature-disabled": {"warned"},
    "accuracy-risk": {"selected", "warned", "requested"},
    "info": {"available", "selected", "executed", "requested", "warned", "ready"},
}


def _rows(shared: Path, engine: str) -> list[dict[str, str]]:
    text = (shared / "lines" / f"{engine}.jsonl").read_bytes()
    return [row for row in map(json.loads, filter(None, text.split(b"\n"))) if row.get("example")]


@pytest.mark.parametrize("engine", ["trtllm", "sglang"])
def test_nearly_every_catalogued_line_is_owned_with_its_meaning(
    engine: str, shared: Path, read: Callable[[str], tuple[Boot, ...]]
) -> None:
    rows = _rows(shared, engine)
    text = "".join(row["example"].replace("\n", " ") + "\n" for row in rows)
    boots = read(text)
    assert {b.engine.name for b in boots} == {engine}
    owned: dict[int, set[str]] = {}
    for boot in boots:
        for fact in boot.facts:
            owned.setdefault(fact.line, set()).add(fact.means)
    wanted = [(n, row) for n, row in enumerate(rows, 1) if row["downgrade_signal"] != "none"]
    missed = [row["id"] for n, row in wanted if not owned.get(n, set()) & MEANINGS[row["downgrade_signal"]]]
    assert len(missed) <= 0.05 * len(wanted), missed


@pytest.mark.parametrize("version", ["0.8.5", "0.11.0", "0.19.0", "0.30.0"])
def test_vllm_stays_vllm(version: str, shared: Path, read: Callable[[str], tuple[Boot, ...]]) -> None:
    """A log with every line that a vLLM release prints: nobody else's facts in it."""
    tool = [sys.executable, str(shared / "tools" / "render.py"), "vllm", version]
    boots = read(subprocess.run(tool, capture_output=True, check=True, text=True).stdout)
    assert {b.engine.name for b in boots} == {"vllm"}
    assert not [f.pattern for b in boots for f in b.facts if not f.pattern.startswith("vllm.")]


def test_real_logs_name_their_engine(shared: Path, read_file: Callable[[Path], tuple[Boot, ...]]) -> None:
    wrong = []
    for folder in sorted((shared / "corpus").iterdir()):
        labels = folder / "expect.json"
        if not labels.is_file() or folder.name.startswith("059"):  # 41,000 lines add time and no engine
            continue
        expect = json.loads(labels.read_bytes())
        names = {b.engine.name for b in read_file(folder / "boot.log")}
        if names != {expect["engine"]["name"]} and not (not names and 0 in (expect.get("boots_ok") or [])):
            wrong.append((folder.name, names))
    assert not wrong
