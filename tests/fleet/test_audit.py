"""The command: exit codes, formats, what it says on stderr, and its document against its schema."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

SCHEMAS = [
    json.loads(path.read_text())
    for path in files("logscan").joinpath("schemas").iterdir()
    if path.name.endswith(".json")
]
REGISTRY = Registry().with_resources((schema["$id"], Resource.from_contents(schema)) for schema in SCHEMAS)
SCHEMA = next(schema for schema in SCHEMAS if schema["$id"] == "urn:logscan:audit:1")


def validate(document):
    Draft202012Validator.check_schema(SCHEMA)
    Draft202012Validator(SCHEMA, registry=REGISTRY).validate(document)


def test_each_kind_of_trouble_is_found_and_nothing_else(fleet, audit):
    planted = fleet.mixed()
    _, out, _ = audit(fleet.logs, "--inputs", fleet.inputs, "--format", "json")
    document = json.loads(out)
    validate(document)
    by_name = {Path(boot["log"]).stem: boot for boot in document["boots"]}
    assert {name for name, boot in by_name.items() if boot["verdict"] == "downgraded"} == {"slow"}
    assert {name for name, boot in by_name.items() if boot["status"] == "failed"} == {"failed"}
    assert {name for name, boot in by_name.items() if boot["status"] == "incomplete"} == {"cut"}
    assert {name for name, boot in by_name.items() if boot["outcome"] == "error"} == {"weights"}
    assert {name for name, boot in by_name.items() if boot["outcome"] == "nothing"} == {"node-9"}
    others = {Path(log).stem for way in document["outliers"] for log in way["logs"]}
    assert others == {"other", "slow"}
    right = {f"llm-{i}" for i in range(6)}
    assert all(by_name[n]["verdict"] == "kept" and not by_name[n]["findings"] for n in right)
    assert set(by_name) == right | set(planted) | {"node-9"}


@pytest.mark.parametrize(
    ("logs", "more", "code"),
    [
        (["ok"], [], 0),
        (["slow"], [], 1),
        (["slow"], ["--fail-on", "critical"], 0),
        (["slow"], ["--fail-on", "never"], 0),
        (["nothing"], [], 3),
        (["ok", "nothing"], [], 0),
        (["cut"], [], 0),
        (["cut"], ["--strict"], 3),
        (["cut", "slow"], ["--strict"], 1),
        (["slow", "binary"], [], 2),
        (["ok", "binary"], ["--fail-on", "never"], 2),
    ],
)
def test_exit_codes(fleet, audit, logs, more, code):
    made = {
        "ok": lambda: fleet.add("ok.log"),
        "slow": lambda: fleet.add("slow.log", fleet.marlin),
        "cut": lambda: fleet.add("cut.log", end="cut"),
        "nothing": lambda: (fleet.logs / "nothing.log").write_text("hello\n"),
        "binary": lambda: (fleet.logs / "binary.log").write_bytes(bytes(range(256)) * 20),
    }
    for name in logs:
        made[name]()
    fleet.give(f"slow.log,{fleet.ckpt},A100,12.8,,")
    assert audit(fleet.logs, "--inputs", fleet.inputs, *more)[0] == code


def test_a_line_on_stderr_and_exit_2_for_what_cannot_be_audited(fleet, audit, tmp_path):
    fleet.add("ok.log")
    for arguments, word in [
        ((tmp_path / "nowhere",), "no such file"),
        ((fleet.logs, "--gpu", "H9000"), "unknown GPU"),
        ((fleet.logs, "--shard", "3/2"), "--shard"),
        ((fleet.logs, "--ckpt-root", fleet.logs), "no checkpoint in it"),
        ((fleet.logs, "--ckpt-root", fleet.ckpt, "--inputs", fleet.give()), "one of them"),
        ((fleet.logs, "-o", fleet.logs), "no store of audits"),
    ]:
        code, out, err = audit(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert word in err and "Traceback" not in err


def test_a_rule_that_no_log_fits_is_told(fleet, audit):
    fleet.add("ok.log")
    fleet.give(f"prod-*/typo.log,{fleet.ckpt},A100,,,")
    _, _, err = audit(fleet.logs, "--inputs", fleet.inputs)
    assert err == f"logscan: {fleet.inputs}:2: no log fits 'prod-*/typo.log'\n"
    assert audit(fleet.logs, "--inputs", fleet.inputs, "--quiet")[2] == ""


def test_rows_as_json_lines_and_csv(fleet, audit):
    fleet.add("ok.log")
    fleet.add("slow.log", fleet.marlin)
    fleet.give(f"slow.log,{fleet.ckpt},A100,12.8,,")
    _, out, _ = audit(fleet.logs, "--inputs", fleet.inputs, "--format", "jsonl")
    boots = [json.loads(line) for line in out.split("\n") if line]
    assert [boot["verdict"] for boot in boots] == ["kept", "downgraded"]
    _, out, _ = audit(fleet.logs, "--inputs", fleet.inputs, "--format", "csv", "--table", "findings")
    (finding,) = csv.DictReader(io.StringIO(out))
    assert finding["code"] == "LS101" and finding["consequence"] == "compute"
    assert finding["evidence"].startswith("3: Your GPU does not have native support")
    _, out, _ = audit(fleet.logs, "--inputs", fleet.inputs, "--format", "csv", "--table", "paths")
    kernels = {row["kernels"] for row in csv.DictReader(io.StringIO(out)) if row["path"] == "linear"}
    assert kernels == {"CutlassFP8ScaledMMLinearKernel", "MarlinFP8ScaledMMLinearKernel"}


def test_an_audit_goes_on_from_what_the_store_has(fleet, audit, tmp_path):
    store = tmp_path / "store"
    first, changed = fleet.add("first.log"), fleet.add("changed.log")

    def run(*more):
        document = json.loads(audit(fleet.logs, "--inputs", fleet.give(), "-o", store, "--format", "json", *more)[1])
        validate(document)
        return document

    assert run()["audit"]["scanned"] == 2
    assert run()["audit"]["scanned"] == 0
    changed.write_text(changed.read_text() + "\n")
    fleet.add("new.log", fleet.marlin)
    document = run()
    assert document["audit"]["scanned"] == 2
    assert [Path(boot["log"]).stem for boot in document["boots"]] == ["changed", "first", "new"]
    assert [step["logs"] for step in document["trend"]] == [2, 2, 3]
    (fleet.ckpt / "config.json").write_text((fleet.ckpt / "config.json").read_text().replace("token", "tensor"))
    assert run()["audit"]["scanned"] == 3, "what a checkpoint promises is part of what a row depends on"
    first.unlink()
    assert len(run()["boots"]) == 2


def test_shards_fill_one_store(fleet, audit, tmp_path):
    fleet.mixed()
    store = tmp_path / "store"
    for i in (1, 2, 3):
        audit(fleet.logs, "--inputs", fleet.inputs, "-o", store, "--shard", f"{i}/3", "--format", "json")
    _, out, _ = audit(fleet.logs, "--inputs", fleet.inputs, "-o", store, "--format", "json")
    document = json.loads(out)
    assert document["audit"]["scanned"] == 0 and document["totals"]["logs"] == 12
    assert len(document["trend"]) == 1, "a shard is no audit of the fleet"


def test_secrets_and_escapes_of_a_log_stay_out(fleet, audit):
    fleet.add("ok.log", [("INFO", "cuda.py", "Using \x1b[31mFLASH_ATTN attention backend hf_abcdefghijklmnopqrstuv")])
    for format in ("table", "json", "jsonl", "csv"):
        _, out, _ = audit(fleet.logs, "--inputs", fleet.give(), "--format", format)
        assert "\x1b" not in out and "hf_abcdefghijkl" not in out


LOGS = 1200  # more than the workers have in hand at once
COMMAND = [sys.executable, "-m", "logscan", "audit"]


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_stopped_in_the_middle_it_loses_nothing_and_repeats_nothing(fleet, tmp_path, how):
    for i in range(LOGS):
        (fleet.logs / f"pod-{i:04}.log").write_text(fleet.text(core_pid=i + 1))
    fleet.give()
    stores = [tmp_path / "stopped", tmp_path / "whole"]
    commands = [
        [*COMMAND, str(fleet.logs), "--inputs", str(fleet.inputs), "-j2", "-o", str(store), "--format", "jsonl"]
        for store in stores
    ]
    process = subprocess.Popen(commands[0], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    while not list(stores[0].glob("manifest/*.jsonl")) and process.poll() is None:
        time.sleep(0.002)
    os.kill(process.pid, how) if how == signal.SIGKILL else os.killpg(process.pid, how)
    out, err = process.communicate(timeout=60)
    if how == signal.SIGINT:
        assert process.returncode == 130 and out == b""
        assert b"the same command goes on from there" in err and err.count(b"\n") == 1
    kept = sum(file.read_text().count("\n") for file in stores[0].glob("manifest/*.jsonl"))
    assert 0 < kept < LOGS
    results = [subprocess.run(command, capture_output=True, check=True) for command in commands]
    assert results[0].stdout == results[1].stdout and results[0].stdout.count(b"\n") == LOGS
    for store in stores:
        names = [
            json.loads(line)[0]
            for file in store.glob("manifest/*.jsonl")
            for line in file.read_text().split("\n")
            if line
        ]
        assert len(names) == len(set(names)) == LOGS


def test_shards_write_into_one_directory_at_the_same_time(fleet, tmp_path):
    for i in range(400):
        (fleet.logs / f"pod-{i:03}.log").write_text(fleet.text(core_pid=i + 1))
    store = tmp_path / "store"
    command = [*COMMAND, str(fleet.logs), "--inputs", str(fleet.give()), "-j1", "-o", str(store), "--format", "json"]
    running = [subprocess.Popen([*command, "--shard", f"{i}/2"], stdout=subprocess.DEVNULL) for i in (1, 2)]
    assert [process.wait() for process in running] == [0, 0]
    document = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (document["audit"]["scanned"], len(document["boots"])) == (0, 400)
