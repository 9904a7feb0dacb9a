"""Model traits: synonyms, nesting, what is computed, what hostile values do."""

from __future__ import annotations

from typing import Any

import pytest

from logscan.checkpoint import promise_from_dict
from logscan.checkpoint.traits import model_dtype


def traits(**config: Any) -> dict[str, Any]:
    return dict(promise_from_dict({"model_type": "m", **config}, source="config.json").traits)


def test_only_what_is_there() -> None:
    assert traits() == {"model_type": "m"}


@pytest.mark.parametrize("key", ["num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts"])
def test_experts_have_many_names(key: str) -> None:
    assert traits(**{key: 64})["num_experts"] == 64
    assert "num_experts" not in traits(**{key: 0})
    assert "num_experts" not in traits(**{key: None})


def test_head_dim_is_computed_only_where_it_is_absent() -> None:
    assert traits(hidden_size=4096, num_attention_heads=32)["head_dim"] == 128
    assert traits(hidden_size=4096, num_attention_heads=32, head_dim=64)["head_dim"] == 64
    assert "head_dim" not in traits(hidden_size=4096)
    assert "head_dim" not in traits(hidden_size=4096, num_attention_heads=0)


def test_as_many_kv_heads_as_heads_unless_named() -> None:
    assert traits(num_attention_heads=32)["num_key_value_heads"] == 32
    assert traits(num_attention_heads=32, num_key_value_heads=8)["num_key_value_heads"] == 8


def test_mla_and_sinks() -> None:
    assert traits(kv_lora_rank=512, num_attention_heads=128)["mla"] is True
    assert "mla" not in traits(kv_lora_rank=None)
    assert traits(model_type="gpt_oss")["sinks"] is True
    assert "sinks" not in traits()


def test_the_language_model_answers_before_its_wrapper() -> None:
    text = {"hidden_size": 5120, "num_attention_heads": 40, "num_experts": 128, "tie_word_embeddings": False}
    found = traits(
        architectures=["V"], hidden_size=1, tie_word_embeddings=True, text_config={**text, "model_type": "t"}
    )
    assert found["hidden_size"] == 5120
    assert found["num_experts"] == 128
    assert found["tie_word_embeddings"] is False
    assert found["model_type"] == "m"
    assert found["architectures"] == ("V",)


def test_deeper_nesting_and_mistral() -> None:
    assert traits(thinker_config={"text_config": {"num_experts": 8}})["num_experts"] == 8
    found = traits(dim=4096, n_heads=32, n_kv_heads=8, moe={"num_experts": 16, "num_experts_per_tok": 2})
    assert (found["hidden_size"], found["num_key_value_heads"], found["num_experts"]) == (4096, 8, 16)
    assert found["num_experts_per_tok"] == 2


def test_sliding_window_only_where_it_is_used() -> None:
    assert traits(sliding_window=4096)["sliding_window"] == 4096
    assert "sliding_window" not in traits(sliding_window=4096, use_sliding_window=False)


def test_scale_format_of_the_block() -> None:
    block = {"quant_method": "fp8", "activation_scheme": "dynamic", "scale_fmt": "ue8m0"}
    assert traits(quantization_config=block)["scale_fmt"] == "ue8m0"


def test_values_that_are_no_traits() -> None:
    assert "hidden_size" not in traits(hidden_size={"a": 1})
    assert "hidden_size" not in traits(hidden_size=float("nan"))
    assert "hidden_size" not in traits(hidden_size=1 << 60)
    assert "vocab_size" not in traits(vocab_size=[1, [2]])
    assert traits(num_key_value_heads=[8, 8, 8])["num_key_value_heads"] == 8
    assert traits(num_key_value_heads=[8, 4])["num_key_value_heads"] == (8, 4)
    assert len(traits(hidden_act="x" * 1000)["hidden_act"]) == 200


def test_model_dtype() -> None:
    assert model_dtype({"dtype": "float16", "torch_dtype": "bfloat16"}) == "float16"
    assert model_dtype({"torch_dtype": "torch.bfloat16"}) == "bfloat16"
    assert model_dtype({"torch_dtype": "auto", "text_config": {"dtype": "float32"}}) == "float32"
    assert model_dtype({"torch_dtype": 16}) is None
