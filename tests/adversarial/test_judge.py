"""Logs that lie, and logs that the tables cannot explain: none of it may become `kept`, `downgraded` or harmless."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logscan

Doc = dict[str, Any]
MODEL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"}
EXPERTS: Doc = {"architectures": ["MixtralForCausalLM"], "model_type": "mixtral", "num_local_experts": 8}
WEIGHT = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel", "dynamic": False}
TOKEN = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "token", "dynamic": True}
NVFP4 = {
    "num_bits": 4,
    "type": "float",
    "symmetric": True,
    "strategy": "tensor_group",
    "group_size": 16,
    "dynamic": False,
}
INT4 = {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group", "group_size": 128, "dynamic": False}
MARLIN = (
    "WARNING",
    "marlin_utils_fp8.py",
    "Your GPU does not have native support for FP8 computation but FP8 quantization is being used. Weight-only FP8 "
    "compression will be used leveraging the Marlin kernel. This may degrade performance for compute-heavy workloads.",
)


def ct(*groups: dict[str, Any], **more: Any) -> Doc:
    quant = {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "ignore": ["lm_head"],
        "config_groups": {f"group_{i}": {"targets": ["Linear"], **g} for i, g in enumerate(groups)},
    }
    return {**MODEL, **more, "quantization_config": quant}


def fp8(block: bool = False, **more: Any) -> Doc:
    quant: dict[str, Any] = {"quant_method": "fp8", "activation_scheme": "dynamic"}
    return {**MODEL, **more, "quantization_config": {**quant, **({"weight_block_size": [128, 128]} if block else {})}}


W8A8 = ct({"weights": WEIGHT, "input_activations": TOKEN})
Judged = Callable[..., Doc]
Text = Callable[..., str]


def selected(kernel: str, layer: str) -> tuple[str, str, str]:
    return "INFO", "__init__.py", f"Selected {kernel} for {layer}"


def experts(backend: str, kind: str = "Fp8") -> tuple[str, str, str]:
    return "INFO", "fp8.py", f"Using {backend} {kind} MoE backend out of potential backends: ['TRITON', 'MARLIN']."


def of(boot: Doc, path: str = "linear", group: str | None = None) -> Doc:
    (row,) = [r for r in boot["paths"] if r["path"] == path and group in (None, r["group"])]
    return dict(row)


@pytest.fixture
def expected(tmp_path: Path) -> Judged:
    def run(config: Doc, **given: Any) -> Doc:
        (tmp_path / "config.json").write_text(json.dumps(config))
        return dict(logscan.expect(str(tmp_path / "config.json"), **given))

    return run


# ---------------------------------------------------------------- a downgrade that no table explains stays one


def test_an_unexplained_downgrade_is_not_the_request_of_any_flag_at_hand(judged: Judged, boot_text: Text) -> None:
    boot = judged(boot_text("0.24.0", [MARLIN], quantization="compressed-tensors"), W8A8, gpu="H100")
    assert of(boot)["cause"] != "request"
    assert [f["severity"] for f in boot["findings"] if f["code"] == "LS101"] == ["high"]


# ---------------------------------------------------------------- trusted lines that no outcome fits


@pytest.mark.parametrize("version", ["0.16.0", "0.24.0", "0.30.0", "0.33.0"])
def test_a_kernel_that_nobody_knows_is_not_kept(judged: Judged, boot_text: Text, version: str) -> None:
    lines = [selected("FooBarFP8ScaledMMLinearKernel", "CompressedTensorsW8A8Fp8")]
    row = of(judged(boot_text(version, lines, quantization="compressed-tensors"), W8A8, gpu="H100", cuda="12.8"))
    assert (row["verdict"], row["reasons"]) == ("unproven", ["unknown-kernel"])


def test_a_known_kernel_does_not_speak_for_an_unknown_one(judged: Judged, boot_text: Text) -> None:
    layer = "Fp8LinearMethod"
    lines = [selected("CutlassFP8ScaledMMLinearKernel", layer), selected("FooBarFP8ScaledMMLinearKernel", layer)]
    row = of(judged(boot_text("0.30.0", lines, quantization="fp8"), fp8(), gpu="H100", cuda="12.8"))
    assert (row["verdict"], row["reasons"]) == ("unproven", ["unknown-kernel"])


def test_a_backend_that_nobody_knows_is_not_kept(judged: Judged, boot_text: Text) -> None:
    lines = [selected("CutlassFP8ScaledMMLinearKernel", "Fp8LinearMethod"), experts("FOOBAR")]
    boot = judged(boot_text("0.30.0", lines, quantization="fp8"), fp8(**EXPERTS), gpu="H100", cuda="12.8")
    assert of(boot, "moe")["verdict"] == "unproven"


@pytest.mark.parametrize("version", ["0.16.0", "0.28.0", "0.32.0"])
def test_a_line_that_the_given_gpu_excludes_supports_nothing(judged: Judged, boot_text: Text, version: str) -> None:
    lines = [selected("CutlassFP8ScaledMMLinearKernel", "CompressedTensorsW8A8Fp8")]
    row = of(judged(boot_text(version, lines, quantization="compressed-tensors"), W8A8, gpu="A100", cuda="12.8"))
    assert row["verdict"] == "unproven"


def test_a_kernel_that_quantizes_activations_keeps_no_weight_only_promise(judged: Judged, boot_text: Text) -> None:
    lines = [("INFO", "__init__.py", "Using CutlassNvFp4LinearKernel for NVFP4 GEMM")]
    row = of(judged(boot_text("0.28.0", lines, quantization="compressed-tensors"), ct({"weights": NVFP4}), gpu="B200"))
    assert row["verdict"] != "kept"


# ---------------------------------------------------------------- one warning, several rows


def test_the_marlin_warning_of_the_experts_does_not_downgrade_the_linears(judged: Judged, boot_text: Text) -> None:
    lines = [MARLIN, ("INFO", "fp8.py", "Using Marlin backend for FP8 MoE")]
    text = boot_text("0.12.0", lines, quantization="compressed-tensors")
    config = {**W8A8, **EXPERTS}
    boot = judged(text, config, gpu="H100", cuda="12.8", env={"VLLM_TEST_FORCE_FP8_MARLIN": "1"})
    assert of(boot)["verdict"] in ("kept", "unproven")


def test_the_marlin_warning_of_the_experts_without_a_gpu(judged: Judged, boot_text: Text) -> None:
    lines = [selected("CutlassFP8ScaledMMLinearKernel", "Fp8LinearMethod"), experts("MARLIN"), MARLIN]
    boot = judged(boot_text("0.15.0", lines, quantization="fp8"), fp8(**EXPERTS))
    assert of(boot)["verdict"] == "unproven"  # 0.15.0 gives such experts Marlin on every NVIDIA GPU


def test_the_marlin_warning_of_one_group_does_not_downgrade_another(judged: Judged, boot_text: Text) -> None:
    config = ct(
        {"targets": ["re:.*self_attn.*"], "weights": WEIGHT, "input_activations": TOKEN},
        {"targets": ["re:.*mlp.*"], "weights": WEIGHT},
    )
    boot = judged(boot_text("0.12.0", [MARLIN], quantization="compressed-tensors"), config, gpu="H100", cuda="12.8")
    assert of(boot, group="group_0")["verdict"] in ("kept", "unproven")
    assert of(boot, group="group_1")["verdict"] == "kept"


# ---------------------------------------------------------------- environment


@pytest.mark.parametrize("version", ["0.12.0", "0.20.2", "0.30.0"])
def test_quantized_marlin_inputs_of_experts_are_not_kept(judged: Judged, boot_text: Text, version: str) -> None:
    lines = [("INFO", "int_wna16.py", "Using 'MARLIN' WNA16 MoE backend.")] if version != "0.12.0" else []
    text = boot_text(version, lines, quantization="compressed-tensors")
    config = {**ct({"weights": INT4}), **EXPERTS}
    boot = judged(text, config, gpu="A100", cuda="12.8", env={"VLLM_MARLIN_INPUT_DTYPE": "int8"})
    assert of(boot, "moe")["verdict"] != "kept"


# ---------------------------------------------------------------- wrong inputs


def test_a_checkpoint_of_another_format_is_not_held_against_the_boot(judged: Judged, boot_text: Text) -> None:
    lines = [("INFO", "compressed_tensors_wNa16.py", "Using MarlinLinearKernel for CompressedTensorsWNA16")]
    row = of(judged(boot_text("0.30.0", lines, quantization="compressed-tensors"), W8A8, gpu="A100", cuda="12.8"))
    assert row["verdict"] == "unproven"


def test_a_gpu_that_the_log_contradicts_proves_nothing(judged: Judged, boot_text: Text) -> None:
    leak = (
        "Using default MoE config. Performance might be sub-optimal! Config file not found at "
        "/x/E=8,N=14336,device_name=NVIDIA_A100-SXM4-80GB,dtype=fp8_w8a8.json"
    )
    text = boot_text("0.12.0", [("WARNING", "fused_moe.py", leak)], quantization="compressed-tensors")
    boot = judged(text, W8A8, gpu="H100", cuda="12.8")
    assert "LS704" in [f["code"] for f in boot["findings"]]
    assert of(boot)["verdict"] == "unproven"


def test_an_engine_that_the_log_contradicts_is_told(judged: Judged, boot_text: Text) -> None:
    text = boot_text("0.30.0", quantization="fp8")
    boot = judged(text, fp8(block=True), gpu="L40S", cuda="12.8", engine="vllm==0.12.0")
    assert [f for f in boot["findings"] if f["code"].startswith("LS7")]


@pytest.mark.parametrize("version", ["0.30.1.dev5", "0.24.0+nv25.09"])
def test_silence_between_releases_that_speak_is_not_kept(judged: Judged, boot_text: Text, version: str) -> None:
    text = boot_text("0.30.0", quantization="compressed-tensors").replace("(v0.30.0)", f"(v{version})")
    assert of(judged(text, W8A8, gpu="H100", cuda="12.8"))["verdict"] == "unproven"


def test_a_release_beyond_the_tables_is_not_covered(judged: Judged, boot_text: Text) -> None:
    text = boot_text("0.33.0", quantization="compressed-tensors").replace("(v0.33.0)", "(v0.40.0)")
    row = of(judged(text, W8A8, gpu="A100", cuda="12.8"))
    assert (row["verdict"], row["reasons"]) == ("unproven", ["version-not-covered"])


@pytest.mark.parametrize("release", ["0.33.1", "0.34.0", "0.40.0", "0.4.3"])
def test_no_forecast_of_a_release_that_nobody_has_read(expected: Judged, release: str) -> None:
    row = of(expected(W8A8, gpu="H100", cuda="12.8", engine=f"vllm=={release}"))
    assert (row["verdict"], row["reasons"]) == ("unproven", ["version-not-covered"])


def test_a_release_beyond_the_tables_is_told(judged: Judged, boot_text: Text) -> None:
    lines = [selected("CutlassFP8ScaledMMLinearKernel", "CompressedTensorsW8A8Fp8")]
    text = boot_text("0.33.0", lines, quantization="compressed-tensors").replace("(v0.33.0)", "(v0.40.0)")
    boot = judged(text, W8A8, gpu="H100", cuda="12.8")
    assert of(boot)["verdict"] == "unproven"
    assert "LS901" in [f["code"] for f in boot["findings"]]


def test_an_engine_of_another_name_is_told_and_proves_nothing(judged: Judged, boot_text: Text) -> None:
    lines = [selected("CutlassFP8ScaledMMLinearKernel", "Fp8LinearMethod")]
    boot = judged(boot_text("0.30.0", lines, quantization="fp8"), fp8(), gpu="H100", engine="sglang==0.5.14")
    assert "LS705" in [f["code"] for f in boot["findings"]]
    assert "kept" not in [r["verdict"] for r in boot["paths"]]


def test_a_kernel_that_could_run_here_keeps_the_order_though_another_was_expected(
    judged: Judged, boot_text: Text
) -> None:
    lines = [selected("TritonFp8BlockScaledMMKernel", "Fp8LinearMethod")]
    boot = judged(boot_text("0.29.0", lines, quantization="fp8"), fp8(block=True), gpu="L40S", cuda="12.9")
    assert of(boot)["verdict"] == "kept"
    assert "LS903" in [f["code"] for f in boot["findings"]]


def test_sampling_defaults_of_the_model_are_no_feature_that_is_off(judged: Judged, boot_text: Text) -> None:
    text = "Default vLLM sampling parameters have been overridden by the model's `generation_config.json`: `{}`. "
    text += "If this is not intended, please relaunch vLLM instance with `--generation-config vllm`."
    boot = judged(boot_text("0.30.0", [("WARNING", "model.py", text)]), None)
    assert [f["value"] for f in boot["facts"] if f["name"] == "feature.generation_config"] == ["overridden"]
    assert "LS602" not in [f["code"] for f in boot["findings"]]


@pytest.mark.parametrize(("version", "gpu"), [("0.24.0", "H100"), ("0.33.0", "L40S"), ("0.28.0", None)])
def test_a_warning_that_denies_the_selected_kernel_keeps_nothing(
    judged: Judged, boot_text: Text, version: str, gpu: str | None
) -> None:
    lines = [selected("CutlassFP8ScaledMMLinearKernel", "CompressedTensorsW8A8Fp8"), MARLIN]
    row = of(judged(boot_text(version, lines, quantization="compressed-tensors"), W8A8, gpu=gpu, cuda="12.8"))
    assert row["verdict"] == "unproven"
    assert [e["role"] for e in row["evidence"] if e["pattern"] == "vllm.marlin.fp8"] == ["contradicts"]


def test_a_release_that_the_log_denies_derives_nothing(judged: Judged, boot_text: Text) -> None:
    text = boot_text("0.33.0", [], quantization="compressed-tensors")
    row = of(judged(text, W8A8, gpu="H100", cuda="12.8", engine="vllm==0.12.0"))
    assert row["verdict"] == "unproven"


def test_the_nearest_release_may_be_given_for_one_that_nobody_has_read(judged: Judged, boot_text: Text) -> None:
    lines = [selected("CutlassFP8ScaledMMLinearKernel", "CompressedTensorsW8A8Fp8")]
    text = boot_text("0.33.0", lines, quantization="compressed-tensors").replace("(v0.33.0)", "(v0.40.0)")
    row = of(judged(text, W8A8, gpu="H100", cuda="12.8", engine="vllm==0.33.0"))
    assert row["verdict"] == "kept"


@pytest.mark.parametrize(
    ("layer", "verdict"),
    [
        ("CompressedTensorsW8A8Fp8", "kept"),
        ("QKVParallelLinear", "kept"),
        ("ModelOptFp8LinearMethod", "unproven"),
        ("QuarkW8A8Fp8PerBlock", "unproven"),
        ("CompressedTensorsW8A8Int8", "unproven"),
    ],
)
def test_a_layer_class_of_another_promise_keeps_nothing(
    judged: Judged, boot_text: Text, layer: str, verdict: str
) -> None:
    lines = [selected("CutlassFP8ScaledMMLinearKernel", layer)]
    text = boot_text("0.24.0", lines, quantization="compressed-tensors")
    assert of(judged(text, W8A8, gpu="H100", cuda="12.8"))["verdict"] == verdict
