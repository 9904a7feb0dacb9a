"""The store: parts that appear whole, once, and are found again."""

from __future__ import annotations

import json

import pytest

from logscan.fleet.columns import blank
from logscan.fleet.store import Store, frames
from logscan.model import InputError


def rows(*names):
    return [blank(f"key-{name}", name, "nothing") | {"error": "why"} for name in names]


def append(store, audit, number, *names):
    store.append(audit, number, {name: f"key-{name}" for name in names}, rows(*names))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def logs(store, *keys):
    return store.tables([f"key-{key}" for key in keys]).boots["log"].to_list()


def test_what_was_appended_is_known_and_read_in_order(store):
    append(store, "A", 1, "c", "a")
    append(store, "B", 1, "b")
    assert store.known() == {"a": {"key-a"}, "b": {"key-b"}, "c": {"key-c"}}
    assert logs(store, "c", "b", "a") == ["a", "b", "c"]
    assert logs(store, "b", "gone") == ["b"]
    assert sorted(path.name for path in store.root.iterdir() if not path.name.startswith(".")) == [
        "boots", "findings", "manifest", "paths", "store.json",
    ]  # fmt: skip


def test_parts_are_partitioned_by_audit_for_anybody_who_reads_parquet(store):
    import polars as pl

    append(store, "A", 1, "a")
    append(store, "B", 1, "b")
    frame = pl.read_parquet(store.root / "boots", hive_partitioning=True).sort("log")
    assert frame.select("log", "audit").rows() == [("a", "A"), ("b", "B")]


def test_a_part_that_nobody_committed_is_not_there(store, monkeypatch):
    from pathlib import Path

    append(store, "A", 1, "a")
    monkeypatch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError("killed")))
    with pytest.raises(OSError):
        append(store, "A", 2, "b")
    monkeypatch.undo()
    again = Store(store.root)
    assert set(again.known()) == {"a"} and logs(again, "a", "b") == ["a"]
    append(again, "A", 2, "b")
    assert logs(again, "a", "b") == ["a", "b"]


@pytest.mark.parametrize("moves", [1, 2, 3, 4])
def test_a_committed_part_is_put_in_place_by_whoever_comes_next(store, monkeypatch, moves):
    from pathlib import Path

    real, done = Path.rename, []

    def rename(self, target):
        if len(done) == moves:
            raise OSError("killed")
        done.append(target)
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(OSError):
        append(store, "A", 1, "a")
    monkeypatch.undo()
    again = Store(store.root)
    assert again.known() == {"a": {"key-a"}} and logs(again, "a") == ["a"]
    assert not list(store.root.glob(".committed/*"))


def test_audits_are_recorded_in_order(store):
    store.record("20250101", {"paths": ["x"]}, {"a": "key-a"})
    store.record("20250202", {"paths": ["y"]}, {"b": "key-b"})
    assert [(audit.id, dict(audit.logs)) for audit in store.audits()] == [
        ("20250101", {"a": "key-a"}),
        ("20250202", {"b": "key-b"}),
    ]


def test_names_of_any_bytes_survive(store):
    name = 'pod-\udcff\n"é.log'
    append(store, "A", 1, name.encode("utf-8", "replace").decode())
    store.append("A", 2, {name: "key"}, rows("x"))
    assert name in Store(store.root).known()


def test_an_older_part_without_a_column_is_read(store):
    append(store, "A", 1, "a")
    part = next(store.root.glob("boots/*/*.parquet"))
    frames(rows("a")).boots.drop("notes").write_parquet(part)
    table = store.tables(["key-a"]).boots
    assert table["log"].to_list() == ["a"] and table["notes"].to_list() == [None]


def test_a_directory_that_is_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match="not empty"):
        Store(tmp_path)
    with pytest.raises(InputError, match="no store of audits"):
        Store(tmp_path / "gone", create=False)


@pytest.mark.parametrize(("text", "told"), [('{"schema": "logscan.store/9"}', "store/9"), ("{", "cannot be read")])
def test_a_store_of_another_schema(store, text, told):
    (store.root / "store.json").write_text(text)
    with pytest.raises(InputError, match=told):
        Store(store.root)


def test_an_empty_store_gives_empty_tables(store):
    assert [frame.height for frame in store.tables(["x"])] == [0, 0, 0]
    assert store.seen().height == 0
    assert json.loads((store.root / "store.json").read_text()) == {"schema": "logscan.store/1"}
