"""Every family's configs, read to the letter: label and remarks of each example in seeds.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from logscan.checkpoint import promise_from_dict
from logscan.checkpoint.compressed_tensors import PRESETS
from logscan.checkpoint.methods import FAMILIES
from logscan.labels import path_label
from logscan.model import Group, Matcher, Operand, Promise

SEEDS: dict[str, Any] = json.loads(Path(__file__).with_name("seeds.json").read_text(encoding="utf-8"))


def read(name: str) -> Promise:
    return promise_from_dict(SEEDS[name]["config"], source="config.json")


def groups(name: str) -> tuple[Group, ...]:
    return read(name).groups


@pytest.mark.parametrize("name", SEEDS)
def test_label_and_notes(name: str) -> None:
    promise = read(name)
    assert promise.label == SEEDS[name]["label"]
    assert [note.code for note in promise.notes] == SEEDS[name]["notes"]
    assert all(path_label(group.numeric) == group.label for group in promise.groups)


def test_every_family_has_an_example() -> None:
    assert {read(name).method for name in SEEDS} == set(FAMILIES) - {"gptq_marlin_24"} | {"none"}


def test_where_the_block_stands_is_kept() -> None:
    assert read("fp8-static").source == "config.json#quantization_config"
    assert read("ct-in-text-config").source == "config.json#text_config.quantization_config"
    assert read("ct-in-thinker-text").source == "config.json#thinker_config.text_config.quantization_config"
    assert read("ct-compression-config").source == "config.json#compression_config"
    assert read("mistral-static").source == "config.json#quantization"
    assert read("plain-bf16").source == "config.json"


def test_method_names() -> None:
    assert (read("awq-symmetric-channel").method, read("awq-symmetric-channel").raw_method) == ("awq", "awq_marlin")
    assert read("ct-underscore-upper").raw_method == "COMPRESSED_TENSORS"
    assert read("deepseek-v4").method == "deepseek_v4_fp8"
    assert read("plain-bf16").method == "none"


def test_only_expert_groups_are_expert_groups() -> None:
    assert [g.scope for g in groups("ct-experts-int4")] == ["linear", "moe_experts"]
    assert [g.scope for g in groups("deepseek-v4")] == ["linear", "moe_experts"]
    assert [g.scope for g in groups("modelopt-mixed")] == ["linear", "moe_experts", "embedding"]
    assert [g.scope for g in groups("gpt-oss")] == ["moe_experts"]
    assert [g.scope for g in groups("fp8-block")] == ["linear"]
    assert [g.scope for g in groups("ct-attention")] == ["linear", "attention"]


def test_activation_claims() -> None:
    claims = {name: groups(name)[0].numeric.input_claim for name in ("gptq", "fp8-dynamic", "gpt-oss")}
    assert claims == {"gptq": "none", "fp8-dynamic": "quantized", "gpt-oss": "unspecified"}


def test_fields_that_labels_do_not_show() -> None:
    fbgemm = groups("fbgemm")[0].numeric.input
    assert fbgemm is not None and fbgemm.scale_ub == 1000
    nf4 = groups("bnb-nf4")[0].numeric.weights
    assert nf4 is not None and nf4.scale_dtype == "int8"
    assert groups("ct-actorder-output")[0].output == Operand("fp8_e4m3", 8, "tensor")
    assert groups("ct-w4a16")[0].storage == "pack-quantized"
    assert read("ct-rotated").transforms == ("R1:hadamard",)
    assert read("ct-sparse-only").sparsity == {"format": "sparse-24-bitmask", "sparsity_structure": "2:4"}
    assert read("modelopt-mixed").producer == "modelopt 0.40.0"
    assert read("quark-int8").producer == "quark 0.11"
    assert read("modelopt-pb-wo").algo == "FP8_PB_WO"
    assert read("plain-fp32-nested").model_dtype == "float32"


def test_skip_lists_keep_how_their_family_matches() -> None:
    assert read("fp8-dynamic").ignore == (Matcher("name", "lm_head"),)
    assert read("awq").ignore == (Matcher("substring", "visual"),)
    assert read("modelopt-sidecar-fp8").ignore == (Matcher("glob", "lm_head"),)
    assert read("torchao-int8wo").ignore == (Matcher("component", "lm_head"),)
    assert read("fp-quant").ignore == (Matcher("suffix", "lm_head"),)
    assert read("gptq").ignore == (Matcher("name", "lm_head"),)
    assert Matcher("regex", ".*visual.*") in read("gptq-dynamic").ignore
    skipped = ("backbone.layers.2.mixer.q_proj", "backbone.layers.2.mixer.k_proj")
    assert read("modelopt-mixed").ignore[-2:] == tuple(Matcher("name", name) for name in skipped)
    assert Matcher("regex", "model.layers.0.mlp.gate") not in read("autoround-extra").ignore
    assert Matcher("name", "model.layers.0.mlp.gate") in read("autoround-extra").ignore
    assert Matcher("glob", "*gate") in read("quark-layers").ignore


def test_targets_are_as_the_config_wrote_them() -> None:
    assert groups("ct-four-groups")[0].targets == (Matcher("regex", ".*q_proj"),)
    assert groups("ct-w4a16")[0].targets == (Matcher("class", "Linear"),)
    assert groups("torchao-fqn")[1].targets == (Matcher("class", "Linear"),)
    assert groups("gptq-dynamic")[1].targets == (Matcher("regex", ".*down_proj"),)


def test_presets_agree_with_the_schemes_that_they_stand_for() -> None:
    labels = {name: path_label(preset()) for name, preset in PRESETS.items()}
    assert labels["FP8_BLOCK"] == "W8A8-FP8 block128x128/g128-dynamic"
    assert labels["W8A8"] == labels["INT8"] == "W8A8-INT8 per-channel/per-token-dynamic"
    assert labels["W4A16_ASYM"] == "W4A16-INT4 g128 asym"
    assert labels["W8A16"] == "W8A16-INT8 g128"
    assert labels["W2A4"] == "W2A4-INT2-INT4 g128/per-token-dynamic"
    assert labels["MXFP4XFP8"] == "W4A8-MXFP4-FP8 g32/g128-dynamic"
    assert labels["MXFP6A8"] == "W6A8-MXFP6-MXFP8 g32/g32-dynamic"
    assert "W8A4" not in labels and "W8A8" in labels
