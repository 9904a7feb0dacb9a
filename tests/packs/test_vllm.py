"""The vLLM pack: sound, proven, complete over a catalogue of lines, and silent on everything else."""

from __future__ import annotations

import importlib.util
import re
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import pytest
from beside import SHARED

from logscan import versions
from logscan.intake import open_source
from logscan.model import Record
from logscan.packs import ledger, patterns_dir
from logscan.packs.lint import lint
from logscan.packs.load import load
from logscan.packs.page import page
from logscan.packs.schema import Pack, Pattern, Site
from logscan.recognise import Recogniser, file_of

ROOT = Path(__file__).resolve().parents[2]
RELEASES = (
    *("0.5.5", "0.6.6", "0.7.3", "0.8.5", "0.9.2", "0.10.2", "0.11.0", "0.13.0", "0.15.1", "0.18.0", "0.20.0"),
    *("0.24.0", "0.28.0", "0.31.0", "0.33.0"),
)
LOUD = ("warned", "refused", "failed")
SELECTIONS = ("linear.kernel", "moe.backend", "attention.backend")


@pytest.fixture(scope="module")
def pack() -> Pack:
    return next(p for p in load() if p.id == "vllm")


@pytest.fixture(scope="module")
def recogniser(pack: Pack) -> Recogniser:
    return Recogniser([pack])


def test_lint_has_no_error(pack: Pack):
    assert [p for p in lint([pack]) if p.severity == "error"] == []


def test_every_pattern_is_proven_as_it_stands(pack: Pack):
    """Run `scripts/prove_packs.py` after a change of a pattern's text or range."""
    known = ledger.read(patterns_dir() / "vllm" / "verify" / "ledger.json")
    assert ledger.stale(pack, known) == []


@pytest.mark.parametrize("name", ["vllm", "trtllm", "sglang"])
def test_the_page_says_nothing_that_the_pack_does_not(name: str):
    """Run `scripts/prove_packs.py --pages` after a change of a pattern; a new one may wait."""
    found = next(p for p in load() if p.id == name)
    fresh = page(found, ledger.read(patterns_dir() / name / "verify" / "ledger.json")).split("\n")
    written = (ROOT / "docs" / "packs" / f"{name}.md").read_text("utf-8").split("\n")
    rows = [line for line in written if line.startswith("| `")]
    assert len(rows) > 100
    assert [row for row in rows if row not in fresh] == []


def test_a_quoted_line_is_no_evidence(pack: Pack, recogniser: Recogniser):
    """What a user's prompt repeats must not hit, whatever it repeats."""
    for p in pack.patterns:
        for line in p.match:
            prompt = f"Received request cmpl-1: prompt: {line!r}, params: SamplingParams(n=1)".encode()
            hits = [e.pattern for e in recogniser.events(Record(1, prompt, level="INFO", file="logger.py"))]
            assert hits == [], line


def test_each_line_is_read_by_one_pattern(pack: Pack, recogniser: Recogniser):
    """Two patterns on one line would count one event twice. A refusal is also an exception: that one is meant."""
    also = {"vllm.exit.exception", "vllm.ready.wrapped"}
    twice = []
    for p in pack.patterns:
        for line in p.match:
            site = next((site for site in p.sites if site.source), Site("available", level="INFO"))
            file, level = file_of(site) or "x.py", site.level or "INFO"
            record = Record(1, line.encode(), origin=p.origin[0], level=level, file=file)
            hits = {e.pattern for e in recogniser.events(record)}
            assert p.id in hits, line
            if hits - also - {p.id} and p.id not in also:
                twice.append((p.id, hits, line[:80]))
    assert twice == []


def test_means_agrees_with_the_level(pack: Pack):
    """What is printed at WARNING or louder warns, refuses or fails."""
    odd = [
        (p.id, s.level, s.means)
        for p in pack.patterns
        for s in p.sites
        if s.level in ("WARNING", "ERROR", "CRITICAL") and s.means not in LOUD
    ]
    assert odd == []


def test_selections_name_what_was_selected(pack: Pack):
    for p in pack.patterns:
        if p.emits in SELECTIONS and not p.value:
            assert "?P<backend>" in p.regex or "?P<kernel>" in p.regex, p.id
        if p.emits in SELECTIONS:
            assert {path for s in p.sites for path in s.paths} == {p.emits.split(".")[0]}, p.id


def _render() -> ModuleType:
    path = SHARED / "tools" / "render.py"
    if not path.is_file():
        pytest.skip("the catalogue of lines is not beside this checkout")
    spec = importlib.util.spec_from_file_location("render", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _means(pattern: Pattern, release: str, record: Record) -> str | None:
    """What the pattern means where this release prints it: by file, then by level, as far as they tell."""
    sites = [s for s in pattern.sites if versions.contains(s.engine, release)]
    here = [s for s in sites if s.source.partition(":")[0].endswith("/" + record.file)] or sites
    same = [s for s in here if s.level == record.level] or here
    return same[0].means if same else None


@pytest.mark.parametrize("release", RELEASES)
def test_the_catalogued_lines_of_a_release_are_owned(release: str, pack: Pack, recogniser: Recogniser, tmp_path: Path):
    render = _render()
    pairs = render.render("vllm", release)
    log = tmp_path / "boot.log"
    log.write_text("".join(line + "\n" for _, line in pairs), "utf-8")
    by_line = defaultdict(list)
    patterns = {p.id: p for p in pack.patterns}
    for record in open_source(str(log)).records():
        for event in recogniser.events(record):
            by_line[event.line].append((patterns[event.pattern], record))
    rows = render.rows("vllm")
    wanted = missed = 0
    for n, (row_id, line) in enumerate(pairs, 1):
        same_id = [r for r in rows if r["id"] == row_id]
        row = next((r for r in same_id if render.in_range(r, release)), None)
        if row is None or row["downgrade_signal"] == "none":
            continue
        wanted += 1
        means = {m for p, record in by_line[n] if (m := _means(p, release, record))}
        missed += not means
        if means:
            loud = render.level(row) in ("WARNING", "ERROR")
            assert {m in LOUD for m in means} == {loud}, line
    assert wanted and missed <= 0.05 * wanted


ORDINARY = re.compile(
    r"Received request|HTTP/1\.1|Avg prompt throughput|^Engine \d+: |Added request|Loading safetensors|"
    r"Route: |Cache the graph|Directly load|Compiling a graph|reset_mm_cache|chat template"
)


def test_ordinary_lines_of_real_logs_hit_nothing(recogniser: Recogniser):
    logs = sorted(SHARED.glob("corpus/*/boot.log")) + sorted(SHARED.glob("cpu-boots/*/boot.log"))
    if not logs:
        pytest.skip("the real logs are not beside this checkout")
    ordinary = 0
    for log in logs:
        for record in open_source(str(log)).records():
            text = record.text.decode("utf-8", "replace")
            if ORDINARY.search(text[:200]) and record.origin != "traceback":
                ordinary += 1
                assert [e.pattern for e in recogniser.events(record)] == [], text[:200]
    assert ordinary > 1000
