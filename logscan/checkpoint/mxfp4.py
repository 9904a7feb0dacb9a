"""`quant_method: mxfp4` (gpt-oss): MXFP4 experts. It says nothing about activations.

Source: vLLM model_executor/layers/quantization/mxfp4.py (linear layers are never quantized, the skip list is not read).
"""

from __future__ import annotations

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.fields import Node
from logscan.checkpoint.operands import group, mxfp4, unspecified
from logscan.model import Matcher


def read(block: Node, model: Node) -> Draft:
    """Experts only; the engine chooses the activations by backend and GPU."""
    draft = Draft("mxfp4")
    draft.skip("glob", block.strings("modules_to_not_convert", "ignored_layers"))
    draft.groups = [group("experts", unspecified(mxfp4()), (Matcher("substring", ".experts"),), scope="moe_experts")]
    draft.note("N_ACT_UNSPECIFIED", "the activations of the experts are not named; the engine chooses")
    return draft
