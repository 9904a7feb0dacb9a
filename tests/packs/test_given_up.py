"""A user's pattern that takes too long: it is given up for the log, named, and nothing is kept without it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import ownpack
import pytest

from logscan import recognise
from logscan.desk import triage

WEIGHTS = """[[pattern]]
id = "{pack}.linear.evil"
literal = "OWN weights"
regex = '^OWN weights only (a|aa)+$'
emits = "linear.weight_only"
[[pattern.site]]
means = "warned"
"""
EVIL_LINE, SAID = (
    ("INFO", "core.py", "OWN weights only " + "a" * 60 + "!"),
    ("WARNING", "core.py", "OWN weights only aa"),
)
KEPT = ("INFO", "__init__.py", "Selected CutlassFP8ScaledMMLinearKernel for CompressedTensorsW8A8Fp8")
CHANNEL = {"num_bits": 8, "type": "float", "strategy": "channel", "dynamic": False, "symmetric": True}
TOKEN = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True, "symmetric": True}
W8A8 = {
    "quant_method": "compressed-tensors",
    "format": "float-quantized",
    "ignore": ["lm_head"],
    "config_groups": {"group_0": {"targets": ["Linear"], "weights": CHANNEL, "input_activations": TOKEN}},
}


@pytest.mark.parametrize("pack", ["mine", "vllm"])
def test_what_was_given_up_keeps_nothing_and_is_forgotten_with_the_log(
    pack: str, tmp_path: Path, boot_text: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    """A pack of the user's has a limit whatever it is called, and one hostile log silences none of the others."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "pack.toml").write_text(f'id = "{pack}"\nengine = "vllm"\nversion = "1"\n')
    (own / "evil.toml").write_text(WEIGHTS.format(pack=pack))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "quantization_config": W8A8}))
    monkeypatch.setattr(recognise, "USER_TIMEOUT", 0.1)
    for name, lines in (("plain", [KEPT]), ("evil", [KEPT, EVIL_LINE]), ("said", [KEPT, SAID])):
        (tmp_path / f"{name}.log").write_text(boot_text("0.24.0", lines, quantization="compressed-tensors"))

    def verdicts(*names: str) -> list[str]:
        logs = [tmp_path / f"{name}.log" for name in names]
        document = triage(*logs, ckpt=str(tmp_path / "config.json"), gpu="H100", cuda="12.8", packs=[own])
        rows = [row for log in document["logs"] for row in log["boots"][0]["paths"] if row["path"] == "linear"]
        return [row["verdict"] for row in rows]

    assert verdicts("plain") == ["kept"]
    (said,) = verdicts("said")
    assert said != "kept"
    assert verdicts("evil", "said", "plain") == ["unproven", said, "kept"]


def test_many_lines_that_take_a_little_are_given_up_too(
    tmp_path: Path, boot_text: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "pack.toml").write_text(ownpack.PACK)
    (tmp_path / "evil.toml").write_text(ownpack.ENTRY.format(regex="'^(a|aa)+$'"))
    log = tmp_path / "boot.log"
    log.write_text(boot_text("0.33.0", [("INFO", "core.py", "a" * 24 + "! EVIL")] * 3000))
    monkeypatch.setattr(recognise, "USER_TOTAL", 0.2)
    began = time.process_time()
    document = triage(log, packs=[tmp_path])
    assert time.process_time() - began < 2
    assert document["logs"][0]["notes"] == ["mine.linear.evil: this pattern was given up, it takes too long"]


def test_a_pattern_that_takes_too_long_once_is_given_up(
    tmp_path: Path, boot_text: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "pack.toml").write_text(ownpack.PACK)
    (tmp_path / "evil.toml").write_text(ownpack.ENTRY.format(regex="'^(a|aa)+$'"))
    log = tmp_path / "boot.log"
    log.write_text(boot_text("0.33.0", [("INFO", "core.py", "a" * 60 + "! EVIL")] * 100))
    monkeypatch.setattr(recognise, "USER_TIMEOUT", 0.1)
    began = time.process_time()
    document = triage(log, packs=[tmp_path])
    assert time.process_time() - began < 2
    (note,) = document["logs"][0]["notes"]
    assert note == "mine.linear.evil: this pattern was given up, it takes too long"


def test_a_pack_without_releases_takes_none_away(tmp_path: Path, boot_text: Callable[..., str]):
    (tmp_path / "pack.toml").write_text(ownpack.PACK)
    (tmp_path / "own.toml").write_text(ownpack.ENTRY.format(regex="'^EVIL$'"))
    log = tmp_path / "boot.log"
    log.write_text(boot_text("0.33.0"))
    (boot,) = triage(log, packs=[tmp_path])["logs"][0]["boots"]
    assert boot["engine"]["releases"] == ["0.33.0"] and "LS901" not in [f["code"] for f in boot["findings"]]
