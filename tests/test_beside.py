"""A folder that only happens to be called `shared` is not read; one that is given is."""

import importlib.util
from pathlib import Path

import beside
import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """What the helper finds in a checkout at `tmp_path/project`."""
    copy = tmp_path / "project" / "tests" / "lib" / "beside.py"
    copy.parent.mkdir(parents=True)
    copy.write_text(Path(beside.__file__).read_text())
    monkeypatch.delenv("LOGSCAN_SHARED", raising=False)

    def find():
        spec = importlib.util.spec_from_file_location("beside_copy", copy)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.SHARED

    return find


def test_a_stranger_of_the_same_name_is_left_alone(folder, tmp_path):
    assert not folder().exists()
    (tmp_path / "shared" / "corpus").mkdir(parents=True)
    assert not folder().exists()
    (tmp_path / "shared" / "tools").mkdir()
    (tmp_path / "shared" / "tools" / "score.py").touch()
    assert folder() == tmp_path / "shared"


def test_the_variable_wins(folder, tmp_path, monkeypatch):
    (tmp_path / "shared" / "tools").mkdir(parents=True)
    (tmp_path / "shared" / "tools" / "score.py").touch()
    (tmp_path / "mine").mkdir()
    monkeypatch.setenv("LOGSCAN_SHARED", str(tmp_path / "mine"))
    assert folder() == tmp_path / "mine"
    monkeypatch.setenv("LOGSCAN_SHARED", "")
    assert not folder().exists()
    monkeypatch.setenv("LOGSCAN_SHARED", str(tmp_path / "missing"))
    with pytest.raises(pytest.UsageError, match="no such directory"):
        folder()
