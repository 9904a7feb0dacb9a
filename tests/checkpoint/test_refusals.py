"""What is refused, with which code; and each refusal's nearest neighbour, which is read."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import pytest

from logscan.checkpoint import CheckpointError, promise_from_dict, read_promise
from logscan.checkpoint.file import MAX_DEPTH, parse_json

ROOT: dict[str, Any] = {"model_type": "llama", "torch_dtype": "bfloat16"}
SCHEME: dict[str, Any] = {"num_bits": 8, "type": "float", "strategy": "channel"}


def code(data: bytes | dict[str, Any]) -> str:
    """The code of the refusal, or `ok`."""
    try:
        value = parse_json(data)[0] if isinstance(data, bytes) else data
        promise_from_dict(value, source="config.json")
    except CheckpointError as error:
        assert str(error).startswith(f"{error.source}: {error.code}: {error.detail}" if error.source else error.code)
        assert str(error).isprintable() and len(str(error)) < 700
        return error.code
    return "ok"


def block(**block: Any) -> dict[str, Any]:
    return {**ROOT, "quantization_config": block}


def ct(weights: Any = SCHEME, inputs: Any = None, targets: Any = ("Linear",), **more: Any) -> dict[str, Any]:
    group = {"targets": list(targets) if isinstance(targets, tuple) else targets}
    group |= {"weights": weights, "input_activations": inputs}
    return block(quant_method="compressed-tensors", config_groups={"g": group}, **more)


def scheme(**fields: Any) -> dict[str, Any]:
    return {**SCHEME, **fields}


def quark(**spec: Any) -> dict[str, Any]:
    return block(quant_method="quark", export={}, global_quant_config={"weight": {"qscheme": "per_tensor", **spec}})


def torchao(kind: Any) -> dict[str, Any]:
    return block(quant_method="torchao", quant_type=kind)


def autoround(**fields: Any) -> dict[str, Any]:
    return block(quant_method="auto-round", **{"bits": 4, "group_size": 32, **fields})


def modelopt(**fields: Any) -> dict[str, Any]:
    return block(quant_method="modelopt", **fields)


def fp8(**fields: Any) -> dict[str, Any]:
    return block(quant_method="fp8", activation_scheme="dynamic", **fields)


AQLM = {"in_group_size": 8, "out_group_size": 1, "num_codebooks": 1, "nbits_per_codebook": 16}
INT4WO = {"_type": "Int4WeightOnlyConfig", "_data": {}}

# what is refused, its code, and the same thing put right
REFUSED: list[tuple[str, bytes | dict[str, Any], str, bytes | dict[str, Any]]] = [
    ("empty", b" \n", "E_EMPTY", b'{"model_type":"x"}'),
    ("lfs", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "E_LFS", b'{"model_type":"x"}'),
    ("gguf", b"GGUF\x03rest", "E_BINARY", b'{"model_type":"x"}'),
    ("zip", b"PK\x03\x04rest", "E_BINARY", b'{"model_type":"x"}'),
    ("nul", b'{"model_type":"\x00"}', "E_BINARY", b'{"model_type":"x"}'),
    ("utf16", '{"model_type":"x"}'.encode("utf-16"), "E_ENCODING", b'{"model_type":"x"}'),
    ("latin1", b'{"model_type":"caf\xe9"}', "E_ENCODING", '{"model_type":"café"}'.encode()),
    ("comment", b'{"model_type":"x"} // c', "E_JSON", b'{"model_type":"x"}'),
    ("quotes", b"{'model_type':'x'}", "E_JSON", b'{"model_type":"x"}'),
    ("truncated", b'{"model_type":"x', "E_JSON", b'{"model_type":"x"}'),
    ("yaml", b"model_type: x\n", "E_YAML", b'{"model_type":"x"}'),
    ("yaml-document", b"---\nmodel_type: x\n", "E_YAML", b'{"model_type":"x"}'),
    ("digits", b'{"model_type":"x","a":123456789012345678901}', "E_VALUE",
     b'{"model_type":"x","a":12345678901234567890}'),
    ("list", b"[]", "E_TYPE", b'{"model_type":"x"}'),
    ("string", b'"x"', "E_TYPE", b'{"model_type":"x"}'),
    ("number", b"7", "E_TYPE", b'{"model_type":"x"}'),
    ("null", b"null", "E_TYPE", b'{"model_type":"x"}'),
    ("deep", b'{"model_type":"x","a":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}", "E_DEPTH",
     b'{"model_type":"x","a":' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}"),
    ("very-deep", b'{"a":' * 100_000, "E_DEPTH", b'{"model_type":{"a":1}}'),
    ("values", b'{"model_type":"x","a":[' + b"1," * 2_000_001 + b"1]}", "E_HUGE", b'{"model_type":"x","a":[1,1]}'),
    ("adapter", {"peft_type": "LORA"}, "E_ADAPTER", ROOT),
    ("index", {"weight_map": {}}, "E_SAFETENSORS_INDEX", ROOT),
    ("diffusers", {"_class_name": "UNet2DModel"}, "E_DIFFUSERS", ROOT),
    ("tokenizer", {"tokenizer_class": "X"}, "E_NOT_CONFIG", {"architectures": ["X"]}),
    ("mlx", {**ROOT, "quantization": {"bits": 4, "group_size": 64}}, "E_MLX", {**ROOT, "quantization": None}),
    ("mlx-copy", block(bits=4, group_size=64), "E_MLX", block(quant_method="gptq", bits=4, group_size=64)),
    ("block-list", {**ROOT, "quantization_config": []}, "E_TYPE", {**ROOT, "quantization_config": None}),
    ("nested-block-number", {**ROOT, "text_config": {"quantization_config": 4}}, "E_TYPE", {**ROOT, "text_config": {}}),
    ("no-method", block(), "E_NO_METHOD", block(quant_method="w8a8_int8")),
    ("empty-method", block(quant_method=""), "E_NO_METHOD", block(quant_method="w8a8_int8")),
    ("method-number", block(quant_method=8), "E_TYPE", block(quant_method="w8a8_int8")),
    ("unknown-method", block(quant_method="x"), "E_METHOD", block(quant_method="W8A8-INT8")),
    ("unmodelled", block(quant_method="gguf"), "E_METHOD_UNMODELLED", block(quant_method="w8a8_fp8")),
    ("nan", fp8(x=float("nan")), "E_NONFINITE", fp8(x=1.5)),
    ("infinite-deep", fp8(x=[{"y": float("-inf")}]), "E_NONFINITE", {**fp8(), "x": float("inf")}),
    ("scheme-word", block(quant_method="fp8", activation_scheme="x"), "E_VALUE", fp8()),
    ("static-block", block(quant_method="fp8", activation_scheme="static", weight_block_size=[8, 8]), "E_VALUE",
     fp8(weight_block_size=[8, 8])),
    ("block-1d", fp8(weight_block_size=[128]), "E_VALUE", fp8(weight_block_size=[128, 128])),
    ("block-zero", fp8(weight_block_size=[0, 128]), "E_VALUE", fp8(weight_block_size=[1, 128])),
    ("fmt", fp8(fmt="e3m4"), "E_VALUE", fp8(fmt="E4M3")),
    ("scale-fmt", fp8(scale_fmt="x"), "E_VALUE", fp8(scale_fmt="float")),
    ("fp8-kv", fp8(kv_cache_scheme="x"), "E_VALUE", fp8(kv_cache_scheme="dynamic")),
    ("fp8-skip", fp8(ignored_layers={"a": 1}), "E_TYPE", fp8(ignored_layers=["a"])),
    ("moe-algo", fp8(moe_quant_algo="X"), "E_ALGO", fp8(moe_quant_algo="mxfp4")),
    ("experts", {**fp8(), "model_type": "deepseek_v4", "expert_dtype": "fp2"}, "E_VALUE",
     {**fp8(), "model_type": "deepseek_v4", "expert_dtype": "fp4"}),
    ("mxfp8-block", block(quant_method="mxfp8", weight_block_size=[128, 128]), "E_VALUE",
     block(quant_method="mxfp8", weight_block_size=[1, 32])),
    ("scale-ub", block(quant_method="fbgemm_fp8", activation_scale_ub="x"), "E_TYPE", block(quant_method="fbgemm_fp8")),
    ("ct-no-groups", block(quant_method="compressed-tensors"), "E_KEY", ct()),
    ("ct-groups-list", block(quant_method="compressed-tensors", config_groups=[]), "E_TYPE", ct()),
    ("ct-group-null", block(quant_method="compressed-tensors", config_groups={"g": None}), "E_TYPE", ct()),
    ("ct-no-targets", ct(targets=None), "E_KEY", ct()),
    ("ct-targets-number", ct(targets=5), "E_TYPE", ct(targets="Linear")),
    ("ct-targets-mixed", ct(targets=("Linear", 5)), "E_TYPE", ct(targets=("Linear", "5"))),
    ("ct-regex", ct(targets=("re:*(",)), "E_REGEX", ct(targets=("re:.*(a+)+$",))),
    ("ct-ignore-regex", ct(ignore=["re:[a"]), "E_REGEX", ct(ignore=["re:[a]"])),
    ("ct-regex-deep", ct(targets=("re:" + "(" * 1500 + ")" * 1500,)), "E_REGEX",
     ct(targets=("re:" + "(" * 9 + ")" * 9,))),
    ("ct-preset", block(quant_method="compressed-tensors", config_groups={"W9A9": ["Linear"]}), "E_VALUE",
     block(quant_method="compressed-tensors", config_groups={"W4A16": ["Linear"]})),
    ("ct-bits-word", ct(scheme(num_bits="8")), "E_TYPE", ct(scheme(num_bits=8.0))),
    ("ct-bits-true", ct(scheme(num_bits=True)), "E_TYPE", ct(scheme(num_bits=8))),
    ("ct-float-5", ct(scheme(num_bits=5)), "E_VALUE", ct(scheme(num_bits=5, type="int"))),
    ("ct-int-12", ct(scheme(num_bits=12, type="int")), "E_VALUE", ct(scheme(num_bits=16, type="int"))),
    ("ct-type", ct(scheme(type="fixed")), "E_VALUE", ct(scheme(type="INT"))),
    ("ct-strategy", ct(scheme(strategy="row")), "E_VALUE", ct(scheme(strategy="TENSOR"))),
    ("ct-group-no-size", ct(scheme(strategy="group")), "E_VALUE", ct(scheme(strategy="group", group_size=64))),
    ("ct-group-negative", ct(scheme(strategy="group", group_size=-1)), "E_VALUE", ct(scheme(group_size=-1))),
    ("ct-block-missing", ct(scheme(strategy="block")), "E_KEY", ct(scheme(strategy="block", block_structure="8x8"))),
    ("ct-block-word", ct(scheme(strategy="block", block_structure="8x")), "E_VALUE",
     ct(scheme(strategy="block", block_structure=[8, 8]))),
    ("ct-dynamic", ct(scheme(dynamic="maybe")), "E_VALUE", ct(scheme(dynamic="local"))),
    ("ct-symmetric", ct(scheme(symmetric="x")), "E_TYPE", ct(scheme(symmetric=1))),
    ("ct-weights-list", ct([SCHEME]), "E_TYPE", ct(SCHEME)),
    ("ct-kv-word", ct(kv_cache_scheme="fp8"), "E_TYPE", ct(kv_cache_scheme=SCHEME)),
    ("ct-name-long", ct(targets=("a" * 70_000,)), "E_HUGE", ct(targets=("a" * 60_000,))),
    ("modelopt-no-algo", modelopt(), "E_KEY", modelopt(quant_algo="FP8")),
    ("modelopt-algo", modelopt(quant_algo="W3A3"), "E_ALGO", modelopt(quant_algo="nvfp4")),
    ("modelopt-layer-algo", modelopt(quant_algo="MIXED_PRECISION", quantized_layers={"a": {"quant_algo": "X"}}),
     "E_ALGO", modelopt(quant_algo="MIXED_PRECISION", quantized_layers={"a": {"quant_algo": "FP8"}})),
    ("modelopt-layers-list", modelopt(quant_algo="MIXED_PRECISION", quantized_layers=["a"]), "E_TYPE",
     modelopt(quant_algo="MIXED_PRECISION", quantized_layers={})),
    ("modelopt-kv", modelopt(quant_algo="FP8", kv_cache_scheme="FP7"), "E_ALGO",
     modelopt(quant_algo="FP8", kv_cache_scheme="fp8")),
    ("modelopt-kv-number", modelopt(quant_algo="FP8", kv_cache_scheme=8), "E_TYPE",
     modelopt(quant_algo="FP8", kv_cache_scheme={"num_bits": 8})),
    ("modelopt-kv-bits", modelopt(quant_algo="FP8", kv_cache_scheme={"num_bits": 6}), "E_VALUE",
     modelopt(quant_algo="FP8", kv_cache_scheme={"num_bits": 4, "type": "float"})),
    ("modelopt-group", modelopt(quant_algo="NVFP4", group_size=-7), "E_VALUE",
     modelopt(quant_algo="NVFP4", group_size=16)),
    ("awq-no-bits", block(quant_method="awq", group_size=128), "E_KEY", block(quant_method="awq", w_bit=4)),
    ("gptq-no-bits", block(quant_method="gptq", group_size=128), "E_KEY", block(quant_method="gptq", bits=4)),
    ("gptq-word", block(quant_method="gptq", bits="4"), "E_TYPE", block(quant_method="gptq", bits=4)),
    ("gptq-9", block(quant_method="gptq", bits=9), "E_VALUE", block(quant_method="gptq", bits=8)),
    ("gptq-group", block(quant_method="gptq", bits=4, group_size=-2), "E_VALUE", block(quant_method="gptq", bits=4)),
    ("gptq-rule", block(quant_method="gptq", bits=4, dynamic={"+:(": {"bits": 8}}), "E_REGEX",
     block(quant_method="gptq", bits=4, dynamic={"+:()": {"bits": 8}})),
    ("bnb-nothing", block(quant_method="bitsandbytes"), "E_KEY", block(quant_method="bitsandbytes", load_in_8bit=True)),
    ("bnb-neither", block(quant_method="bitsandbytes", load_in_4bit=False), "E_VALUE",
     block(quant_method="bitsandbytes", load_in_4bit=True)),
    ("bnb-both", block(quant_method="bitsandbytes", load_in_4bit=True, load_in_8bit=True), "E_VALUE",
     block(quant_method="bitsandbytes", load_in_4bit=True, load_in_8bit=False)),
    ("bnb-type", block(quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_quant_type="nf3"), "E_VALUE",
     block(quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_quant_type="nf4")),
    ("quark-nothing", block(quant_method="quark", export={}), "E_KEY", quark(dtype="int8")),
    ("quark-no-dtype", quark(), "E_KEY", quark(dtype="int8")),
    ("quark-dtype", quark(dtype="fp9"), "E_VALUE", quark(dtype="bfloat16")),
    ("quark-scheme", quark(dtype="int8", qscheme="x"), "E_VALUE", quark(dtype="int8")),
    ("quark-group", quark(dtype="int4", qscheme="per_group"), "E_VALUE",
     quark(dtype="int4", qscheme="per_group", group_size=32)),
    ("quark-block", quark(dtype="fp8_e4m3", qscheme="per_block"), "E_KEY",
     quark(dtype="fp8_e4m3", qscheme="per_block", block_size=[8, 8])),
    ("quark-spec-word", block(quant_method="quark", global_quant_config={"weight": "fp8"}), "E_TYPE",
     quark(dtype="int8")),
    ("torchao-nothing", block(quant_method="torchao"), "E_KEY", torchao("int4_weight_only")),
    ("torchao-word", torchao("int5"), "E_ALGO", torchao("int8_weight_only")),
    ("torchao-list", torchao([]), "E_TYPE", torchao({"default": INT4WO})),
    ("torchao-no-type", torchao({"default": {}}), "E_KEY", torchao(INT4WO)),
    ("torchao-type", torchao({"default": {"_type": "X"}}), "E_ALGO", torchao({"default": INT4WO})),
    ("torchao-map", torchao({"default": {"_type": "FqnToConfig"}}), "E_KEY",
     torchao({"default": {"_type": "FqnToConfig", "_data": {"fqn_to_config": {}}}})),
    ("torchao-intx", torchao({"_type": "IntxWeightOnlyConfig", "_data": {"weight_dtype": "int9"}}), "E_VALUE",
     torchao({"_type": "IntxWeightOnlyConfig", "_data": {"weight_dtype": "torch.int4"}})),
    ("torchao-granularity", torchao({"_type": "Int8WeightOnlyConfig", "_data": {"granularity": "PerCow"}}), "E_VALUE",
     torchao({"_type": "Int8WeightOnlyConfig", "_data": {"granularity": "PerRow"}})),
    ("autoround-bits", block(quant_method="auto-round"), "E_KEY", autoround()),
    ("autoround-type", autoround(data_type="posit"), "E_VALUE", autoround(data_type="int")),
    ("autoround-fp5", autoround(data_type="fp", bits=5), "E_VALUE", autoround(data_type="fp", bits=8)),
    ("autoround-mx5", autoround(data_type="mx_fp", bits=5), "E_VALUE", autoround(data_type="mx_fp", bits=6)),
    ("autoround-group", autoround(group_size="x"), "E_TYPE", autoround(group_size=-1)),
    ("hqq-nothing", block(quant_method="hqq"), "E_KEY", block(quant_method="hqq", nbits=4)),
    ("aqlm-missing", block(quant_method="aqlm"), "E_KEY", block(quant_method="aqlm", **AQLM)),
    ("aqlm-zero", block(quant_method="aqlm", **{**AQLM, "in_group_size": 0}), "E_VALUE",
     block(quant_method="aqlm", **AQLM)),
    ("squeezellm", block(quant_method="squeezellm", wbits=0), "E_VALUE", block(quant_method="squeezellm", wbits=3)),
    ("eetq", block(quant_method="eetq", weights="int4"), "E_VALUE", block(quant_method="eetq", weights="int8")),
    ("fp-quant", block(quant_method="fp_quant", forward_dtype="fp4"), "E_VALUE", block(quant_method="fp_quant")),
    ("quanto", block(quant_method="quanto", weights="int3"), "E_VALUE", block(quant_method="quanto", weights="int2")),
    ("quanto-none", block(quant_method="quanto", weights="none"), "E_VALUE", block(quant_method="quanto")),
    ("deepspeed", block(quant_method="deepspeedfp", bits=7), "E_VALUE", block(quant_method="deepspeedfp", bits=6)),
    ("blockwise", block(quant_method="blockwise_int8"), "E_KEY",
     block(quant_method="blockwise_int8", weight_block_size=[128, 128])),
    ("mistral", {"dim": 1, "n_layers": 1, "quantization": {"qformat_weight": "int4"}}, "E_VALUE",
     {"dim": 1, "n_layers": 1, "quantization": {"qformat_weight": "fp8_e4m3"}}),
    ("mistral-scheme", {"dim": 1, "n_layers": 1, "quantization": {"qformat_weight": "fp8_e4m3", "qscheme_act": "X"}},
     "E_VALUE", {"dim": 1, "n_layers": 1, "quantization": {"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"}}),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "expected", "good"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED])
def test_refused_and_put_right(bad: bytes | dict[str, Any], expected: str, good: bytes | dict[str, Any]) -> None:
    assert code(bad) == expected
    assert code(good) == "ok"


def test_messages_name_the_key_path_and_never_pass_on_what_steers_a_terminal() -> None:
    with pytest.raises(CheckpointError, match=r"quantization_config\.config_groups\.g\.weights\.num_bits must be an"):
        promise_from_dict(ct(scheme(num_bits="\x1b[2J")), source="config.json")
    with pytest.raises(CheckpointError, match=r"E_METHOD: unknown quant_method '\\x1b\[2Jfp8'; known: aqlm, "):
        promise_from_dict(block(quant_method="\x1b[2Jfp8"), source="config.json")
    hostile = {"\x1b]0;x\x07": {"targets": ["Linear"], "weights": {"num_bits": "x"}}}
    with pytest.raises(CheckpointError, match=r"config_groups\.'\\x1b\]0;x\\x07'\.weights\.num_bits"):
        promise_from_dict(block(quant_method="compressed-tensors", config_groups=hostile), source="config.json")


def test_long_values_are_cut() -> None:
    with pytest.raises(CheckpointError) as refusal:
        promise_from_dict(block(quant_method="x" * 10_000), source="config.json")
    assert len(str(refusal.value)) < 700 and "…" in str(refusal.value)


@pytest.mark.parametrize(
    ("data", "codes"),
    [
        (b'\xef\xbb\xbf{"a":1}', ["N_BOM"]),
        (b'{"a":1,"a":2}', ["N_DUP_KEY"]),
        (b'{"a":1,"a":1}', []),
        (b'{"a":[0,Infinity]}', ["N_NONFINITE"]),
        (b'{"a":{"__float__":"Infinity"}}', []),
        (b'{"a":1}', []),
    ],
)
def test_remarks_on_how_a_file_is_written(data: bytes, codes: list[str]) -> None:
    assert [note.code for note in parse_json(data)[1]] == codes


def test_the_last_of_two_keys_wins_as_in_the_engines() -> None:
    assert parse_json(b'{"a":1,"a":2}')[0] == {"a": 2}


def test_half_a_surrogate_pair_is_replaced() -> None:
    value, _ = parse_json(rb'{"a":"\ud83d\ude00","b":"\ud800x","c":"\udc00"}')
    assert value == {"a": "😀", "b": "�x", "c": "�"}


def test_reading_leaves_the_config_alone() -> None:
    config = ct()
    before = copy.deepcopy(config)
    promise_from_dict(config, source="config.json")
    assert json.dumps(config) == json.dumps(before)


def test_a_mapping_that_refers_to_itself_is_refused() -> None:
    config: dict[str, Any] = dict(ROOT)
    config["self"] = config
    assert code(config) == "E_DEPTH"


def test_regexes_that_are_slow_to_compile_are_not_compiled() -> None:
    start = time.perf_counter()
    wide = "re:" + "[\x01-\U0010ffff]" * 800
    escaped = "re:" + r"[\u0000-\U0010ffff]" * 150
    assert code(ct(targets=(wide, escaped))) == "ok"
    assert time.perf_counter() - start < 1.0


@pytest.mark.parametrize(
    ("name", "data", "told"),
    [
        ("broken.json", b"{bad", "E_JSON: is not JSON at line 1 column 2: Expecting property name enclosed in double"),
        ("empty.json", b"", "E_EMPTY: empty file; give the file as the model's publisher has it: download it again"),
        ("none.json", None, "E_OPEN: no such file or directory; give the config.json, hf_quant_config.json or params"),
        ("index.json", b'{"weight_map": {}}', "E_SAFETENSORS_INDEX: a safetensors index (weight_map); give the config"),
    ],
)
def test_a_refusal_says_what_to_give_instead(tmp_path, name, data, told):
    file = tmp_path / name
    if data is not None:
        file.write_bytes(data)
    with pytest.raises(CheckpointError) as refused:
        read_promise(file)
    assert str(refused.value).startswith(f"{file}: {told}")
    assert str(refused.value).count("; give ") == 1
