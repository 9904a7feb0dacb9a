"""The recipes of CONTRIBUTING: pasted as they stand, they are sound."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from logscan import catalogue
from logscan.judge.knowledge import tables
from logscan.packs.load import load

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


def block(opening):
    (found,) = [b for b in re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL) if b.startswith(opening)]
    return found


@pytest.fixture
def pack(tmp_path):
    (tmp_path / "pack.toml").write_text('id = "mine"\nengine = "vllm"\nversion = "2026.1.0"\nreleases = ["0.34.0"]\n')
    return tmp_path


def test_the_pattern_is_sound(pack):
    # Ids begin with their pack's.
    (pack / "linear.toml").write_text(block("[[pattern]]").replace('"vllm.', '"mine.'))
    (mine,) = [p for p in load([pack]) if p.id == "mine"]
    (pattern,) = mine.patterns
    assert re.search(pattern.regex, pattern.match[0])["kernel"] == "FrobKernel"
    command = [sys.executable, "-m", "logscan", "packs", "lint", "--packs", str(pack)]
    assert subprocess.run(command, capture_output=True, text=True).returncode == 0


def test_the_kernel_row_has_the_keys_of_the_others():
    (row,) = tomllib.loads(block("[[kernel]]"))["kernel"]
    others = tomllib.loads((ROOT / "patterns/knowledge/vllm/linear-kernels.toml").read_text())["kernel"]
    assert set(row) <= {key for other in others for key in other}
    assert row["input"] in {other["input"] for other in others}
    assert tables() is not None


def test_the_rule_is_whole_and_its_code_is_free():
    (row,) = tomllib.loads(block("[[rule]]"))["rule"]
    # Who has pasted it has the rule itself under that code, and nobody else does.
    taken = {r.code: r.slug for r in catalogue.rules().values() if r.code == row["code"] or r.slug == row["slug"]}
    assert taken in ({}, {row["code"]: row["slug"]})
    assert set(row) == {"code", "slug", "title", "severity", "consequence", "what", "why", "sources", "fix"}
    assert "unknown" in row["fix"] and set(row["fix"]) <= set(catalogue.CAUSES)


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:patterns|logscan)/[\w/.-]+\.(?:toml|py))`", TEXT))))
def test_the_files_exist(path):
    assert (ROOT / path).exists()
