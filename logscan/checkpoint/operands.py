"""Operands as the formats define them (OCP MX v1.0, NVFP4, compressed-tensors' strategies), and groups made of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from logscan.checkpoint.errors import CheckpointError, printable
from logscan.labels import kv_label, path_label
from logscan.model import Group, KVPromise, Matcher, NumericPath, Operand

Dynamic = bool | Literal["local"] | None
Scope = Literal["linear", "moe_experts", "attention", "embedding"]

MX_GROUP = 32
NVFP4_GROUP = 16
MAX_NAME = 200


def fp8(
    strategy: str | None,
    dynamic: Dynamic = False,
    *,
    group: int | None = None,
    block: tuple[int, int] | None = None,
    scale: str | None = None,
    ub: float | None = None,
    dtype: str = "fp8_e4m3",
) -> Operand:
    """FP8 (e4m3 unless named otherwise) with the given scaling."""
    return Operand(dtype, 8, strategy, group, block, True, dynamic, scale, ub)


def nvfp4(dynamic: Dynamic = False, group: int = NVFP4_GROUP) -> Operand:
    """FP4 e2m1 in groups of 16 with an fp8_e4m3 scale each, and one fp32 scale for the tensor."""
    return Operand("fp4_e2m1", 4, "tensor_group", group, None, True, dynamic, "fp8_e4m3")


def mx(dtype: str, bits: int, dynamic: Dynamic = False) -> Operand:
    """An OCP MX format: groups of 32 that share a power of two."""
    return Operand(dtype, bits, "group", MX_GROUP, None, True, dynamic, "e8m0")


def mxfp4(dynamic: Dynamic = False) -> Operand:
    return mx("fp4_e2m1", 4, dynamic)


def mxfp8(dynamic: Dynamic = False) -> Operand:
    return mx("fp8_e4m3", 8, dynamic)


def integer(bits: int, group_size: int | None, symmetric: bool | None = True, path: str = "bits") -> Operand:
    """An integer weight; `group_size` -1 or None is per output channel, 0 per tensor."""
    if not 1 <= bits <= 8:
        raise CheckpointError("E_VALUE", f"{path} is {bits}; integer weights have 1 to 8 bits")
    strategy, group = grouping(group_size)
    return Operand(f"int{bits}", bits, strategy, group, None, symmetric)


def grouping(group_size: int | None, path: str = "group_size") -> tuple[str, int | None]:
    """The strategy a `group_size` stands for: -1 (or None) channel, 0 tensor, n > 0 groups of n."""
    if group_size is None or group_size == -1:
        return "channel", None
    if group_size == 0:
        return "tensor", None
    if group_size < -1 or group_size > 1 << 20:
        raise CheckpointError("E_VALUE", f"{path} is {group_size}")
    return "group", group_size


def int8_token() -> Operand:
    return Operand("int8", 8, "token", dynamic=True)


def weight_only(weights: Operand) -> NumericPath:
    """Activations stay 16-bit, and that is promised."""
    return NumericPath(weights, None, "none")


def quantized(weights: Operand, inputs: Operand) -> NumericPath:
    return NumericPath(weights, inputs, "quantized")


def unspecified(weights: Operand) -> NumericPath:
    """The checkpoint leaves the activations to the engine."""
    return NumericPath(weights, None, "unspecified")


def group(
    name: str,
    numeric: NumericPath,
    targets: Iterable[Matcher] = (),
    *,
    scope: Scope = "linear",
    storage: str | None = None,
    algo: str | None = None,
    output: Operand | None = None,
) -> Group:
    """A promise group with its label written. No targets stands for all linear layers.

    The name may be a key of the file: it is cut, and what cannot be printed is escaped.
    """
    matchers = tuple(targets) or (Matcher("class", "Linear"),)
    return Group(printable(name, MAX_NAME), scope, matchers, numeric, path_label(numeric), output, storage, algo)


def kv(operand: Operand) -> KVPromise:
    return KVPromise(operand, kv_label(operand))
