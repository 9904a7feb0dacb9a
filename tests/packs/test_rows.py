"""Rows of knowledge that nothing reads are named; those that are read are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from logscan.judge.compiling import compile_condition
from logscan.packs.load import load
from logscan.packs.rows import lint_knowledge, lint_rows

KNOWN = ("0.31.0", "0.32.0", "0.33.0")
CUDA = compile_condition({"platform": "cuda"}, lambda _: "word")
NARROW = compile_condition({"platform": "cuda", "method": "fp8"}, lambda _: "word")


def said(table: str, rows: list[dict], releases: tuple[str, ...] = KNOWN) -> list[str]:
    key = "needs" if table == "kernel" else "rows"
    entry = {"id": "x", "where": "own.toml:1", key: tuple(rows)}
    return [f"{p.severity}: {p.pattern}: {p.message}" for p in lint_rows({table: (entry,)}, releases)]


def test_a_list_takes_the_first_row_that_fits():
    open_end = [{"engine": ">=0.32", "order": ("A",)}, {"engine": ">=0.34", "order": ("B",)}]
    assert said("candidates", open_end, (*KNOWN, "0.34.0")) == [
        "error: [[candidates]] x: row '>=0.34' is dead in 0.34.0 and later: row '>=0.32' stands before it; "
        "end that one's range"
    ]
    bounded = [{"engine": ">=0.32,<0.34", "order": ("A",)}, {"engine": ">=0.34", "order": ("B",)}]
    assert said("candidates", bounded, (*KNOWN, "0.34.0")) == []


def test_an_overlap_beyond_the_known_releases_is_seen():
    found = said("candidates", [{"engine": ">=0.32"}, {"engine": ">=0.34"}])
    assert [f.split(":")[0] for f in found] == ["error", "warning"]


def test_an_overlap_in_the_middle_says_where_it_ends():
    (found,) = said("candidates", [{"engine": "<0.33"}, {"engine": ">=0.32"}])
    assert "row '>=0.32' is dead in 0.32:" in found.replace("0.32.0", "0.32")


@pytest.mark.parametrize("table", ["kernel", "gate"])
def test_where_all_rows_count_only_an_implied_one_is_dead(table: str):
    first = {"engine": ">=0.31", "if": CUDA}
    assert said(table, [first, {"engine": ">=0.33", "if": NARROW}])[0].startswith("error")
    assert said(table, [first, {"engine": ">=0.33"}]) == []
    assert said(table, [{"engine": "<0.33", "if": CUDA}, {"engine": ">=0.33", "if": NARROW}]) == []
    assert said(table, [{"engine": ">=0.31", "if": NARROW}, {"engine": ">=0.33", "if": CUDA}]) == []


def test_a_release_that_is_not_listed_is_a_warning():
    rows = [{"engine": ">=0.34", "if": CUDA}]
    assert said("kernel", rows) == [
        "warning: [[kernel]] x: row '>=0.34': no release that pack.toml lists is in it",
    ]
    assert said("kernel", rows, (*KNOWN, "0.34.0")) == []


def test_the_shipped_rows_are_all_read():
    assert lint_knowledge(load()) == []


def test_rows_of_ones_own_are_looked_at(tmp_path: Path):
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "pack.toml").write_text('id = "mine"\nengine = "vllm"\nversion = "1"\n')
    (tmp_path / "knowledge" / "own.toml").write_text(
        '[[gate]]\nid = "mine"\nsource = "x"\nrows = [{ engine = ">=0.30" }, { engine = ">=0.31" }]\n'
    )
    (problem,) = lint_knowledge(load([tmp_path]), [tmp_path])
    assert problem.where == f"{tmp_path}/knowledge/own.toml:1" and "'>=0.31' is dead in" in problem.message
