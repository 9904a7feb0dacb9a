"""Which of a promise's groups speaks for the dense linears and which for the experts.

A group names its targets by class, name or regex; the model's module names are not in a config. Typical names of every
family are tried instead: a group covers a path when one of them matches its targets and is not ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from logscan.model import Group, Matcher, Promise

REGEX_TIMEOUT = 0.05  # seconds for one regex of a checkpoint on one name
_TAME_LENGTH, _TAME_REPEATS = 200, 3
_REPEAT, _NESTED = re.compile(r"[*+{]"), re.compile(r"\)[*+{]|\\[1-9]|\(\?[P(<]")
_DENSE = (
    "model.layers.0.self_attn.q_proj",
    "model.layers.5.self_attn.o_proj",
    "model.layers.5.self_attn.kv_b_proj",
    "model.layers.5.mlp.gate_proj",
    "model.layers.5.mlp.down_proj",
    "model.layers.5.linear_attn.in_proj_qkv",
    "model.layers.5.linear_attn.out_proj",
    "model.layers.5.mlp.shared_experts.down_proj",
    "backbone.layers.5.mixer.in_proj",
    "backbone.layers.5.mixer.o_proj",
    "model.language_model.layers.5.self_attn.q_proj",
    "model.language_model.layers.5.mlp.down_proj",
    "language_model.model.layers.5.self_attn.q_proj",
    "language_model.model.layers.5.mlp.down_proj",
)
_EXPERTS = (
    "model.layers.5.mlp.experts.3.gate_proj",
    "model.layers.5.mlp.experts.3.down_proj",
    "model.layers.5.block_sparse_moe.experts.3.w1",
    "model.layers.5.feed_forward.experts.3.down_proj",
    "backbone.layers.5.mixer.experts.3.down_proj",
    "model.language_model.layers.5.mlp.experts.3.down_proj",
    "language_model.model.layers.5.mlp.experts.3.down_proj",
)


def has_experts(promise: Promise) -> bool:
    """Whether the model has routed experts, as far as its config tells."""
    count = promise.traits.get("num_experts")
    return bool(count) or any(g.scope == "moe_experts" for g in promise.groups)


def groups_on(promise: Promise, path: str) -> tuple[Group, ...]:
    """The groups that speak for a path. Several groups on one path are a mixed promise there."""
    linear = tuple(g for g in promise.groups if g.scope == "linear")
    if path == "linear":
        return tuple(g for g in linear if not _is_generic(g) or _covers(promise, g, _DENSE))
    if path == "moe":
        own = tuple(g for g in promise.groups if g.scope == "moe_experts")
        return own or tuple(g for g in linear if _covers(promise, g, _EXPERTS))
    return tuple(g for g in promise.groups if g.scope == path)


def _is_generic(group: Group) -> bool:
    return not group.targets or any(t.kind in ("all", "class") for t in group.targets)


def _covers(promise: Promise, group: Group, names: Iterable[str]) -> bool:
    generic = _is_generic(group)
    return any(
        (generic or any(matches(t, n) for t in group.targets)) and not any(matches(i, n) for i in promise.ignore)
        for n in names
    )


def matches(matcher: Matcher, name: str) -> bool:
    """Whether a target or an ignore entry covers a module name. Bounded: a checkpoint's regex is foreign."""
    value = matcher.value
    if matcher.kind == "all":
        return True
    if matcher.kind == "class":
        return False  # as an ignore entry a class names no module
    if matcher.kind == "regex":
        return _search(value.removeprefix("re:"), name)
    if matcher.kind == "glob":
        return fnmatchcase(name, value) or fnmatchcase(name, value.rstrip("*") + "*")
    if matcher.kind in ("substring", "component"):
        return value in name
    if matcher.kind == "suffix":
        return name.endswith(value)
    return name == value or name.startswith(value + ".") or name.endswith("." + value)


def _search(pattern: str, name: str) -> bool:
    if _is_tame(pattern):
        try:
            return re.match(pattern, name) is not None
        except re.error:
            return False
    import regex  # costs more to import than the rest of the judge; few checkpoints need it

    try:
        return regex.match(pattern, name, timeout=REGEX_TIMEOUT) is not None
    except (regex.error, TimeoutError):
        return False


def _is_tame(pattern: str) -> bool:
    """Whether a pattern cannot take long on a module name: few repeats, and none of a group."""
    return (
        len(pattern) <= _TAME_LENGTH and len(_REPEAT.findall(pattern)) <= _TAME_REPEATS and not _NESTED.search(pattern)
    )
