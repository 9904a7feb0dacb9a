"""A line that no pattern owns becomes a stub that reads it."""

from __future__ import annotations

import re
import tomllib

import pytest

from logscan.model import Record
from logscan.packs.stub import propose, toml

LINES = [
    ("INFO", "Using FooBarKernel for NVFP9 GEMM", "linear.kernel", "selected"),
    ("INFO", "Using 'FOO_BAR' Fp9 MoE backend out of potential backends: ['FOO_BAR', 'X'].", "moe.backend", "selected"),
    ("WARNING", "FooAttention is not supported on SM 75, falling back to Triton", "attention.detail", "warned"),
    ("INFO", "Using fp7 data type to store kv cache at /opt/x/y.json", "kv.detail", "selected"),
    ("INFO", "Frobnicator disabled (because of 'it' and \"that\")", "feature.detail", "available"),
    ("", "a + b (c) [d] {e} ^ $ | \\ .*", "feature.detail", "available"),
]


@pytest.mark.parametrize(("level", "text", "emits", "means"), LINES)
def test_the_stub_is_toml_and_reads_its_own_line(level: str, text: str, emits: str, means: str):
    record = Record(1, text.encode(), level=level, file="foo.py")
    stub = propose(record, "vllm")
    (entry,) = tomllib.loads(toml(stub, record))["pattern"]
    assert (entry["emits"], entry["site"][0]["means"]) == (emits, means)
    assert entry["match"] == [text]
    assert re.search(entry["regex"].encode(), text.encode(), re.MULTILINE)
    assert entry["literal"] in text
    assert entry["id"].startswith(f"vllm.{emits.split('.')[0]}.")


def test_numbers_names_and_paths_become_groups():
    record = Record(1, b"Using FooBarKernel for 12 layers at /opt/x.json", level="INFO")
    regex = propose(record, "vllm").regex
    assert regex == r"^Using (?P<kernel>\w{1,120}) for (?P<value2>[\d.]{1,16}) layers at (?P<value3>\S{1,400})$"
    assert re.search(regex, "Using BazQuxKernel for 7 layers at /srv/y.json")
