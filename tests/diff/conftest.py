"""Two boots of one checkpoint, rendered: native FP4, and the same with Marlin forced."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

NVFP4 = {
    "quant_method": "compressed-tensors",
    "format": "nvfp4-pack-quantized",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "targets": ["Linear"],
            "weights": {
                "num_bits": 4,
                "type": "float",
                "strategy": "tensor_group",
                "group_size": 16,
                "symmetric": True,
                "dynamic": False,
            },
            "input_activations": {
                "num_bits": 4,
                "type": "float",
                "strategy": "tensor_group",
                "group_size": 16,
                "symmetric": True,
                "dynamic": "local",
            },
        }
    },
}
NATIVE = [
    ("INFO", "__init__.py", "Using FlashInferCutlassNvFp4LinearKernel for NVFP4 GEMM"),
    ("INFO", "kv_cache_utils.py", "GPU KV cache size: 136,560 tokens"),
]
MARLIN = [
    ("INFO", "__init__.py", "Using MarlinNvFp4LinearKernel for NVFP4 GEMM"),
    (
        "WARNING",
        "marlin.py",
        "Your GPU does not have native support for FP4 computation but FP4 quantization is being used. Weight-only FP4 "
        "compression will be used leveraging the Marlin kernel. This may degrade performance for compute-heavy "
        "workloads.",
    ),
    ("INFO", "kv_cache_utils.py", "GPU KV cache size: 136,544 tokens"),
]


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps(
            {
                "architectures": ["LlamaForCausalLM"],
                "model_type": "llama",
                "hidden_size": 4096,
                "intermediate_size": 14336,
                "num_attention_heads": 32,
                "num_key_value_heads": 8,
                "num_hidden_layers": 32,
                "torch_dtype": "bfloat16",
                "quantization_config": NVFP4,
            }
        )
    )
    return str(path)


@pytest.fixture
def logs(tmp_path: Path, boot_text: Callable[..., str]) -> dict[str, str]:
    """name → path of `native.log`, `marlin.log`, `failed.log`."""
    texts = {
        "native": boot_text("0.26.0", NATIVE, quantization="compressed-tensors"),
        "marlin": boot_text("0.26.0", MARLIN, quantization="compressed-tensors", args={"linear_backend": "marlin"}),
        "failed": boot_text("0.26.0", NATIVE, quantization="compressed-tensors", end="failed"),
        "newer": boot_text("0.28.0", NATIVE, quantization="compressed-tensors").replace(
            "enforce_eager=True", "enforce_eager=True, brand_new=1"
        ),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.log").write_text(text)
    return {name: str(tmp_path / f"{name}.log") for name in texts}


@pytest.fixture
def side(logs: dict[str, str], config: str) -> Callable[..., Any]:
    from logscan import desk
    from logscan.diff import Side

    def read(name: str, ckpt: bool = True, gpu: str | None = "RTX 5090") -> Side:
        doc = desk.triage(logs[name], ckpt=config if ckpt else None, gpu=gpu)
        return Side(f"{name}.log", doc["logs"][0]["boots"][-1], doc["given"])

    return read


@pytest.fixture(scope="session")
def schema_of_diff() -> Any:
    """The shipped schema of `logscan.diff/1`, ready to validate."""
    from importlib.resources import files

    from jsonschema import Draft202012Validator
    from referencing import Registry, Resource

    schemas = [json.loads(path.read_text()) for path in files("logscan").joinpath("schemas").iterdir()]
    registry = Registry().with_resources((s["$id"], Resource.from_contents(s)) for s in schemas)
    (schema,) = [s for s in schemas if s["title"] == "logscan.diff/1"]
    return Draft202012Validator(schema, registry=registry)
