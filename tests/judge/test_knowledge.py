"""Loading the tables: every mistake is reported with its place, and the cache gives back what was compiled."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from logscan.judge import compiling, knowledge
from logscan.judge.knowledge import tables
from logscan.model import InputError
from logscan.packs import patterns_dir


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """What is reported for a file beside the packaged atoms and gates."""
    home = tmp_path / "packaged" / "knowledge"
    (home / "vllm").mkdir(parents=True)
    for name in ("atoms.toml", "vllm/gates.toml"):
        (home / name).write_bytes((patterns_dir() / "knowledge" / name).read_bytes())
    monkeypatch.setattr(knowledge, "patterns_dir", lambda: home.parent)

    def reported(text: str) -> str:
        (tmp_path / "knowledge").mkdir(exist_ok=True)
        (tmp_path / "knowledge" / "own.toml").write_text(text)
        knowledge._tables.cache_clear()
        with pytest.raises(InputError) as caught:
            tables([tmp_path])
        return str(caught.value)

    return reported


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_the_packaged_tables_load_and_every_row_has_a_source(engine: str) -> None:
    raw = tables((), engine).raw
    assert {"kernel", "rewrite"} <= {t for t, rows in raw.items() if rows}
    for table in ("gate", "kernel", "candidates", "rewrite", "distrust", "domain"):
        assert all(row["source"] for row in raw[table])


def test_all_mistakes_are_reported_each_with_file_and_line(load: Callable[[str], str]) -> None:
    message = load(
        '[[gate]]\nid = "a"\nsource = "x"\nrows = [{ if = { colour = "red" } }]\n'
        '[[gate]]\nid = "b"\nsource = "x"\nrows = [{ engine = "0.15", if = {} }]\n',
    )
    assert re.search(r"own\.toml:1: unknown atom 'colour'", message)
    assert re.search(r"own\.toml:5: engine: not a version range", message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[gate]\n", "not TOML"),
        ("[[colour]]\nid = 'x'\n", r"\[\[colour\]\] is no table"),
        ("[[gate]]\nid = 'x'\nsource = 'x'\nengine = 3\nrows = []\n", "engine: write a range as a text"),
        (
            "[[gate]]\nid = 'a'\nsource = 'x'\nrows = [{ if = { gate = 'b' } }]\n"
            "[[gate]]\nid = 'b'\nsource = 'x'\nrows = [{ if = { gate = '!a' } }]\n",
            "gate 'a' asks for itself",
        ),
        (
            "[[candidates]]\nid = 'x'\nplatform = 'cuda'\nsource = 'x'\nrows = [{ order = [{ x = 'a' }] }]\n",
            "rows are tables with an order",
        ),
        (
            "[[rewrite]]\nid = 'x'\nstage = 'scheme'\nsource = 'x'\nset = { kernel = { a = 1 } }\n",
            r"set\.kernel is not \{'a': 1\}",
        ),
        (
            "[[rewrite]]\nid = 'x'\nstage = 'scheme'\nsource = 'x'\nset = { input = 'nosuch' }\n",
            "operand 'nosuch' has no row",
        ),
        ("gate = [3]\n", r"own\.toml: \[\[gate\]\] is a table, not 3"),
        ("[[gate]]\nid = 'x'\nsource = 'x'\nsince = 2026-01-01\nrows = []\n", r":1: 2026-01-01 is a date"),
        (
            "[[rewrite]]\nid = 'x'\nstage = 'scheme'\nsource = 'x'\nset = {}\nprints = 3\n",
            "prints is a list of tables with level and text",
        ),
        (
            "[[rewrite]]\nid = 'x'\nstage = 'scheme'\nsource = 'x'\nset = {}\nprints = ['a']\n",
            "prints is a list of tables with level and text",
        ),
        ('[[gate]]\nid = "cutlass_fp8"\nsource = "x"\nrows = []\n', "a second time"),
        ('[[gate]]\nid = "x"\nrows = []\n', "no source"),
        ('[[gate]]\nid = "x"\nsource = "x"\n', "rows is missing or not a list"),
        ('[[kernel]]\nsource = "x"\nneeds = 1\n', r"id is missing(.|\n)*needs is missing or not a list"),
        ('[[candidates]]\nid = "x"\nplatform = "cuda"\nsource = "x"\nrows = [{}]\n', "tables with an order"),
        ('[[operand]]\nid = "x"\ndtype = "int8"\nbits = "8"\n', "bits is missing or not a number"),
        ('[[gate]]\nid = "x"\nsource = "x"\nrows = [{ if = { sm = ">=100" } }]\n', "bare floor"),
        ('[[gate]]\nid = "x"\nsource = "x"\nrows = [{ if = { gate = "nope" } }]\n', "gate 'nope' has no row"),
        ('[[rewrite]]\nid = "x"\nsource = "x"\nstage = "late"\nset = {}\n', "stage 'late'"),
        ('[[rewrite]]\nid = "x"\nsource = "x"\nstage = "load"\nset = { kernel = "Nope" }\n', "kernel 'Nope'"),
        ('[[rewrite]]\nid = "x"\nsource = "x"\nstage = "load"\nset = { list = "nope" }\n', "candidates 'nope'"),
        (
            '[[candidates]]\nid = "x"\nplatform = "cuda"\nsource = "x"\nrows = [{ order = ["Nope"] }]\n',
            "kernel 'Nope' has no row",
        ),
        (
            '[[rewrite]]\nid = "x1"\nsource = "x"\nstage = "scheme"\nif = { w = "zz" }\nset = {}\n'
            '[[rewrite]]\nid = "x2"\nsource = "x"\nstage = "scheme"\nif = { w = "zz" }\nset = {}\n',
            "'x2' is never reached",
        ),
    ],
)
def test_what_the_tables_must_not_say(load: Callable[[str], str], text: str, message: str) -> None:
    assert re.search(message, load(text))


def test_own_rows_are_added_to_the_packaged_ones(tmp_path: Path) -> None:
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "own.toml").write_text('[[gate]]\nid = "mine"\nsource = "me"\nrows = [{ if = {} }]\n')
    assert "mine" in tables([tmp_path]).view("0.30.0").gates
    assert "cutlass_fp8" in tables([tmp_path]).view("0.30.0").gates


def test_the_tables_of_one_engine_hold_no_row_of_another(tmp_path: Path) -> None:
    (tmp_path / "knowledge" / "sglang").mkdir(parents=True)
    own = '[[gate]]\nid = "{}"\nsource = "me"\nrows = [{{ if = {{}} }}]\n'
    (tmp_path / "knowledge" / "own.toml").write_text(own.format("mine"))
    (tmp_path / "knowledge" / "sglang" / "own.toml").write_text(own.format("sglangs"))
    gates = {engine: set(tables([tmp_path], engine).view("0.5.13").gates) for engine in ("vllm", "sglang", "")}
    assert "mine" in gates["vllm"] - gates["sglang"] and "sglangs" in gates["sglang"] - gates["vllm"]
    assert gates[""] == set()
    (tmp_path / "pack.toml").write_text('id = "x"\nengine = "sglang"\n')
    knowledge._tables.cache_clear()
    assert "mine" in tables([tmp_path], "sglang").view("0.5.13").gates


def test_the_cache_returns_what_was_compiled_and_survives_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    knowledge._tables.cache_clear()
    first = tables()
    view = first.view("0.24.0")
    knowledge._tables.cache_clear()
    with monkeypatch.context() as warm:
        warm.setattr(compiling, "compile_tables", lambda files: pytest.fail("parsed again"))
        assert tables().view("0.24.0") == view
        assert (tables().raw, tables().timeless) == (first.raw, first.timeless)
    kinds = set()
    for cached in (tmp_path / "logscan").iterdir():
        kinds.add(cached.name.partition("-")[0])
        cached.write_bytes(b"\x00damaged")
        knowledge._tables.cache_clear()
        assert tables().view("0.24.0") == view
        assert (tables().raw, tables().timeless) == (first.raw, first.timeless)
    assert kinds == {"knowledge", "tables", "view"}


def test_a_view_from_the_cache_is_that_of_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a view leaves out of the tables is what no view reads."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for engine, releases in (("vllm", ("0.8.5", "0.15.0", "0.33.0")), ("sglang", ("0.5.13",)), ("trtllm", ("1.1.0",))):
        whole = tables((), engine)
        for release in releases:
            kept, full = whole.view(release), knowledge._view(whole.raw, release)
            assert kept._replace(kernels={}, rewrites={}, candidates={}) == full._replace(
                kernels={}, rewrites={}, candidates={}
            )
            assert {s: [r.id for r in rows] for s, rows in kept.rewrites.items()} == {
                s: [r.id for r in rows] for s, rows in full.rewrites.items()
            }
            assert kept.candidates.keys() == full.candidates.keys()
            for row in whole.raw["kernel"]:
                pair = kept.kernels[row["id"]], full.kernels[row["id"]]
                a, b = (kernel._replace(effects=(), announces=()) for kernel in pair)
                assert a == b


def test_folders_of_one_name_are_not_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for home in ("a", "b"):
        (tmp_path / home / "own" / "knowledge").mkdir(parents=True)
        own = tmp_path / home / "own" / "knowledge" / "own.toml"
        own.write_text(f'[[gate]]\nid = "{home}"\nsource = "x"\nrows = [{{ if = {{}} }}]\n')
        os.utime(own, (0, 0))
        monkeypatch.chdir(tmp_path / home)
        knowledge._tables.cache_clear()
        assert home in tables(["own"]).view("0.24.0").gates
    knowledge._tables.cache_clear()


def test_tables_that_are_replaced_during_a_run_end_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "patterns"
    shutil.copytree(patterns_dir() / "knowledge", home / "knowledge")
    monkeypatch.setattr(knowledge, "patterns_dir", lambda: home)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    knowledge._tables.cache_clear()
    tables().view("0.24.0")
    knowledge._tables.cache_clear()
    running = tables()
    gates = home / "knowledge" / "vllm" / "gates.toml"
    gates.write_text(gates.read_text().replace("12.8", "12.9"))
    assert running.view("0.24.0").release == "0.24.0"  # it is kept
    with pytest.raises(InputError, match="replaced while logscan ran"):
        running.view("0.31.0")
    gates.unlink()
    with pytest.raises(InputError, match="gates.toml: cannot be read"):
        running.view("0.31.0")
    knowledge._tables.cache_clear()


def test_an_edited_table_is_read_anew(tmp_path: Path) -> None:
    (tmp_path / "knowledge").mkdir()
    own = tmp_path / "knowledge" / "own.toml"
    for name in ("one", "two"):
        own.write_text(f'[[gate]]\nid = "{name}"\nsource = "x"\nrows = [{{ if = {{ sm = "89" }} }}]\n')
        os.utime(own, (0, 0))
        knowledge._tables.cache_clear()
        assert name in tables([tmp_path]).view("0.24.0").gates
    knowledge._tables.cache_clear()


def test_an_edit_between_two_calls_is_seen(tmp_path: Path) -> None:
    (tmp_path / "knowledge").mkdir()
    own = tmp_path / "knowledge" / "own.toml"
    for name in ("one", "other"):
        own.write_text(f'[[gate]]\nid = "{name}"\nsource = "x"\nrows = [{{ if = {{ sm = "89" }} }}]\n')
        assert name in tables([tmp_path]).view("0.24.0").gates


def test_an_edit_behind_a_link_is_seen(tmp_path: Path) -> None:
    """A mounted ConfigMap is built of such links."""
    (tmp_path / "knowledge").mkdir()
    real = tmp_path / "real.toml"
    (tmp_path / "knowledge" / "own.toml").symlink_to(real)
    for name in ("one", "other"):
        real.write_text(f'[[gate]]\nid = "{name}"\nsource = "x"\nrows = [{{ if = {{ sm = "89" }} }}]\n')
        assert name in tables([tmp_path]).view("0.24.0").gates


def test_the_engine_of_a_folder_is_read_as_toml(tmp_path: Path) -> None:
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "pack.toml").write_text("id = 'x'\nengine = 'sglang'\n")
    (tmp_path / "knowledge" / "own.toml").write_text('[[gate]]\nid = "mine"\nsource = "x"\nrows = [{ if = {} }]\n')
    assert "mine" in tables([tmp_path], "sglang").view("0.5.13").gates
    assert "mine" not in tables([tmp_path], "vllm").view("0.24.0").gates


def test_a_kernel_outside_its_range_may_stand_in_a_list(tmp_path: Path) -> None:
    (tmp_path / "knowledge").mkdir()
    (tmp_path / "knowledge" / "own.toml").write_text(
        '[[kernel]]\nid = "OwnKernel"\nsource = "x"\nengine = ">=0.30"\nneeds = [{ if = {} }]\n'
        '[[candidates]]\nid = "own"\nplatform = "cuda"\nsource = "x"\nrows = [{ order = ["OwnKernel"] }]\n'
    )
    assert tables([tmp_path]).view("0.24.0").kernels["OwnKernel"].name == "OwnKernel"


def test_rows_are_counted_however_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "knowledge").mkdir()
    rows = '{ id = "inline", source = "x", rows = [{ if = {} }] }'
    (tmp_path / "knowledge" / "a.toml").write_text(f"gate = [{rows}]\n")
    (tmp_path / "knowledge" / "b.toml").write_text('  [[ gate ]]\nid = "set in"\nsource = "x"\nrows = [{ if = {} }]\n')
    assert {"inline", "set in"} <= set(tables([tmp_path]).view("0.24.0").gates)
    knowledge._tables.cache_clear()


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("nowhere")], ids=["folder", "dangling link"])
def test_what_is_no_file_is_told(tmp_path: Path, make: Callable[[Path], None]) -> None:
    (tmp_path / "knowledge").mkdir()
    make(tmp_path / "knowledge" / "own.toml")
    with pytest.raises(InputError, match="own.toml: cannot be read"):
        tables([tmp_path])


@pytest.mark.parametrize("engine", ["vllm", "sglang", "trtllm"])
def test_every_line_that_rows_say_is_one_the_pattern_knows(engine: str) -> None:
    """A print whose pattern cannot match it would count as never printed."""
    import tomllib

    patterns = {}
    for path in patterns_dir().glob(f"{engine}/*.toml"):
        for row in tomllib.loads(path.read_text()).get("pattern", []):
            patterns[row["id"]] = re.compile(row["regex"])

    def lines(value: object) -> list[dict[str, str]]:
        if isinstance(value, dict):
            own = [value] if "text" in value and "level" in value else []
            return own + [line for item in value.values() for line in lines(item)]
        return [line for item in value for line in lines(item)] if isinstance(value, tuple) else []

    names = {"{kernel}": "MarlinLinearKernel", "{printed}": "MARLIN", "{layer}": "AutoAWQMarlinLinearMethod"}
    for rows in tables((), engine).raw.values():
        for line in lines(rows):
            if "pattern" in line:
                text = line["text"].replace("{kv_flag}", "fp8").replace("{sm}", "90")
                for key, name in names.items():
                    text = text.replace(key, name)
                assert line["pattern"] in patterns and patterns[line["pattern"]].search(text), line
