"""The main job, end to end: one line, several orders; the same line, several machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

FP4 = (
    "Your GPU does not have native support for FP4 computation but FP4 quantization is being used. Weight-only FP4 "
    "compression will be used leveraging the Marlin kernel. This may degrade performance for compute-heavy workloads."
)
FP8 = FP4.replace("FP4", "FP8")
MARLIN_FP4 = [
    ("INFO", "__init__.py", "Using MarlinNvFp4LinearKernel for NVFP4 GEMM"),
    ("WARNING", "marlin.py", FP4),
]


def nvfp4(activations: bool) -> dict[str, Any]:
    weights = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True}
    group: dict[str, Any] = {"targets": ["Linear"], "weights": weights, "input_activations": None}
    if activations:
        group["input_activations"] = {**weights, "dynamic": "local"}
    return _config(
        {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": {"group_0": group}}
    )


def fp8_dynamic() -> dict[str, Any]:
    group = {
        "targets": ["Linear"],
        "weights": {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True, "dynamic": False},
        "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "symmetric": True, "dynamic": True},
    }
    return _config(
        {"quant_method": "compressed-tensors", "format": "float-quantized", "config_groups": {"group_0": group}}
    )


def native_fp8() -> dict[str, Any]:
    return _config({"quant_method": "fp8", "activation_scheme": "dynamic"})


def _config(quantization: dict[str, Any]) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 32,
        "torch_dtype": "bfloat16",
        "quantization_config": {"ignore": ["lm_head"], **quantization},
    }


Judged = Callable[..., dict[str, Any]]


class TestOneWarningThreeOrders:
    def test_w4a4_was_promised(self, judged: Judged, boot_text: Any, row_of: Any) -> None:
        text = boot_text("0.26.0", MARLIN_FP4, quantization="compressed-tensors")
        row = row_of(judged(text, nvfp4(True), gpu="H100"))
        assert (row["verdict"], row["kinds"], row["visibility"]) == ("downgraded", ["weight-only"], "warned")
        assert (row["promised"], row["ran"], row["cause"]) == ("W4A4-NVFP4 g16", "W4A16-NVFP4 g16", "hardware")
        assert [e["line"] for e in row["evidence"]] == [3, 4]

    def test_w4a16_was_promised(self, judged: Judged, boot_text: Any, row_of: Any) -> None:
        text = boot_text("0.26.0", MARLIN_FP4, quantization="compressed-tensors")
        boot = judged(text, nvfp4(False), gpu="H100")
        row = row_of(boot)
        assert (row["verdict"], row["kinds"], row["visibility"]) == ("kept", [], None)
        assert [f for f in boot["findings"] if f["path"] == "linear"] == []

    def test_marlin_was_asked_for(self, judged: Judged, boot_text: Any, row_of: Any) -> None:
        text = boot_text("0.26.0", MARLIN_FP4, quantization="compressed-tensors", args={"linear_backend": "marlin"})
        boot = judged(text, nvfp4(True), gpu="RTX 5090")
        row = row_of(boot)
        assert (row["verdict"], row["cause"]) == ("downgraded", "request")
        assert [(f["code"], f["severity"]) for f in boot["findings"] if f["path"] == "linear"] == [("LS101", "info")]


class TestALineThatIsNotTrue:
    LINE = ("INFO", "__init__.py", "Selected CutlassFP8ScaledMMLinearKernel for Fp8LinearMethod")

    def test_marlin_ran_in_0_18(self, judged: Judged, boot_text: Any, row_of: Any) -> None:
        text = boot_text("0.18.0", [self.LINE, ("WARNING", "marlin_utils_fp8.py", FP8)], quantization="fp8")
        row = row_of(judged(text, native_fp8(), gpu="A100"))
        assert (row["verdict"], row["kinds"], row["visibility"]) == ("downgraded", ["weight-only"], "warned")
        (contradicting,) = [e for e in row["evidence"] if e["role"] == "contradicts"]
        assert contradicting["line"] == 3
        assert contradicting["distrusted_by"]

    def test_without_the_warning_it_is_not_kept_either(self, judged: Judged, boot_text: Any, row_of: Any) -> None:
        row = row_of(judged(boot_text("0.18.0", [self.LINE], quantization="fp8"), native_fp8(), gpu="A100"))
        assert row["verdict"] in ("downgraded", "unproven")

    @pytest.mark.parametrize("release", ["0.29.0", "0.30.0"])
    def test_a_crash_to_come_is_never_kept(self, judged: Judged, boot_text: Any, row_of: Any, release: str) -> None:
        row = row_of(judged(boot_text(release, [self.LINE], quantization="fp8"), native_fp8(), gpu="A100"))
        assert row["verdict"] == "unproven"

    def test_it_is_true_on_hopper(self, judged: Judged, boot_text: Any, row_of: Any) -> None:
        row = row_of(
            judged(boot_text("0.18.0", [self.LINE], quantization="fp8"), native_fp8(), gpu="H100", cuda="12.8")
        )
        assert (row["verdict"], row["ran"]) == ("kept", "W8A8-FP8 per-tensor/per-token-dynamic")

    def test_without_a_gpu_it_cannot_be_told(self, judged: Judged, boot_text: Any, row_of: Any) -> None:
        row = row_of(judged(boot_text("0.18.0", [self.LINE], quantization="fp8"), native_fp8()))
        assert row["verdict"] == "unproven"
        assert "no-gpu" in row["reasons"]


class TestNothingIsPrinted:
    def test_humming_is_derived(self, judged: Judged, boot_text: Any, row_of: Any) -> None:
        """Marlin would have printed its warning; Humming prints nothing."""
        row = row_of(judged(boot_text("0.30.0", quantization="compressed-tensors"), fp8_dynamic(), gpu="A100"))
        assert (row["verdict"], row["kinds"]) == ("downgraded", ["weight-only"])
        assert (row["visibility"], row["authority"]) == ("silent", "derived")
        assert row["kernels"] == [{"name": "HummingFP8ScaledMMLinearKernel", "authority": "derived"}]

    def test_without_a_gpu_it_is_unproven(self, judged: Judged, boot_text: Any, row_of: Any) -> None:
        row = row_of(judged(boot_text("0.30.0", quantization="compressed-tensors"), fp8_dynamic()))
        assert (row["verdict"], row["reasons"]) == ("unproven", ["no-gpu"])

    def test_absence_needs_a_level(self, judged: Judged, boot_text: Any, row_of: Any) -> None:
        """A log at WARNING shows no INFO line: the kernel cannot be told, the verdict can (both are weight-only)."""
        lines = boot_text("0.30.0", quantization="compressed-tensors").split("\n")
        text = "\n".join(line for line in lines if " INFO " not in line or "engine (v" in line)
        row = row_of(judged(text, fp8_dynamic(), gpu="A100"))
        assert row["verdict"] == "downgraded"


def test_kept_needs_a_boot_that_got_ready(judged: Judged, boot_text: Any, row_of: Any) -> None:
    line = ("INFO", "__init__.py", "Selected CutlassFP8ScaledMMLinearKernel for CompressedTensorsW8A8Fp8")
    for end, verdict, reasons in (
        ("ready", "kept", []),
        ("cut", "unproven", ["tail-missing"]),
        ("failed", "unproven", ["boot-failed"]),
    ):
        text = boot_text("0.24.0", [line], quantization="compressed-tensors", end=end)
        row = row_of(judged(text, fp8_dynamic(), gpu="H100", cuda="12.8"))
        assert (row["verdict"], row["reasons"]) == (verdict, reasons)


def test_a_prompt_cannot_forge_evidence(judged: Judged, boot_text: Any, row_of: Any) -> None:
    forged = "Received request: prompt: 'Selected CutlassFP8ScaledMMLinearKernel for CompressedTensorsW8A8Fp8'"
    text = boot_text("0.30.0", [("INFO", "logger.py", forged)], quantization="compressed-tensors")
    row = row_of(judged(text, fp8_dynamic(), gpu="A100"))
    assert row["verdict"] == "downgraded"
    assert row["evidence"] == []
