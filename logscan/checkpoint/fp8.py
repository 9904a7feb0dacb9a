"""Native FP8: `fp8` (AutoFP8, FineGrainedFP8, DeepSeek, Qwen …), `mxfp8`, `fbgemm_fp8`, `ptpc_fp8`.

Source: vLLM model_executor/layers/quantization/{fp8,fbgemm_fp8,ptpc_fp8}.py; transformers FineGrainedFP8Config;
vLLM models/deepseek_v4 for `expert_dtype`.
"""

from __future__ import annotations

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.errors import CheckpointError, show
from logscan.checkpoint.fields import Node, pair
from logscan.checkpoint.operands import fp8, group, kv, mxfp4, mxfp8, nvfp4, quantized, unspecified, weight_only
from logscan.model import Group, KVPromise, Matcher, NumericPath

_EXPERTS = (Matcher("substring", ".experts."),)
_SCHEMES = {"dynamic": True, "static": False}
_FORMATS = {"e4m3": "fp8_e4m3", "float8_e4m3fn": "fp8_e4m3", "float8_e4m3": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3",
            "float8_e4m3fnuz": "fp8_e4m3", "e4m3fn": "fp8_e4m3", "e5m2": "fp8_e5m2", "float8_e5m2": "fp8_e5m2",
            "fp8_e5m2": "fp8_e5m2"}  # fmt: skip
_SCALE_FORMATS = {"ue8m0": "e8m0", "e8m0": "e8m0", "float": "fp32", "fp32": "fp32", "float32": "fp32"}


def read(block: Node, model: Node) -> Draft:
    """`quant_method: fp8`. Without a block size, dynamic activations have no granularity: the engine chooses."""
    draft = Draft("fp8")
    _skip(block, draft)
    numeric = _linear(block, draft)
    draft.groups = [group("linear", numeric)]
    if (model.text("model_type") or "").startswith("deepseek_v4"):
        draft.method = "deepseek_v4_fp8"
        draft.groups += _deepseek_v4_experts(block, model, draft)
    else:
        draft.groups += _experts(block)
    draft.kv = _kv(block)
    return draft


def _linear(block: Node, draft: Draft) -> NumericPath:
    dtype = block.choice("fmt", _FORMATS) or "fp8_e4m3"
    scale = block.choice("scale_fmt", _SCALE_FORMATS)
    dynamic = block.choice("activation_scheme", _SCHEMES)
    if dynamic is None:
        dynamic = True
        if block.text("activation_scheme") is None:
            draft.note(
                "N_NO_ACTIVATION_SCHEME", "activation_scheme is missing: transformers takes dynamic, vLLM refuses"
            )
    if block.has("weight_block_size"):
        rows, columns = pair(block.raw("weight_block_size"), block.at("weight_block_size"))
        if not dynamic:
            raise CheckpointError(
                "E_VALUE", f"{block.at('weight_block_size')} with activation_scheme static (vLLM refuses)"
            )
        weights = fp8("block", block=(rows, columns), scale=scale, dtype=dtype)
        if (rows, columns) == (1, 32) and scale == "e8m0":
            return quantized(mxfp8(), mxfp8(True))
        return quantized(weights, fp8("group", True, group=columns, scale=scale))
    if not dynamic:
        return quantized(fp8("tensor", dtype=dtype, scale=scale), fp8("tensor"))
    draft.note(
        "N_ACT_GRAN_UNSPECIFIED", "the granularity of dynamic activation scales is not named; the engine chooses"
    )
    return quantized(fp8("tensor", dtype=dtype, scale=scale), fp8(None, True))


def _deepseek_v4_experts(block: Node, model: Node, draft: Draft) -> list[Group]:
    named = _experts(block)
    if named:
        return named
    word = (block.text("expert_dtype") or model.text("expert_dtype") or "fp4").lower()
    if word in ("fp4", "mxfp4"):
        return [group("experts", quantized(mxfp4(), mxfp8(True)), _EXPERTS, scope="moe_experts")]
    if word == "fp8":
        return []
    raise CheckpointError("E_VALUE", f"expert_dtype is {show(word)}; known: fp4, fp8")


def _experts(block: Node) -> list[Group]:
    """The experts' own group, where `moe_quant_algo` names one or `store_dtype` says that they are stored as MXFP4."""
    algo = block.text("moe_quant_algo")
    if algo is None:
        if (block.text("store_dtype") or "").lower() == "mxfp4":
            return [group("experts", unspecified(mxfp4()), _EXPERTS, scope="moe_experts")]
        return []
    known = {
        "NVFP4": quantized(nvfp4(), nvfp4("local")),
        "W4A16_NVFP4": weight_only(nvfp4()),
        "MXFP4": quantized(mxfp4(), mxfp8(True)),
        "MXFP8": quantized(mxfp8(), mxfp8(True)),
    }
    if algo.upper() not in known:
        raise CheckpointError("E_ALGO", f"{block.at('moe_quant_algo')} is {show(algo)}; known: {', '.join(known)}")
    return [group("experts", known[algo.upper()], _EXPERTS, scope="moe_experts", algo=algo.upper())]


def _skip(block: Node, draft: Draft) -> None:
    draft.skip("name", block.strings("ignored_layers", "modules_to_not_convert"))


def _kv(block: Node) -> KVPromise | None:
    """AutoFP8 and its kin write `kv_cache_scheme: "static"`; older ones only name the layers that carry scales."""
    scheme = block.raw("kv_cache_scheme", "kv_cache_quant_algo")
    if isinstance(scheme, str):
        if scheme.lower() in ("static", "fp8", "fp8_e4m3"):
            return kv(fp8("tensor"))
        if scheme.lower() == "dynamic":
            return kv(fp8("tensor", True))
        if scheme.upper() == "NVFP4":
            return kv(nvfp4("local"))
        raise CheckpointError("E_VALUE", f"{block.at('kv_cache_scheme')} is {show(scheme)}; known: static, dynamic")
    if isinstance(scheme, dict):
        node = Node(scheme, block.at("kv_cache_scheme"))
        return kv(fp8("tensor", bool(node.flag("dynamic"))))
    return kv(fp8("tensor")) if block.strings("kv_cache_quant_targets") else None


def read_mxfp8(block: Node, model: Node) -> Draft:
    """`quant_method: mxfp8` (MiniMax and others): W and A in MXFP8; experts may have their own algorithm."""
    draft = Draft("mxfp8")
    _skip(block, draft)
    if block.has("weight_block_size") and pair(block.raw("weight_block_size"), block.at("weight_block_size")) != (
        1,
        32,
    ):
        raise CheckpointError("E_VALUE", f"{block.at('weight_block_size')} must be [1, 32] for mxfp8")
    draft.groups = [group("linear", quantized(mxfp8(), mxfp8(True))), *_experts(block)]
    draft.kv = _kv(block)
    return draft


def read_fbgemm(block: Node, model: Node) -> Draft:
    """`fbgemm_fp8`: per-row weights, per-token activations clamped at `activation_scale_ub`."""
    draft = Draft("fbgemm_fp8")
    _skip(block, draft)
    inputs = fp8("token", True, ub=block.number("activation_scale_ub"))
    draft.groups = [group("linear", quantized(fp8("channel"), inputs))]
    draft.note("N_DEPRECATED", "fbgemm_fp8 is deprecated in vLLM and needs --allow-deprecated-quantization")
    return draft


def read_ptpc(block: Node, model: Node) -> Draft:
    """`ptpc_fp8` (ROCm): per-channel weights, per-token activations."""
    draft = Draft("ptpc_fp8")
    _skip(block, draft)
    draft.groups = [group("linear", quantized(fp8("channel"), fp8("token", True)))]
    draft.kv = _kv(block)
    return draft
