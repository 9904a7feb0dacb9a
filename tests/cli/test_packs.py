"""`logscan packs`: what it prints and how it leaves."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from typer.testing import CliRunner

from logscan.cli.commands import app
from logscan.packs.load import load

runner = CliRunner()
PACK = 'id = "mine"\nengine = "vllm"\nversion = "2026.1.0"\n'
PATTERN = """[[pattern]]
id = "mine.linear.foo"
literal = "Using Foo"
regex = '^Using Foo(?P<kernel>\\w{1,20})$'
emits = "linear.kernel"
match = ["Using FooBar"]
nomatch = ["Using Bar"]
[[pattern.site]]
means = "selected"
path = "linear"
"""


def valid(text: str) -> Any:
    """The document, after it has been held against its schema."""
    document = json.loads(text)
    name = document["schema"].removeprefix("logscan.").partition("/")[0]
    jsonschema.validate(document, json.loads(files("logscan").joinpath(f"schemas/{name}.json").read_text()))
    return document


def run(*args: str, stdin: str = ""):
    return runner.invoke(app, ["packs", *args], input=stdin, prog_name="logscan")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "pack.toml").write_text(PACK)
    (tmp_path / "a.toml").write_text(PATTERN)
    return tmp_path


def test_list_names_each_pack():
    result = run("list")
    assert result.exit_code == 0
    head, *rows = result.stdout.splitlines()
    assert head.split() == ["pack", "engine", "version", "patterns", "proven", "releases", "digest"]
    assert {row.split()[0] for row in rows} == {"vllm", "trtllm", "sglang"}


def test_list_as_json_counts_patterns_and_releases(mine: Path):
    document = valid(run("list", "--format", "json", "--packs", str(mine)).stdout)
    assert document["schema"] == "logscan.packs/1"
    found = {p["id"]: p for p in document["packs"]}
    assert (found["mine"]["patterns"], found["mine"]["proven"], found["mine"]["releases"]) == (1, 0, [])
    (vllm,) = [pack for pack in load() if pack.id == "vllm"]
    first, last = vllm.releases[0], vllm.releases[-1]
    assert (first, found["vllm"]["releases"]) == ("0.5.0", [f"0.5.0..{last}"])
    assert found["vllm"]["releases_known"] == found["vllm"]["releases_proven"] == len(vllm.releases) >= 74


def test_the_shipped_packs_pass_their_own_checks():
    assert run("lint").exit_code == 0
    assert run("test").exit_code == 0


def test_a_pattern_of_ones_own_is_one_entry_and_is_checked(mine: Path):
    assert run("test", "--packs", str(mine)).exit_code == 0
    (mine / "a.toml").write_text(PATTERN.replace("Using FooBar", "Using FooBar!"))
    result = run("test", "--packs", str(mine))
    assert result.exit_code == 1
    assert result.stdout == f"{mine}/a.toml:1: mine.linear.foo does not match its match line 'Using FooBar!'\n"
    result = run("lint", "--packs", str(mine))
    assert result.exit_code == 1
    assert f"{mine}/a.toml:1: error: mine.linear.foo: does not match" in result.stdout


def test_a_bad_pack_is_bad_input(mine: Path):
    (mine / "a.toml").write_text(PATTERN.replace("linear.kernel", "kernel"))
    for command in ("list", "lint", "test"):
        result = run(command, "--packs", str(mine))
        assert (result.exit_code, result.stdout) == (2, "")
        assert "a.toml:1: emits: 'kernel' is not a dotted name" in result.stderr


LINE = "(EngineCore pid=7) INFO 07-14 10:00:00 [new.py:12] Using FooBarKernel for NVFP9 GEMM"


def test_new_reads_a_log_line_with_its_prefix(mine: Path):
    for result in (run("new", LINE), run("new", "-", stdin=LINE + "\n")):
        assert result.exit_code == 0
        assert "regex = '^Using (?P<kernel>\\w{1,120}) for NVFP9 GEMM$'" in result.stdout
        assert 'source = "new.py:"' in result.stdout
    stub = result.stdout.replace('""]', '"Using it"]').replace('id = "vllm.', 'id = "mine.').split("  #")
    (mine / "b.toml").write_text(
        "".join(part.partition("\n")[1] + part.partition("\n")[2] if n else part for n, part in enumerate(stub))
    )
    assert run("test", "--packs", str(mine)).exit_code == 0


def test_new_says_who_owns_the_line_and_refuses_an_empty_one():
    assert (
        "vllm.linear.selected already reads this line" in run("new", "Selected FooBarKernel for Fp8LinearMethod").stderr
    )
    assert run("new", "  ").exit_code == 2


def tree(root: Path, version: str, code: str) -> str:
    package = root / f"vllm-{version}" / "vllm" / "model_executor" / "kernels" / "linear"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(code)
    return str(root / f"vllm-{version}")


def test_verify_leaves_with_1_when_a_pattern_is_stale(tmp_path: Path):
    source = tree(tmp_path, "0.33.0", 'logger.info_once("Using %s for NVFP4 GEMM", kernel)\n')
    result = run("verify", source, "--format", "json")
    assert result.exit_code == 1
    (release,) = valid(result.stdout)["releases"]
    assert release["version"] == "0.33.0"
    assert release["counts"]["proven"] == 1
    assert {f["kind"] for f in release["findings"]} == {"stale"}
    table = run("verify", source)
    assert table.exit_code == 1
    assert table.stdout.splitlines()[1].split()[:2] == ["0.33.0", "1"]


def test_verify_of_what_is_no_source_is_bad_input(tmp_path: Path):
    result = run("verify", str(tmp_path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no Python files of 'vllm'" in result.stderr
    assert run("verify", "--engine", "nothing", str(tmp_path)).exit_code == 2


@pytest.mark.parametrize(
    ("line", "owner"),
    [
        ("Selected CutlassFP8ScaledMMLinearKernel for CompressedTensorsW8A8Fp8", "vllm.linear.selected"),
        ("GPU models and configuration: GPU 0: NVIDIA A100-SXM4-80GB", "vllm.collect_env.gpu"),  # printed, not logged
        ("[TensorRT-LLM] TensorRT LLM version: 1.2.0rc4", "trtllm.boot.banner"),
        ("  Meta[12]:", "trtllm.fmha.available_kernel"),
    ],
)
def test_new_names_the_pattern_that_reads_a_line_already(line: str, owner: str) -> None:
    told = run("new", line)
    assert told.exit_code == 0
    assert told.stderr == f"logscan: {owner} already reads this line; change that one rather than add another\n"
    assert told.stdout.startswith("[[pattern]]\n")
