"""GPTQ and its kin (AutoGPTQ, GPTQModel, Marlin repackings, BitBLAS): integer groups, weight-only.

Source: vLLM model_executor/layers/quantization/{gptq,gptq_marlin,utils/gptq_utils}.py; gptqmodel QuantizeConfig.
Its `dynamic`: `+:regex` (or a bare regex) overrides keys for the layers it matches, `-:regex` leaves them unquantized.
"""

from __future__ import annotations

from logscan.checkpoint.draft import Draft
from logscan.checkpoint.errors import CheckpointError
from logscan.checkpoint.fields import Node
from logscan.checkpoint.operands import group, int8_token, integer, quantized, weight_only
from logscan.checkpoint.targets import check_regexes, scope_of
from logscan.model import Group, Matcher, Operand

MAX_RULES = 100_000


def read(block: Node, model: Node) -> Draft:
    """`gptq` and what is stored alike. `lm_head` is quantized only where the config says so."""
    draft = Draft("gptq")
    if (block.text("quant_method") or "").lower() == "marlin":  # only ever 4 bits, which it does not write
        block = Node({"bits": 4, "desc_act": False, **block.value}, block.path)
    weights = _weights(block, None)
    storage = block.text("checkpoint_format")
    draft.groups = [group("linear", weight_only(weights), storage=storage)]
    _rules(block, draft)
    draft.skip("substring", block.strings("modules_to_not_convert"))
    if not block.flag("lm_head"):
        draft.ignore.append(Matcher("name", "lm_head"))
    if block.flag("desc_act") and weights.strategy == "group":
        draft.note("N_ACT_ORDER", "act-order (desc_act) with groups; vLLM refuses it from 0.30 on")
    if block.flag("desc_act") is None and not block.has("act_order"):
        draft.note("N_NO_DESC_ACT", "desc_act is not named; vLLM needs it, other readers take false")
    return draft


def _weights(rule: Node, base: Node | None) -> Operand:
    """The operand of a block, or of a rule that overrides `base`."""
    source = (
        rule
        if base is None
        else Node({**base.value, **{k: v for k, v in rule.value.items() if v is not None}}, rule.path)
    )
    source.need("bits", "wbits", "w_bit")
    bits = source.integer("bits", "wbits", "w_bit") or 0
    size = source.integer("group_size", "groupsize")
    symmetric = source.flag("sym", "is_sym")
    return integer(bits, 128 if size is None else size, symmetric is not False, source.at("bits"))


def _rules(block: Node, draft: Draft) -> None:
    rules = block.node("dynamic")
    if rules is None:
        return
    if len(rules.value) > MAX_RULES:
        raise CheckpointError("E_HUGE", f"{rules.path} holds more than {MAX_RULES:,} rules")
    found: list[Group] = []
    for key in rules:
        pattern = Matcher("regex", key[2:] if key[:2] in ("+:", "-:") else key)
        if key.startswith("-:"):
            draft.ignore.append(pattern)
            continue
        rule = rules.node(key)
        if rule is None or not rule.has("bits", "group_size", "sym"):
            continue
        numeric = weight_only(_weights(rule, block))
        found.append(group(f"dynamic {key}", numeric, (pattern,), scope=scope_of([pattern])))
    check_regexes(rules.path, [t for g in found for t in g.targets] + [m for m in draft.ignore if m.kind == "regex"])
    draft.groups += found
    draft.note(
        "N_DYNAMIC_RULES", "some layers have rules of their own; the first regex that matches a layer's name decides"
    )


def read_marlin24(block: Node, model: Node) -> Draft:
    """`gptq_marlin_24`: as gptq, weights 2:4 sparse."""
    draft = read(block, model)
    draft.sparsity = {"sparsity_structure": "2:4"}
    draft.note("N_SPARSITY", "weights are stored 2:4 sparse")
    return draft


def read_qqq(block: Node, model: Node) -> Draft:
    """QQQ: INT4 weights, INT8 per-token activations."""
    draft = Draft("qqq")
    numeric = quantized(_weights(block, None), int8_token())
    draft.groups = [group("linear", numeric)]
    return draft
