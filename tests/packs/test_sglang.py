"""SGLang's pack against its ledger: proven over the releases whose wheels were at hand."""

from __future__ import annotations

from logscan import versions
from logscan.packs import ledger, patterns_dir
from logscan.packs.fleet import pack_of
from logscan.packs.lint import lint

LEDGER = patterns_dir() / "sglang" / "verify" / "ledger.json"


def test_lint_has_no_error() -> None:
    assert [p for p in lint([pack_of("sglang")]) if p.severity == "error"] == []


def test_every_pattern_is_proven_over_the_sample() -> None:
    """Run `scripts/prove_packs.py --engine sglang --sources …` after a change of a pattern's text or range."""
    sample = ledger.sampled(LEDGER, pack_of("sglang"))
    assert ledger.stale(sample, ledger.read(LEDGER)) == []


def test_the_sample_spans_the_pack() -> None:
    """Every minor release of 0.4 and 0.5 is in it, from the oldest to the newest."""
    pack = pack_of("sglang")
    sample = ledger.sampled(LEDGER, pack).releases
    assert len(sample) >= 12 and (sample[0], sample[-1]) == (pack.releases[0], pack.releases[-1])
    parsed = [v for v in map(versions.parse, pack.releases) if v is not None]
    whole = {v.text for v in parsed if "post" not in v.text}
    assert whole <= set(sample)
