"""Targets and skip lists as configs write them: kinds of matchers, and what a group's targets cover.

Nothing is ever matched here; a checkpoint's regex is compiled once, bounded, only to see that it is one.
"""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Iterable, Sequence

from logscan.checkpoint.errors import CheckpointError, show
from logscan.checkpoint.operands import Scope
from logscan.model import Matcher

MAX_REGEX = 4096  # longer ones are reported, never compiled
MAX_SECONDS = 0.5  # for all regexes of a list

_WIDE = ("\\u", "\\U", "\\N")

# Compiled where they are first needed: most configs only target `Linear`.
_SHARED = r"(?i)shared[_\\.]{0,3}experts?"
_EXPERTS = r"(?i)experts|fusedmoe"
_TOKEN = r"(?s)\\.|\[(?:\\.|[^\]\\])*\]|\((?:\?(?:<?[!=]|[:#]|P?<\w+>|[aiLmsux-]*:?))?|[)|]|[^\\\[()|]+|."
_EMBEDDING = (
    r"(?i)(?:^|[.*^])(?:lm_head|embed_tokens|embed_out|output_embeddings?|wte|tok_embeddings|embedding|"
    r"parallellmhead|vocabparallelembedding)\W*$"
)
_ATTENTION_CLASS = r"Attention\w*$"


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
    """Raise E_REGEX for the first entry that Python's `re`, which the engines use, would refuse.

    Compiling is bounded too: a class over the whole of Unicode costs milliseconds, and a pattern may hold hundreds.
    """
    patterns = dict.fromkeys(m.value for m in entries if m.kind == "regex")
    until = time.monotonic() + MAX_SECONDS
    for pattern in patterns:
        if len(pattern) > MAX_REGEX or not pattern.isascii() or any(w in pattern for w in _WIDE):
            continue
        if time.monotonic() > until:
            return
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise CheckpointError("E_REGEX", f"{path}: {show('re:' + pattern)}: {error}") from None


def scope_of(targets: Sequence[Matcher | str]) -> Scope:
    """`moe_experts`, `embedding` or `attention` when the targets are for those alone, else `linear`."""
    names = [t if isinstance(t, str) else t.value for t in targets]
    if not names or "Linear" in names:
        return "linear"
    if all(_only_experts(n) for n in names):
        return "moe_experts"
    if all(re.search(_EMBEDDING, n) for n in names):
        return "embedding"
    if all(isinstance(t, Matcher) and t.kind == "class" and re.search(_ATTENTION_CLASS, t.value) for t in targets):
        return "attention"
    return "linear"


def _only_experts(pattern: str) -> bool:
    """Whether a name, glob or regex can only match routed experts: every alternative of it names them.

    A stack of groups, innermost last: [this alternative names experts, all before it did, a negative lookaround].
    """
    text = re.sub(_SHARED, "", pattern)
    if len(text) > MAX_REGEX or re.search(_EXPERTS, text) is None:
        return False
    stack = [[False, True, False]]
    for token in re.findall(_TOKEN, text):
        if token[0] == "(":
            stack.append([False, True, token in ("(?!", "(?<!")])
        elif token == ")" and len(stack) > 1:
            named, others, negative = stack.pop()
            stack[-1][0] |= named and others and not negative
        elif token == "|":
            stack[-1][1] &= stack[-1][0]
            stack[-1][0] = False
        elif token[0] != "[" and re.search(_EXPERTS, token):
            stack[-1][0] = True
    return stack[0][0] and stack[0][1]
