"""What a checkpoint's tensor files hold, by their headers: names and dtypes, never a tensor.

A safetensors file opens with a little-endian u64, the length of the JSON header that follows
(https://huggingface.co/docs/safetensors). The files of the directory are read, never those that an index names.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from logscan.checkpoint.errors import CheckpointError
from logscan.checkpoint.file import parse_json
from logscan.model import Note, Operand, Promise

INDEX = "model.safetensors.index.json"
MAX_FILES = 512
MAX_HEADER = 32 << 20
MAX_HEADERS = 128 << 20  # of all files together
_PREFIX = 8

_WEIGHT_SCALE = re.compile(r"(?:weight_scale(?:_inv|_2)?|\.scales|weight\.absmax|_scales|weight_global_scale)$")
_INPUT_SCALE = re.compile(r"(?:input_scale|input_global_scale|act_scale|activation_scale|input_scale_inv)$")
_KV_SCALE = re.compile(r"(?:[kv]_scale|kv_scale|[kv]_proj\.output_scale|kv_cache_scaling_factor)$")

_STORED: Mapping[str, frozenset[str]] = {
    "fp8_e4m3": frozenset({"F8_E4M3", "F8_E4M3FN", "F8_E4M3FNUZ", "U8", "I8"}),
    "fp8_e5m2": frozenset({"F8_E5M2", "F8_E5M2FNUZ", "U8", "I8"}),
    "fp6_e2m3": frozenset({"U8", "I8", "F6_E2M3"}),
    "fp6_e3m2": frozenset({"U8", "I8", "F6_E3M2"}),
    "fp4_e2m1": frozenset({"U8", "I8", "I32", "F4", "F4_E2M1"}),
    "nf4": frozenset({"U8", "I8", "BF16", "F16", "F32"}),  # bnb_4bit_quant_storage may be any
}
_PACKED_INTEGER = frozenset({"I32", "U32", "I8", "U8", "I16", "I64", "I4", "U4"})
_SIXTEEN = frozenset({"BF16", "F16", "F32", "F64"})


class Tensors(NamedTuple):
    """Header facts. Counts are of tensors; `complete`: every tensor's header was read, so an absence is one."""

    files: int
    tensors: int
    dtypes: Mapping[str, int]
    weight_scales: int
    input_scales: int
    kv_scales: int
    complete: bool


def read_tensors(directory: Path) -> Tensors | None:
    """The safetensors files of a directory by their headers; None where there are none.

    Never raises: a file that cannot be read, or exceeds the bounds, leaves `complete` False.
    """
    try:
        names = sorted(e.name for e in os.scandir(directory) if e.name.endswith(".safetensors"))
    except OSError:
        return None
    if not names:
        return None
    budget, complete = MAX_HEADERS, len(names) <= MAX_FILES
    dtypes: Counter[str] = Counter()
    tensors: dict[str, None] = {}
    for name in names[:MAX_FILES]:
        header = _header(directory / name, budget)
        if header is None:
            complete = False
            continue
        budget -= header[1]
        for tensor, dtype in header[0]:
            tensors[tensor] = None
            dtypes[dtype] += 1
    complete = complete and _listed(directory) <= len(tensors)
    return Tensors(
        files=len(names),
        tensors=len(tensors),
        dtypes=dict(dtypes.most_common()),
        weight_scales=_count(_WEIGHT_SCALE, tensors),
        input_scales=_count(_INPUT_SCALE, tensors),
        kv_scales=_count(_KV_SCALE, tensors),
        complete=complete,
    )


def contradictions(promise: Promise, tensors: Tensors | None) -> tuple[Note, ...]:
    """Where the stored tensors contradict the promise (N_CONTRADICTED). Only complete headers prove an absence."""
    if tensors is None or not tensors.complete or not tensors.tensors:
        return ()
    found: list[str] = []
    for group in promise.groups:
        weights, inputs = group.numeric.weights, group.numeric.input
        if weights is not None and not _stored(weights) & tensors.dtypes.keys():
            held = ", ".join(tensors.dtypes)
            found.append(f"{group.label} is promised, but no tensor is stored in such a type (only {held})")
        if inputs is not None and inputs.dynamic is False and inputs.strategy == "tensor" and not tensors.input_scales:
            found.append(f"{group.label} promises static activation scales, and no input scale is stored")
    kv = promise.kv_cache
    if kv is not None and kv.operand.dynamic is False and not tensors.kv_scales:
        found.append(f"a KV cache of {kv.label} is promised, and no k or v scale is stored: engines use 1.0")
    if promise.method == "none" and not {d for d in tensors.dtypes if d.startswith(("F", "BF"))} <= _SIXTEEN:
        held = ", ".join(tensors.dtypes)
        found.append(f"no quantization is promised, but the weights are stored quantized ({held})")
    return tuple(Note("N_CONTRADICTED", text) for text in dict.fromkeys(found))


def _stored(operand: Operand) -> frozenset[str]:
    if operand.dtype.startswith("int"):
        return _PACKED_INTEGER
    return _STORED.get(operand.dtype, _PACKED_INTEGER | _SIXTEEN)


def _header(path: Path, budget: int) -> tuple[list[tuple[str, str]], int] | None:
    """(tensor, dtype) pairs and the header's length, or None where it cannot be read within the bounds."""
    try:
        if not path.is_file():
            return None
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(_PREFIX), "little")
            if not 2 <= length <= min(MAX_HEADER, budget):
                return None
            data = file.read(length)
        if len(data) != length:
            return None
        header, _ = parse_json(data)
    except (OSError, CheckpointError):
        return None
    entries = ((name, entry.get("dtype")) for name, entry in header.items() if isinstance(entry, dict))
    return [(name, dtype) for name, dtype in entries if isinstance(dtype, str) and len(dtype) <= 16], length


def _listed(directory: Path) -> int:
    """How many tensors the index lists, 0 without one; an unreadable index lists more than any file holds."""
    from logscan.checkpoint.file import read_json

    path = directory / INDEX
    if not os.path.lexists(path):
        return 0
    try:
        listed = read_json(path)[0].get("weight_map")
    except CheckpointError:
        return 1 << 62
    return len(listed) if isinstance(listed, dict) else 0


def _count(pattern: re.Pattern[str], names: Iterable[str]) -> int:
    return sum(pattern.search(name[-200:]) is not None for name in names)
