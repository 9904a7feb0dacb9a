"""The promise that a TensorRT-LLM log prints, read without running anything."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logscan.logged import literal, logged_promise
from logscan.model import Boot

Read = Callable[[str], tuple[Boot, ...]]
BANNER = "[TensorRT-LLM] TensorRT-LLM version: 1.0.0\n"
INFO = "[09/30/2026-14:27:37] [TRT-LLM] [RANK 0] [I] "
USE = INFO + "Use quantization_config from /ckpt/config.json: quantization_config={}\n"
BLOCK = "{'quant_method': 'fp8', 'weight_block_size': [128, 128], 'activation_scheme': 'dynamic'}"


def _label(read: Read, text: str) -> str | None:
    (boot,) = read(BANNER + text)
    promise = logged_promise(boot)
    return promise.label if promise is not None else None


def test_the_dictionary_is_read_as_a_config_is(read: Read) -> None:
    (boot,) = read(BANNER + USE.format(BLOCK))
    promise = logged_promise(boot)
    assert promise is not None
    assert (promise.method, promise.source) == ("fp8", "log:2")
    assert promise.label.startswith("W8A8-FP8") and "128" in promise.label


def test_what_the_operator_put_over_it_counts(read: Read) -> None:
    update = "Update hf_quant_config from model_kwargs: quantization_config={'quant_method': 'fp8'}"
    override = f"{INFO}{update} (previous value: None)\n"
    plain = _label(read, USE.format("{'quant_method': 'fp8'}"))
    assert _label(read, USE.format(BLOCK) + override) == plain != _label(read, USE.format(BLOCK))


def test_line_by_line(read: Read) -> None:
    weights = INFO + "Setting quant_algo=FP8 form HF quant config.\n"
    cache = INFO + "Setting kv_cache_quant_algo=FP8 from HF quant config.\n"
    ignored = INFO + "Setting exclude_modules=['lm_head'] from HF quant config.\n"
    (boot,) = read(BANNER + weights + cache + ignored)
    promise = logged_promise(boot)
    assert promise is not None and promise.kv_cache is not None
    assert promise.label.startswith("W8A8-FP8")
    assert [m.value for m in promise.ignore] == ["lm_head"]
    (without,) = read(BANNER + weights)
    found = logged_promise(without)
    assert found is not None and found.kv_cache is None


def test_a_log_without_one_promises_nothing(read: Read) -> None:
    assert _label(read, INFO + "Using LLM with PyTorch backend\n") is None


@pytest.mark.parametrize(
    "text",
    [
        "{'quant_method': 'fp8'",
        "__import__('os').system('true')",
        "{'quant_method': open('/etc/passwd')}",
        "[" * 5000 + "]" * 5000,
        "{'a': '" + "x" * 70000 + "'}",
        "{'a': " + "[" * 40 + "]" * 40 + "}",
        "{[]: 1}",
        "",
    ],
)
def test_what_is_no_short_literal_is_nothing(text: str) -> None:
    assert literal(text) is None


def test_a_method_that_nobody_knows_is_no_promise(read: Read) -> None:
    assert _label(read, USE.format("{'quant_method': 'fp7', 'bits': '???'}")) is None
    assert _label(read, USE.format("'a text'")) is None
