"""HQQ: integer groups with zero points, weight-only.

Source: vLLM model_executor/layers/quantization/hqq_marlin.py (≤ 0.14.1); transformers HqqConfig.
"""

from __future__ import annotations

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.fields import Node
from logscan.checkpoint.operands import group, integer, weight_only
from logscan.checkpoint.targets import scope_of
from logscan.model import Matcher, NumericPath


def read(block: Node, model: Node) -> Draft:
    """`quant_config.weight_quant_params`, or one such object for each layer tag (`self_attn.q_proj`)."""
    draft = Draft("hqq")
    draft.skip("component", block.strings("skip_modules", "modules_to_not_convert"))
    config = block.node("quant_config") or block
    if config.has("weight_quant_params", "nbits"):
        draft.groups = [group("linear", _numeric(config.node("weight_quant_params") or config))]
        return draft
    tags = [(tag, node) for tag in config if isinstance(config.value[tag], dict) and (node := config.node(tag))]
    if not tags:
        config.need("weight_quant_params")
    for tag, node in tags:
        target = Matcher("substring", tag)
        numeric = _numeric(node.node("weight_quant_params") or node)
        draft.groups.append(group(tag, numeric, (target,), scope=scope_of((target,))))
    return draft


def _numeric(params: Node) -> NumericPath:
    params.need("nbits")
    return weight_only(integer(params.integer("nbits") or 0, params.integer("group_size"), False, params.at("nbits")))
