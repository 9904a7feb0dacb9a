"""What belongs to a log: rules by glob, and checkpoints by the model's name."""

from __future__ import annotations

import json

import pytest

from logscan.desk import Given
from logscan.fleet.joins import read_inputs, read_root
from logscan.model import InputError


@pytest.fixture
def inputs(tmp_path):
    (tmp_path / "ckpt").mkdir()

    def write(text, name="inputs.csv", fleet=None):
        (tmp_path / name).write_text(text)
        return read_inputs(tmp_path / name, fleet or Given())

    return write


def test_the_first_rule_that_fits_wins(inputs, tmp_path):
    joins = inputs("glob,ckpt,gpu,cuda,engine,env\na/*.log,ckpt,H100,12.8,vllm==0.24.0,A=1;B=2\n*,,A100,,,\n")
    given, where = joins.of_log("/data/a/x.log")
    assert given == Given(str(tmp_path / "ckpt"), "H100", "12.8", "vllm==0.24.0", {"A": "1", "B": "2"})
    assert where == f"{tmp_path}/inputs.csv:2"
    assert joins.of_log("/data/b/x.log")[0] == Given(None, "A100")


def test_json_lines_say_the_same(inputs, tmp_path):
    rows = [{"glob": "a/*.log", "ckpt": "ckpt", "gpu": "H100", "env": {"A": 1}}, {"glob": "*", "gpu": "A100"}]
    joins = inputs("\n".join(map(json.dumps, rows)), "inputs.jsonl")
    assert joins.of_log("/data/a/x.log") == (
        Given(str(tmp_path / "ckpt"), "H100", env={"A": "1"}),
        f"{tmp_path}/inputs.jsonl:1",
    )


@pytest.mark.parametrize(
    ("glob", "name", "fits"),
    [
        ("x.log", "/data/a/x.log", True),
        ("a/x.log", "/data/a/x.log", True),
        ("x.log", "/data/a/yx.log", False),
        ("/data/*.log", "/data/a/x.log", True),
        ("/a/*.log", "/data/a/x.log", False),
        ("a/*", "/data/ba/x.log", False),
        ("x.log", "logs.tar!pod/x.log", True),
        ("s3://bucket/*", "s3://bucket/a/x.log", True),
        ("s3://other/*", "s3://bucket/a/x.log", False),
    ],
)
def test_a_glob_fits_a_path_or_its_end(inputs, glob, name, fits):
    assert (inputs(f"glob,gpu\n{glob},H100\n").of_log(name)[1] is not None) is fits


def test_an_absolute_glob_fits_a_relative_name(inputs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    joins = inputs(f"glob,gpu\n{tmp_path}/logs/x.log,H100\n{tmp_path}/logs/*,A100\n")
    assert joins.of_log("logs/x.log")[0].gpu == "H100"
    assert joins.of_log("logs/y.log")[0].gpu == "A100"


def test_an_exact_name_after_a_wildcard_loses(inputs):
    joins = inputs("glob,gpu\n*.log,A100\nx.log,H100\n")
    assert joins.of_log("x.log")[0].gpu == "A100"


def test_what_holds_for_the_fleet_fills_what_a_rule_leaves_open(inputs):
    joins = inputs("glob,gpu,env\nx.log,H100,A=1\n", fleet=Given(gpu="A100", cuda="12.8", env={"A": "0", "B": "2"}))
    assert joins.of_log("x.log")[0] == Given(None, "H100", "12.8", env={"A": "1", "B": "2"})
    assert joins.of_log("y.log") == (Given(gpu="A100", cuda="12.8", env={"A": "0", "B": "2"}), None)


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        ("glob,gpus\nx,H100\n", "i.csv", "i.csv:2: unknown column 'gpus'"),
        ("glob,gpu\n,H100\n", "i.csv", "i.csv:2: no glob"),
        ("glob,gpu\nx,H9000\n", "i.csv", "i.csv:2: unknown GPU 'H9000'"),
        ("glob,cuda\nx,new\n", "i.csv", "i.csv:2: not a CUDA version"),
        ("glob,ckpt\nx,gone\n", "i.csv", "i.csv:2: ckpt .*gone: no such"),
        ("glob,env\nx,A\n", "i.csv", "i.csv:2: env 'A' is not K=V"),
        ("glob,gpu\n", "i.csv", "i.csv: no rules"),
        ("", "i.csv", "i.csv: no rules"),
        ('{"glob": "x"}\n{"glob"\n', "i.jsonl", "i.jsonl:2: is not JSON"),
        ('{"glob": "x"}\n[1]\n', "i.jsonl", "i.jsonl:2: is no object"),
    ],
)
def test_errors_name_file_and_line(inputs, text, name, told):
    with pytest.raises(InputError, match=told):
        inputs(text, name)


# ---------------------------------------------------------------- --ckpt-root


@pytest.fixture
def root(tmp_path):
    def make(*names):
        for name in names:
            (tmp_path / "models" / name).mkdir(parents=True)
            (tmp_path / "models" / name / "config.json").write_text("{}")
        return read_root(tmp_path / "models")

    return make


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("meta/llama", "meta/llama"),
        ("Meta/LLAMA", "meta/llama"),
        ("other/llama", None),
        ("/mnt/models/llama", "meta/llama"),
        ("llama", "meta/llama"),
        ("org/flat", "flat"),
        ("/flat", "flat"),
        ("org/name", "models--org--name"),
        ("/data/.cache/huggingface/hub/models--org--name", "models--org--name"),
        ("another/name", None),
        ("nothing", None),
    ],
)
def test_a_model_is_joined_with_the_checkpoint_of_its_name(root, tmp_path, model, found):
    (tmp_path / "models" / "models--org--name" / "snapshots" / "1").mkdir(parents=True)
    joins = root("meta/llama", "flat")
    joined = joins.of_boot(Given(), None, model)
    assert joined.ckpt == (found and str(tmp_path / "models" / found))
    assert joined.how == (found and "name")
    assert (joined.why is None) is (found is not None)


def test_a_snapshot_of_a_cache_is_its_model(root, tmp_path):
    (tmp_path / "models" / "models--org--name" / "snapshots" / "abc").mkdir(parents=True)
    joined = root("flat").of_boot(Given(), None, "/data/hub/models--org--name/snapshots/abc")
    assert joined.ckpt == str(tmp_path / "models" / "models--org--name")


def test_two_checkpoints_of_one_name_are_not_guessed_at(root, tmp_path):
    joins = root("a/llama", "b/llama")
    assert "2 checkpoints" in joins.of_boot(Given(), None, "/mnt/llama").why
    assert joins.of_boot(Given(), None, "b/llama").ckpt == str(tmp_path / "models" / "b" / "llama")
    assert joins.of_boot(Given(), None, "/mnt/b/llama").ckpt == str(tmp_path / "models" / "b" / "llama")


def test_the_path_itself(root, tmp_path):
    joins = root("a/llama", "b/llama")
    assert joins.of_boot(Given(), None, str(tmp_path / "models" / "a" / "llama")).how == "path"


def test_a_boot_that_names_no_model(root):
    assert root("flat").of_boot(Given(), None, None).why == "the log names no model"


def test_a_root_without_a_checkpoint(tmp_path):
    with pytest.raises(InputError, match="no checkpoint in it"):
        read_root(tmp_path)
