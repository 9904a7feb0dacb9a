"""Names of quantization methods: which family reads them, and which are known but carry no readable promise."""

from __future__ import annotations

from importlib import import_module

from logscan.checkpoint.draft import Family
from logscan.checkpoint.errors import CheckpointError, show

FAMILIES: dict[str, str] = {
    "compressed-tensors": "compressed_tensors:read",
    "fp8": "fp8:read",
    "deepseek_v4_fp8": "fp8:read",
    "mxfp8": "fp8:read_mxfp8",
    "fbgemm_fp8": "fp8:read_fbgemm",
    "ptpc_fp8": "fp8:read_ptpc",
    "modelopt": "modelopt:read",
    "nvfp4": "modelopt:read_nvfp4",
    "awq": "awq:read",
    "gptq": "gptq:read",
    "gptq_marlin_24": "gptq:read_marlin24",
    "qqq": "gptq:read_qqq",
    "mxfp4": "mxfp4:read",
    "bitsandbytes": "bitsandbytes:read",
    "quark": "quark:read",
    "torchao": "torchao:read",
    "auto-round": "autoround:read",
    "hqq": "hqq:read",
    "aqlm": "codebooks:read_aqlm",
    "squeezellm": "codebooks:read_squeezellm",
    "eetq": "plain:read_eetq",
    "bitnet": "plain:read_bitnet",
    "fp_quant": "plain:read_fp_quant",
    "quanto": "plain:read_quanto",
    "deepspeedfp": "plain:read_deepspeedfp",
    "w8a8_int8": "plain:read_w8a8_int8",
    "w8a8_fp8": "plain:read_w8a8_fp8",
    "blockwise_int8": "plain:read_blockwise_int8",
}
ALIASES: dict[str, str] = {
    "compressed_tensors": "compressed-tensors",
    "awq_marlin": "awq",
    "auto_awq": "awq",
    "autoawq": "awq",
    "cpu_awq": "awq",
    "gptq_marlin": "gptq",
    "auto_gptq": "gptq",
    "gptqmodel": "gptq",
    "cpu_gptq": "gptq",
    "marlin": "gptq",
    "bitblas": "gptq",
    "gptq_bitblas": "gptq",
    "gpt_oss_mxfp4": "mxfp4",
    "modelopt_fp8": "modelopt",
    "modelopt_fp4": "modelopt",
    "modelopt_mxfp8": "modelopt",
    "modelopt_mixed": "modelopt",
    "modelopt_nvfp4": "modelopt",
    "bnb": "bitsandbytes",
    "auto_round": "auto-round",
    "autoround": "auto-round",
    "intel/auto_round": "auto-round",
    "inc": "auto-round",
    "fpquant": "fp_quant",
}
UNMODELLED = frozenset(
    ["exl2", "exl3", "fouroversix", "gemma", "gguf", "higgs", "metal", "paroquant", "qtip", "quip", "quip_sharp"]
    + ["sinq", "spqr", "vptq", "yaqa"]
)


def canonical(name: str) -> str:
    """The canonical method of a `quant_method` as written: letter case, dashes and engine suffixes aside."""
    word = name.strip().lower()
    if word in FAMILIES:
        return word
    word = word.replace("-", "_")
    return word if word in FAMILIES else ALIASES.get(word, word)


def family(name: str) -> Family:
    """The reader of a method as a config writes it. Raises E_METHOD_UNMODELLED or E_METHOD."""
    method = canonical(name)
    if method in UNMODELLED:
        raise CheckpointError(
            "E_METHOD_UNMODELLED", f"quant_method {show(name)} is known but carries no readable promise"
        )
    if method not in FAMILIES:
        known = ", ".join(sorted(FAMILIES))
        raise CheckpointError("E_METHOD", f"unknown quant_method {show(name)}; known: {known}")
    module, _, function = FAMILIES[method].partition(":")
    reader: Family = getattr(import_module(f"logscan.checkpoint.{module}"), function)
    return reader
