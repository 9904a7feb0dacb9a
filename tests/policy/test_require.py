"""Requirements: met, not met, missing, untrue, forbidden."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from logscan.model import InputError
from logscan.policy.require import Requirement, check, parse, readings_of


def asked(text: str, boot: dict[str, Any], forbidden: bool = False) -> dict[str, Any] | None:
    return check(parse(text, "--require", forbidden), boot)


@pytest.mark.parametrize(
    "text",
    [
        "attention.backend~=FLASH",
        "attention.backend ~= ^FLASH_ATTN$",
        "engine.version~=^0\\.24\\.",
        "boot.status~=ready",
        "boot.verdict~=downgraded",
        "linear.ran~=W8A16",
        "linear.verdict~=downgraded",
        "hardware.sm~=8.0",
        "promise.label~=FP8",
    ],
)
def test_what_holds(text: str, boot: dict[str, Any]) -> None:
    assert asked(text, boot) is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("attention.backend~=FLASHINFER$", "'FLASH_ATTN' (line 15)"),
        ("linear.kernel~=Cutlass", "no line shows linear.kernel"),
        ("attention.backnd~=FLASH", "did you mean attention.backend?"),
        ("linear.ran~=W8A8", "'W8A16-FP8 per-channel'"),
        ("hardware.cuda~=12", "no line shows hardware.cuda"),
        ("moe.verdict~=kept", "no line shows moe.verdict"),
    ],
)
def test_what_does_not(text: str, message: str, boot: dict[str, Any]) -> None:
    found = asked(text, boot)
    assert found is not None and (found["code"], found["severity"]) == ("LS801", "high")
    assert message in found["message"]


def test_the_line_is_shown(boot: dict[str, Any]) -> None:
    found = asked("attention.backend~=XFORMERS", boot)
    assert found is not None
    assert [e["line"] for e in found["evidence"]] == [15]


def test_every_value_must_match(boot: dict[str, Any]) -> None:
    fact = next(f for f in boot["facts"] if f["name"] == "attention.backend")
    boot["facts"].append({**fact, "value": "TRITON_ATTN", "line": 16})
    found = asked("attention.backend~=FLASH", boot)
    assert found is not None and "'TRITON_ATTN' (line 16)" in found["message"] and "FLASH_ATTN'" not in found["message"]
    boot["facts"][-1]["component"] = "drafter"
    assert asked("attention.backend~=FLASH", boot) is None


def test_a_line_that_is_not_true_does_not_satisfy(boot: dict[str, Any]) -> None:
    """vLLM 0.15 to 0.18 print the Cutlass line on Ampere while Marlin runs."""
    fact = next(f for f in boot["facts"] if f["name"] == "attention.backend")
    boot["facts"].append({**fact, "name": "linear.kernel", "value": "CutlassFP8ScaledMMLinearKernel", "line": 18})
    assert asked("linear.kernel~=Cutlass", boot) is None
    untrue = copy.deepcopy(boot)
    row = next(row for row in untrue["paths"] if row["path"] == "linear")
    row["evidence"].append({**row["evidence"][0], "line": 18, "role": "contradicts", "text": "Selected Cutlass…"})
    found = asked("linear.kernel~=Cutlass", untrue)
    assert found is not None and "known not to be true" in found["message"]
    assert readings_of("linear.kernel", untrue)[0] == []


def test_forbidden(boot: dict[str, Any]) -> None:
    found = asked("attention.backend~=FLASH", boot, forbidden=True)
    assert found is not None and found["code"] == "LS802"
    assert asked("attention.backend~=XFORMERS", boot, forbidden=True) is None
    assert asked("moe.backend~=.", boot, forbidden=True) is None


@pytest.mark.parametrize("text", ["", "linear.kernel", "linear.kernel=Marlin", "kernel~=Marlin", "linear.kernel~="])
def test_another_form_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="^here: .* is not FACT~=REGEX; write for example"):
        parse(text, "here")


def test_a_bad_expression_is_refused() -> None:
    with pytest.raises(InputError, match=r"^here: 'Cut\(' is not a regular expression"):
        parse("linear.kernel~=Cut(", "here")


def test_a_runaway_expression_is_stopped(boot: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logscan.policy.require._SECONDS", 0.05)
    boot["facts"].append({**boot["facts"][0], "name": "linear.kernel", "value": "a" * 4000 + "b"})
    with pytest.raises(InputError, match="takes too long"):
        check(Requirement("linear.kernel", r"^(a|aa|a.)+(?:x\1)+$", where="--require"), boot)


def test_fingerprints_follow_what_is_wrong(boot: dict[str, Any]) -> None:
    prints = {found["fingerprint"] for text in ("linear.kernel~=A", "linear.kernel~=B") if (found := asked(text, boot))}
    assert len(prints) == 2
    assert asked("linear.kernel~=A", boot) == asked("linear.kernel~=A", boot)
