"""Vector quantization: AQLM (additive codebooks) and SqueezeLLM (one table for each output channel).

Source: vLLM model_executor/layers/quantization/{aqlm,squeezellm}.py (≤ 0.10, ≤ 0.6).
"""

from __future__ import annotations

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.errors import CheckpointError
from logscan.checkpoint.fields import Node
from logscan.checkpoint.operands import group, weight_only
from logscan.model import Operand

_AQLM = ("in_group_size", "out_group_size", "num_codebooks", "nbits_per_codebook")


def read_aqlm(block: Node, model: Node) -> Draft:
    """AQLM: bits a weight = codebooks × bits of a code ÷ weights that share a code."""
    draft = Draft("aqlm")
    draft.skip("name", block.strings("linear_weights_not_to_quantize"))
    values = []
    for key in _AQLM:
        block.need(key)
        value = block.integer(key) or 0
        if not 0 < value <= 1 << 16:
            raise CheckpointError("E_VALUE", f"{block.at(key)} is {value}")
        values.append(value)
    columns, rows, books, bits = values
    operand = Operand("codebook", books * bits / (columns * rows), "group", columns)
    draft.groups = [group("linear", weight_only(operand))]
    return draft


def read_squeezellm(block: Node, model: Node) -> Draft:
    """SqueezeLLM: a lookup table of 2^bits values for each output channel."""
    draft = Draft("squeezellm")
    block.need("wbits", "bits")
    bits = block.integer("wbits", "bits") or 0
    if not 1 <= bits <= 8:
        raise CheckpointError("E_VALUE", f"{block.at('wbits')} is {bits}")
    draft.groups = [group("linear", weight_only(Operand("codebook", bits, "channel")))]
    return draft
