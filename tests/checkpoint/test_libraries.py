"""The same configs through the libraries that write them. Skipped where they (and torch) are not installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from beside import SHARED

from logscan.checkpoint import promise_from_dict
from logscan.checkpoint.compressed_tensors import PRESETS
from logscan.model import NumericPath, Operand

HERE = Path(__file__)
SEEDS: dict[str, Any] = json.loads(HERE.with_name("seeds.json").read_text(encoding="utf-8"))
REMOVED = {"ct-actorder"}  # forms that the current library refuses and older ones wrote
KEYS = ("config_groups", "ignore", "kv_cache_scheme", "format", "quantization_status", "quant_method")


def configs(prefix: str) -> dict[str, Any]:
    """This project's examples of a family, and those of a sibling folder where there is one."""
    found = {name: seed["config"] for name, seed in SEEDS.items() if name.startswith(prefix) and name not in REMOVED}
    for path in sorted(SHARED.glob(f"checkpoints/examples/{prefix}*.json")):
        found[path.name] = json.loads(path.read_text(encoding="utf-8"))
    return found


def block_of(config: dict[str, Any]) -> dict[str, Any] | None:
    nested = config.get("text_config") or {}
    places = (config.get("quantization_config"), config.get("compression_config"), nested.get("quantization_config"))
    return next((block for block in places if block), None)


def ours(operand: Operand | None) -> tuple[Any, ...] | None:
    if operand is None:
        return None
    kind = "int" if operand.dtype.startswith("int") else "float"
    scaling = (operand.strategy, operand.group_size, operand.block)
    return (int(operand.bits), kind, *scaling, operand.symmetric, operand.dynamic)


def theirs(args: Any) -> tuple[Any, ...] | None:
    if args is None:
        return None
    kind, strategy, dynamic = (getattr(v, "value", v) for v in (args.type, args.strategy, args.dynamic))
    size = args.group_size if args.group_size and args.group_size > 0 else None
    block = tuple(args.block_structure) if args.block_structure else None
    return (args.num_bits, kind, strategy, size, block, args.symmetric, dynamic)


def sides(path: NumericPath) -> tuple[Any, Any]:
    return ours(path.weights), ours(path.input)


@pytest.mark.filterwarnings("ignore")
def test_compressed_tensors_reads_the_same() -> None:
    quantization = pytest.importorskip("compressed_tensors.quantization", exc_type=ImportError)
    compared = 0
    for name, config in configs("ct-").items():
        block = block_of(config)
        if block is None or "config_groups" not in block:
            continue
        library = quantization.QuantizationConfig(**{k: v for k, v in block.items() if k in KEYS})
        schemes = [(theirs(s.weights), theirs(s.input_activations)) for s in library.config_groups.values()]
        promise = promise_from_dict(config, source=name)
        assert [sides(g.numeric) for g in promise.groups] == [s for s in schemes if s != (None, None)], name
        assert ours(promise.kv_cache.operand if promise.kv_cache else None) == theirs(library.kv_cache_scheme), name
        compared += 1
    assert compared > 20


@pytest.mark.filterwarnings("ignore")
def test_compressed_tensors_presets() -> None:
    schemes = pytest.importorskip("compressed_tensors.quantization.quant_scheme", exc_type=ImportError)
    assert set(schemes.PRESET_SCHEMES) == set(PRESETS)
    for name in schemes.PRESET_SCHEMES:
        scheme = schemes.preset_name_to_scheme(name, ["Linear"])
        assert sides(PRESETS[name]()) == (theirs(scheme.weights), theirs(scheme.input_activations)), name


@pytest.mark.filterwarnings("ignore")
def test_modelopt_sidecar_and_its_own_inline_copy_promise_the_same() -> None:
    convert = pytest.importorskip("modelopt.torch.export.convert_hf_config", exc_type=ImportError)
    compared = 0
    for name, config in configs("modelopt-").items():
        if not isinstance(config.get("quantization"), dict):
            continue
        inline = {"model_type": "llama", "quantization_config": convert.convert_hf_quant_config_format(config)}
        if not inline["quantization_config"].get("quant_algo"):
            continue
        first, second = promise_from_dict(config, source=name), promise_from_dict(inline, source=name)
        assert first.label == second.label, name
        assert [g.numeric for g in first.groups] == [g.numeric for g in second.groups], name
        compared += 1
    assert compared >= 3
