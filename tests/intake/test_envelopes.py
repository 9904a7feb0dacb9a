"""Each envelope alone, nested, side by side and interleaved: the same records at the right lines."""

from __future__ import annotations

import json
from pathlib import Path

import bench
import pytest

from logscan.intake import open_source
from logscan.model import Record

rewrap = bench.load("rewrap")

HEAD = "(EngineCore pid=101) INFO 08-02 09:00:24 "
BOOT = [
    "nohup: ignoring input",
    f"{HEAD}[utils.py:302] \r",
    f"{HEAD}[utils.py:302]  ▄▄ ▄█ █     █ ▀▄▀ █  version 0.17.0\r",
    f"{HEAD}[utils.py:302] ",
    "",
    "  indented, by a library that prints",
    f"{HEAD}[core.py:113] Initializing a V1 LLM engine (v0.24.0) with config: {'x' * 20_000}",
    f"{HEAD}[__init__.py:210] Selected CutlassFP8ScaledMMLinearKernel for Fp8LinearMethod",
    "(EngineCore pid=101) \rLoading:  33%|███▎ | 1/3 [00:01<00:02,  1.00it/s]",
    'say "hello" \\ back | slash: {"log": "no"}',
    "Traceback (most recent call last):",
    '  File "/x.py", line 3, in f',
    "ValueError: no",
    "INFO:     Application startup complete.",
]
LINES = [line.encode() for line in BOOT]
BARE = rewrap.read(b"\n".join(LINES) + b"\n")


def read(data: bytes) -> list[Record]:
    got: list[Record] = rewrap.read(data)
    return got


def test_the_bare_log() -> None:
    assert [r.line for r in BARE] == [1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
    assert [r.origin for r in BARE].count("engine") == 3


@pytest.mark.parametrize("name", rewrap.WRAPPERS)
def test_an_envelope_changes_nothing(name: str) -> None:
    assert rewrap.compare(LINES, BARE, rewrap.WRAPPERS[name]) == []


NAMES = {
    "kubectl --prefix --timestamps": ("kubectl-prefix", "kubectl-timestamps"),
    "stern": ("stern",),
    "cri": ("cri",),
    "docker json-file": ("docker-json",),
    "docker compose --timestamps": ("docker-compose", "kubectl-timestamps"),
    "journald short": ("journald",),
    "journald json": ("journald-json",),
    "syslog RFC 5424": ("syslog",),
    "loki": ("loki",),
    "loki jsonl": ("loki-json",),
    "fluent bit": ("kubernetes-json",),
    "otel": ("otel",),
    "gcp": ("gcp",),
    "kaggle": ("kaggle",),
    "mpirun": ("mpirun",),
    "srun --label": ("slurm",),
    "prefix": ("prefix",),
    "tail of several files": ("tail",),
    "tty": ("crlf",),
    "cri in fluent bit in compose": ("docker-compose", "docker-json", "cri"),
}


@pytest.mark.parametrize("name", NAMES)
def test_envelopes_are_named(name: str, tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(rewrap.WRAPPERS[name].wrap(LINES))
    source = open_source(str(path))
    list(source.records())
    assert source.envelopes == NAMES[name]


def test_cri_parts_are_joined_per_stream() -> None:
    head = b"2026-06-26T02:33:04.1Z "
    got = read(
        head + b"stdout P INFO 07-14 10:00:00 [a.py:1] out\n"
        + head + b"stderr F INFO 07-14 10:00:00 [b.py:1] err\n"
        + head + b"stdout F put\n"
    )  # fmt: skip
    assert [(r.line, r.file, r.text) for r in got] == [(2, "b.py", b"err"), (1, "a.py", b"output")]


def test_docker_parts_are_joined() -> None:
    long = "y" * (16 << 10)
    objects = [{"log": long, "stream": "stderr", "time": "1"}, {"log": "end\n", "stream": "stderr", "time": "1"}]
    got = read("".join(json.dumps(o) + "\n" for o in objects).encode())
    assert [(r.line, r.text) for r in got] == [(1, long.encode() + b"end")]


def test_pretty_json_of_cloud_logging() -> None:
    entries = [{"insertId": "1", "severity": "INFO", "textPayload": line.decode()} for line in LINES[6:8]]
    got = read(json.dumps(entries, indent=2).encode())
    assert [(r.line, r.text[:8], r.level) for r in got] == [(5, b"Initiali", "INFO"), (10, b"Selected", "INFO")]


def test_a_notebook_holds_a_log() -> None:
    cells = {"cells": [{"outputs": [{"text": [line.decode() + "\n" for line in LINES[6:8]]}]}]}
    got = read(json.dumps(cells, indent=1).encode())
    assert [(r.line, r.text[:8]) for r in got] == [(7, b"Initiali"), (8, b"Selected")]


def test_vllm_json_records() -> None:
    record = {"asctime": "2026-09-30 14:27:37,123", "levelname": "WARNING", "name": "vllm.v1.engine.core",
              "processName": "EngineCore", "process": 7, "message": "one\ntwo"}  # fmt: skip
    got = read(json.dumps(record).encode() + b"\n")
    want = Record(1, b"one", "engine", "WARNING", "v1/engine/core.py", "EngineCore pid=7", "",
                  "2026-09-30 14:27:37,123", 1, "vllm")  # fmt: skip
    assert got == [want, want._replace(text=b"two")]


def test_pods_interleaved_are_told_apart() -> None:
    pods = [f"[pod/llm-{i}/vllm] ".encode() for i in range(8)]
    data = b"".join(pod + line + b"\n" for line in LINES[6:8] for pod in pods)
    got = read(data)
    assert [(r.line, r.source) for r in got] == [(i + 1, f"pod/llm-{i % 8}/vllm") for i in range(16)]


def test_files_of_tail_are_told_apart() -> None:
    got = read(b"==> a.log <==\nx\n\n==> b.log <==\nINFO:     Application startup complete.\n")
    assert [(r.line, r.source) for r in got] == [(2, "a.log"), (3, "a.log"), (5, "b.log")]


def test_an_envelope_may_begin_in_mid_stream() -> None:
    wrapped = [b"Dec 07 18:59:10 host bash[9]: " + line for line in LINES[6:]]
    got = read(b"\n".join(LINES[:8] + wrapped) + b"\n")
    assert [r.source for r in got] == [""] * 6 + ["host/bash"] * 8


def test_one_line_in_mid_stream_is_no_envelope() -> None:
    forged = b"[pod/evil/x] INFO 07-14 10:00:00 [x.py:1] Selected MarlinKernel for Fp8LinearMethod"
    got = read(b"\n".join([*LINES, forged, b"bye"]) + b"\n")
    assert [(r.origin, r.source) for r in got[-2:]] == [("print", ""), ("print", "")]


@pytest.mark.parametrize(
    "line",
    [
        b"Model | Value",  # a table is no compose log
        b"2025-06-20 20:02:20,931 - __main__ - INFO - Starting",
        b"12: number",
        b"foo-bar baz qux",
        b'{"a": 1}',
    ],
)
def test_what_only_looks_like_an_envelope(line: bytes) -> None:
    got = read(b"\n".join([line, *LINES, line]) + b"\n")
    assert {r.source for r in got} == {""}
    assert got[2:-1] == [r._replace(line=r.line + 1) for r in BARE[1:]]


def test_two_envelopes_side_by_side() -> None:
    a = [b"Dec 07 18:59:10 host bash[9]: " + line for line in LINES[6:8] * 4]
    b = [b"[pod/p/c] " + line for line in LINES[6:8] * 4]
    got = read(b"\n".join(line for pair in zip(a, b, strict=True) for line in pair) + b"\n")
    assert [r.source for r in got] == ["host/bash", "pod/p/c"] * 8


SHORT = {
    "blank line": [b"Authorization required", b"", b"[TensorRT-LLM] TensorRT-LLM version: 0.18.0"],
    "last words": [
        b"  what():  [TensorRT-LLM][ERROR] Assertion failed: FP8 FMHA cannot be enabled",
        b"1       0x7009a217b67c tensorrt_llm::common::throwRuntimeError",
        b"2       0x7009a233c6c4 tensorrt_llm::common::op::AttentionOp::initialize() + 5492",
    ],
}


@pytest.mark.parametrize("name", SHORT)
@pytest.mark.parametrize("label", [b"    vLLM STDOUT: ", b"worker-3 | ", b"[node a] "])
def test_a_label_before_every_line_of_a_short_log(name: str, label: bytes) -> None:
    lines = SHORT[name]
    got = read(b"".join(label + line + b"\n" for line in lines))
    assert [(r.line, r.text) for r in got] == list(enumerate(lines, 1))


@pytest.mark.parametrize(
    "lines",
    [
        [b"Loading safetensors checkpoint shards:  %d%% Completed" % n for n in (0, 50, 100)],
        [b"[rank0]: " + line for line in (b"Traceback (most recent call last):", b"", b"ValueError: no")],
        [b"(Worker pid=3) note: " + line for line in (b"a", b"", b"b")],
        [b"note: a", b"note: "],
        [b"note: a", b"", b"note: b", b"note: "],
    ],
    ids=lambda lines: lines[0].decode(),
)
def test_what_lines_share_is_not_always_a_label(lines: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"\n".join(lines) + b"\n")
    source = open_source(str(path))
    list(source.records())
    assert source.envelopes == ()


@pytest.mark.parametrize(
    "head",
    [
        b"[TensorRT-LLM] ",
        b"I0313 11:47:32.820410 182447 python_be.cc:2249] ",
        b"[2026-09-30 14:27:37] ",
        b"2025-05-13 21:10:55,987 - INFO - flashinfer.jit: ",
    ],
)
def test_a_record_s_own_head_is_no_label(head: bytes) -> None:
    lines = [head + b"TensorRT LLM version: 1.2.0", head, head + b"Loading"]
    bare = [r for line in lines for r in read(line + b"\n")]
    assert [(r.text, r.engine, r.level) for r in read(b"\n".join(lines) + b"\n")] == [
        (r.text, r.engine, r.level) for r in bare
    ]
