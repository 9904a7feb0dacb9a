"""Real boots, where they lie beside the checkout: one checkpoint under two releases, and with two backends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from beside import SHARED, needs

from logscan import desk
from logscan.diff import Side, compare

pytestmark = [needs("corpus"), needs("cpu-boots")]


def side(folder: Path, gpu: str) -> Side:
    doc = desk.triage(folder / "boot.log", ckpt=str(folder / "config.json"), gpu=gpu)
    return Side(folder.name, doc["logs"][0]["boots"][-1], doc["given"])


def both(doc: dict[str, Any], section: str | None = None) -> dict[str, tuple[Any, Any]]:
    """Changes that both sides show, by name."""
    return {
        c["name"]: (c["before"][0]["value"], c["after"][0]["value"])
        for c in doc["changes"]
        if c["before"] and c["after"] and section in (None, c["section"])
    }


def test_one_release_with_another_backend() -> None:
    corpus = SHARED / "corpus"
    native, forced = (next(corpus.glob(f"{number}-*")) for number in ("076", "075"))
    doc = compare(side(native, "RTX 5090"), side(forced, "RTX 5090"))
    assert doc["result"] == "worse"
    assert {c["name"] for c in doc["changes"]} == {
        "request.linear_backend",
        "config.kernel_config.linear_backend",
        "linear.kernel",
        "linear.weight_only",
    }
    assert both(doc) == {
        "config.kernel_config.linear_backend": ("auto", "marlin"),
        "linear.kernel": ("FlashInferCutlassNvFp4LinearKernel", "MarlinNvFp4LinearKernel"),
    }
    assert {row["path"]: row["change"] for row in doc["rows"]} == {
        "linear": "worse",
        "attention": "same",
        "kv_cache": "same",
    }


@pytest.mark.parametrize("checkpoint", ["ct-fp8-dynamic", "awq-w4"])
def test_one_checkpoint_under_two_releases(checkpoint: str) -> None:
    boots = SHARED / "cpu-boots"
    doc = compare(side(boots / f"0.28.0-{checkpoint}", "cpu"), side(boots / f"0.32.0-{checkpoint}", "cpu"))
    assert doc["result"] == "changed"
    assert both(doc) == {
        "engine.version": ("0.28.0", "0.32.0"),
        "config.kernel_config.enable_jit_warmup": ("True", "False"),
    }
    assert {row["change"] for row in doc["rows"]} == {"same"}
