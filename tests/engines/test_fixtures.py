"""The boots that ship with the project, read up to their facts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from logscan.judge.fmha import fallback, lost_fp8, unfused
from logscan.model import Boot, Promise, Row

FIXTURES = Path(__file__).parents[2] / "fixtures"
ReadFile = Callable[[Path], tuple[Boot, ...]]


def _only(read_file: ReadFile, name: str) -> Boot:
    (boot,) = read_file(FIXTURES / name / "boot.log")
    return boot


def _values(boot: Boot, name: str) -> list[str]:
    return [f.value for f in boot.facts if f.name == name]


def test_unfused_under_reuse(read_file: ReadFile) -> None:
    boot = _only(read_file, "trtllm-1.2.0-gb300-unfused-reuse")
    assert (boot.engine.name, boot.engine.version, boot.status, boot.decided) == ("trtllm", "1.2.0", "ready", 42)
    found = fallback(boot)
    assert found is not None
    assert [f.line for f in found.facts] == [36]
    assert (found.reuse, found.cause, found.derived) == ("on", "version", False)
    row = unfused(Row("attention", "", "no-promise"), boot)
    assert (row.verdict, row.against, row.kinds, row.visibility) == ("downgraded", "default", ("unfused",), "warned")


def test_a_warning_of_the_build_that_is_none(read_file: ReadFile) -> None:
    boot = _only(read_file, "trtllm-0.20.0-build-fp8-context")
    assert (boot.engine.version, boot.status, boot.decided) == ("0.20.0", "ready", 16)
    assert _values(boot, "attention.context_fmha") == ["True"]
    assert _values(boot, "attention.fp8_context_fmha") == ["True", "False"]
    assert fallback(boot) is None
    assert lost_fp8(boot, Promise("none", "FP16")) == ()
    assert [f.line for f in lost_fp8(boot, Promise("modelopt", "W8A8-FP8", algo="FP8"))] == [12]


def test_sglang_serves_weight_only(read_file: ReadFile) -> None:
    boot = _only(read_file, "sglang-0.5.14-a100-fp8-marlin")
    assert (boot.engine.name, boot.engine.version, boot.engine.range) == ("sglang", None, ">=0.5.13,<=0.5.18")
    assert (boot.status, boot.model) == ("ready", "org/model-FP8-dynamic")
    assert [f.line for f in boot.facts if f.name == "linear.weight_only"] == [7, 8]
    assert _values(boot, "kv.dtype") == ["torch.bfloat16"] * 2
    assert _values(boot, "attention.backend") == ["flashinfer"]
    assert _values(boot, "config.quantization") == ["compressed-tensors"] * 2
