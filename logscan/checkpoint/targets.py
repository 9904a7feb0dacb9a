"""Targets and skip lists as configs write them: kinds of matchers, and what a group's targets cover.

Nothing is ever matched here; a checkpoint's regex is compiled once, bounded, only to see that it is one.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence

from logscan.checkpoint.errors import CheckpointError, show
from logscan.checkpoint.operands import Scope
from logscan.model import Matcher

MAX_REGEX = 4096  # longer ones are reported, never compiled
MAX_REGEXES = 2048

_EXPERTS = re.compile(r"(?i)(?<!shared_)experts?\b|(?<!shared_)experts|fusedmoe|expert(?:s)?linear")
_NOT_EXPERTS = re.compile(r"(?i)attn|attention|shared|lm_head|\(\?!|\blinear$|gate_up_proj\|.*self|^\W*$")
_EMBEDDING = re.compile(
    r"(?i)(?:^|[.*^])(?:lm_head|embed_tokens|embed_out|output_embeddings?|wte|tok_embeddings|embedding|"
    r"parallellmhead|vocabparallelembedding)\W*$"
)
_ATTENTION_CLASS = re.compile(r"Attention\w*$")


def matcher(target: str) -> Matcher:
    """A compressed-tensors target or ignore entry: `re:…`, a layer class (`Linear`), or a dotted name."""
    if target.startswith("re:"):
        return Matcher("regex", target[3:])
    if target[:1].isupper() and "." not in target:
        return Matcher("class", target)
    return Matcher("name", target)


def glob(target: str) -> Matcher:
    """A modelopt or quark entry: `re:…` or a shell pattern."""
    return Matcher("regex", target[3:]) if target.startswith("re:") else Matcher("glob", target)


def check_regexes(path: str, entries: Iterable[Matcher]) -> None:
    """Raise E_REGEX for the first entry that Python's `re`, which the engines use, would refuse."""
    patterns = dict.fromkeys(m.value for m in entries if m.kind == "regex")
    for number, pattern in enumerate(patterns):
        if number >= MAX_REGEXES:
            return
        if len(pattern) > MAX_REGEX:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise CheckpointError("E_REGEX", f"{path}: {show('re:' + pattern)}: {error}") from None


def scope_of(targets: Sequence[Matcher | str]) -> Scope:
    """`moe_experts`, `embedding` or `attention` when the targets are for those alone, else `linear`."""
    names = [t if isinstance(t, str) else t.value for t in targets]
    if not names:
        return "linear"
    if all(_EXPERTS.search(n) and not _NOT_EXPERTS.search(n) for n in names):
        return "moe_experts"
    if all(_EMBEDDING.search(n) for n in names):
        return "embedding"
    if all(isinstance(t, Matcher) and t.kind == "class" and _ATTENTION_CLASS.search(t.value) for t in targets):
        return "attention"
    return "linear"
