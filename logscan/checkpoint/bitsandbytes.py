"""bitsandbytes: NF4/FP4 weight-only in groups of 64, or LLM.int8().

Source: transformers BitsAndBytesConfig; vLLM model_executor/layers/quantization/bitsandbytes.py.
"""

from __future__ import annotations

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.errors import CheckpointError
from logscan.checkpoint.fields import Node
from logscan.checkpoint.operands import group, int8_token, quantized, weight_only
from logscan.model import Operand

BLOCK = 64  # bitsandbytes' default blocksize; configs do not name it
_TYPES = {"nf4": "nf4", "fp4": "fp4_e2m1"}


def read(block: Node, model: Node) -> Draft:
    """`load_in_4bit` or `load_in_8bit`, in newer files with an underscore; skipped modules are substrings."""
    draft = Draft("bitsandbytes")
    draft.skip("substring", block.strings("llm_int8_skip_modules"))
    block.need("load_in_4bit", "load_in_8bit", "_load_in_4bit", "_load_in_8bit")
    four = block.flag("load_in_4bit") or block.flag("_load_in_4bit")
    eight = block.flag("load_in_8bit") or block.flag("_load_in_8bit")
    if four and eight:
        raise CheckpointError("E_VALUE", f"{block.path}: load_in_4bit and load_in_8bit are both true")
    if not four and not eight:
        raise CheckpointError("E_VALUE", f"{block.path}: neither load_in_4bit nor load_in_8bit is true")
    if eight:
        draft.groups = [group("linear", quantized(Operand("int8", 8, "channel"), int8_token()))]
        draft.note("N_OUTLIERS", "LLM.int8(): outlier columns of the activations stay 16-bit")
        return draft
    dtype = block.choice("bnb_4bit_quant_type", _TYPES) or "fp4_e2m1"
    scale = "int8" if block.flag("bnb_4bit_use_double_quant") else "fp32"
    draft.groups = [group("linear", weight_only(Operand(dtype, 4, "group", BLOCK, scale_dtype=scale)))]
    return draft
