"""Labelled configs and broken files where they lie beside the checkout."""

from __future__ import annotations

import json

import pytest
from beside import SHARED, needs

from logscan.checkpoint import CheckpointError, read_promise

CHECKPOINTS = SHARED / "checkpoints"
pytestmark = needs("checkpoints")


def entries(name: str) -> dict[str, str]:
    path = CHECKPOINTS / name
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}


@pytest.mark.parametrize(("name", "label"), entries("labels.json").items())
def test_label(name: str, label: str) -> None:
    assert read_promise(CHECKPOINTS / "examples" / name).label == label


@pytest.mark.parametrize(("name", "answer"), entries("bad-expected.json").items())
def test_broken_file(name: str, answer: str) -> None:
    path = CHECKPOINTS / "bad" / name
    if answer.startswith("OK "):
        promise = read_promise(path)
        assert f"OK {promise.label} {[note.code for note in promise.notes]}" == answer
    else:
        with pytest.raises(CheckpointError) as refusal:
            read_promise(path)
        assert refusal.value.code == answer.split(":")[0]


@pytest.mark.parametrize("folder", ["oracle/checkpoints", "corpus", "cpu-boots"])
def test_configs_beside_logs_are_read(folder: str) -> None:
    pattern = "*.json" if folder.startswith("oracle") else "*/config.json"
    paths = sorted((SHARED / folder).glob(pattern))
    assert paths
    for path in paths:
        assert read_promise(path).label
