"""Every verdict rests on something: take that away, or turn it over, and the verdict must follow.

Each scenario is a boot whose verdict hangs on one line, one config value or one fact about the machine. The table says
what becomes of it when the line is deleted, when the line says the opposite, and when nobody says what the machine is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

Judged = Callable[..., dict[str, Any]]
Line = tuple[str, str, str]

FP8_WARNING = (
    "WARNING",
    "marlin_utils_fp8.py",
    "Your GPU does not have native support for FP8 computation but FP8 quantization is being used. Weight-only FP8 "
    "compression will be used leveraging the Marlin kernel. This may degrade performance for compute-heavy workloads.",
)
FP4_WARNING = ("WARNING", "marlin.py", FP8_WARNING[2].replace("FP8", "FP4"))


def selected(kernel: str, layer: str) -> Line:
    return ("INFO", "__init__.py", f"Selected {kernel} for {layer}")


def using(kernel: str, what: str) -> Line:
    return ("INFO", "__init__.py", f"Using {kernel} for {what}")


def config(quantization: dict[str, Any]) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_hidden_layers": 32,
        "torch_dtype": "bfloat16",
        "quantization_config": quantization,
    }


def compressed(
    bits: int, kind: str, weights: dict[str, Any], inputs: dict[str, Any] | None, form: str
) -> dict[str, Any]:
    base = {"num_bits": bits, "type": kind, "symmetric": True}
    group = {
        "targets": ["Linear"],
        "weights": {**base, **weights},
        "input_activations": {**base, **inputs} if inputs else None,
    }
    return config(
        {
            "quant_method": "compressed-tensors",
            "format": form,
            "ignore": ["lm_head"],
            "config_groups": {"group_0": group},
        }
    )


CT_FP8 = compressed(8, "float", {"strategy": "channel"}, {"strategy": "token", "dynamic": True}, "float-quantized")
CT_INT8 = compressed(8, "int", {"strategy": "channel"}, {"strategy": "token", "dynamic": True}, "int-quantized")
CT_W4A16 = compressed(4, "int", {"strategy": "group", "group_size": 128}, None, "pack-quantized")
NVFP4_ARGS = {"strategy": "tensor_group", "group_size": 16}
CT_NVFP4 = compressed(4, "float", NVFP4_ARGS, {**NVFP4_ARGS, "dynamic": "local"}, "nvfp4-pack-quantized")
CT_NVFP4A16 = compressed(4, "float", NVFP4_ARGS, None, "nvfp4-pack-quantized")
BLOCK_FP8 = config({"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]})
CT, FP8 = "compressed-tensors", "fp8"


class Scenario(NamedTuple):
    """A boot, the order it is held against, and what it must say; `without`: the same boot with its lines deleted."""

    version: str
    quantization: str
    config: dict[str, Any]
    lines: tuple[Line, ...]
    gpu: str
    verdict: str
    without: str  # verdict when the lines are gone, on the same known machine
    blind: str  # verdict when the lines are gone and the machine is not known
    opposite: tuple[tuple[Line, ...], str] | None = None  # other lines, and the verdict they must give


SCENARIOS = {
    "nvfp4 by marlin on hopper": Scenario(
        "0.26.0", CT, CT_NVFP4, (using("MarlinNvFp4LinearKernel", "NVFP4 GEMM"), FP4_WARNING), "H100", "downgraded",
        without="downgraded", blind="unproven"),
    "nvfp4 native on blackwell": Scenario(
        "0.26.0", CT, CT_NVFP4, (using("FlashInferCutlassNvFp4LinearKernel", "NVFP4 GEMM"),), "RTX 5090", "kept",
        without="unproven", blind="unproven",
        opposite=((using("MarlinNvFp4LinearKernel", "NVFP4 GEMM"), FP4_WARNING), "downgraded")),
    "nvfp4a16 by marlin": Scenario(
        "0.26.0", CT, CT_NVFP4A16, (using("MarlinNvFp4LinearKernel", "NVFP4 GEMM"), FP4_WARNING), "H100", "kept",
        without="kept", blind="kept"),
    "int8 by cutlass": Scenario(
        "0.24.0", CT, CT_INT8, (selected("CutlassInt8ScaledMMLinearKernel", "CompressedTensorsW8A8Int8"),), "A100",
        "kept", without="kept", blind="unproven"),
    "w4a16 by machete": Scenario(
        "0.24.0", CT, CT_W4A16, (using("MacheteLinearKernel", "CompressedTensorsWNA16"),), "H100", "kept",
        without="kept", blind="unproven"),
    "fp8 by cutlass on hopper": Scenario(
        "0.24.0", CT, CT_FP8, (selected("CutlassFP8ScaledMMLinearKernel", "CompressedTensorsW8A8Fp8"),), "H100", "kept",
        without="kept", blind="unproven", opposite=((FP8_WARNING,), "downgraded")),
    "fp8 by marlin on ampere": Scenario(
        "0.24.0", CT, CT_FP8, (FP8_WARNING,), "A100", "downgraded", without="downgraded", blind="unproven"),
    "block fp8 by marlin on ada": Scenario(
        "0.29.0", FP8, BLOCK_FP8, (selected("MarlinFP8ScaledMMLinearKernel", "Fp8LinearMethod"), FP8_WARNING), "L40S",
        "downgraded", without="downgraded", blind="unproven",
        opposite=((selected("TritonFp8BlockScaledMMKernel", "Fp8LinearMethod"),), "kept")),
}  # fmt: skip
IDS, ALL = list(SCENARIOS), list(SCENARIOS.values())


def verdict(judged: Judged, row_of: Any, text: str, order: dict[str, Any] | None, **given: Any) -> str:
    return str(row_of(judged(text, order, **given))["verdict"])


@pytest.mark.parametrize("s", ALL, ids=IDS)
def test_as_it_stands(judged: Judged, boot_text: Any, row_of: Any, s: Scenario) -> None:
    text = boot_text(s.version, s.lines, quantization=s.quantization)
    assert verdict(judged, row_of, text, s.config, gpu=s.gpu, cuda="12.9") == s.verdict


@pytest.mark.parametrize("s", ALL, ids=IDS)
def test_without_its_lines_on_a_known_machine(judged: Judged, boot_text: Any, row_of: Any, s: Scenario) -> None:
    text = boot_text(s.version, (), quantization=s.quantization)
    found = verdict(judged, row_of, text, s.config, gpu=s.gpu, cuda="12.9")
    assert found in {s.without, "unproven"}


@pytest.mark.parametrize("s", ALL, ids=IDS)
def test_without_its_lines_and_without_a_machine(judged: Judged, boot_text: Any, row_of: Any, s: Scenario) -> None:
    """The only evidence is gone: nothing may be called kept that another machine would not keep."""
    text = boot_text(s.version, (), quantization=s.quantization)
    assert verdict(judged, row_of, text, s.config) in {s.blind, "unproven"}


@pytest.mark.parametrize("s", [s for s in ALL if s.opposite], ids=[k for k, s in SCENARIOS.items() if s.opposite])
def test_with_the_opposite_line(judged: Judged, boot_text: Any, row_of: Any, s: Scenario) -> None:
    assert s.opposite is not None
    lines, expected = s.opposite
    text = boot_text(s.version, lines, quantization=s.quantization)
    assert verdict(judged, row_of, text, s.config, gpu=s.gpu, cuda="12.9") == expected


@pytest.mark.parametrize("s", ALL, ids=IDS)
def test_without_a_checkpoint_nothing_is_judged(judged: Judged, boot_text: Any, row_of: Any, s: Scenario) -> None:
    boot = judged(boot_text(s.version, s.lines, quantization=s.quantization), gpu=s.gpu)
    row = row_of(boot)
    assert (row["verdict"], row["reasons"]) == ("unproven", ["no-checkpoint"])


@pytest.mark.parametrize(
    "s", [s for s in ALL if s.verdict == "kept"], ids=[k for k, s in SCENARIOS.items() if s.verdict == "kept"]
)
def test_a_boot_that_does_not_get_ready_keeps_nothing(judged: Judged, boot_text: Any, row_of: Any, s: Scenario) -> None:
    for end in ("cut", "failed"):
        text = boot_text(s.version, s.lines, quantization=s.quantization, end=end)
        assert verdict(judged, row_of, text, s.config, gpu=s.gpu, cuda="12.9") == "unproven"


def test_one_config_value_turns_the_verdict(judged: Judged, boot_text: Any, row_of: Any) -> None:
    """W4A4 or W4A16 is one null in the config."""
    s = SCENARIOS["nvfp4 by marlin on hopper"]
    text = boot_text(s.version, s.lines, quantization=s.quantization)
    order = copy.deepcopy(s.config)
    assert verdict(judged, row_of, text, order, gpu=s.gpu) == "downgraded"
    order["quantization_config"]["config_groups"]["group_0"]["input_activations"] = None
    assert verdict(judged, row_of, text, order, gpu=s.gpu) == "kept"


def test_every_deleted_line_leaves_an_honest_verdict(judged: Judged, boot_text: Any, row_of: Any) -> None:
    """No single deletion may turn a downgrade into kept."""
    for name, s in SCENARIOS.items():
        if s.verdict != "downgraded":
            continue
        lines = boot_text(s.version, s.lines, quantization=s.quantization).split("\n")[:-1]
        for n in range(len(lines)):
            text = "\n".join(lines[:n] + lines[n + 1 :]) + "\n"
            found = judged_rows(judged, text, s)
            assert "kept" not in found, f"{name}: line {n + 1} deleted gives {found}"


def judged_rows(judged: Judged, text: str, s: Scenario) -> list[str]:
    boot = judged(text, s.config, gpu=s.gpu, cuda="12.9")
    return [r["verdict"] for r in boot["paths"] if r["path"] == "linear"]
