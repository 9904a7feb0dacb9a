"""What ran against a yardstick, axis by axis: axis → delta → kind.

There is no single order of paths: 16-bit activations where 8-bit ones were promised are better numerics *and* worse
compute. So each axis is compared on its own, a field that the yardstick does not name cannot be violated, and finer
granularity than promised is kept.
"""

from __future__ import annotations

from logscan.model import NumericPath, Operand

# Rank of fineness. A group of g elements along the row is finer than the whole row.
_RANK = {"tensor": 0, "attn_head": 1, "channel": 2, "token": 2, "block": 3, "group": 4, "tensor_group": 4}
_FLOAT16 = ("bf16", "fp16", "fp32")


def is_16bit(operand: Operand | None) -> bool:
    """Whether the operand is not quantized at all."""
    return operand is None or operand.dtype in _FLOAT16


def family(dtype: str) -> str:
    """The number family: fp, int, and e5m2 apart from the other floats; codebooks and ternary are their own."""
    if dtype.endswith("e5m2"):
        return "e5m2"
    return "fp" if dtype.startswith(("fp", "bf")) else "int" if dtype.startswith("int") else dtype


def coarser(ran: Operand, wanted: Operand) -> bool:
    """Whether `ran` has coarser scales than `wanted` names. Unnamed granularity on either side: no."""
    if wanted.strategy is None or ran.strategy is None:
        return False
    if _RANK.get(ran.strategy, 0) != _RANK.get(wanted.strategy, 0):
        return _RANK.get(ran.strategy, 0) < _RANK.get(wanted.strategy, 0)
    if ran.group_size and wanted.group_size and ran.strategy == wanted.strategy:
        return ran.group_size > wanted.group_size
    if ran.block and wanted.block:
        return ran.block[0] * ran.block[1] > wanted.block[0] * wanted.block[1]
    return False


def unsure(wanted: NumericPath, ran: NumericPath) -> bool:
    """Whether `ran` leaves open an axis of the activations that `wanted` names."""
    if wanted.input_claim != "quantized" or is_16bit(ran.input) and ran.input_claim == "none":
        return False
    if ran.input_claim == "unspecified" or ran.input is None:
        return True
    return wanted.input is not None and wanted.input.strategy is not None and ran.input.strategy is None


def kinds(wanted: NumericPath, ran: NumericPath, compute: str) -> tuple[str, ...]:
    """The kinds of deviation of a GEMM path; empty when it is kept on every axis that `wanted` names.

    `compute` is the kernel's: native, weight-only, emulated, storage-only, unfused.
    """
    found: list[str] = []
    if wanted.weights is not None and not is_16bit(wanted.weights):
        if is_16bit(ran.weights) and compute != "emulated":
            return ("ignored",)
        found += _operand_kinds(wanted.weights, ran.weights)
    if compute == "emulated" and wanted.input_claim == "quantized":
        found.append("emulated")
    elif wanted.input_claim == "quantized":
        found += _input_kinds(wanted.input, ran)
    elif wanted.input_claim == "none" and ran.input_claim == "quantized":
        found.append("fewer-bits")
    return tuple(dict.fromkeys(found))


def _input_kinds(wanted: Operand | None, ran: NumericPath) -> list[str]:
    if ran.input_claim == "none" or is_16bit(ran.input):
        return ["weight-only"] if ran.input_claim != "unspecified" else []
    return _operand_kinds(wanted, ran.input) if wanted is not None else []


def _operand_kinds(wanted: Operand, ran: Operand | None) -> list[str]:
    if ran is None:
        return []
    if ran.bits < wanted.bits:
        return ["fewer-bits"]
    if ran.bits > wanted.bits or family(ran.dtype) != family(wanted.dtype):
        return ["type-changed"]
    return ["coarser-scales"] if coarser(ran, wanted) else []


def kv_kinds(wanted: Operand, ran: Operand) -> tuple[str, ...]:
    """The kinds of deviation of a KV cache's storage."""
    if is_16bit(wanted):
        return () if is_16bit(ran) else ("fewer-bits",)
    if is_16bit(ran):
        return ("ignored",)
    return tuple(_operand_kinds(wanted, ran))
