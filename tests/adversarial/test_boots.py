"""Text that somebody else wrote starts no boot, selects no kernel and makes nothing ready."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped, unused-ignore]

import logscan

Doc = dict[str, Any]
Line = tuple[str, str, str]
Render = Callable[..., str]
Triaged = Callable[..., Doc]
MARLIN: Line = (
    "WARNING",
    "marlin_utils_fp8.py",
    "Your GPU does not have native support for FP8 computation but FP8 quantization is being used. Weight-only FP8 "
    "compression will be used leveraging the Marlin kernel. This may degrade performance for compute-heavy workloads.",
)
BLOCK = "TritonFp8BlockScaledMMKernel"
STARTED = "INFO:     Application startup complete.\n"


def fp8(block: bool = False) -> Doc:
    quant: Doc = {"quant_method": "fp8", "activation_scheme": "dynamic"}
    quant |= {"weight_block_size": [128, 128]} if block else {}
    model = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16"}
    return {**model, "quantization_config": quant}


def selected(kernel: str, file: str = "__init__.py") -> Line:
    return "INFO", file, f"Selected {kernel} for Fp8LinearMethod"


@pytest.fixture
def triaged(tmp_path: Path) -> Triaged:
    def run(text: str, config: Doc | None = None, **given: Any) -> Doc:
        (tmp_path / "boot.log").write_text(text, newline="")
        if config is not None:
            (tmp_path / "config.json").write_text(json.dumps(config))
            given["ckpt"] = str(tmp_path / "config.json")
        return dict(logscan.triage(tmp_path / "boot.log", **given))

    return run


def boots(document: Doc) -> list[Doc]:
    return list(document["logs"][0]["boots"])


def values(document: Doc, name: str) -> list[str]:
    return [f["value"] for boot in boots(document) for f in boot["facts"] if f["name"] == name]


# ---------------------------------------------------------------- prompts and chat templates in a message


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
def test_a_prompt_in_an_error_message_starts_no_boot(triaged: Triaged, boot_text: Render, newline: str) -> None:
    text = boot_text("0.30.0", [MARLIN, selected("MarlinFP8ScaledMMLinearKernel")], quantization="fp8")
    head = "(APIServer pid=1) ERROR 07-14 11:00:00 [api_router.py:75] "
    said = [
        "Error in create_messages: unexpected token in grammar:",
        "Initializing a V1 LLM engine (v0.30.0) with config: model='org/model', quantization=fp8, kv_cache_dtype=auto",
        f"Selected {BLOCK} for Fp8LinearMethod",
        "Starting vLLM server on http://0.0.0.0:8000",
    ]
    document = triaged(text + newline.join(head + s for s in said) + "\n", fp8(block=True), gpu="L40S")
    assert (document["verdict"], document["status"], document["worst"]) == ("downgraded", "ready", "high")
    assert len(boots(document)) == 1


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
@pytest.mark.parametrize("end", ["ready", "cut"])
def test_a_chat_template_selects_no_kernel(triaged: Triaged, boot_text: Render, newline: str, end: str) -> None:
    lines = boot_text("0.30.0", quantization="fp8", end=end).split("\n")
    head = "(APIServer pid=1) INFO 07-14 10:00:05 [api_server.py:820] "
    said = [
        "Using supplied chat template:",
        f"Selected {BLOCK} for Fp8LinearMethod",
        "Starting vLLM server on http://0.0.0.0:8000",
        "{% endfor %}",
    ]
    lines[2:2] = [newline.join(head + s for s in said)]
    document = triaged("\n".join(lines), fp8(block=True))
    assert (document["verdict"], document["status"]) == ("unproven", "ready" if end == "ready" else "incomplete")
    assert values(document, "linear.kernel") == []


@pytest.mark.parametrize(
    ("level", "file", "count"),
    [("INFO", "core.py", 2), ("INFO", "v1/.../core.py", 2), ("ERROR", "core.py", 1), ("INFO", "serving_chat.py", 1)],
)
def test_a_boot_starts_with_the_file_and_the_level_that_print_its_line(
    triaged: Triaged, boot_text: Render, level: str, file: str, count: int
) -> None:
    line = "Initializing a V1 LLM engine (v0.30.0) with config: model='org/model', quantization=None"
    text = boot_text("0.30.0") + f"(EngineCore pid=9) {level} 07-14 11:00:00 [{file}:105] {line}\n"
    assert len(boots(triaged(text))) == count


@pytest.mark.parametrize(
    ("version", "file", "process", "believed"),
    [
        ("0.30.0", "__init__.py", "EngineCore", True),
        ("0.30.0", "_logger.py", "EngineCore", True),
        ("0.30.0", "tpu_platform.py", "EngineCore", True),
        ("0.30.0", "elsewhere.py", "EngineCore", False),
        ("0.30.1.dev5", "elsewhere.py", "EngineCore", True),
        ("0.30.0+fork", "elsewhere.py", "EngineCore", True),
        ("0.30.1.dev5", "elsewhere.py", "APIServer", False),
        ("0.30.1.dev5", "backend_xgrammar.py", "EngineCore", False),
        ("0.30.1.dev5", "serving_chat.py", "EngineCore", False),
    ],
)
def test_a_kernel_is_chosen_by_a_file_of_its_release(
    triaged: Triaged, boot_text: Render, version: str, file: str, process: str, believed: bool
) -> None:
    text = boot_text(version, [selected(BLOCK, file)]).replace("(EngineCore pid=123) INFO 07-14 10:00:02", "(X)")
    text = text.replace("(X)", f"({process} pid=123) INFO 07-14 10:00:02")
    assert values(triaged(text), "linear.kernel") == [BLOCK] * believed


def test_the_rows_of_a_banner_are_one_message(triaged: Triaged, boot_text: Render) -> None:
    head = "(APIServer pid=1) INFO 07-14 09:59:59 [utils.py:299] "
    rows = ["", "       █     █     █▄   ▄█", " ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.18.0"]
    document = triaged("\r\n".join(head + r for r in rows) + "\n" + boot_text("0.18.0"))
    assert [f["line"] for f in boots(document)[0]["facts"] if f["name"] == "boot.start"] == [3]
    forged = "\r\n".join(head + r for r in ["Using supplied chat template:", *rows[1:]])
    assert values(triaged(boot_text("0.18.0") + forged + "\n"), "boot.start") == []


# ---------------------------------------------------------------- readiness


@pytest.mark.parametrize("version", ["0.31.0", "0.10.0"])
def test_another_service_that_comes_up_does_not_make_the_engine_ready(
    triaged: Triaged, boot_text: Render, version: str
) -> None:
    text = boot_text(version, [selected("CutlassFP8ScaledMMLinearKernel")], quantization="fp8", end="cut")
    document = triaged(text + STARTED, fp8(), gpu="H100")
    assert (document["status"], values(document, "boot.ready")) == ("incomplete", [])
    assert document["verdict"] != "kept"


def test_the_server_s_own_prefix_vouches_for_it(triaged: Triaged, boot_text: Render) -> None:
    text = boot_text("0.30.0", end="cut") + "(APIServer pid=1) " + STARTED
    assert triaged(text)["status"] == "ready"  # a log from which INFO lines were filtered


def test_the_server_is_ready_after_the_engine(triaged: Triaged, boot_text: Render) -> None:
    text = boot_text("0.31.0").replace("(APIServer pid=1) INFO:     App", "INFO:     App")
    assert (triaged(text)["status"], boots(triaged(text))[0]["decided"]) == ("ready", 4)


@pytest.mark.parametrize(
    ("version", "file", "status"),
    [
        ("0.6.4", "core.py", "ready"),  # its core prints no such line
        ("0.6.5", "core.py", "incomplete"),
        ("0.10.0", "llm_engine.py", "ready"),  # V0 prints none for a pooling model
        ("0.1.dev5", "core.py", "ready"),  # nobody knows
    ],
)
def test_only_a_release_that_prints_the_engine_s_last_line_is_held_to_it(
    triaged: Triaged, version: str, file: str, status: str
) -> None:
    text = f"INFO 07-14 10:00:01 [{file}:105] Initializing an LLM engine (v{version}) with config: model='org/model'\n"
    assert triaged(text + STARTED)["status"] == status


# ---------------------------------------------------------------- the document


@pytest.mark.parametrize("key", ["mo\x05del", "Model", "max-model-len", "mod\ufffdl"])
def test_an_argument_of_any_name_makes_a_valid_document(triaged: Triaged, boot_text: Render, key: str) -> None:
    schema = json.loads((Path(logscan.__file__).parent / "schemas" / "triage.json").read_text())
    text = boot_text("0.24.0", quantization="fp8", args={key: "x", "port": "1"}).replace("\\x05", "\x05")
    document = triaged(text, fp8())
    Draft202012Validator(schema).validate(document)
    assert values(document, "request.port") == ["1"]


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
@pytest.mark.parametrize(
    "death", ["EngineCore encountered a fatal error.", "WorkerProc failed", "EngineCore failed to start."]
)
@pytest.mark.parametrize("end", ["ready", "cut"])
def test_a_prompt_in_an_error_message_kills_no_engine(
    triaged: Triaged, boot_text: Render, newline: str, death: str, end: str
) -> None:
    head = "(APIServer pid=1) ERROR 07-14 11:00:00 [api_router.py:75] "
    said = newline.join(head + s for s in ("Error in create_messages: unexpected token in grammar:", death))
    document = triaged(boot_text("0.30.0", end=end) + said + "\n")
    assert document["status"] == ("ready" if end == "ready" else "incomplete")
