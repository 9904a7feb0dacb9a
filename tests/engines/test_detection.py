"""Who speaks: an engine is not the one whose name, banner or path stands in a line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logscan.model import Boot

Read = Callable[[str], tuple[Boot, ...]]
BANNER = "[TensorRT-LLM] TensorRT-LLM version: {}\n"
UNFUSED = "[TensorRT-LLM][WARNING]{} Fall back to unfused MHA because of unsupported head size 128 in sm_75.\n"
VLLM = (
    "(EngineCore pid=7) INFO 07-14 10:00:00 [core.py:113] Initializing a V1 LLM engine (v0.24.0) with config: "
    "model='org/model', dtype=torch.bfloat16, quantization=None, kv_cache_dtype=auto, device_config=cuda\n"
)
ARGS = (
    "[2026-09-30 14:27:37] server_args=ServerArgs(model_path='org/model', quantization=None, kv_cache_dtype='auto')\n"
)
DIED = "[2026-09-30 14:27:52] Scheduler hit an exception: Traceback (most recent call last):\n"
READY = "[2026-09-30 14:28:00] The server is fired up and ready to roll!\n"


def _names(boots: tuple[Boot, ...]) -> list[tuple[str | None, str | None, str]]:
    return [(b.engine.name, b.engine.version, b.status) for b in boots]


def test_a_banner_of_an_imported_library_is_no_engine(read: Read) -> None:
    backend = "(EngineCore pid=7) INFO 07-14 10:00:02 [cuda.py:9] Using FLASH_ATTN attention backend out of potential "
    backend += "backends: ['FLASH_ATTN'].\n"
    ready = "(APIServer pid=1) INFO:     Application startup complete.\n"
    text = BANNER.format("0.10.1.dev2024053000") + VLLM + backend + ready
    assert _names(read(text)) == [("vllm", "0.24.0", "ready")]


def test_a_path_of_another_engine_in_a_traceback_is_no_engine(read: Read) -> None:
    frame = (
        "(EngineCore pid=7) RuntimeError: [TensorRT-LLM][ERROR] Assertion failed: Failed to initialize cutlass TMA WS "
        "grouped gemm (/flashinfer/csrc/nv_internal/tensorrt_llm/kernels/cutlass_kernels/launchers/x.inl:495)\n"
    )
    (boot,) = read(VLLM + frame)
    assert boot.engine.name == "vllm"


@pytest.mark.parametrize("prefix", ["", "[1,5]<stderr>:", " 0: ", "2026-09-30T10:00:00.000000000Z "])
@pytest.mark.parametrize("rank", ["", "[3]"])
def test_the_same_line_in_every_wrapper(read: Read, prefix: str, rank: str) -> None:
    text = "".join(prefix + line for line in (BANNER.format("0.19.0"), *[UNFUSED.format(rank)] * 4))
    (boot,) = read(text)
    assert (boot.engine.name, boot.engine.version) == ("trtllm", "0.19.0")
    assert [f.value for f in boot.facts if f.name == "attention.unfused"] == ["128"] * 4


def test_workers_repeat_the_banner_within_one_start(read: Read) -> None:
    start = "[12/20/2025-04:20:04] [TRT-LLM] [I] Using LLM with PyTorch backend\n"
    filler = "[12/20/2025-04:20:06] [TRT-LLM] [I] Set nccl_plugin to None.\n" * 30
    text = (
        BANNER.format("1.0.0")
        + start
        + filler
        + BANNER.format("1.0.0") * 2
        + "INFO:     Application startup complete.\n"
    )
    assert _names(read(text)) == [("trtllm", "1.0.0", "ready")]


def test_a_start_after_a_failed_one_is_a_boot_of_its_own(read: Read) -> None:
    failed = "[06/10/2025-02:50:21] [TRT-LLM] [E] Failed to initialize executor on rank 0: out of memory\n"
    text = BANNER.format("1.0.0") + failed + BANNER.format("1.0.0") + "INFO:     Application startup complete.\n"
    assert _names(read(text)) == [("trtllm", "1.0.0", "failed"), ("trtllm", "1.0.0", "ready")]


def test_an_engine_build_is_ready_when_the_engine_is_built(read: Read) -> None:
    built = "[08/27/2025-08:22:31] [TRT-LLM] [I] Total time of building all engines: 00:00:11\n"
    network = "[08/27/2025-08:22:30] [TRT-LLM] [I] Total time of building Unnamed Network 0: 00:00:08\n"
    assert _names(read(BANNER.format("0.20.0") + network)) == [("trtllm", "0.20.0", "incomplete")]
    assert _names(read(BANNER.format("0.20.0") + network + built)) == [("trtllm", "0.20.0", "ready")]


def test_triton_around_tensorrt_llm(read: Read) -> None:
    loaded = 'I0313 11:47:32.819346 182447 libtensorrtllm.cc:55] "TRITONBACKEND_Initialize: tensorrtllm"\n'
    ready = 'I0313 11:48:32.819346 182447 http_server.cc:4755] "Started HTTPService at 0.0.0.0:8000"\n'
    assert _names(read(loaded + ready)) == [("trtllm", None, "ready")]
    assert read('I0313 11:48:32.819346 1 model_lifecycle.cc:473] "loading: preprocessing:1"\n') == ()


def test_a_client_that_prints_its_arguments_is_no_server(read: Read) -> None:
    client = "server_args=ServerArgs(model_path='other/model', quantization='fp8')\n"
    assert read(client) == ()
    (boot,) = read(ARGS + READY + client)
    assert (boot.model, boot.status) == ("org/model", "ready")


def test_sglang_without_a_version_is_dated_by_its_words(read: Read) -> None:
    lines = {
        "[2026-09-30 14:27:52 TP0] Attention backend not set. Use flashinfer backend by default.\n": (
            ">=0.4.5",
            "<=0.4.9.post6",
        ),
        "[2026-09-30 14:27:52 TP0] Using KV cache dtype: torch.float8_e4m3fn\n": (">=0.5.3", "<=0.5.12.post1"),
        "[2026-09-30 14:27:52 TP0] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1, KV size: 0.16 GB\n": (
            ">=0.5.13",
            "<=0.5.18",
        ),
    }
    for line, (first, last) in lines.items():
        (boot,) = read(ARGS + line + READY)
        assert (boot.engine.version, boot.engine.authority) == (None, "derived")
        assert boot.engine.range == f"{first},{last}"


def test_the_container_names_the_version(read: Read) -> None:
    (boot,) = read("SGLang Version 0.5.11+05fb6a52\n" + "\n" * 20 + ARGS + READY)
    assert (boot.engine.version, boot.engine.kind) == ("0.5.11+05fb6a52", "vendor")


def test_arguments_as_a_dictionary_are_those_that_were_resolved(read: Read) -> None:
    text = "[2026-09-30 14:27:37] server_args={'model_path': 'org/model', 'attention_backend': 'fa3'}\n"
    (boot,) = read(text)
    assert boot.model == "org/model"
    assert [(f.name, f.value, f.means) for f in boot.facts if f.name == "attention.backend"] == [
        ("attention.backend", "fa3", "selected")
    ]


def test_a_crash_loop_of_sglang(read: Read) -> None:
    assert [s for _, _, s in _names(read(ARGS + DIED + ARGS + READY))] == ["failed", "ready"]


def test_a_restart_of_sglang_without_a_word_of_the_failure(read: Read) -> None:
    assert [s for _, _, s in _names(read(ARGS + ARGS + READY))] == ["incomplete", "ready"]


def test_the_nodes_of_one_sglang_start_are_one_boot(read: Read) -> None:
    nodes = [ARGS.replace("kv_cache", f"node_rank={n}, kv_cache") for n in (0, 1)]
    assert [s for _, _, s in _names(read("".join(nodes) + READY))] == ["ready"]
    assert [s for _, _, s in _names(read("".join(nodes * 2) + READY))] == ["incomplete", "ready"]
