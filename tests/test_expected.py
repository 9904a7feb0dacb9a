"""Every fixture comes out as its `expect.json` says: what is named there, is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logscan.desk import triage

FIXTURES = sorted(p for p in (Path(__file__).parents[1] / "fixtures").iterdir() if p.is_dir())


@pytest.mark.parametrize("folder", FIXTURES, ids=lambda folder: folder.name)
def test_a_fixture_comes_out_as_expected(folder: Path) -> None:
    expect = json.loads((folder / "expect.json").read_text())
    ckpt = folder / "config.json"
    doc = triage(folder / "boot.log", ckpt=str(ckpt) if ckpt.exists() else None, gpu=expect["gpu"])
    boots = doc["logs"][0]["boots"]
    assert len(boots) == len(expect["boots"])
    for boot, wanted in zip(boots, expect["boots"], strict=True):
        assert (boot["status"], boot["verdict"]) == (wanted["status"], wanted["verdict"])
        assert [finding["code"] for finding in boot["findings"]] == wanted["findings"]
        if "severity" in wanted:
            assert boot["findings"][0]["severity"] == wanted["severity"]
        rows = {row["path"]: row for row in boot["paths"] if row["component"] == "target"}
        for path, keys in wanted["paths"].items():
            row = rows[path]
            row["lines"] = [item["line"] for item in row["evidence"] if item["role"] == "supports"]
            assert {key: row[key] for key in keys} == keys, path


def test_each_fixture_says_where_it_comes_from() -> None:
    assert len(FIXTURES) >= 4
    for folder in FIXTURES:
        assert (folder / "SOURCE.md").is_file() and (folder / "boot.log").is_file(), folder.name
