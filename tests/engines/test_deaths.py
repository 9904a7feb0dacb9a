"""How a server ends: what only a death prints is one, what a stopped server prints too is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from logscan.model import Boot

Read = Callable[[str], tuple[Boot, ...]]
Render = Callable[..., str]

STAMP = "[2026-09-30 15:00:00] "
API = "(APIServer pid=1) "

# Of each pattern a line as its release prints it, unframed where no logger frames it.
SGLANG_DEATHS = {
    "sglang.died.watchdog": [
        "[2026-09-30 15:00:00 TP0] Watchdog timeout (self.watchdog_timeout=300)",
        "[2026-09-30 15:00:00 TP0] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
    ],
    "sglang.died.child": [
        STAMP + "Subprocess scheduler_0 (pid=412) crashed with exit code -11. Triggering SIGQUIT for cleanup...",
        STAMP + "Subprocess scheduler_1 (pid=413) crashed with exit code -6. Triggering SIGQUIT for cleanup...",
    ],
    "sglang.died.grpc": [
        STAMP + "Received SIGQUIT from scheduler process. Scheduler failed, shutting down gRPC server."
    ],
    "sglang.died.joined": [STAMP + "Scheduler or DataParallelController 412 terminated with -11"],
    "sglang.died.native": [
        "Fatal Python error: Segmentation fault",
        "Fatal Python error: Bus error",
        "Fatal Python error: Floating-point exception",
        "!!!!!!! Segfault encountered !!!!!!!",
        "./run.sh: line 7:  4242 Segmentation fault      (core dumped) python3 -m sglang.launch_server --port 30000",
    ],
}
VLLM_DEATHS = {
    "vllm.died.fatal_signal": [
        "CRITICAL 07-14 11:00:00 [core_client.py:359] Got fatal signal from worker processes, shutting down. "
        "See stack trace above for root cause issue.",
        "CRITICAL 07-14 11:00:00 [multiproc_executor.py:49] MulitprocExecutor got fatal signal from worker processes, "
        "shutting down. See stack trace above for root cause issue.",
    ],
    "vllm.died.served_process": [
        API + "ERROR 07-14 11:00:00 [utils.py:274] Exception occurred while running API servers: "
        "Process ApiServer_1 (PID: 4242) died with exit code -11",
        API + "RuntimeError: Process ApiServer_1 (PID: 4242) died with exit code -6",
    ],
    "vllm.died.native": [
        "Fatal Python error: Segmentation fault",
        "Fatal Python error: Illegal instruction",
        "(EngineCore pid=123) (RayWorkerWrapper pid=233) *** SIGSEGV received at time=1762945937 on cpu 6 ***",
        "!!!!!!! Segfault encountered !!!!!!!",
        "./run.sh: line 7:  4242 Segmentation fault      (core dumped) vllm serve org/model",
    ],
}

# What a death prints, and a stop too: a ready boot is as it was, one that never got ready has failed.
SGLANG_AMBIGUOUS = {
    "sglang.exit.child": [
        STAMP + f"Subprocess scheduler_0 (pid=412) crashed with exit code {code}. Triggering SIGQUIT for cleanup..."
        for code in (1, -2, -9, -15)
    ],
    "sglang.exit.sigquit_running": [
        STAMP + "SIGQUIT received. signum=None, frame=None. It usually means one child failed."
    ],
    "sglang.exit.native": [
        "Fatal Python error: Aborted",
        "terminate called after throwing an instance of 'c10::DistBackendError'",
    ],
}
VLLM_AMBIGUOUS = {
    "vllm.exit.output_handler": [API + "ERROR 07-14 11:00:00 [async_llm.py:707] AsyncLLM output_handler failed."],
    "vllm.exit.engine_dead": [
        API + "ERROR 07-14 11:00:00 [async_llm.py:707] vllm.v1.engine.exceptions.EngineDeadError: "
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
    ],
    "vllm.exit.v0_process": [
        "ERROR 07-14 11:00:00 [client.py:304] RuntimeError('Engine process (pid 77) died.')",
    ],
    "vllm.exit.v0_dead": [
        "CRITICAL 07-14 11:00:00 [launcher.py:116] MQLLMEngine is already dead, terminating server process",
        "CRITICAL 07-14 11:00:00 [launcher.py:104] AsyncLLMEngine has failed, terminating server process",
    ],
    "vllm.exit.native": [
        "Fatal Python error: Aborted",
        "terminate called after throwing an instance of 'c10::AcceleratorError'",
    ],
}


def _sglang(ready: bool = True) -> str:
    lines = [
        "[2026-09-30 14:27:31] server_args=ServerArgs(model_path='org/model', tokenizer_path='org/model', "
        "dtype='auto', quantization=None, kv_cache_dtype='auto', attention_backend='flashinfer', tp_size=2, dp_size=1)",
        "[2026-09-30 14:27:40 TP0] Init torch distributed begin.",
        "[2026-09-30 14:27:42 TP0] Load weight begin. avail mem=78.44 GB",
    ]
    if ready:
        lines += [
            "[2026-09-30 14:28:41] INFO:     Application startup complete.",
            "[2026-09-30 14:28:46] The server is fired up and ready to roll!",
        ]
    return "\n".join(lines) + "\n"


def _cases(*groups: dict[str, list[str]]) -> list[Any]:
    return [pytest.param(name, line, id=name) for group in groups for name, lines in group.items() for line in lines]


@pytest.fixture
def start(boot_text: Render) -> Callable[[str, bool], str]:
    """A boot of the engine that a pattern's id names, ready or cut off."""

    def of(pattern: str, ready: bool) -> str:
        return _sglang(ready) if pattern.startswith("sglang.") else boot_text("0.24.0", end="ready" if ready else "cut")

    return of


def _status(read: Read, text: str) -> tuple[str, int | None]:
    (boot,) = read(text)
    return boot.status, boot.decided


@pytest.mark.parametrize(("pattern", "line"), _cases(SGLANG_DEATHS, VLLM_DEATHS))
def test_a_ready_engine_dies(read: Read, start: Callable[[str, bool], str], pattern: str, line: str) -> None:
    ready = start(pattern, True)
    (before,) = read(ready)
    (boot,) = read(ready + line + "\n")
    assert (before.status, boot.status, boot.decided) == ("ready", "died", ready.count("\n") + 1)
    assert [(f.name, f.line) for f in boot.facts if f.pattern == pattern] == [("boot.died", boot.decided)]


@pytest.mark.parametrize(("pattern", "line"), _cases(SGLANG_DEATHS, VLLM_DEATHS, SGLANG_AMBIGUOUS, VLLM_AMBIGUOUS))
def test_what_never_got_ready_failed(read: Read, start: Callable[[str, bool], str], pattern: str, line: str) -> None:
    cut = start(pattern, False)
    assert _status(read, cut) == ("incomplete", None)
    assert _status(read, cut + line + "\n") == ("failed", cut.count("\n") + 1)


@pytest.mark.parametrize(("pattern", "line"), _cases(SGLANG_AMBIGUOUS, VLLM_AMBIGUOUS))
def test_what_a_stop_prints_too_is_no_death(
    read: Read, start: Callable[[str, bool], str], pattern: str, line: str
) -> None:
    ready = start(pattern, True)
    (boot,) = read(ready + line + "\n")
    assert boot.status == "ready"
    assert [f.name for f in boot.facts if f.pattern == pattern] == ["boot.exception"]


@pytest.mark.parametrize(("pattern", "line"), _cases(SGLANG_DEATHS, VLLM_DEATHS, SGLANG_AMBIGUOUS, VLLM_AMBIGUOUS))
def test_a_prompt_that_quotes_the_line_changes_nothing(
    read: Read, start: Callable[[str, bool], str], pattern: str, line: str
) -> None:
    quoted = f"first\n{line}\n"  # as repr() shows it, which is how both engines log a prompt
    if pattern.startswith("sglang."):
        said = [
            STAMP + f"Receive: obj=GenerateReqInput(text={quoted!r}, sampling_params={{}})",
            STAMP + f"Error while reading: {line}",
        ]
    else:
        said = [
            API + f"INFO 07-14 11:00:00 [logger.py:42] Received request cmpl-1: prompt: {quoted!r}, params: x",
            API + f"ERROR 07-14 11:00:00 [serving.py:200] Error in preprocessing prompt inputs: {line}",
        ]
    for ready in (True, False):
        text = start(pattern, ready)
        assert _status(read, text + "\n".join(said) + "\n") == _status(read, text)


def test_a_scheduler_dead_at_launch(read: Read) -> None:
    line = STAMP + "Rank 0 scheduler is dead. Please check if there are relevant logs.\n"
    assert _status(read, _sglang(ready=False) + line) == ("failed", 4)
    assert _status(read, _sglang() + line)[0] == "ready"  # said of a launch: not of this one


SGLANG_STOPS = {
    "sigterm": [
        STAMP + "SIGTERM received. signum=None frame=None. Draining requests and shutting down...",
        STAMP + "Gracefully exiting... Remaining number of requests 0. Remaining requests remaining_rids=[].",
        STAMP + "kill_process_tree called: parent_pid=1, include_parent=False, pid=1",
    ],
    "a further node": [  # it joins its children, whatever they end with
        STAMP + "SIGTERM received on node_rank 1; waiting for the rank-0 ShutdownReq broadcast to stop the schedulers.",
        STAMP + "Scheduler or DataParallelController 412 terminated with 0",
        STAMP + "Scheduler or DataParallelController 413 terminated with -15",
    ],
    "ctrl-c": [  # the children get the signal too, and the watchdog finds them ended
        "Process SpawnProcess-1:",
        "Traceback (most recent call last):",
        '  File "/x/sglang/srt/managers/detokenizer_manager.py", line 230, in event_loop',
        "    recv_obj = self.recv_from_scheduler.recv_pyobj()",
        "KeyboardInterrupt",
        STAMP + "INFO:     Shutting down",
        STAMP + "Subprocess detokenizer (pid=414) crashed with exit code 1. Triggering SIGQUIT for cleanup...",
        STAMP + "SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
    ],
    "grpc": [STAMP + "SIGTERM received. signum=15 frame=None. Shutting down gRPC server..."],
    "at exit": [
        STAMP + "INFO:     Shutting down",
        "terminate called without an active exception",
        "Fatal Python error: _enter_buffered_busy: could not acquire lock for <_io.BufferedWriter name='<stdout>'> "
        "at interpreter shutdown, possibly due to daemon threads",
    ],
    "soft watchdog": [
        STAMP + "DetokenizerManager watchdog timeout (self.watchdog_timeout=300, self.soft=True)",
        STAMP + "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=True)",
    ],
}
VLLM_STOPS = {
    "signal": [
        API + "INFO 07-14 11:00:00 [launcher.py:100] [shutdown] API server: shutdown triggered",
        API
        + "INFO 07-14 11:00:00 [launcher.py:116] [shutdown] API server: stopping engine client mode=abort timeout=0s",
        "(EngineCore pid=123) INFO 07-14 11:00:00 [core.py:1400] [shutdown] EngineCore: start mode=abort timeout=0s",
        API + "INFO 07-14 11:00:00 [launcher.py:125] [shutdown] API server: engine client stopped",
        API + "INFO 07-14 11:00:01 [launcher.py:149] [shutdown] API server: shutting down FastAPI HTTP server",
        API + "INFO:     Shutting down",
        API + "INFO:     Finished server process [1]",
    ],
    "the race of its client": [
        API + "INFO 07-14 11:00:00 [launcher.py:100] [shutdown] API server: shutdown triggered",
        API + "ERROR 07-14 11:00:00 [async_llm.py:707] AsyncLLM output_handler failed.",
        API + "ERROR 07-14 11:00:00 [async_llm.py:707] Traceback (most recent call last):",
        API + "ERROR 07-14 11:00:00 [async_llm.py:707] vllm.v1.engine.exceptions.EngineDeadError: "
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
        API + "INFO:     Application shutdown complete.",
    ],
    "an API server that was stopped": [
        API + "ERROR 07-14 11:00:00 [utils.py:274] Exception occurred while running API servers: "
        "Process ApiServer_1 (PID: 4242) died with exit code -15",
    ],
    "ray's handler": ["(RayWorkerWrapper pid=233) *** SIGTERM received at time=1759954468 on cpu 5 ***"],
}


@pytest.mark.parametrize("stop", list(SGLANG_STOPS))
def test_sglang_stopped_in_order_was_ready(read: Read, stop: str) -> None:
    assert _status(read, _sglang() + "\n".join(SGLANG_STOPS[stop]) + "\n") == _status(read, _sglang())


@pytest.mark.parametrize("stop", list(VLLM_STOPS))
def test_vllm_stopped_in_order_was_ready(read: Read, boot_text: Render, stop: str) -> None:
    ready = boot_text("0.24.0")
    assert _status(read, ready + "\n".join(VLLM_STOPS[stop]) + "\n") == _status(read, ready)


def test_a_stop_is_a_fact(read: Read) -> None:
    (boot,) = read(_sglang() + SGLANG_STOPS["sigterm"][0] + "\n")
    assert [(f.value, f.pattern) for f in boot.facts if f.name == "boot.shutdown"] == [
        ("asked", "sglang.shutdown.signal")
    ]
