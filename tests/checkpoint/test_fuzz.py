"""Damaged and hostile configs: only CheckpointError may come out. The long run is benchmarks/fuzz_checkpoint.py."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logscan.checkpoint import CheckpointError, promise_from_dict
from logscan.checkpoint.file import parse_json
from logscan.checkpoint.methods import FAMILIES
from logscan.checkpoint.targets import scope_of

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "fuzz_checkpoint.py"
WORDS = tuple(
    re.findall(
        r"\S+",
        """
        quant_method quant_algo quantization config_groups targets weights input_activations num_bits type strategy
        group_size dynamic bits sym desc_act zero_point weight_block_size activation_scheme kv_cache_scheme ignore
        quantized_layers global_quant_config weight dtype qscheme is_dynamic quant_type default _type _data granularity
        extra_config data_type act_bits quant_config nbits load_in_4bit producer export block_size symmetric exclude
        float int fp8 FP8 NVFP4 Linear
        """,
    )
)


@pytest.fixture(scope="module")
def fuzz() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_checkpoint", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_mutations_of_the_examples(fuzz: ModuleType) -> None:
    outcomes, slowest, leaks = fuzz.fuzz(3000, 20261129, fuzz.seeds([]))
    assert leaks == []
    assert slowest < 1.0
    assert outcomes["accepted"] > 500 and sum(outcomes.values()) - outcomes["accepted"] > 500


def test_the_fuzzer_sees_a_leak(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "promise_from_dict", lambda value, source: {}[source])
    outcomes, _, leaks = fuzz.fuzz(20, 1, fuzz.seeds([]))
    assert outcomes["LEAK"] > 0 and len(leaks) == 1 and "KeyError" in leaks[0]


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from(WORDS)
keys = st.sampled_from(WORDS) | st.text(max_size=10)
trees = st.recursive(scalars, lambda t: st.lists(t, max_size=4) | st.dictionaries(keys, t, max_size=6), max_leaves=25)


@settings(max_examples=80, deadline=None)
@given(method=st.sampled_from(sorted(FAMILIES)), block=st.dictionaries(keys, trees, max_size=8), root=trees)
def test_anything_under_a_known_method(method: str, block: dict[str, Any], root: Any) -> None:
    config = {"model_type": "llama", "x": root, "quantization_config": {**block, "quant_method": method}}
    try:
        promise = promise_from_dict(config, source="config.json")
    except CheckpointError as refusal:
        assert refusal.code.startswith("E_") and str(refusal).isprintable()
    else:
        assert promise.label and promise.source


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(keys, trees, max_size=8))
def test_anything_as_a_config(config: dict[str, Any]) -> None:
    try:
        promise_from_dict(config, source="config.json")
    except CheckpointError as refusal:
        assert refusal.code.startswith("E_")


@settings(max_examples=80, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    try:
        parse_json(data)
    except CheckpointError as refusal:
        assert refusal.code.startswith("E_") and str(refusal).isprintable()


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="experts()|[]\\?!<=.*:_", max_size=60))
def test_any_target_has_a_scope(target: str) -> None:
    assert scope_of([target]) in ("linear", "moe_experts", "embedding", "attention")
