"""What lines say of a row beside naming its kernel: scales rounded anew at load, a type that took another's place.

Neither SGLang nor TensorRT-LLM names the kernel of a layer; single lines of theirs tell what became of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence

from logscan.judge.evidence import cite
from logscan.judge.order import Ask
from logscan.judge.rows import visible
from logscan.model import Fact, Row, replace

_MOVES = {"type_changed": "type-changed"}  # the tail of a fact's name → kind
_NOTES = {"rescaled": "rescaled"}


def remarked(row: Row, ask: Ask, facts: Sequence[Fact]) -> Row:
    """The row with the deviations that its path's lines state; `facts` are those of the boot.

    A type that changed moves the verdict where a yardstick names the weights; scales that were rounded anew never do.
    """
    if row.verdict == "not-served" or ask.wanted is None or ask.wanted.weights is None:
        return row
    own = [f for f in facts if f.component == row.component and f.name.partition(".")[0] == row.path]
    for tail, kind in _MOVES.items():
        said = _said(own, tail)
        if said:
            row = replace(
                _with(row, kind, said),
                verdict="downgraded",
                extent="unknown",
                reasons=(),
                against=ask.against,
                authority="logged",
                visibility=visible("downgraded", [f.level for f in said]),
            )
    for tail, kind in _NOTES.items():
        said = _said(own, tail)
        if said and row.verdict in ("kept", "downgraded"):
            row = _with(row, kind, said)
            word = visible("downgraded", [f.level for f in said])
            row = replace(row, visibility=row.visibility or word)
    return row


def _said(facts: Sequence[Fact], tail: str) -> list[Fact]:
    return [f for f in facts if f.name.partition(".")[2] == tail]


def _with(row: Row, kind: str, said: Sequence[Fact]) -> Row:
    known = {(e.line, e.pattern) for e in row.evidence}
    evidence = tuple(cite(f) for f in said[:3] if (f.line, f.pattern) not in known)
    return replace(row, kinds=tuple(dict.fromkeys((*row.kinds, kind))), evidence=row.evidence + evidence)
