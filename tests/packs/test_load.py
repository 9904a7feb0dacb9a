"""Packs from TOML: every error at its line, and a cache that may be absent, damaged or read-only."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from logscan import cachefile
from logscan.model import InputError
from logscan.packs import load as loading
from logscan.packs.load import load, load_pack

HEAD = 'id = "mine"\nengine = "vllm"\nversion = "2026.1.0"\n'
PATTERN = """[[pattern]]
id = "mine.linear.foo"
literal = "Using Foo"
regex = '^Using Foo(?P<kernel>\\w{1,20})$'
emits = "linear.kernel"
match = ["Using FooBar"]
nomatch = ["Using Bar"]
[[pattern.site]]
engine = ">=0.15,<0.17"
means = "selected"
path = ["linear", "moe"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pack = tmp_path / "mine"
    pack.mkdir()
    (pack / "pack.toml").write_text(HEAD)
    (pack / "a.toml").write_text(PATTERN)
    return pack


def errors(folder: Path) -> list[str]:
    with pytest.raises(InputError) as caught:
        load([folder])
    return str(caught.value).split("\n")


def test_the_packaged_packs_and_the_users_own(folder: Path):
    *packaged, mine = load([folder])
    assert {"vllm"} <= {p.id for p in packaged}
    (pattern,) = mine.patterns
    assert (pattern.id, pattern.literals, pattern.origin) == ("mine.linear.foo", ("Using Foo",), ("engine",))
    assert pattern.sites[0].paths == ("linear", "moe")
    assert pattern.where == f"{folder}/a.toml:1"
    assert load([folder.parent])[-1] == mine


def test_the_cache_gives_back_what_was_read(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
    fresh = load_pack(folder, "mine", [])
    assert len(list((folder.parent / "cache" / "logscan").iterdir())) == 2  # the patterns, and their examples
    monkeypatch.setitem(sys.modules, "logscan.packs.read", None)  # not needed any more
    assert load_pack(folder, "mine", []) == fresh
    lean = load_pack(folder, "mine", [], examples=False)
    assert lean is not None and fresh is not None
    assert lean.patterns[0] == fresh.patterns[0]._replace(match=(), nomatch=(), note="")


def test_a_changed_file_is_read_anew(folder: Path):
    before = load([folder])[-1]
    (folder / "a.toml").write_text(PATTERN.replace("0.17", "0.18"))
    after = load([folder])[-1]
    assert after.digest != before.digest
    assert after.patterns[0].sites[0].engine == ">=0.15,<0.18"


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "other"])
def test_a_damaged_cache_is_rebuilt(folder: Path, damage: str):
    fresh = load([folder])[-1]
    file = cachefile.path_of(loading._cache_name(folder))
    data = file.read_bytes()
    file.write_bytes(
        {"flip": data[:-1] + bytes([data[-1] ^ 1]), "cut": data[:-9], "empty": b"", "other": b"\0" * 90}[damage]
    )
    assert load([folder])[-1] == fresh
    assert file.read_bytes() == data


def test_a_cache_that_cannot_be_written_costs_nothing_else(folder: Path, monkeypatch: pytest.MonkeyPatch):
    blocked = folder.parent / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    pack = load_pack(folder, "mine", [])
    assert pack is not None and pack.id == "mine"


def test_all_errors_are_told_at_once_each_with_its_line(folder: Path):
    broken = PATTERN.replace("selected", "chosen").replace('emits = "linear.kernel"', 'emitts = "linear.kernel"')
    (folder / "a.toml").write_text(PATTERN + "\n" + broken)
    (folder / "b.toml").write_text("[[pattern]]\nid = 'x'\n")
    (folder / "c.toml").write_text("id =\n")
    found = errors(folder)
    assert f"{folder}/a.toml:13: 'emits' is missing" in found
    assert f"{folder}/a.toml:13: unknown key 'emitts' (known: {', '.join(KNOWN)})" in found
    assert [e for e in found if e.startswith(f"{folder}/b.toml:1: ")]
    assert [e for e in found if e.startswith(f"{folder}/c.toml:1: not TOML: ")]


KNOWN = (
    *("id", "regex", "literal", "emits", "value", "origin", "phase", "parse", "component"),
    *("match", "nomatch", "note", "site"),
)


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("selected", "chosen", 8, "means: 'chosen' is not one of"),
        (">=0.15,<0.17", ">=0.15;<0.17", 8, "engine: not a version range"),
        ('["linear", "moe"]', '"lineal"', 8, "path: 'lineal' is not one of linear, moe, attention, kv_cache"),
        ("mine.linear.foo", "Foo", 1, "id: 'Foo' is not a dotted name"),
        ("\\w{1,20})", "\\w{1,20}", 1, "mine.linear.foo: regex: "),
        ('"Using Foo"', '""', 1, "mine.linear.foo: literal is empty"),
        ('emits = "linear.kernel"', 'emits = "linear.kernel"\norigin = "kernel"', 1, "origin: 'kernel' is not one of"),
        ('emits = "linear.kernel"', 'emits = "linear.kernel"\nphase = "run"', 1, "phase: 'run' is not one of"),
        ('emits = "linear.kernel"', 'emits = "linear.kernel"\nparse = "yaml"', 1, "parse: 'yaml' is not one of"),
        ('emits = "linear.kernel"', "emits = 3", 1, "'emits' must be text, not 3"),
        ('match = ["Using FooBar"]', "match = [1]", 1, "'match' must be text or a list of texts, not [1]"),
    ],
)
def test_a_wrong_value_is_told_with_its_line(folder: Path, old: str, new: str, line: int, said: str):
    assert old in PATTERN
    (folder / "a.toml").write_text(PATTERN.replace(old, new, 1))
    (error,) = errors(folder)
    assert error.startswith(f"{folder}/a.toml:{line}: {said}")


def test_a_pattern_without_a_site_is_refused(folder: Path):
    (folder / "a.toml").write_text(PATTERN.partition("[[pattern.site]]")[0])
    (error,) = errors(folder)
    assert "no [[pattern.site]]" in error


def test_one_id_twice_is_refused_in_a_pack_and_across_packs(folder: Path):
    (folder / "b.toml").write_text(PATTERN)
    assert errors(folder) == [
        f"{folder}/b.toml:1: pattern 'mine.linear.foo' is already defined at {folder}/a.toml:1; give it another id"
    ]
    (folder / "b.toml").unlink()
    taken = next(p for p in load() if p.id == "vllm").patterns[0]
    (folder / "a.toml").write_text(PATTERN.replace("mine.linear.foo", taken.id))
    assert errors(folder) == [
        f"{folder}/a.toml:1: pattern {taken.id!r} is already defined at {taken.where}; give it another id"
    ]


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ('id = "mine"\n', "'engine' is missing"),
        (HEAD + 'releases = ["0.2", "0.1"]\n', "releases: not in ascending order, or one stands twice"),
        (HEAD + 'releases = ["0.2", "0.2"]\n', "releases: not in ascending order, or one stands twice"),
        (HEAD + 'releases = ["new"]\n', "releases: not a version: 'new'"),
        (HEAD + 'colour = "red"\n', "unknown key 'colour'"),
    ],
)
def test_the_head_of_a_pack_is_checked(folder: Path, head: str, said: str):
    (folder / "pack.toml").write_text(head)
    assert any(e.startswith(f"{folder}/pack.toml:1: {said}") for e in errors(folder))


def test_bytes_that_are_not_utf8_are_told_with_their_line(folder: Path):
    (folder / "a.toml").write_bytes(PATTERN.encode() + b"note = '\xff'\n")
    assert errors(folder) == [f"{folder}/a.toml:{PATTERN.count(chr(10)) + 1}: not UTF-8"]


def test_a_folder_that_is_no_pack_says_what_is_wanted(tmp_path: Path):
    assert errors(tmp_path / "absent") == [
        f"{tmp_path}/absent: no such directory; --packs wants the directory that holds pack.toml"
    ]
    assert errors(tmp_path) == [f"{tmp_path}: no pack.toml in it; write one with id, engine and version"]


def test_the_digest_covers_names_and_bytes(folder: Path):
    before = load_pack(folder, "mine", [])
    (folder / "a.toml").rename(folder / "b.toml")
    after = load_pack(folder, "mine", [])
    assert before and after and before.digest != after.digest
