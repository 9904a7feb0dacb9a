"""Which groups a layer, scheme or GEMM name in a log can be about."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from logscan.checkpoint import promise_from_dict
from logscan.checkpoint.attribution import SERVED, groups_for, served
from logscan.checkpoint.targets import scope_of
from logscan.model import Promise

SEEDS: dict[str, Any] = json.loads(Path(__file__).with_name("seeds.json").read_text(encoding="utf-8"))


def scheme(bits: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"num_bits": bits, "type": kind, **fields}


TOKEN = {"strategy": "token", "dynamic": True}
SCHEMES: dict[str, tuple[dict[str, Any] | None, dict[str, Any] | None]] = {
    "fp8": (scheme(8, "float", strategy="channel"), scheme(8, "float", **TOKEN)),
    "fp8wo": (scheme(8, "float", strategy="channel"), None),
    "int8": (scheme(8, "int", strategy="channel"), scheme(8, "int", **TOKEN)),
    "int4": (scheme(4, "int", group_size=128), None),
    "int4fp8": (scheme(4, "int", group_size=128), scheme(8, "float", **TOKEN)),
    "int4int8": (scheme(4, "int", group_size=128), scheme(8, "int", **TOKEN)),
    "nvfp4": (
        scheme(4, "float", strategy="tensor_group", group_size=16),
        scheme(4, "float", strategy="tensor_group", group_size=16, dynamic="local"),
    ),
    "nvfp4wo": (scheme(4, "float", strategy="tensor_group", group_size=16), None),
    "mxfp4": (scheme(4, "float", group_size=32), scheme(4, "float", group_size=32, dynamic=True)),
    "mxfp8": (
        scheme(8, "float", group_size=32, scale_dtype="torch.uint8"),
        scheme(8, "float", group_size=32, scale_dtype="torch.uint8", dynamic=True),
    ),
    "experts": (scheme(4, "int", group_size=32), None),
}


@pytest.fixture(scope="module")
def promise() -> Promise:
    """One promise with a group of every kind; `experts` is for routed experts alone."""
    groups = {
        name: {"targets": [f"re:.*mlp.{name}.*"], "weights": weights, "input_activations": inputs}
        for name, (weights, inputs) in SCHEMES.items()
    }
    block = {"quant_method": "compressed-tensors", "config_groups": groups}
    return promise_from_dict({"model_type": "m", "quantization_config": block}, source="config.json")


def names(promise: Promise, layer: str, path: str | None = "linear") -> str:
    return " ".join(group.name for group in groups_for(promise, layer, path))


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ("CompressedTensorsW8A8Fp8", "fp8"),
        ("CompressedTensorsW8A16Fp8", "fp8 fp8wo"),
        ("CompressedTensorsW8A8Int8", "int8"),
        ("CompressedTensorsWNA16", "int4"),
        ("CompressedTensorsW4A8Fp8", "int4fp8 int4int8"),
        ("CompressedTensorsW4A8Int", "int4int8"),
        ("CompressedTensorsWNA8Int", "int8 int4int8"),
        ("CompressedTensorsW4A4Fp4", "nvfp4 nvfp4wo"),
        ("CompressedTensorsW4A16Fp4", "nvfp4 nvfp4wo"),
        ("CompressedTensorsW4A4Mxfp4", "mxfp4"),
        ("CompressedTensorsW8A8Mxfp8", "mxfp8"),
        ("Fp8LinearMethod", "fp8 fp8wo"),
        ("ModelOptFp8LinearMethod", ""),
        ("ModelOptFp8PcPtLinearMethod", "fp8"),
        ("ModelOptNvFp4LinearMethod", "nvfp4 nvfp4wo"),
        ("ModelOptNvFp4W4A16LinearMethod", "nvfp4wo"),
        ("NVFP4 GEMM", "nvfp4 nvfp4wo"),
        ("MXFP4 GEMM", "mxfp4"),
        ("MXFP8 GEMM", "mxfp8"),
        ("mixed-precision linear", "int8 int4 int4fp8 int4int8"),
        ("GPTQMarlinLinearMethod", "int8 int4 int4fp8 int4int8"),
        ("QuarkW8A8Fp8PerBlock", ""),
    ],
)
def test_names_that_tell(promise: Promise, layer: str, expected: str) -> None:
    assert names(promise, layer) == expected


@pytest.mark.parametrize("layer", ["QKVParallelLinear", "RowParallelLinear", "", "SomethingNew", "Fp8LinearMethodX"])
def test_names_that_tell_nothing_keep_every_group_of_the_path(promise: Promise, layer: str) -> None:
    assert served(layer) is None
    assert names(promise, layer) == " ".join(n for n in SCHEMES if n != "experts")


def test_paths(promise: Promise) -> None:
    assert names(promise, "CompressedTensorsWNA16MoEMethod", "moe") == "experts"
    assert names(promise, "CompressedTensorsW8A8Fp8MoEMethod", "moe") == ""
    assert names(promise, "CompressedTensorsWNA16", None) == "int4 experts"
    assert names(promise, "", "attention") == ""


def test_generic_groups_are_the_experts_own_where_they_have_none() -> None:
    generic = promise_from_dict(SEEDS["ct-nvfp4"]["config"], source="config.json")
    assert names(generic, "CompressedTensorsW4A4Nvfp4MoEMethod", "moe") == "g"


def test_what_is_left_open_excludes_nothing() -> None:
    gpt_oss = promise_from_dict(SEEDS["gpt-oss"]["config"], source="config.json")
    for layer in ("Mxfp4MoEMethod", "CompressedTensorsW4A4Mxfp4MoEMethod", "MXFP4 GEMM"):
        assert names(gpt_oss, layer, "moe") == "experts"


NAMES = (
    "AWQLinearMethod AWQMarlinLinearMethod AWQMarlinMoEMethod AutoAWQMarlinLinearMethod AutoAWQMoEMethod "
    "AutoGPTQLinearMethod AutoGPTQMoEMethod GPTQMarlinLinearMethod GPTQMarlinMoEMethod GPTQBitBLASLinearMethod "
    "CompressedTensorsW4A16Fp4 CompressedTensorsW4A16Mxfp4 CompressedTensorsW4A16Sparse24 CompressedTensorsW4A4Fp4 "
    "CompressedTensorsW4A4Mxfp4 CompressedTensorsW4A4Mxfp4MoEMethod CompressedTensorsW4A4Nvfp4MoEMethod "
    "CompressedTensorsW4A8Fp8 CompressedTensorsW4A8Fp8MoEMethod CompressedTensorsW4A8Int "
    "CompressedTensorsW4A8Int8MoEMethod CompressedTensorsW4A8Mxfp4 CompressedTensorsW8A16Fp8 CompressedTensorsW8A8Fp8 "
    "CompressedTensorsW8A8Fp8MoECutlassMethod CompressedTensorsW8A8Fp8MoEMethod CompressedTensorsW8A8Int8 "
    "CompressedTensorsW8A8Int8MoEMethod CompressedTensorsW8A8Mxfp8 CompressedTensorsW8A8Mxfp8MoEMethod "
    "CompressedTensorsWNA16 CompressedTensorsWNA16MarlinMoEMethod CompressedTensorsWNA16MoEMethod "
    "CompressedTensorsWNA4Int CompressedTensorsWNA8Int CompressedTensorsWNA8O8Int CompressedTensorsEmbeddingWNA16Int "
    "FBGEMMFp8LinearMethod Fp8LinearMethod Fp8MoEMethod PTPCFp8LinearMethod HQQMarlinMethod INCFp8LinearScheme "
    "INCMxfp4LinearMethod INCMxfp8LinearScheme INCWNA16LinearScheme INCXPUW4A16LinearScheme MoeWNA16Method "
    "ModelOptFp8LinearMethod ModelOptFp8MoEMethod ModelOptFp8PbWoLinearMethod ModelOptFp8PcPtLinearMethod "
    "ModelOptBlockQuantLinearMethod ModelOptMxFp8LinearMethod ModelOptMxFp8FusedMoE ModelOptNvFp4LinearMethod "
    "ModelOptNvFp4FusedMoE ModelOptNvFp4W4A16LinearMethod Mxfp4MoEMethod QuarkNVFP4 QuarkNvfp4MoEMethod QuarkOCP_MX "
    "QuarkOCP_MX_MoEMethod QuarkW4A16Int4 QuarkW4A8Fp8MoEMethod QuarkW4A8_MXFP4_FP8 QuarkW8A8Fp8 QuarkW8A8Fp8MoEMethod "
    "QuarkW8A8Fp8PerBlock QuarkW8A8Int8 QuarkW8A8Int8MoEMethod QuarkW8A8Mxfp8MoEMethod QuarkW4A4MXFP4"
)


@pytest.mark.parametrize("name", NAMES.split(" "))
def test_every_class_of_vllm_has_its_row(name: str) -> None:
    row = served(name)
    others = [o for o in SERVED if any(fnmatchcase(name, k) for k in o.names.split("|")) and o is not row]
    assert row is not None
    assert all(other.weights == row.weights for other in others)  # a general row may come after a special one


def test_every_row_is_needed() -> None:
    named = {served(name) for name in [*NAMES.split(" "), "NVFP4 GEMM", "MXFP4 GEMM", "MXFP6 GEMM", "MXFP8 GEMM"]}
    assert set(SERVED) - named == {served("mixed-precision linear")}


@pytest.mark.parametrize(
    ("target", "scope"),
    [
        ("re:.*mlp.experts.*", "moe_experts"),
        (r"re:.*\.experts\.\d+\.(gate|up|down)_proj$", "moe_experts"),
        (r"re:.*mlp\.experts\..*|.*ffn\.experts\..*", "moe_experts"),
        ("*block_sparse_moe.experts*", "moe_experts"),
        ("model.layers.3.mlp.experts.7.up_proj", "moe_experts"),
        ("FusedMoE", "moe_experts"),
        ("re:.*(?<!shared_)experts.*", "moe_experts"),
        ("re:.*(self_attn|mlp.experts).*", "linear"),
        (r"re:.*(experts\.\d+|mlp)\.(gate|up)_proj", "linear"),
        (r"re:.*\.experts\..*|.*q_proj", "linear"),
        ("re:^(?!.*experts).*", "linear"),
        ("re:.*[experts].*", "linear"),
        ("model.layers.0.mlp.shared_experts.up_proj", "linear"),
        (r"re:.*shared_expert.*", "linear"),
        ("Linear", "linear"),
        ("lm_head", "embedding"),
        ("re:.*lm_head$", "embedding"),
        ("model.embed_tokens", "embedding"),
        ("re:((((experts", "linear"),
        ("re:experts" + ")" * 50, "moe_experts"),
    ],
)
def test_scope_of_a_target(target: str, scope: str) -> None:
    assert scope_of([target]) == scope


def test_scope_of_several_targets() -> None:
    assert scope_of(["a.experts.0", "b.experts.1"]) == "moe_experts"
    assert scope_of(["a.experts.0", "q_proj"]) == "linear"
    assert scope_of([]) == "linear"
