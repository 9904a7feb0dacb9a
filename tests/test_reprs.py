from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from logscan import reprs


def test_pydict() -> None:
    text = (
        "{'model': 'org/m', 'port': 8000, 'kv_cache_dtype': 'fp8', 'rope': {'a': [1, 2], 'model': 'x'}, "
        "'e': <E.X: 'y, z'>}"
    )
    assert reprs.pairs(text, "pydict") == {
        "model": "org/m",
        "port": "8000",
        "kv_cache_dtype": "fp8",
        "rope": "{'a': [1, 2], 'model': 'x'}",
        "e": "<E.X: 'y, z'>",
    }


def test_a_chat_template_does_not_forge_a_key() -> None:
    text = """{'chat_template': "{% if m %}, 'kv_cache_dtype': 'fp8', {% endif %}", 'model': 'm'}"""
    found = reprs.pairs(text, "pydict")
    assert set(found) == {"chat_template", "model"}


def test_namespace() -> None:
    text = "Namespace(host=None, model='a, b', lora=[LoRA(name='x', path='y')], quantization='fp8', api_key='s')"
    assert reprs.pairs(text, "namespace") == {
        "host": "None",
        "model": "a, b",
        "lora": "[LoRA(name='x', path='y')]",
        "quantization": "fp8",
        "api_key": "s",
    }


def test_engine_config() -> None:
    text = (
        "model='m', speculative_config=SpeculativeConfig(method='mtp', model='d'), quantization=None, "
        "kv_cache_dtype=auto, "
    )
    found = reprs.pairs(text, "engine-config")
    assert found["model"] == "m"
    assert found["speculative_config"] == "SpeculativeConfig(method='mtp', model='d')"
    assert found["quantization"] == "None"
    assert found["kv_cache_dtype"] == "auto"


def test_a_cut_line_gives_what_it_holds() -> None:
    assert reprs.pairs("{'model': 'm', 'dtype': 'bfl", "pydict")["model"] == "m"


@given(st.text(max_size=400))
def test_any_text_is_read(text: str) -> None:
    for style in ("pydict", "namespace", "engine-config"):
        assert isinstance(reprs.pairs(text, style), dict)  # type: ignore[arg-type]
