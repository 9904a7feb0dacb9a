"""What the user named becomes logs, each once, in order."""

from __future__ import annotations

import io
import tarfile
import zipfile

import pytest

from logscan.fleet.listing import Item, fetched, listing, shard
from logscan.model import InputError


@pytest.fixture
def logs(tmp_path):
    for name in ("b.log", "a.log", "deep/er/c.log.gz", ".hidden", "deep/.git/x.log", "config.json"):
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "spool").mkdir()
    return tmp_path / "logs"


def names(paths, logs, **more):
    return [item.name.removeprefix(f"{logs}/") for item in listing(map(str, paths), logs.parent / "spool", **more)]


def test_directories_are_walked_without_what_is_hidden_or_no_log(logs):
    assert names([logs], logs) == ["a.log", "b.log", "deep/er/c.log.gz"]


def test_globs_files_and_directories_name_each_log_once(logs):
    assert names([logs / "b.log", logs / "*.log", logs, logs / "**" / "*.gz"], logs) == [
        "a.log",
        "b.log",
        "deep/er/c.log.gz",
    ]


def test_a_file_that_is_named_is_taken_whatever_it_is_called(logs):
    assert names([logs / "config.json", logs / ".hidden"], logs) == [".hidden", "config.json"]


def test_a_list_on_stdin(logs):
    stdin = io.StringIO(f"{logs / 'b.log'}\n\n{logs / 'gone.log'}\n")
    found = listing(["-"], logs.parent / "spool", stdin)
    assert [item.error for item in found] == [None, f"{logs / 'gone.log'}: no such file or directory"]


@pytest.mark.parametrize("missing", ["gone.log", "gone-*.log"])
def test_what_is_not_there_is_told(logs, missing):
    with pytest.raises(InputError, match="no such file|no log in it"):
        listing([str(logs / missing)], logs.parent / "spool")


@pytest.mark.parametrize("mode", ["tar", "tgz", "zip"])
def test_members_of_an_archive(logs, mode):
    path = logs.parent / {"tar": "logs.tar", "tgz": "logs.tar.gz", "zip": "logs.zip"}[mode]
    if mode == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("pod/../../x.log", "evil")
            archive.writestr("pod/a.log", "a")
            archive.writestr("config.json", "{}")
    else:
        with tarfile.open(path, "w:gz" if mode == "tgz" else "w") as archive:
            for name, text in (("pod/../../x.log", b"evil"), ("pod/a.log", b"a"), ("config.json", b"{}")):
                member = tarfile.TarInfo(name)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text))
            link = tarfile.TarInfo("link.log")
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
    found = listing([str(path)], logs.parent / "spool")
    assert [item.name for item in found] == [f"{path}!pod/../../x.log", f"{path}!pod/a.log"]
    assert all(item.location.startswith(str(logs.parent / "spool")) for item in found), "a member's name is no path"
    texts = []
    for item in found:
        with fetched(item) as local, open(local) as file:
            texts.append(file.read())
    assert texts == ["evil", "a"]


def test_a_damaged_archive_is_one_row(logs):
    path = logs / "broken.tar.gz"
    path.write_bytes(b"\x1f\x8b" + bytes(100))
    (item,) = [item for item in listing([str(logs)], logs.parent / "spool") if item.error]
    assert item.name == str(path) and "cannot be unpacked" in item.error


def test_shards_share_the_logs_out():
    items = [Item(f"pod-{i}", f"pod-{i}") for i in range(100)]
    parts = [shard(items, f"{i}/4") for i in (1, 2, 3, 4)]
    assert sorted(item for part in parts for item in part) == sorted(items)
    assert min(map(len, parts)) > 10
    more = shard([*items, Item("pod-new", "pod-new")], "1/4")
    assert set(parts[0]) <= set(more), "a new log moves no other"


@pytest.mark.parametrize("which", ["0/4", "5/4", "1", "a/b", "1/0", "-1/4", ""])
def test_a_shard_that_is_none(which):
    with pytest.raises(InputError, match="--shard"):
        shard([], which)
