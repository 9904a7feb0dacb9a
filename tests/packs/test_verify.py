"""A pack against sources made for it: each kind of finding is seen to appear, and to go."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from logscan.model import InputError
from logscan.packs.ledger import add, claim, claimed, read, sampled, spans, stale, write
from logscan.packs.prove import Owners, fills
from logscan.packs.schema import Pack, Pattern, Patterns, Site
from logscan.packs.source import read_source
from logscan.packs.verify import Finding, Release, Verifier, read_ignored

CODE = 'def choose(k):\n    logger.info_once("Using %s for NVFP4 GEMM", k)\n'
PATTERN = Pattern(
    id="toy.linear.gemm",
    regex=r"^Using (?P<kernel>\w{3,80}) for NVFP4 GEMM$",
    literals=(" for NVFP4 GEMM",),
    emits="linear.kernel",
    match=("Using MarlinNvFp4LinearKernel for NVFP4 GEMM",),
    sites=(Site("selected", ">=1.1,<1.3", "toy/linear.py:choose", "INFO"),),
    where="toy/linear.toml:1",
)


def pack(*patterns: Pattern) -> Pack:
    return Pack("toy", "toy", "2026.1.0", "sha256:0", ("1.0", "1.1", "1.2", "1.3"), Patterns.of(patterns))


def tree(root: Path, version: str, **files: str) -> str:
    """A source tree `toy-<version>` with these modules."""
    base = root / f"toy-{version}"
    for name, text in {"__init__": "", **files}.items():
        path = base / "toy" / f"{name.replace('__slash__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(base)


def verify(source: str, pattern: Pattern = PATTERN, ignored: tuple = ()) -> Release:
    return Verifier(pack(pattern), ignored).release(read_source(source, "toy"))


def kinds(release: Release) -> list[tuple[str, str]]:
    return [(f.kind, f.where) for f in release.findings]


def test_found_where_the_site_says_is_proven(tmp_path: Path):
    release = verify(tree(tmp_path, "1.2", linear=CODE))
    assert release.version == "1.2"
    assert kinds(release) == [("proven", "toy/linear.py:choose")]


def test_claimed_and_nowhere_is_stale(tmp_path: Path):
    release = verify(tree(tmp_path, "1.1", linear=CODE.replace("NVFP4 GEMM", "NVFP5 MMA")))
    assert kinds(release) == [("stale", "toy/linear.py:choose")]


def test_found_in_a_release_that_is_left_out_is_too_narrow(tmp_path: Path):
    assert kinds(verify(tree(tmp_path, "1.3", linear=CODE))) == [("too-narrow", "toy/linear.py:choose")]
    assert kinds(verify(tree(tmp_path, "1.0", linear=CODE.replace("info_once", "debug")))) == []


def test_found_at_another_file_or_level_is_moved(tmp_path: Path):
    elsewhere = verify(tree(tmp_path, "1.1", other=CODE))
    assert kinds(elsewhere) == [("moved", "toy/linear.py:choose"), ("moved", "toy/other.py:choose")]
    louder = verify(tree(tmp_path, "1.2", linear=CODE.replace("info_once", "warning")))
    assert kinds(louder) == [("moved", "toy/linear.py:choose"), ("moved", "toy/linear.py:choose")]
    both = verify(tree(tmp_path, "1.1.0", linear=CODE, other=CODE))
    assert kinds(both) == [("proven", "toy/linear.py:choose"), ("moved", "toy/other.py:choose")]


def test_a_raised_text_is_proven_at_no_level(tmp_path: Path):
    refusal = PATTERN._replace(
        match=("ValueError: Using x for NVFP4 GEMM is refused",),
        sites=(Site("refused", ">=1.1", "toy/linear.py:choose"),),
    )
    raised = 'def choose(k):\n    raise ValueError(f"Using {k} for NVFP4 GEMM is refused")\n'
    assert kinds(verify(tree(tmp_path, "1.1", linear=raised), refusal)) == [("proven", "toy/linear.py:choose")]
    logged = 'def choose(k):\n    logger.error("Using %s for NVFP4 GEMM is refused", k)\n'
    assert kinds(verify(tree(tmp_path, "1.2", linear=logged), refusal))[0] == ("moved", "toy/linear.py:choose")


def test_a_selection_that_no_pattern_knows_is_uncovered_unless_ignored(tmp_path: Path):
    source = tree(tmp_path, "1.1", linear=CODE, new='logger.info("Using %s kernel for FP2", k)\n')
    (uncovered,) = [f for f in verify(source).findings if f.kind == "uncovered"]
    assert (uncovered.where, uncovered.level, uncovered.detail) == (
        "toy/new.py:<module>",
        "INFO",
        "Using {} kernel for FP2",
    )
    rules = tmp_path / "ignore.toml"
    rules.write_text('[[ignore]]\nfile = "toy/new.py"\nlevel = "INFO"\ntext = "FP2$"\nreason = "a toy"\n')
    (ignored,) = [f for f in verify(source, ignored=read_ignored(rules)).findings if f.kind == "ignored"]
    assert ignored.detail == "a toy"
    for other in ('file = "toy/old.py"', 'level = "WARNING"', 'text = "^FP2"'):
        rules.write_text(f'[[ignore]]\n{other}\nreason = "a toy"\n')
        assert verify(source, ignored=read_ignored(rules)).count("uncovered") == 1


@pytest.mark.parametrize(
    "text",
    [
        '[[ignore]]\nfile = "x"\n',
        '[[ignore]]\nfoo = 1\nreason = "x"\n',
        "[[ignore",
        '[[ignore]]\ntext = "("\nreason = "x"\n',
    ],
)
def test_an_ignore_list_without_reasons_is_refused(tmp_path: Path, text: str):
    (tmp_path / "ignore.toml").write_text(text)
    with pytest.raises(InputError, match=r"ignore\.toml"):
        read_ignored(tmp_path / "ignore.toml")


def test_a_tree_an_sdist_a_wheel_and_an_installed_package_are_read_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    base = Path(tree(tmp_path, "1.2", linear=CODE))
    sdist, wheel = tmp_path / "toy-1.2.tar.gz", tmp_path / "toy-1.2-py3-none-any.whl"
    with tarfile.open(sdist, "w:gz") as t:
        info = tarfile.TarInfo("toy-1.2/PKG-INFO")
        info.size = len(b"Name: toy\nVersion: 1.2\n")
        t.addfile(info, io.BytesIO(b"Name: toy\nVersion: 1.2\n"))
        t.add(base / "toy", "toy-1.2/toy")
    with zipfile.ZipFile(wheel, "w") as z:
        z.write(base / "toy" / "linear.py", "toy/linear.py")
        z.writestr("toy-1.2.dist-info/METADATA", "Name: toy\nVersion: 1.2\n")
    site = tmp_path / "site"
    (site / "toy-1.2.dist-info").mkdir(parents=True)
    (site / "toy-1.2.dist-info" / "METADATA").write_text("Name: toy\nVersion: 1.2\n")
    (base / "toy").rename(site / "toy")
    (site / "toy" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(str(site))
    for source in (str(sdist), str(wheel), str(site), str(site / "toy"), "toy"):
        release = verify(source)
        assert (release.version, release.count("proven")) == ("1.2", 1), source


def test_vendored_projects_and_tests_are_left_out(tmp_path: Path):
    source = tree(tmp_path, "1.1", linear=CODE, third_party__slash__x=CODE, tests__slash__y=CODE)
    assert [name for name, _ in read_source(source, "toy").files] == ["toy/__init__.py", "toy/linear.py"]


@pytest.mark.parametrize("make", ["absent", "empty", "text", "broken"])
def test_what_is_no_source_says_so(tmp_path: Path, make: str):
    path = tmp_path / "thing"
    if make == "empty":
        path.mkdir()
    elif make == "text":
        path.write_text("hello")
    elif make == "broken":
        path = tmp_path / "toy-1.0.tar.gz"
        path.write_bytes(b"\x1f\x8b\x08\0" + b"x" * 40)
    with pytest.raises(InputError, match=str(path)):
        read_source(str(path), "toy")


def test_a_source_without_a_version_is_refused(tmp_path: Path):
    base = Path(tree(tmp_path, "1.1", linear=CODE))
    bare = base.rename(tmp_path / "checkout")
    with pytest.raises(InputError, match="version is not to be found"):
        verify(str(bare))


@pytest.mark.parametrize(
    ("text", "owned"),
    [
        ("Using \0 for NVFP4 GEMM", True),
        ("Using \0 for \0 GEMM", False),  # the literal is not the template's own
        ("\0 for NVFP4 GEMM", True),
        ("first line\nUsing \0 for NVFP4 GEMM", True),
        ("Using \0 for NVFP4 GEMM now", False),
        ("\0\0\0", False),
    ],
)
def test_a_template_owns_a_line_by_its_own_words(text: str, owned: bool):
    assert Owners((PATTERN,)).of(text) == (("toy.linear.gemm",) if owned else ())


def test_pieces_fill_a_line_in_order_without_overlap():
    assert fills(["a ", " b"], "a x b")
    assert not fills(["ab", "bc"], "abc")
    assert not fills(["a", "x", "y", "b"], "a y x b")
    assert fills(["", ""], "anything")


def results(*versions: str) -> list[Release]:
    return [Release("x", v, (Finding("proven", PATTERN.id, "toy/linear.py:choose", "INFO", ""),)) for v in versions]


def test_the_ledger_falls_behind_when_a_claim_changes(tmp_path: Path):
    path, p = tmp_path / "ledger.json", pack(PATTERN)
    assert stale(p, read(path)) == ["toy/linear.toml:1: toy.linear.gemm is not in the ledger"]
    write(path, p, results("1.1", "1.2"), "2026-01-01")
    assert stale(p, read(path)) == []
    assert read(path) == {PATTERN.id: {"claim": claim(PATTERN), "proven": ["1.1..1.2"], "on": "2026-01-01"}}
    for change in (
        {"regex": PATTERN.regex.replace("3,80", "3,81")},
        {"match": (*PATTERN.match, "x")},
        {"sites": (PATTERN.sites[0]._replace(engine=">=1.1,<1.4"),)},
        {"sites": (PATTERN.sites[0]._replace(source="toy/other.py:choose"),)},
    ):
        assert stale(pack(PATTERN._replace(**change)), read(path)) == [
            "toy/linear.toml:1: toy.linear.gemm changed since it was proven"
        ]
    assert stale(pack(PATTERN._replace(note="only a remark")), read(path)) == []
    assert stale(pack(), read(path)) == ["ledger: toy.linear.gemm is no pattern any more"]


def test_what_no_known_release_prints_needs_no_proof(tmp_path: Path):
    ahead = PATTERN._replace(sites=(PATTERN.sites[0]._replace(engine=">=1.4"),))
    foreign = PATTERN._replace(sites=(PATTERN.sites[0]._replace(source="uvicorn/on.py:x"),))
    for pattern in (ahead, foreign):
        assert stale(pack(pattern), {}) == []


def test_a_range_that_was_not_proven_whole_shows(tmp_path: Path):
    path, p = tmp_path / "ledger.json", pack(PATTERN)
    write(path, p, results("1.1"), "2026-01-01")
    assert stale(p, read(path)) == ["toy/linear.toml:1: toy.linear.gemm claims ['1.1..1.2'] and was proven in ['1.1']"]


def test_a_sample_of_releases_is_named_and_judged_by_itself(tmp_path: Path):
    path, p = tmp_path / "ledger.json", pack(PATTERN)
    write(path, p, results("1.1", "1.3"), "2026-01-01", sample=True)
    assert sampled(path, p).releases == ("1.1", "1.3")
    assert stale(sampled(path, p), read(path)) != []  # 1.3 is no release of the pattern's, and it was proven there
    write(path, p, results("1.1"), "2026-01-01", sample=True)
    assert stale(sampled(path, p), read(path)) == []
    assert sampled(tmp_path / "none.json", p) == p


def test_a_rerun_that_shows_the_same_keeps_the_date(tmp_path: Path):
    path, p = tmp_path / "ledger.json", pack(PATTERN)
    write(path, p, results("1.1", "1.2"), "2026-01-01")
    write(path, p, results("1.1", "1.2"), "2026-02-02")
    assert read(path)[PATTERN.id]["on"] == "2026-01-01"
    write(path, p, results("1.2"), "2026-02-02")
    assert read(path)[PATTERN.id]["on"] == "2026-02-02"


def test_a_new_release_is_proven_without_the_old_ones(tmp_path: Path):
    path = tmp_path / "ledger.json"
    old = PATTERN._replace(sites=(PATTERN.sites[0]._replace(engine=">=1.1"),))
    write(path, pack(old)._replace(releases=("1.0", "1.1", "1.2")), results("1.1", "1.2"), "2026-01-01")
    assert stale(pack(old), read(path)) != []
    add(path, pack(old), results("1.3"), "2026-02-02")
    assert stale(pack(old), read(path)) == []
    assert read(path) == {PATTERN.id: {"claim": claim(old), "proven": ["1.1..1.3"], "on": "2026-02-02"}}
    add(path, pack(old), results("1.3"), "2026-03-03")
    assert read(path)[PATTERN.id]["on"] == "2026-02-02"
    # A release that does not print it any more takes its proof back; a changed pattern keeps its old claim.
    add(path, pack(old), [Release("x", "1.3", ())], "2026-04-04")
    assert read(path)[PATTERN.id]["proven"] == ["1.1..1.2"]
    add(path, pack(PATTERN), results("1.3"), "2026-05-05")
    assert read(path)[PATTERN.id]["claim"] == claim(old)


def test_a_new_pattern_is_added_and_so_is_a_release_to_a_sample(tmp_path: Path):
    path, new = tmp_path / "ledger.json", PATTERN._replace(sites=(PATTERN.sites[0]._replace(engine=">=1.3"),))
    write(path, pack()._replace(releases=("1.0", "1.1")), results("1.1"), "2026-01-01", sample=True)
    add(path, pack(new), results("1.3"), "2026-02-02")
    assert read(path) == {PATTERN.id: {"claim": claim(new), "proven": ["1.3"], "on": "2026-02-02"}}
    assert sampled(path, pack(new)).releases == ("1.1", "1.3")


def test_releases_are_written_as_runs():
    p = pack()
    assert spans(["1.0", "1.2", "1.3"], p) == ["1.0", "1.2..1.3"]
    assert claimed(PATTERN, p) == ["1.1", "1.2"]


def test_a_damaged_ledger_is_bad_input(tmp_path: Path):
    (tmp_path / "ledger.json").write_text("{}")
    with pytest.raises(InputError, match="not a ledger"):
        read(tmp_path / "ledger.json")
