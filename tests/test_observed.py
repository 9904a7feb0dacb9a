"""What a boot says about its machine, and what happens when it says something else than the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from logscan.observed import capability

Judged = Callable[..., dict[str, Any]]
CONFIG = (
    "WARNING",
    "fused_moe.py",
    "Using default MoE config. Performance might be sub-optimal! Config file not found at "
    "/x/configs/E=8,N=14336,device_name=NVIDIA_H100_80GB_HBM3,dtype=fp8_w8a8.json",
)


@pytest.mark.parametrize(
    ("text", "sm"), [("sm89", 89), ("sm_120", 120), ("8.6", 86), ("12.1", 121), ("90a", 90), ("x", None)]
)
def test_capability(text: str, sm: int | None) -> None:
    assert capability(text) == sm


def test_a_config_path_names_the_card(judged: Judged, boot_text: Any) -> None:
    hardware = judged(boot_text("0.24.0", [CONFIG]))["hardware"]
    assert (hardware["gpu"], hardware["sm"]) == ("NVIDIA_H100_80GB_HBM3", "9.0")
    assert (hardware["authority"]["gpu"], hardware["authority"]["sm"]) == ("logged", "derived")


def test_what_was_given_wins_and_the_conflict_is_told(judged: Judged, boot_text: Any) -> None:
    boot = judged(boot_text("0.24.0", [CONFIG]), gpu="A100")
    assert boot["hardware"]["gpu"] == "A100"
    assert boot["hardware"]["sm"] == "8.0"
    assert "LS704" in [f["code"] for f in boot["findings"]]
    boot = judged(boot_text("0.24.0", [CONFIG]), gpu="H200")
    assert "LS704" not in [f["code"] for f in boot["findings"]]


@pytest.mark.parametrize(
    ("version", "platform", "cuda"),
    [
        ("0.24.0+cu129", "cuda", "12.9"),
        ("0.24.0+cpu", "cpu", None),
        ("0.24.0", None, None),
        ("0.24.0+rocm700", "rocm", None),
    ],
)
def test_the_suffix_of_the_version(
    judged: Judged, boot_text: Any, version: str, platform: str | None, cuda: str | None
) -> None:
    hardware = judged(boot_text("0.24.0").replace("(v0.24.0)", f"(v{version})"))["hardware"]
    assert (hardware["platform"], hardware["cuda"]) == (platform, cuda)


def test_the_device_of_the_engine_line(judged: Judged, boot_text: Any) -> None:
    text = boot_text("0.24.0").replace("device_config=cuda", "device_config=cpu")
    assert judged(text)["hardware"]["platform"] == "cpu"
    assert judged(boot_text("0.24.0"))["hardware"]["platform"] is None  # ROCm prints `cuda` too
