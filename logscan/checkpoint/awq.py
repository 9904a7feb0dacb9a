"""AWQ (AutoAWQ, llm-awq): 4-bit groups, asymmetric, weight-only.

Source: vLLM model_executor/layers/quantization/awq.py (`bits`/`w_bit`, `group_size`/`q_group_size`).
"""

from __future__ import annotations

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.fields import Node
from logscan.checkpoint.operands import group, integer, weight_only


def read(block: Node, model: Node) -> Draft:
    """`quant_method: awq`. `modules_to_not_convert` are substrings of layer names."""
    draft = Draft("awq")
    draft.skip("substring", block.strings("modules_to_not_convert"))
    block.need("bits", "w_bit")
    bits = block.integer("bits", "w_bit") or 0
    size = block.integer("group_size", "q_group_size")
    zero_point = block.flag("zero_point")
    weights = integer(bits, 128 if size is None else size, zero_point is False, block.at("bits"))
    draft.groups = [group("linear", weight_only(weights), storage=block.text("version"))]
    return draft
