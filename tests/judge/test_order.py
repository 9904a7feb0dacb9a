from __future__ import annotations

from typing import Any

import pytest

from logscan.checkpoint import promise_from_dict
from logscan.judge.order import asks, requested_path
from logscan.judge.requests import rows
from logscan.judge.scope import groups_on
from logscan.labels import path_label
from logscan.model import Promise

BF16 = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"}
NATIVE = {**BF16, "quantization_config": {"quant_method": "fp8", "activation_scheme": "dynamic"}}


def promise(config: dict[str, Any]) -> Promise:
    return promise_from_dict(config, source="config.json")


def brief(found: Any) -> dict[str, tuple[str | None, str | None, bool]]:
    return {ask.path: (ask.against, path_label(ask.wanted) if ask.wanted else None, ask.unknown) for ask in found}


def test_an_online_method_is_the_request_of_an_unquantized_checkpoint() -> None:
    found = asks(promise(BF16), {"quantization": "fp8"}, ("0.28.0",), rows())
    assert brief(found)["linear"] == ("request", "W8A8-FP8 per-tensor/unspecified-dynamic", False)


def test_the_same_flag_only_names_the_method_of_a_quantized_one() -> None:
    found = asks(promise(NATIVE), {"quantization": "fp8"}, ("0.28.0",), rows())
    assert brief(found)["linear"] == ("promise", "W8A8-FP8 per-tensor/unspecified-dynamic", False)


def test_without_a_checkpoint_the_engine_line_tells_unquantized_from_unknown() -> None:
    assert brief(asks(None, {}, ("0.28.0",), rows(), resolved="None"))["linear"] == (None, None, False)
    assert brief(asks(None, {}, ("0.28.0",), rows(), resolved="awq_marlin"))["linear"] == (None, None, True)
    assert brief(asks(None, {}, ("0.28.0",), rows()))["linear"] == (None, None, True)


@pytest.mark.parametrize(
    ("resolved", "kv", "attention"),
    [("None", False, False), ("awq", False, False), ("compressed-tensors", True, True), ("modelopt_fp4", True, False)],
)
def test_only_some_methods_can_promise_for_the_cache(resolved: str, kv: bool, attention: bool) -> None:
    found = {a.path: a.unknown for a in asks(None, {}, ("0.28.0",), rows(), resolved=resolved)}
    assert (found["kv_cache"], found["attention"]) == (kv, attention)


def test_layers_of_an_online_method_show_an_unquantized_checkpoint() -> None:
    found = asks(None, {"quantization": "fp8"}, ("0.22.1",), rows(), resolved="fp8", layers={"Fp8OnlineLinearMethod"})
    assert brief(found)["linear"][0] == "request"
    found = asks(None, {"quantization": "fp8"}, ("0.22.1",), rows(), resolved="fp8", layers={"Fp8LinearMethod"})
    assert brief(found)["linear"] == (None, None, True)


@pytest.mark.parametrize(("release", "refused"), [("0.20.2", True), ("0.24.0", False)])
def test_a_method_that_the_release_does_not_have(release: str, refused: bool) -> None:
    found = asks(promise(BF16), {"quantization": "fp8_per_channel"}, (release,), rows())
    assert [bool(a.refusal) for a in found if a.path == "linear"] == [refused]


@pytest.mark.parametrize(
    ("value", "release", "label"),
    [
        ("fp8", "0.5.0", "FP8"),
        ("fp8_e5m2", "0.10.0", "FP8e5m2"),
        ("bfloat16", "0.11.0", "BF16"),
        ("nvfp4", "0.19.0", None),
        ("nvfp4", "0.20.0", "NVFP4 g16-local"),
        ("auto", "0.20.0", None),
    ],
)
def test_a_kv_dtype_is_a_request(value: str, release: str, label: str | None) -> None:
    from logscan.labels import kv_label

    found = requested_path("kv_cache_dtype", value, "kv_cache", (release,), rows())
    assert (kv_label(found.weights) if found and found.weights else None) == label


def compressed(targets: list[str], ignore: list[str], **more: Any) -> dict[str, Any]:
    group = {
        "targets": targets,
        "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": True},
        "input_activations": None,
    }
    quantization = {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ignore}
    return {**BF16, **more, "quantization_config": {**quantization, "config_groups": {"group_0": group}}}


@pytest.mark.parametrize(
    ("targets", "ignore", "linear", "moe"),
    [
        (["Linear"], ["lm_head"], True, True),
        (["Linear"], ["lm_head", "re:.*experts.*"], True, False),
        (["re:.*experts.*"], ["lm_head"], False, True),
        (["re:.*self_attn.*"], [], True, False),
        (["Linear"], ["re:.*self_attn.*", "re:.*linear_attn.*", "re:.*mlp\\.(gate|down|up).*", "re:.*shared.*",
                      "re:.*mixer.(in|o).*"], False, True),
    ],
)  # fmt: skip
def test_which_path_a_group_speaks_for(targets: list[str], ignore: list[str], linear: bool, moe: bool) -> None:
    found = promise(compressed(targets, ignore, num_experts=8))
    assert bool(groups_on(found, "linear")) is linear
    assert bool(groups_on(found, "moe")) is moe
    paths = {a.path for a in asks(found, {}, ("0.28.0",), rows())}
    assert "moe" in paths


def test_a_dense_model_has_no_expert_row() -> None:
    assert "moe" not in {a.path for a in asks(promise(NATIVE), {}, ("0.28.0",), rows())}
    assert "moe" in {a.path for a in asks(None, {}, ("0.28.0",), rows(), experts=True)}


def test_a_hostile_regex_does_not_hang() -> None:
    import time

    start = time.monotonic()
    found = promise(compressed(["re:(?:a+)+$"], ["re:(?:[a-z.]+)+!"]))
    groups_on(found, "linear")
    assert time.monotonic() - start < 5
