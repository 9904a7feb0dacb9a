"""Methods whose name says almost everything: EETQ, BitNet, FP-Quant, Quanto, DeepSpeed FP, SGLang's own.

Source: transformers utils/quantization_config.py (EetqConfig, BitNetQuantConfig, FPQuantConfig, QuantoConfig); vLLM
model_executor/layers/quantization/{deepspeedfp,fp_quant}.py; SGLang srt/layers/quantization/w8a8_*.py.
"""

from __future__ import annotations

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.errors import CheckpointError, show
from logscan.checkpoint.fields import Node, pair
from logscan.checkpoint.operands import fp8, group, int8_token, integer, mxfp4, nvfp4, quantized, weight_only
from logscan.model import NumericPath, Operand

_INT8 = Operand("int8", 8, "channel")
_SKIPPED = ("modules_to_not_convert", "ignored_layers", "ignore")


def read_eetq(block: Node, model: Node) -> Draft:
    """EETQ: INT8 weights per channel, activations 16-bit."""
    block.choice("weights", {"int8": 8})
    return _draft("eetq", block, weight_only(_INT8))


def read_bitnet(block: Node, model: Node) -> Draft:
    """BitNet b1.58: ternary weights with one scale, INT8 activations per token."""
    return _draft("bitnet", block, quantized(Operand("ternary", 1.58, "tensor"), int8_token()))


def read_fp_quant(block: Node, model: Node) -> Draft:
    """FP-Quant: MXFP4 or NVFP4 on both sides of the GEMM, after a Hadamard rotation of groups."""
    paths = {"mxfp4": quantized(mxfp4(), mxfp4(True)), "nvfp4": quantized(nvfp4(), nvfp4("local"))}
    numeric = block.choice("forward_dtype", paths) or paths["nvfp4"]
    draft = _draft("fp_quant", block, numeric, "suffix")
    size = block.integer("hadamard_group_size")
    if size:
        draft.transforms.append(f"hadamard:{size}")
    if block.flag("pseudoquantization"):
        draft.note("N_PSEUDO", "pseudoquantization: transformers would emulate the FP4 GEMM")
    return draft


def read_quanto(block: Node, model: Node) -> Draft:
    """Quanto: 8-bit weights per channel, fewer bits in asymmetric groups of 128; activations static per tensor."""
    weights: dict[str, Operand | None] = {
        "float8": fp8("channel"),
        "int8": _INT8,
        "int4": integer(4, 128, False),
        "int2": integer(2, 128, False),
        "none": None,
    }
    inputs = {"float8": fp8("tensor"), "int8": Operand("int8", 8, "tensor"), "none": None}
    weight = weights["int8"] if not block.has("weights") else block.choice("weights", weights)
    activation = block.choice("activations", inputs)
    if weight is None:
        raise CheckpointError("E_VALUE", f"{block.at('weights')} is none: nothing is quantized")
    return _draft("quanto", block, NumericPath(weight, activation, "quantized" if activation else "none"))


def read_deepspeedfp(block: Node, model: Node) -> Draft:
    """DeepSpeed FP: 6- or 8-bit floats of DeepSpeed's own layout in groups, weight-only."""
    bits = block.integer("bits")
    bits = 8 if bits is None else bits
    if bits not in (6, 8):
        raise CheckpointError("E_VALUE", f"{block.at('bits')} is {bits}; DeepSpeed FP has 6 or 8")
    size = block.integer("group_size")
    weights = Operand(f"fp{bits}_ds", bits, "group", 512 if size is None else _positive(size, block))
    return _draft("deepspeedfp", block, weight_only(weights))


def read_w8a8_int8(block: Node, model: Node) -> Draft:
    """SGLang's `w8a8_int8`: per-channel weights, per-token activations."""
    return _draft("w8a8_int8", block, quantized(_INT8, int8_token()))


def read_w8a8_fp8(block: Node, model: Node) -> Draft:
    """SGLang's `w8a8_fp8`: per-channel weights, per-token activations."""
    return _draft("w8a8_fp8", block, quantized(fp8("channel"), fp8("token", True)))


def read_blockwise_int8(block: Node, model: Node) -> Draft:
    """SGLang's `blockwise_int8`: INT8 blocks, activations in groups along K."""
    block.need("weight_block_size")
    rows, columns = pair(block.raw("weight_block_size"), block.at("weight_block_size"))
    weights = Operand("int8", 8, "block", None, (rows, columns))
    inputs = Operand("int8", 8, "group", columns, dynamic=True)
    return _draft("blockwise_int8", block, quantized(weights, inputs))


def _draft(method: str, block: Node, numeric: NumericPath, skip: str = "substring") -> Draft:
    draft = Draft(method)
    draft.skip(skip, block.strings(*_SKIPPED))
    draft.groups = [group("linear", numeric)]
    return draft


def _positive(size: int, block: Node) -> int:
    if not 0 < size <= 1 << 20:
        raise CheckpointError("E_VALUE", f"{block.at('group_size')} is {show(size)}")
    return size
