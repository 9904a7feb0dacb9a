"""Where boots begin and end, whose lines they are, and how they went."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logscan

Boot = dict[str, Any]
Boots = Callable[[str], list[Boot]]
READY = "(APIServer pid=1) INFO:     Application startup complete.\n"


@pytest.fixture
def boots(tmp_path: Path) -> Boots:
    def run(text: str) -> list[Boot]:
        log = tmp_path / "boot.log"
        log.write_text(text)
        return list(logscan.triage(log)["logs"][0]["boots"])

    return run


def _brief(found: list[Boot]) -> list[tuple[str, int, int]]:
    return [(b["status"], b["lines"]["first"], b["lines"]["last"]) for b in found]


def test_a_crash_loop_reuses_its_pids(boots: Boots, boot_text: Any) -> None:
    text = boot_text("0.24.0", end="failed") + boot_text("0.24.0", end="failed") + boot_text("0.24.0")
    assert _brief(boots(text)) == [("failed", 1, 3), ("failed", 4, 6), ("ready", 7, 10)]


def test_a_restart_without_a_word_of_the_failure(boots: Boots, boot_text: Any) -> None:
    text = boot_text("0.24.0", end="cut") + boot_text("0.24.0", api_pid=7, core_pid=8)
    assert _brief(boots(text)) == [("incomplete", 1, 2), ("ready", 3, 6)]


def test_data_parallel_replicas_are_one_boot(boots: Boots, boot_text: Any) -> None:
    lines = boot_text("0.24.0").split("\n")
    engine = lines[1]
    replicas = [engine.replace("EngineCore pid=123", f"EngineCore_DP{n} pid={200 + n}") for n in range(3)]
    (boot,) = boots("\n".join([lines[0], *replicas, *lines[2:]]))
    assert boot["status"] == "ready"


def test_v0_fallback_is_one_boot(boots: Boots) -> None:
    (boot,) = boots(
        "INFO 04-01 10:00:00 [api_server.py:981] vLLM API server version 0.8.2\n"
        "INFO 04-01 10:00:00 [api_server.py:982] args: Namespace(model='m', kv_cache_dtype='fp8')\n"
        "WARNING 04-01 10:00:01 [arg_utils.py:1690] --kv-cache-dtype is not supported by the V1 Engine. "
        "Falling back to V0. \n"
        "INFO 04-01 10:00:02 [llm_engine.py:241] Initializing a V0 LLM engine (v0.8.2) with config: model='m', "
        "quantization=None, kv_cache_dtype=fp8, \n"
        "INFO:     Application startup complete.\n"
    )
    assert boot["status"] == "ready"
    assert "LS603" in [f["code"] for f in boot["findings"]]


def test_offline_runs_have_no_server(boots: Boots, boot_text: Any) -> None:
    run = "\n".join(line for line in boot_text("0.24.0").split("\n") if "APIServer" not in line)
    again = run.replace("pid=123", "pid=456")
    assert [b["status"] for b in boots(run + again)] == ["ready", "ready"]


def test_a_server_needs_more_than_its_engine(boots: Boots, boot_text: Any) -> None:
    text = "\n".join(line for line in boot_text("0.24.0").split("\n") if "startup complete" not in line)
    assert [b["status"] for b in boots(text)] == ["incomplete"]


@pytest.mark.parametrize(
    "tail",
    [
        "(APIServer pid=1) INFO 07-14 11:00:00 [launcher.py:110] Shutting down FastAPI HTTP server.\n",
        "(APIServer pid=1) ERROR 07-14 11:00:00 [serving_chat.py:200] Error in preprocessing prompt inputs\n"
        "Traceback (most recent call last):\nValueError: This model's maximum context length is 2048 tokens.\n",
    ],
)
def test_what_comes_after_ready_is_no_boot_failure(boots: Boots, boot_text: Any, tail: str) -> None:
    assert [b["status"] for b in boots(boot_text("0.24.0") + tail)] == ["ready"]


def test_an_engine_that_dies_after_ready(boots: Boots, boot_text: Any) -> None:
    tail = "(EngineCore pid=123) ERROR 07-14 11:00:00 [core.py:844] EngineCore encountered a fatal error.\n"
    (boot,) = boots(boot_text("0.24.0") + tail)
    assert boot["status"] == "died"
    assert "LS506" in [f["code"] for f in boot["findings"]]


def test_an_uncaught_exception_is_a_failed_boot(boots: Boots) -> None:
    (boot,) = boots(
        "INFO 06-20 20:03:41 [api_server.py:1287] vLLM API server version 0.9.1\n"
        "Traceback (most recent call last):\n"
        '  File "/x/vllm/entrypoints/openai/api_server.py", line 1263, in create_server_socket\n'
        "    sock.bind(addr)\n"
        "OSError: [Errno 98] Address already in use\n"
    )
    assert (boot["status"], boot["engine"]["version"]) == ("failed", "0.9.1")


def test_a_refused_command_line_takes_the_version_of_the_next_start(boots: Boots, boot_text: Any) -> None:
    found = boots("vllm serve: error: unrecognized arguments: --enable-metrics\n" + boot_text("0.24.0"))
    assert [(b["status"], b["engine"]["version"], b["engine"]["authority"]) for b in found] == [
        ("failed", "0.24.0", "derived"),
        ("ready", "0.24.0", "logged"),
    ]


def test_another_service_is_not_ready_for_vllm(boots: Boots, boot_text: Any) -> None:
    """In 0.10.1–0.30 uvicorn's line carries the server's prefix; one without it is somebody else's."""
    text = boot_text("0.24.0").replace(READY, "INFO:     Application startup complete.\n")
    assert [b["status"] for b in boots(text)] == ["incomplete"]
    assert [b["status"] for b in boots(boot_text("0.24.0"))] == ["ready"]


def test_a_web_service_alone_is_nothing(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    log.write_text("INFO:     Started server process [1]\nINFO:     Application startup complete.\n")
    document = logscan.triage(log)
    assert (document["logs"][0]["boots"], document["verdict"], document["status"]) == ([], None, None)


def test_a_drafter_is_not_the_target(boots: Boots, boot_text: Any) -> None:
    text = boot_text(
        "0.24.0",
        [
            ("INFO", "nvfp4.py", "Using 'MARLIN' NvFp4 MoE backend out of potential backends: ['MARLIN']."),
            ("INFO", "gpu_model_runner.py", "Loading drafter model..."),
            ("INFO", "unquantized.py", "Using TRITON Unquantized MoE backend out of potential backends: ['TRITON']."),
        ],
        quantization="modelopt_fp4",
    )
    (boot,) = boots(text)
    found = [(f["value"], f["component"]) for f in boot["facts"] if f["name"] == "moe.backend"]
    assert found == [("MARLIN", "target"), ("TRITON", "drafter")]


def test_interleaved_boots_keep_their_lines(boots: Boots, boot_text: Any) -> None:
    one = boot_text("0.24.0").split("\n")[:-1]
    two = boot_text("0.24.0", api_pid=71, core_pid=72).split("\n")[:-1]
    found = boots("\n".join(x for pair in zip(one, two, strict=True) for x in pair) + "\n")
    assert [(b["status"], b["lines"]["interleaved"]) for b in found] == [("ready", True), ("ready", True)]


def test_the_version_of_an_unknown_build_is_a_range(boots: Boots, boot_text: Any) -> None:
    (boot,) = boots(
        boot_text("0.24.0", [("INFO", "__init__.py", "Using MarlinNvFp4LinearKernel for NVFP4 GEMM")]).replace(
            "(v0.24.0)", "(v0.1.dev1+g9759e3b06)"
        )
    )
    assert boot["engine"]["kind"] == "unknown"
    assert boot["engine"]["version"] == "0.1.dev1+g9759e3b06"
    assert boot["engine"]["range"].startswith(">=0.2")
    assert "LS901" in [f["code"] for f in boot["findings"]]


@pytest.mark.parametrize("label", ["", "[1,5]<stdout>:", "5: "], ids=["bare", "mpirun", "srun"])
def test_two_engines_of_a_trainer_are_two_boots(boots: Boots, boot_text: Any, label: str) -> None:
    """Ray actors each hold an engine; the rank that a launcher puts before both tells nothing of who speaks."""
    run = [line for line in boot_text("0.24.0").split("\n") if line and "APIServer" not in line]
    one, two = ([line.replace("EngineCore pid=123", f"Rollout pid={pid}") for line in run] for pid in (7, 8))
    lines = [one[0], two[0], *one[1:], *two[1:]]
    found = boots("".join(f"{label}{line}\n" for line in lines))
    assert [b["status"] for b in found] == ["ready", "ready"]
