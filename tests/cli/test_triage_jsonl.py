"""`triage --format jsonl`: a line a boot of a file; of a live stream again when the boot changes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "logscan" / "demo"
READY = (DEMO / "h100-0.24.log").read_bytes()
DEATH = (
    b"(EngineCore pid=84) ERROR 10-02 08:10:00 [core.py:1100] EngineCore encountered a fatal error.\n"
    b"(APIServer pid=1) ERROR 10-02 08:10:01 [async_llm.py:700] AsyncLLM output_handler failed.\n"
)
WAIVER = '[[waiver]]\ncode = "LS101"\nreason = "known"\nexpires = 2099-01-01\n'


def lines(*arguments, stdin=None):
    command = [sys.executable, "-m", "logscan", "triage", *arguments, "--isolated", "--fail-on", "never", "--quiet"]
    ended = subprocess.run(command, input=stdin, capture_output=True)
    assert ended.stderr == b""
    return ended.stdout


def records(*arguments, stdin=None):
    return [json.loads(line) for line in lines(*arguments, "--format", "jsonl", stdin=stdin).split(b"\n") if line]


def boots(*arguments, stdin=None):
    doc = json.loads(lines(*arguments, "--format", "json", stdin=stdin))
    return [{"schema": "logscan.boot/1", "log": log["name"], **boot} for log in doc["logs"] for boot in log["boots"]]


@pytest.fixture
def dead(tmp_path):
    log = tmp_path / "dead.log"
    log.write_bytes(READY + DEATH)
    return log


def test_a_file_has_one_line_a_boot(dead):
    assert [(r["index"], r["status"]) for r in records(dead)] == [(1, "died")]
    assert records(dead) == boots(dead)


def test_files_beside_a_stream(dead):
    told = records("-", dead, stdin=READY)
    assert [(r["log"], r["status"]) for r in told if r["log"] == str(dead)] == [(str(dead), "died")]


def test_a_stream_tells_a_boot_again_when_it_changes():
    told = records("-", stdin=READY + DEATH)
    assert [(r["index"], r["status"]) for r in told] == [(1, "ready"), (1, "died"), (1, "died")]
    assert told[1]["lines"]["last"] < told[2]["lines"]["last"]
    assert told[-1:] == boots("-", stdin=READY + DEATH)


def test_the_last_line_of_a_stream_is_the_whole_boot(tmp_path):
    waivers = tmp_path / "waivers.toml"
    waivers.write_text(WAIVER)
    log = (DEMO / "a100-0.24.log").read_bytes()
    given = ("-", "--ckpt", str(DEMO / "config.json"), "--gpu", "A100", "--waivers", str(waivers))
    told = records(*given, stdin=log)
    assert [[f["waived"] for f in r["findings"] if f["code"] == "LS101"] for r in told] == [
        [None],
        ["known (until 2099-01-01)"],
    ]
    assert told[-1:] == boots(*given, stdin=log)
