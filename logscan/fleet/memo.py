"""Pods of one deployment boot alike: what was judged once need not be judged again.

A judgement is a pure function of a boot, its promise and its machine. Two boots whose facts are the same in the same
order, but for where they stand and for what they measured (seconds, GiB), get the same judgement, with lines and texts
of evidence taken from the boot at hand.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

from logscan.document import Judged
from logscan.judge import Judgement
from logscan.model import Boot, Evidence, Finding, Row, replace

# Measurements and addresses: no rule and no gate reads them, and no two boots agree on them.
MEASURED = frozenset(
    {"model.weights_seconds", "model.gib", "kv.memory_gib", "kv.tokens", "kv.concurrency", "kv.blocks", "gpu.memory"}
    | {"boot.engine_ready", "boot.ready", "boot.tasks", "process.rank", "process.layout"}
)
_ROOM = 1024
_Quote = tuple[int, str, str]  # line, pattern and text of a fact


class Memo:
    """Judgements by what they depend on. Bounded: the oldest goes first."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Judged, dict[_Quote, int]]] = {}
        self.hits = 0

    def get(self, boot: Boot, key: bytes) -> Judged | None:
        """The judgement of an equal boot, told with this boot's lines."""
        found = self._known.get(key)
        if found is None:
            return None
        self.hits += 1
        judged, places = found
        engine = judged.boot.engine._replace(line=boot.engine.line)
        moved = _moved(judged.judgement, places, _lines(boot))
        return judged._replace(boot=replace(boot, engine=engine), judgement=moved)

    def put(self, key: bytes, judged: Judged) -> None:
        """Keep a judgement, if each line that it quotes is that of a fact."""
        boot, judgement = judged.boot, judged.judgement
        places: dict[_Quote, int] = {}
        for i, quote in enumerate(_lines(boot)):
            places.setdefault(quote, i)
        if boot.status in ("ready", "incomplete") and all(
            (e.line, e.pattern, e.text) in places for e in _evidence(judgement)
        ):
            if len(self._known) >= _ROOM:
                del self._known[next(iter(self._known))]
            self._known[key] = judged, places


def key_of(boot: Boot, given: bytes) -> bytes | None:
    """What a boot's judgement depends on, beside `given` (digest of promise and machine); None for a boot that failed:
    its error is its own.

    The ranks of lines stand for the lines: what is compared of them is their order.
    """
    if boot.status not in ("ready", "incomplete"):
        return None
    parts: list[object] = [
        given,
        [text for _, text in boot.unrecognised],
        boot.status,
        boot.model,
        repr(boot.engine._replace(line=None)),
    ]
    census = boot.census
    parts += [
        census.head,
        census.tail,
        census.sources,
        [name for name, count in sorted(census.levels.items()) if count],
    ]
    parts += [boot.interleaved, boot.last > max((f.line for f in boot.facts), default=0)]
    line, rank, text = -1, 0, ""
    for fact in boot.facts:
        if fact.line != line:
            line, rank = fact.line, rank + 1
        same = fact.text is text or fact.text == text
        text = fact.text
        parts.append((rank, fact.name, fact.pattern, fact.means, fact.component, fact.path, fact.level))
        if fact.name not in MEASURED:
            parts += [fact.value, None if same else text, _flat(fact.fields)]
    return blake2b(marshal.dumps(parts, 2), digest_size=16).digest()


def _flat(fields: Mapping[str, str]) -> list[str]:
    # A boot's arguments stand in the text already, hundreds of bytes each.
    return [part for name, value in fields.items() if len(value) < 200 for part in (name, value)]


def _evidence(judgement: Judgement) -> Iterator[Evidence]:
    for row in judgement.rows:
        yield from row.evidence
    for finding in judgement.findings:
        yield from finding.evidence


def _lines(boot: Boot) -> list[_Quote]:
    """(line, pattern, text) of all that evidence can quote."""
    facts = [(fact.line, fact.pattern, fact.text) for fact in boot.facts]
    return facts + [(line, "", text) for line, text in boot.unrecognised]


def _moved(judgement: Judgement, places: Mapping[_Quote, int], lines: Sequence[_Quote]) -> Judgement:
    def here(evidence: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
        out = []
        for item in evidence:
            line, _, text = lines[places[item.line, item.pattern, item.text]]
            out.append(item._replace(line=line, text=text))
        return tuple(out)

    rows: tuple[Row, ...] = tuple(replace(row, evidence=here(row.evidence)) for row in judgement.rows)
    findings: tuple[Finding, ...] = tuple(replace(f, evidence=here(f.evidence)) for f in judgement.findings)
    return judgement._replace(rows=rows, findings=findings)
