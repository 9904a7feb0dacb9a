"""From a config's dictionary to a `Promise`: which block counts, which family reads it, what the label is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.errors import CheckpointError, kind_of, show
from logscan.checkpoint.fields import Node
from logscan.checkpoint.file import check_depth, check_finite
from logscan.checkpoint.methods import family
from logscan.checkpoint.traits import NESTED, model_dtype, read_traits
from logscan.labels import UNQUANTIZED, join_labels
from logscan.model import Note, Promise, replace

_DTYPES = {
    "bfloat16": "BF16",
    "float16": "FP16",
    "half": "FP16",
    "float32": "FP32",
    "float": "FP32",
    "bf16": "BF16",
    "fp16": "FP16",
}
_BLOCKS = ("quantization_config", "compression_config")


def promise_from_dict(config: Mapping[str, Any], *, source: str) -> Promise:
    """The promise of a parsed config.json, params.json, hf_quant_config.json or bare quantization block.

    `source` names the file for messages and for `Promise.source`. Raises CheckpointError (E_…) that names it.
    """
    try:
        if not isinstance(config, Mapping):
            raise CheckpointError("E_TYPE", f"top level is {kind_of(config)}, expected an object")
        root = dict(config)
        check_depth(root)
        return normalise(root, source)
    except CheckpointError as error:
        raise error.at(source) from None


def normalise(root: dict[str, Any], source: str, sidecar: dict[str, Any] | None = None) -> Promise:
    """The promise of a model config, or of the ModelOpt `sidecar` beside it with the model's traits.

    Both are JSON objects nested at most 64 deep (file.check_depth). Raises CheckpointError without a file name.
    """
    block, notes = find_block(root) if sidecar is None else (Node(sidecar), ())
    traits = read_traits(root, block.value if block else {})
    model_type = traits.get("model_type")
    model: dict[str, Any] = {
        "source": f"{source}#{block.path}" if block and block.path else source,
        "traits": traits,
        "model_type": model_type if isinstance(model_type, str) else None,
        "model_dtype": model_dtype(root),
    }
    if block is None:
        return Promise("none", _DTYPES.get(model["model_dtype"] or "", UNQUANTIZED), notes=notes, **model)
    check_finite(block.value, block.path)
    method, remarks = method_of(block)
    return _freeze(family(method)(block, Node(root)), _raw(block), notes + remarks, model)


def _freeze(draft: Draft, raw: str | None, notes: tuple[Note, ...], model: Mapping[str, Any]) -> Promise:
    return Promise(
        method=draft.method,
        label=join_labels([draft.label] if draft.label else [g.label for g in draft.groups], draft.kv_label),
        groups=tuple(draft.groups),
        ignore=tuple(draft.ignore),
        kv_cache=draft.kv,
        raw_method=raw,
        algo=draft.algo,
        producer=draft.producer,
        status=draft.status,
        sparsity=draft.sparsity,
        transforms=tuple(draft.transforms),
        notes=notes + tuple(draft.notes),
        **model,
    )


def find_block(root: dict[str, Any]) -> tuple[Node | None, tuple[Note, ...]]:
    """The quantization block of a config and how it came to be the one; None where the config promises nothing."""
    notes: tuple[Note, ...] = ()
    for key in _BLOCKS:
        if root.get(key) is not None:
            return _object(root[key], key), notes
        if key in root:
            notes += (Note("N_NULL", f"{key} is null: nothing is promised"),)
    for outer in NESTED:
        for nested, path in _nested(root, outer):
            for key in _BLOCKS:
                if nested.get(key) is not None:
                    remark = () if path == "text_config" else (Note("N_NESTED", f"vLLM does not look into {path}"),)
                    return _object(nested[key], f"{path}.{key}"), notes + remark
    if isinstance(root.get("hf_quant_config"), dict):
        return Node(root["hf_quant_config"], "hf_quant_config"), notes
    return _elsewhere(root, notes)


def _nested(root: dict[str, Any], outer: str) -> list[tuple[dict[str, Any], str]]:
    child = root.get(outer)
    if not isinstance(child, dict):
        return []
    return [(child, outer)] + [(i, f"{outer}.{n}") for n in NESTED if isinstance(i := child.get(n), dict)]


def _elsewhere(root: dict[str, Any], notes: tuple[Note, ...]) -> tuple[Node | None, tuple[Note, ...]]:
    """Sidecars, TensorRT-LLM and Mistral files, bare blocks; and files that are no config at all."""
    quantization = root.get("quantization")
    if isinstance(quantization, dict):
        if "qformat_weight" in quantization:
            return _mistral(root, quantization), (Note("N_MISTRAL_PARAMS", "a Mistral params.json"),)
        if isinstance(quantization.get("quant_method"), str):
            return Node(quantization, "quantization"), (Note("N_MISTRAL_PARAMS", "a Mistral params.json"),)
        if "quant_algo" in quantization or "kv_cache_quant_algo" in quantization or "producer" in root:
            return Node(root), notes
        _refuse_mlx(Node(quantization))
    if isinstance(root.get("pretrained_config"), dict):
        inner = root["pretrained_config"]
        if isinstance(inner.get("quantization"), dict):
            return Node({"quantization": inner["quantization"]}, "pretrained_config"), notes
        return None, notes
    if "quant_method" in root or _is_bare_block(root):
        return Node(root), notes
    _refuse_others(root)
    return None, notes


def _object(value: Any, path: str) -> Node:
    if not isinstance(value, dict):
        raise CheckpointError("E_TYPE", f"{path} must be an object, got {kind_of(value)}")
    return Node(value, path)


def _is_bare_block(root: dict[str, Any]) -> bool:
    """quantize_config.json (AutoGPTQ) and quant_config.json (llm-awq): a block without a model around it."""
    return "model_type" not in root and "architectures" not in root and _guess_method(Node(root)) is not None


def _refuse_others(root: dict[str, Any]) -> None:
    if "peft_type" in root:
        raise CheckpointError("E_ADAPTER", "an adapter_config.json (PEFT); give the base model's config.json")
    if "weight_map" in root:
        raise CheckpointError("E_SAFETENSORS_INDEX", "a safetensors index (weight_map); give the config.json beside it")
    if "_class_name" in root or "_diffusers_version" in root:
        raise CheckpointError("E_DIFFUSERS", "a diffusers config; give a language model's config.json")
    named = ("model_type", "architectures", "architecture", "text_config", "llm_config", "language_config")
    mistral = "dim" in root and "n_layers" in root
    if not mistral and not any(key in root for key in named) and not any(key in root for key in _BLOCKS):
        raise CheckpointError("E_NOT_CONFIG", "neither model_type nor architectures: not a model's config.json")


def _mistral(root: dict[str, Any], quantization: dict[str, Any]) -> Node:
    """Mistral's native keys as the `fp8` block that vLLM rewrites them to (transformers_utils/configs/mistral.py)."""
    node = Node(quantization, "quantization")
    weight = node.text("qformat_weight")
    if weight != "fp8_e4m3":
        raise CheckpointError("E_VALUE", f"quantization.qformat_weight is {show(weight)}; known: fp8_e4m3")
    scheme = node.choice("qscheme_act", {"no_scales": "dynamic", "tensor": "static"}) or "static"
    return Node({"quant_method": "fp8", "activation_scheme": scheme}, "quantization")


def method_of(block: Node) -> tuple[str, tuple[Note, ...]]:
    """The method of a block as written; recognised without `quant_method` only where old writers left it out."""
    raw = block.value.get("quant_method")
    if raw is not None and not isinstance(raw, str):
        raise CheckpointError("E_TYPE", f"{block.at('quant_method')} must be a string, got {kind_of(raw)}")
    if raw:
        return raw, ()
    guess = _guess_method(block)
    if guess is None:
        _refuse_mlx(block)
        raise CheckpointError(
            "E_NO_METHOD", f"{block.path or 'the block'} has no quant_method; vLLM would run the model as unquantized"
        )
    if guess == "modelopt":  # a sidecar never has one
        return guess, ()
    note = Note("N_NO_METHOD", f"no quant_method; read as {guess} by its keys, vLLM would run the model as unquantized")
    return guess, (note,)


def _refuse_mlx(block: Node) -> None:
    """MLX writes bits and group_size, a method never."""
    if block.has("bits") and block.has("group_size"):
        raise CheckpointError("E_MLX", "an Apple MLX quantization block; these engines do not read it")


def _guess_method(block: Node) -> str | None:
    if block.has("producer", "quant_algo") or isinstance(block.value.get("quantization"), dict):
        return "modelopt"
    if any(key.lstrip("_") in ("load_in_4bit", "load_in_8bit") for key in block if isinstance(key, str)):
        return "bitsandbytes"
    if block.has("config_groups"):
        return "compressed-tensors"
    if block.has("bits") and block.has("group_size") and block.has("desc_act"):
        return "gptq"
    if (block.has("w_bit") or block.has("bits")) and block.has("zero_point"):
        return "awq"
    return None


def _raw(block: Node) -> str | None:
    raw = block.value.get("quant_method")
    return show(raw)[1:-1] if isinstance(raw, str) and raw else None


def with_notes(promise: Promise, before: tuple[Note, ...], after: tuple[Note, ...] = ()) -> Promise:
    """The promise with remarks on its file before its own, and on its directory after them."""
    return replace(promise, notes=before + promise.notes + after) if before or after else promise
