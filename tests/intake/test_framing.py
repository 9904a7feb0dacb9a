"""Records of every era, exactly."""

from __future__ import annotations

import pytest

from logscan.intake.framing import Framer, Item
from logscan.model import Record


def frame(line: bytes) -> Record:
    return Framer().frame(1, line).record


def records(*lines: bytes) -> list[Record]:
    framer = Framer()
    items = [Item(i, line) for i, line in enumerate(lines, 1)]
    return [*framer.records(items), *framer.flush()]


VLLM = [
    (
        b"INFO 07-14 10:00:00 worker.py:267] the current vLLM instance",
        Record(
            1, b"the current vLLM instance", "engine", "INFO", "worker.py", "", "", "07-14 10:00:00", engine="vllm"
        ),
    ),
    (
        b"WARNING 03-19 06:27:20 [arg_utils.py:1019] [DEPRECATED] Block manager v1 has been removed",
        Record(1, b"[DEPRECATED] Block manager v1 has been removed", "engine", "WARNING", "arg_utils.py", "", "",
               "03-19 06:27:20", engine="vllm"),
    ),
    (
        b"\x1b[1;36m(VllmWorker rank=0 pid=12409)\x1b[0;0m INFO 07-09 14:34:32 [gpu_model_runner.py:1276] Starting",
        Record(1, b"Starting", "engine", "INFO", "gpu_model_runner.py", "VllmWorker rank=0 pid=12409", "",
               "07-09 14:34:32", engine="vllm"),
    ),
    (
        b"(Worker_PP0_TP1_EP1 pid=34510) ERROR 04-12 01:50:23 [multiproc_executor.py:971] died",
        Record(1, b"died", "engine", "ERROR", "multiproc_executor.py", "Worker_PP0_TP1_EP1 pid=34510", "",
               "04-12 01:50:23", engine="vllm"),
    ),
    (
        b"(EngineCore_DP0 pid=548418) DEBUG 04-21 06:58:12 [v1/.../mla/common.py:780] Waiting",
        Record(1, b"Waiting", "engine", "DEBUG", "v1/.../mla/common.py", "EngineCore_DP0 pid=548418", "",
               "04-21 06:58:12", engine="vllm"),
    ),
    (
        b"(EngineCore pid=1) \x1b[32mINFO\x1b[0m \x1b[90m06-26 02:33:04\x1b[0m \x1b[90m[core.py:113]\x1b[0m Hello",
        Record(1, b"Hello", "engine", "INFO", "core.py", "EngineCore pid=1", "", "06-26 02:33:04", engine="vllm"),
    ),
    (
        b"(EngineCore_0 pid=1159) \x1b[36m(RayWorkerWrapper pid=345, ip=10.42.9.225)\x1b[0m INFO 09-10 23:27:16 "
        b"[__init__.py:241] Detected\x1b[32m [repeated 2x across cluster] (Ray deduplicates logs by default. Set "
        b"RAY_DEDUP_LOGS=0 to disable log deduplication, or see https://docs.ray.io/x for more options.)\x1b[0m",
        Record(1, b"Detected", "engine", "INFO", "__init__.py",
               "EngineCore_0 pid=1159 > RayWorkerWrapper pid=345, ip=10.42.9.225", "", "09-10 23:27:16", 2, "vllm"),
    ),
    (  # two writes raced: the later prefix speaks
        b"(VllmWorker rank=0 pid=12409) (VllmWorker rank=1 pid=12436) INFO 07-09 14:34:25 [x.py:244] reading",
        Record(1, b"reading", "engine", "INFO", "x.py", "VllmWorker rank=0 pid=12409 > VllmWorker rank=1 pid=12436",
               "", "07-09 14:34:25", engine="vllm"),
    ),
    (
        b"INFO 07-23 22:28:14.767 llm_engine.py:98] Initializing an LLM engine (v0.4.1) with config: model='m'",
        Record(1, b"Initializing an LLM engine (v0.4.1) with config: model='m'", "engine", "INFO", "llm_engine.py", "",
               "", "07-23 22:28:14.767", engine="vllm"),
    ),
    (
        b"INFO 2025-12-08 00:00:39.768 on.py:62] Application startup complete.",
        Record(1, b"Application startup complete.", "uvicorn", "INFO", "on.py", "", "", "2025-12-08 00:00:39.768",
               engine="vllm"),
    ),
    (b"INFO 03-09 09:32:06 [utils.py:302]",
     Record(1, b"", "engine", "INFO", "utils.py", "", "", "03-09 09:32:06", engine="vllm")),
]  # fmt: skip


@pytest.mark.parametrize(("line", "record"), VLLM)
def test_vllm_formats(line: bytes, record: Record) -> None:
    assert frame(line) == record


OTHERS = [
    (b"INFO:     Application startup complete.", Record(1, b"Application startup complete.", "uvicorn", "INFO")),
    (
        b"\x1b[32mINFO\x1b[0m:     Application startup complete.",
        Record(1, b"Application startup complete.", "uvicorn", "INFO"),
    ),
    (
        b"(APIServer pid=1) WARNING:  Invalid HTTP request received.",
        Record(1, b"Invalid HTTP request received.", "uvicorn", "WARNING", "", "APIServer pid=1"),
    ),
    (  # another server's log: its own date stands before the message
        b"INFO:     [29-01-2026 03:50:13] Application startup complete.",
        Record(1, b"[29-01-2026 03:50:13] Application startup complete.", "uvicorn", "INFO"),
    ),
    (b"INFO:    Converting SIF file", Record(1, b"INFO:    Converting SIF file", "print")),
    (
        b"[2026-09-30 14:27:37 DP0 TP1] max_total_num_tokens=1",
        Record(1, b"max_total_num_tokens=1", "engine", "", "", "DP0 TP1", "", "2026-09-30 14:27:37", 1, "sglang"),
    ),
    (
        b"[2026-09-30 14:27:37.123] server_args={}",
        Record(1, b"server_args={}", "engine", "", "", "", "", "2026-09-30 14:27:37.123", 1, "sglang"),
    ),
    (
        b"[2026-08-01 23:43:43] INFO:     Started server process [31319]",
        Record(
            1, b"Started server process [31319]", "uvicorn", "INFO", "", "", "", "2026-08-01 23:43:43", 1, "sglang"
        ),
    ),
    (
        b"[2026-03-27 09:31:16] WARNING model_config.py:1178: Casting torch.bfloat16 to torch.float16.",
        Record(1, b"Casting torch.bfloat16 to torch.float16.", "engine", "WARNING", "model_config.py", "", "",
               "2026-03-27 09:31:16", 1, "sglang"),
    ),
    (  # transformers' format inside a vLLM process
        b"(APIServer pid=21) [2026-01-29 03:45:18] WARNING configuration_utils.py:697: The argument",
        Record(1, b"The argument", "print", "WARNING", "configuration_utils.py", "APIServer pid=21", "",
               "2026-01-29 03:45:18"),
    ),
    (
        b"[TensorRT-LLM][WARNING][3] Fall back to unfused MHA",
        Record(1, b"Fall back to unfused MHA", "engine", "WARNING", "", "rank 3", engine="trtllm"),
    ),
    (
        b"[TensorRT-LLM][INFO] Loaded engine size: 3938 MiB",
        Record(1, b"Loaded engine size: 3938 MiB", "engine", "INFO", engine="trtllm"),
    ),
    (
        b"[05/04/2025-10:58:17] [TRT-LLM] [RANK 0] [W] padding removal",
        Record(1, b"padding removal", "engine", "WARNING", "", "RANK 0", "", "05/04/2025-10:58:17", 1, "trtllm"),
    ),
    (
        b"[10/30/2023-14:40:46] [TRT-LLM] [MPI_Rank 2] [I] Using float16",
        Record(1, b"Using float16", "engine", "INFO", "", "MPI_Rank 2", "", "10/30/2023-14:40:46", 1, "trtllm"),
    ),
    (
        b"[06/05/2024-13:40:06] [TRT] [I] [MemUsageChange] Init",
        Record(1, b"[MemUsageChange] Init", "engine", "INFO", "", "", "", "06/05/2024-13:40:06", 1, "trtllm"),
    ),
    (
        b"[TensorRT-LLM] TensorRT-LLM version: 0.20.0",
        Record(1, b"[TensorRT-LLM] TensorRT-LLM version: 0.20.0", "print", engine="trtllm"),
    ),
    (
        b'I0410 16:58:08.485508 1 model_lifecycle.cc:849] "loading: x:1"',
        Record(1, b'"loading: x:1"', "engine", "INFO", "model_lifecycle.cc", "", "", "16:58:08.485508"),
    ),
    (
        b"2026-01-07 02:32:09,315 - INFO - autotuner.py:256 - flashinfer.jit: [Autotuner]: Autotuning process starts",
        Record(1, b"flashinfer.jit: [Autotuner]: Autotuning process starts", "print", "INFO", "autotuner.py", "", "",
               "2026-01-07 02:32:09,315"),
    ),
    (b"[rank0]: ValueError: no", Record(1, b"ValueError: no", "traceback", "", "", "rank0")),
    (b"", Record(1, b"", "print")),
]  # fmt: skip


@pytest.mark.parametrize(("line", "record"), OTHERS)
def test_other_formats(line: bytes, record: Record) -> None:
    assert frame(line) == record


BAR = "Capturing CUDA graphs (decode, FULL):  34%|███▍      | 12/35 [00:01<00:02,  9.93it/s]".encode()
HEAD = b"(Worker_TP3 pid=8456) ERROR 04-17 02:01:23 [multiproc_executor.py:949] "


@pytest.mark.parametrize(
    "before",
    [
        BAR,
        b"\r" + BAR,
        b"\rx  3%|\r" + BAR,
        b"(EngineCore pid=1) \r" + BAR,
        b"Loading shards:  59% Completed | 10/17 [04:29<01:19, 11.29s/it]",
        b"Processed prompts:   0%| | 0/62 [00:00<?, ?it/s, est. speed input: 0.00 toks/s, output: 0.00 toks/s]",
        b"Tuning:   0%|   | 0/10 [00:00<?, ?profile/s]",
        b"garbage\r",
    ],
)
def test_a_record_glued_to_a_progress_bar_is_read(before: bytes) -> None:
    got = frame(before + HEAD + b"WorkerProc hit an exception.")
    assert (got.text, got.level, got.process) == (b"WorkerProc hit an exception.", "ERROR", "Worker_TP3 pid=8456")


def test_a_progress_bar_shows_what_it_showed_last() -> None:
    got = frame(b"(EngineCore pid=1) \rLoading:   0% | 0/3\rLoading: 100% | 3/3\r")
    assert got == Record(1, b"Loading: 100% | 3/3", "print", "", "", "EngineCore pid=1")


def test_a_record_within_a_message_is_no_record() -> None:
    prompt = b"Received request: 'INFO 07-14 10:00:00 [x.py:1] Selected Marlin 50%| 1/2 [00:01<00:02,  1it/s]' "
    got = frame(b"INFO 07-14 10:00:00 [logger.py:39] " + prompt)
    assert (got.file, got.text) == ("logger.py", prompt)


def test_a_message_that_goes_on_is_one_record() -> None:
    head = b"(EngineCore pid=7) ERROR 07-14 10:00:00 [core.py:9] "
    got = records(b"x", head + b"failed\r", head + b"Traceback (most recent call last):\r", head + b"ValueError", b"y")
    assert [(r.line, r.text) for r in got] == [
        (1, b"x"),
        (2, b"failed\nTraceback (most recent call last):\nValueError"),
        (5, b"y"),
    ]


def test_an_interrupted_message_keeps_its_lines_apart() -> None:
    head, other = b"(A pid=7) INFO 07-14 10:00:00 [core.py:9] ", b"(B pid=8) INFO 07-14 10:00:00 [core.py:9] "
    got = records(head + b"one\r", other + b"between", head + b"two")
    assert [(r.line, r.text, r.process) for r in got] == [
        (1, b"one", "A pid=7"), (2, b"between", "B pid=8"), (3, b"two", "A pid=7"),
    ]  # fmt: skip


def test_a_message_without_end_is_cut() -> None:
    head = b"INFO 07-14 10:00:00 [core.py:9] "
    got = records(*[head + b"x\r"] * 10_000)
    assert [r.text.count(b"\n") + 1 for r in got] == [4096, 4096, 10_000 - 2 * 4096]


def test_logging_prefix_before_and_after_the_process() -> None:
    framer = Framer()
    framer.learn(b"[blue] ")
    for line in (
        b"[blue] (EngineCore pid=1) INFO 07-14 10:00:00 [core.py:9] hi",
        b"(EngineCore pid=1) [blue] INFO 07-14 10:00:00 [core.py:9] hi",
    ):
        record = framer.frame(1, line).record
        assert (record.text, record.process, record.engine) == (b"hi", "EngineCore pid=1", "vllm")


TRACEBACK = [
    (b"Traceback (most recent call last):", "traceback"),
    (b'  File "/x.py", line 3, in f', "traceback"),
    (b"    g()", "traceback"),
    (b"triton.compiler.errors.Oops: no", "traceback"),
    (b"more of the message", "traceback"),
    (b"", "print"),
    (b"Starting anew", "print"),
]


def test_a_traceback_is_told_from_prints() -> None:
    assert [r.origin for r in records(*[line for line, _ in TRACEBACK])] == [origin for _, origin in TRACEBACK]


def test_tracebacks_of_processes_are_kept_apart() -> None:
    got = records(
        b"(A pid=1) Traceback (most recent call last):",
        b"(B pid=2) hello",
        b"(A pid=1)     f()",
        b"(A pid=1) RuntimeError: no",
        b"(B pid=2) hello",
    )
    assert [r.origin for r in got] == ["traceback", "print", "traceback", "traceback", "print"]


def test_a_record_ends_a_traceback() -> None:
    got = records(b"Traceback (most recent call last):", b"INFO 07-14 10:00:00 [x.py:1] go on", b"    hello")
    assert [r.origin for r in got] == ["traceback", "engine", "print"]


def test_an_exception_message_is_not_endless() -> None:
    got = records(b"ValueError: x", *[b"print"] * 30)
    assert [r.origin for r in got].count("traceback") == 25
