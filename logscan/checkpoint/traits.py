"""What kernel selection needs to know of the model itself, read from its config.json."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

NESTED = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where multimodal configs keep the language model, in the order they are looked into."""

_PLAIN = [
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "num_hidden_layers",
    "intermediate_size",
    "moe_intermediate_size",
    "num_experts_per_tok",
    "head_dim",
    "sliding_window",
    "hidden_act",
    "scale_fmt",
    "vocab_size",
    "tie_word_embeddings",
    "max_position_embeddings",
    "kv_lora_rank",
    "q_lora_rank",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "v_head_dim",
    "n_shared_experts",
    "attention_bias",
    "use_sliding_window",
    "layer_types",
    "expert_dtype",
    "index_topk",
    "swiglu_limit",
    "num_nextn_predict_layers",
    "is_encoder_decoder",
    "shared_expert_intermediate_size",
    "first_k_dense_replace",
    "decoder_sparse_step",
    "n_group",
    "topk_group",
    "scoring_func",
]
_SYNONYMS = {
    "num_experts": (
        "num_local_experts",
        "n_routed_experts",
        "num_experts",
        "moe_num_experts",
        "num_moe_experts",
        "num_routed_experts",
    ),
    "num_experts_per_tok": (
        "num_experts_per_tok",
        "num_experts_per_token",
        "moe_topk",
        "moe_k",
        "top_k_experts",
        "experts_per_token",
    ),
    "hidden_size": ("hidden_size", "dim", "n_embd", "d_model"),
    "num_hidden_layers": ("num_hidden_layers", "n_layers", "n_layer", "num_layers"),
    "num_attention_heads": ("num_attention_heads", "n_heads", "n_head"),
    "num_key_value_heads": ("num_key_value_heads", "n_kv_heads", "multi_query_group_num"),
    "intermediate_size": ("intermediate_size", "hidden_dim", "ffn_hidden_size"),
    "moe_intermediate_size": ("moe_intermediate_size", "expert_ffn_hidden_size", "expert_hidden_dim"),
    "hidden_act": ("hidden_act", "hidden_activation", "activation_function"),
    "max_position_embeddings": ("max_position_embeddings", "max_seq_len", "n_positions"),
    "tie_word_embeddings": ("tie_word_embeddings", "tied_embeddings"),
}
_MAX_TEXT = 200
_MAX_LIST = 1024
_MAX_NUMBER = 1 << 53


def read_traits(model: Mapping[str, Any], block: Mapping[str, Any]) -> dict[str, Any]:
    """Traits of a model config, only those that are there, the language model's before the wrapper's.

    `head_dim` is computed where only hidden size and heads are given; `num_experts` is absent for dense models;
    `mla` and `sinks` are only ever True. Counts are plain integers.
    """
    layers = [model, *language_models(model)]
    if isinstance(model.get("moe"), dict):  # Mistral's params.json
        layers.append(model["moe"])
    traits: dict[str, Any] = {}
    names = list(dict.fromkeys(_PLAIN + list(_SYNONYMS)))
    for name in names:
        value = _lookup(layers, _SYNONYMS.get(name, (name,)))
        if value is not None:
            traits[name] = value
    for name in ("architectures", "model_type"):
        value = _plain(model.get(name))
        if value is not None:
            traits[name] = value
    scale = block.get("scale_fmt")
    if isinstance(scale, str):
        traits["scale_fmt"] = scale[:_MAX_TEXT]
    _derive(traits, layers)
    return traits


def language_models(model: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The nested language-model configs of a multimodal one, at most two levels down."""
    found: list[Mapping[str, Any]] = [child for name in NESTED if isinstance(child := model.get(name), dict)]
    return found + [inner for child in found for name in NESTED if isinstance(inner := child.get(name), dict)]


def model_dtype(model: Mapping[str, Any]) -> str | None:
    """`bfloat16`, `float16` … of `dtype` or `torch_dtype`, the wrapper's first; None if not said."""
    for layer in [model, *language_models(model)]:
        for key in ("dtype", "torch_dtype"):
            value = layer.get(key)
            if isinstance(value, str) and value not in ("", "auto"):
                return value.removeprefix("torch.").lower()[:40]
    return None


def _derive(traits: dict[str, Any], layers: list[Mapping[str, Any]]) -> None:
    size, heads = traits.get("hidden_size"), traits.get("num_attention_heads")
    if "head_dim" not in traits and type(size) is int and type(heads) is int and heads > 0 and size > 0:
        traits["head_dim"] = size // heads
    if "num_key_value_heads" not in traits and type(heads) is int and "kv_lora_rank" not in traits:
        traits["num_key_value_heads"] = heads
    experts = traits.get("num_experts")
    if type(experts) is not int or experts <= 0:
        traits.pop("num_experts", None)
    if type(traits.get("kv_lora_rank")) is int:
        traits["mla"] = True
    if any(layer.get("model_type") == "gpt_oss" for layer in layers):
        traits["sinks"] = True
    if traits.get("use_sliding_window") is False:
        traits.pop("sliding_window", None)


def _lookup(layers: list[Mapping[str, Any]], keys: tuple[str, ...]) -> Any:
    """The first usable value; nested language models answer before the wrapper, whose counts may be another tower's."""
    for layer in layers[1:] + layers[:1]:
        for key in keys:
            value = _plain(layer.get(key))
            if value is not None and value != 0 or value is False:
                return value
    return None


def _plain(value: Any) -> Any:
    """A scalar, or a short list of scalars; for a list of counts that are all the same, the count; else None."""
    if isinstance(value, str):
        return value[:_MAX_TEXT]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int):
        return value if abs(value) < _MAX_NUMBER else None
    if isinstance(value, list) and 0 < len(value) <= _MAX_LIST:
        items = [_plain(v) if isinstance(v, (str, int, float)) else None for v in value]
        if None not in items:
            return items[0] if type(items[0]) is int and len(set(items)) == 1 else tuple(items)
    return None
