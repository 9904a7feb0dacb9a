"""The engine's line about the KV cache is weighed, not decoration; what comes after it is derived."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Doc = dict[str, Any]
Judged = Callable[..., Doc]
Text = Callable[..., str]

MODEL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"}
FP8 = {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "tensor", "dynamic": False}
CT = {
    **MODEL,
    "quantization_config": {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "ignore": ["lm_head"],
        "kv_cache_scheme": FP8,
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": FP8, "input_activations": FP8}},
    },
}
MODELOPT = {
    **MODEL,
    "quantization_config": {
        "quant_method": "modelopt",
        "quant_algo": "FP8",
        "kv_cache_quant_algo": "FP8",
        "ignore": [],
    },
}
METHODS = {"compressed-tensors": CT, "modelopt": MODELOPT, "None": MODEL}
NOTICE = (
    "INFO",
    "cache.py",
    "Using fp8 data type to store kv cache. It reduces the GPU memory footprint and boosts the performance. Meanwhile, "
    "it may cause accuracy drop without a proper scaling factor.",
)


def offline(text: str) -> str:
    """The boot of `LLM()`: no API server, no line of arguments."""
    return "".join(f"{line}\n" for line in text.split("\n") if line and "APIServer" not in line)


def kv(boot: Doc) -> Doc:
    (row,) = [r for r in boot["paths"] if r["path"] == "kv_cache"]
    return dict(row)


def roles(row: Doc) -> list[str]:
    """What the engine's line is worth in the row."""
    return [e["role"] for e in row["evidence"] if e["text"].startswith("kv_cache_dtype=")]


@pytest.mark.parametrize(
    ("version", "method", "shown", "ran"),
    [
        ("0.30.0", "modelopt", "bfloat16", "BF16"),
        ("0.30.0", "compressed-tensors", "bfloat16", "BF16"),
        ("0.30.0", "compressed-tensors", "nvfp4", "NVFP4 g16-local"),
        ("0.12.0", "compressed-tensors", "fp8", "FP8 per-tensor-static"),
        ("0.30.0", "None", "fp8", "FP8 per-tensor-static"),
    ],
)
def test_without_arguments_an_explicit_dtype_on_the_line_is_the_request(
    judged: Judged, boot_text: Text, version: str, method: str, shown: str, ran: str
) -> None:
    text = offline(boot_text(version, [NOTICE] * (shown == "fp8"), quantization=method, kv=shown))
    row = kv(judged(text, METHODS[method], gpu="B200" if shown == "nvfp4" else "H100"))
    assert (row["against"], row["ran"], row["verdict"], row["authority"]) == ("request", ran, "kept", "logged")


def test_what_a_modelopt_checkpoint_resolves_to_is_no_request(judged: Judged, boot_text: Text) -> None:
    text = offline(boot_text("0.30.0", quantization="modelopt", kv="fp8_e4m3"))
    row = kv(judged(text, MODELOPT, gpu="H100"))
    assert (row["requested"], row["against"], row["verdict"]) == (None, "promise", "kept")


def test_nor_may_it_be_where_the_checkpoint_is_not_known(judged: Judged, boot_text: Text) -> None:
    row = kv(judged(offline(boot_text("0.30.0", quantization="modelopt", kv="fp8_e4m3"))))
    assert (row["verdict"], row["reasons"]) == ("unproven", ["no-checkpoint"])


def test_a_dtype_that_the_engine_chose_for_the_model_is_no_request(judged: Judged, boot_text: Text) -> None:
    chosen = ("INFO", "config.py", "Using custom fp8 kv-cache format for DeepSeekV3.2")
    row = kv(judged(offline(boot_text("0.16.0", [chosen], kv="fp8_ds_mla")), MODEL, gpu="H100"))
    assert (row["requested"], row["verdict"], row["ran"]) == (None, "no-promise", "FP8")


@pytest.mark.parametrize(("version", "cause"), [("0.13.0", "version"), ("0.14.0", "unknown"), ("0.30.0", "unknown")])
def test_auto_on_the_line_shows_that_a_modelopt_promise_was_not_applied(
    judged: Judged, boot_text: Text, version: str, cause: str
) -> None:
    row = kv(judged(boot_text(version, quantization="modelopt", kv="auto"), MODELOPT, gpu="H100"))
    assert (row["verdict"], row["kinds"], row["ran"], row["cause"]) == ("downgraded", ["ignored"], "BF16", cause)


@pytest.mark.parametrize("shown", ["bfloat16", "nvfp4"])
def test_an_explicit_dtype_that_the_arguments_do_not_have_settles_nothing(
    judged: Judged, boot_text: Text, shown: str
) -> None:
    row = kv(judged(boot_text("0.30.0", quantization="modelopt", kv=shown), MODELOPT, gpu="H100"))
    assert (row["verdict"], row["reasons"]) == ("unproven", ["line-untrusted"])


@pytest.mark.parametrize(
    ("asked", "shown"),
    [("fp8", "auto"), ("nvfp4", "fp8"), ("bfloat16", "fp8"), ("turboquant_k8v4", "turboquant_3bit_nc")],
)
def test_a_request_that_the_line_contradicts_is_unproven(
    judged: Judged, boot_text: Text, asked: str, shown: str
) -> None:
    text = boot_text("0.30.0", kv=shown, args={"kv_cache_dtype": asked})
    row = kv(judged(text, MODEL, gpu="H100"))
    assert (row["verdict"], row["reasons"], row["ran"]) == ("unproven", ["line-untrusted"], None)
    assert roles(row) == ["context"]


@pytest.mark.parametrize(("asked", "shown"), [("fp8", "fp8_e4m3"), ("fp8", "fp8_ds_mla"), ("bfloat16", "auto")])
def test_another_name_for_the_same_cache_is_no_contradiction(
    judged: Judged, boot_text: Text, asked: str, shown: str
) -> None:
    text = boot_text("0.30.0", kv=shown, args={"kv_cache_dtype": asked})
    assert kv(judged(text, MODEL, gpu="H100"))["verdict"] == "kept"


@pytest.mark.parametrize("text", [lambda t: t, offline])
def test_an_override_after_the_line_is_derived(judged: Judged, boot_text: Text, text: Callable[[str], str]) -> None:
    log = boot_text("0.18.0", quantization="compressed-tensors", kv="bfloat16", args={"kv_cache_dtype": "bfloat16"})
    row = kv(judged(text(log), CT, gpu="H100"))
    assert (row["verdict"], row["kinds"], row["authority"]) == ("downgraded", ["fewer-bits"], "derived")
    assert roles(row) == ["context"]


def test_an_override_that_a_checkpoint_may_bring_is_not_ruled_out(judged: Judged, boot_text: Text) -> None:
    log = boot_text("0.18.0", quantization="compressed-tensors", kv="bfloat16", args={"kv_cache_dtype": "bfloat16"})
    row = kv(judged(log))
    assert (row["verdict"], row["ran"]) == ("unproven", None)
    assert "no-checkpoint" in row["reasons"]


@pytest.mark.parametrize("shown", ["auto", "fp8"])
def test_a_scheme_applied_to_auto_is_derived_and_to_a_line_that_shows_it_logged(
    judged: Judged, boot_text: Text, shown: str
) -> None:
    row = kv(judged(boot_text("0.18.0", quantization="compressed-tensors", kv=shown), CT, gpu="H100"))
    assert row["verdict"] == "kept"
    assert (row["authority"], roles(row)) == (("derived", ["context"]) if shown == "auto" else ("logged", ["supports"]))


def test_a_dtype_that_no_table_knows_does_not_keep_the_promise(judged: Judged, boot_text: Text) -> None:
    row = kv(judged(boot_text("0.30.0", quantization="modelopt", kv="house_fp5"), MODELOPT, gpu="H100"))
    assert (row["verdict"], row["ran"]) == ("unproven", None)


@pytest.mark.parametrize(
    ("version", "dtype"),
    [("0.30.0", "turboquant_k8v4"), ("0.33.0", "ultraquant_4bit"), ("0.33.0", "octave_k3v4")],
)
def test_every_dtype_but_auto_is_a_yardstick(judged: Judged, boot_text: Text, version: str, dtype: str) -> None:
    row = kv(judged(boot_text(version, kv=dtype, args={"kv_cache_dtype": dtype}), MODEL, gpu="H100"))
    assert (row["verdict"], row["against"], row["requested"]) == ("kept", "request", "CB")
    assert row["ran"] in ("CB", "CB per-token-dynamic")


def test_a_16_bit_cache_has_the_dtype_of_the_model(judged: Judged, boot_text: Text) -> None:
    text = boot_text("0.30.0").replace("dtype=torch.bfloat16", "dtype=torch.float16")
    assert kv(judged(text, MODEL, gpu="H100"))["ran"] == "FP16"
    assert kv(judged(boot_text("0.30.0"), {**MODEL, "torch_dtype": "float16"}, gpu="H100"))["ran"] == "BF16"
