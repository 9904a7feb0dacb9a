"""Once a boot is ready only what can still tell of it is read, until another one starts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import logscan
from logscan.intake.reader import BLOCK

BOOT = (Path(__file__).parents[2] / "fixtures" / "vllm-0.24.0-a100-fp8-dynamic" / "boot.log").read_bytes()
REQUESTS = b"".join(
    b'(APIServer pid=1) INFO:     10.0.0.%d:41225 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n' % (i % 250)
    for i in range(3000)
)
DIED = b"(EngineCore pid=142) ERROR 09-14 09:31:40 [core.py:900] EngineCore encountered a fatal error.\n"


def triaged(tmp_path: Path, *parts: bytes) -> list[dict[str, Any]]:
    log = tmp_path / "vllm.log"
    log.write_bytes(b"".join(parts))
    boots: list[dict[str, Any]] = [dict(b) for b in logscan.triage(log, gpu="A100")["logs"][0]["boots"]]
    return boots


def rows(boot: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(r["path"], str(r["ran"]), r["verdict"]) for r in boot["paths"]]


def evidence(boot: dict[str, Any], shift: int) -> list[tuple[str, str, int]]:
    return [(f["name"], f["value"], f["line"] - shift) for f in boot["facts"]]


def test_a_restart_is_read_line_by_line_again(tmp_path: Path) -> None:
    (alone,) = triaged(tmp_path, BOOT)
    first, second = triaged(tmp_path, BOOT, REQUESTS, BOOT, REQUESTS)
    assert rows(first) == rows(second) == rows(alone)
    shift = BOOT.count(b"\n") + REQUESTS.count(b"\n")
    assert evidence(second, shift) == evidence(alone, 0)


def test_a_death_long_after_ready_is_seen(tmp_path: Path) -> None:
    (boot,) = triaged(tmp_path, BOOT, REQUESTS, DIED, REQUESTS)
    assert boot["status"] == "died"


def test_another_pod_whose_head_is_cut_off_is_read(tmp_path: Path) -> None:
    lines = BOOT.split(b"\n")[:-1]
    tail = lines[next(i for i, line in enumerate(lines) if b"Model loading took" in line) :]
    first, second = (
        b"".join(b"[pod/%s/vllm] %s\n" % (pod, line) for line in part)
        for pod, part in ((b"a", [*lines, *REQUESTS.split(b"\n")[:-1]]), (b"b", tail))
    )
    boots = triaged(tmp_path, first, second)
    assert [b["source"] for b in boots] == ["pod/a/vllm", "pod/b/vllm"]
    assert any(f["name"] == "model.gib" for f in boots[1]["facts"])


def test_a_restart_in_a_slow_stream_is_not_skimmed(tmp_path: Path) -> None:
    """The next boot begins in a small piece and goes on in a large one, as a pipe may deliver it."""
    (alone,) = triaged(tmp_path, BOOT)
    shell = (
        f"cat {tmp_path}/a; sleep 0.2; head -c 600 {tmp_path}/a; sleep 0.2; tail -c +601 {tmp_path}/a; cat {tmp_path}/b"
    )
    (tmp_path / "a").write_bytes(BOOT)
    (tmp_path / "b").write_bytes(REQUESTS)
    command = [
        sys.executable,
        "-m",
        "logscan",
        "triage",
        "-",
        "--gpu",
        "A100",
        "--format",
        "json",
        "--fail-on",
        "never",
    ]
    with subprocess.Popen(["sh", "-c", shell], stdout=subprocess.PIPE) as writer:
        done = subprocess.run(command, stdin=writer.stdout, capture_output=True, check=True)
    first, second = json.loads(done.stdout)["logs"][0]["boots"]
    assert rows(first) == rows(second) == rows(alone)
    assert evidence(second, BOOT.count(b"\n")) == evidence(alone, 0)


def test_a_restart_at_a_block_s_border_takes_nothing_of_the_boot_before(tmp_path: Path) -> None:
    """What was skimmed before it is no head of the new boot's, and what a line there told is not its either."""
    dump = b"Collecting environment information...\nvLLM Version                 : 0.31.0\n"
    requests = REQUESTS.replace(b"pid=1", b"pid=7")  # of the boot's own server
    before = BOOT + requests + dump + requests + requests
    room = BLOCK * (len(before) // BLOCK + 1) - len(before)
    line = b"(APIServer pid=7) INFO:     1.2.3.4:5 - x\n"
    fill = line * (room // len(line) - 1)
    fill += line[:-1].ljust(room - len(fill) - 1, b"x") + b"\n"
    assert len(before + fill) % BLOCK == 0
    first, second = triaged(tmp_path, before, fill, BOOT, requests)
    assert first["lines"]["last"] == (before + fill).count(b"\n") == second["lines"]["first"] - 1
    assert [f["name"] for f in first["facts"] if f["name"] == "env.vllm"] == ["env.vllm"]
    assert "env.vllm" not in [f["name"] for f in second["facts"]]


MUCH = REQUESTS * 20  # some MiB


def test_a_boot_after_a_head_that_is_cut_off_is_read(tmp_path: Path) -> None:
    assert len(MUCH) > 1 << 22
    (alone,) = triaged(tmp_path, BOOT)
    boots = triaged(tmp_path, MUCH, BOOT, MUCH, BOOT, DIED)
    assert [b["status"] for b in boots] == ["ready", "died"]
    for boot, before in zip(boots, (MUCH, MUCH + BOOT + MUCH), strict=True):
        assert rows(boot) == rows(alone)
        assert evidence(boot, before.count(b"\n"))[: len(alone["facts"])] == evidence(alone, 0)


def test_a_boot_that_takes_long_is_decided_all_the_same(tmp_path: Path) -> None:
    lines = BOOT.splitlines(keepends=True)
    ready = next(n for n, line in enumerate(lines) if b"Starting vLLM" in line)
    (alone,) = triaged(tmp_path, BOOT)
    (boot,) = triaged(tmp_path, b"".join(lines[:ready]), MUCH, b"".join(lines[ready:]), MUCH)
    assert (boot["status"], boot["decided"]) == ("ready", ready + 1 + MUCH.count(b"\n"))
    assert rows(boot) == rows(alone)
    (never,) = triaged(tmp_path, b"".join(lines[:ready]), MUCH, DIED)
    assert (never["status"], never["decided"]) == ("failed", ready + 1 + MUCH.count(b"\n"))


def test_what_looks_like_a_selection_is_not_skimmed_over(tmp_path: Path) -> None:
    lines = BOOT.splitlines(keepends=True)
    ready = next(n for n, line in enumerate(lines) if b"Starting vLLM" in line)
    odd = b"(EngineCore pid=142) WARNING 09-14 08:40:00 [x.py:1] Falling back to bf16 GEMM: fp8 kernel not supported\n"
    (boot,) = triaged(tmp_path, b"".join(lines[:ready]), MUCH, odd, b"".join(lines[ready:]))
    assert "Falling back to bf16 GEMM" in boot["unrecognised"][-1]["text"]
