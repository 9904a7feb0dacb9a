"""What is kept between runs, and what is cleared away."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from logscan import cachefile, tomlcache


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "logscan").mkdir()
    return tmp_path / "logscan"


def aged(path: Path, seconds: float) -> Path:
    path.write_bytes(b"x")
    os.utime(path, (time.time() - seconds,) * 2)
    return path


def test_a_value_comes_back_for_its_own_key_only(folder: Path) -> None:
    cachefile.store("a", b"key", {"x": (1, b"2", None)})
    assert cachefile.load("a", b"key") == {"x": (1, b"2", None)}
    assert cachefile.load("a", b"other") is None
    path = cachefile.path_of("a")
    path.write_bytes(path.read_bytes()[:-1])
    assert cachefile.load("a", b"key") is None


def test_what_is_old_goes_when_something_is_stored(folder: Path) -> None:
    old, young = aged(folder / "old.cpython-310", cachefile.OLDEST + 60), aged(folder / "young", cachefile.OLDEST - 60)
    cachefile.store("a", b"key", 1)
    assert not old.exists() and young.exists() and cachefile.load("a", b"key") == 1


def test_tables_clear_away_as_well(folder: Path, tmp_path: Path) -> None:
    old = aged(folder / "old", cachefile.OLDEST + 60)
    (tmp_path / "x.toml").write_text("x = 1")
    assert tomlcache.read(tmp_path / "x.toml") == {"x": 1}
    assert not old.exists()


def test_only_the_newest_stay(folder: Path) -> None:
    files = [aged(folder / f"f{n}", 60 + n) for n in range(cachefile.MOST + 5)]
    cachefile.store("a", b"key", 1)
    assert [f.exists() for f in files] == [True] * (cachefile.MOST - 1) + [False] * 6
    assert cachefile.load("a", b"key") == 1


def test_folders_and_links_are_left_alone(folder: Path, tmp_path: Path) -> None:
    (folder / "sub").mkdir()
    outside = aged(tmp_path / "outside", cachefile.OLDEST + 60)
    (folder / "link").symlink_to(outside)
    os.utime(folder / "sub", (0, 0))
    cachefile.prune(folder)
    assert outside.exists() and (folder / "link").is_symlink() and (folder / "sub").is_dir()


def test_a_folder_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    cachefile.prune(tmp_path / "none")


def test_a_write_that_fails_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    cachefile.store("a", b"key", 1)
    assert list(folder.iterdir()) == []


def test_an_edit_is_seen_though_size_and_time_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("x = 1")
    before = file.stat()
    time.sleep(0.02)
    file.write_text("x = 2")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = file.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    assert cachefile.seen(after) != cachefile.seen(before)


@pytest.mark.parametrize(("given", "home"), [("", "~"), ("relative", "~"), ("relative", "/proc")])
def test_nothing_is_kept_in_the_folder_that_this_runs_in(
    given: str, home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", given)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", home))
    cachefile.store("a", b"key", 1)
    assert cachefile.load("a", b"key") is None
    assert list(tmp_path.iterdir()) == []
