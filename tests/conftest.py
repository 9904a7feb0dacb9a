"""Boot logs made line by line, in the framing of their release, and judged in one call."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

Line = tuple[str, str, str]  # level, file, text
READY = "(APIServer pid=1) INFO:     Application startup complete."


@pytest.fixture(autouse=True, scope="session")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Compiled packs and tables go to a directory of the test run's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


def render(
    version: str,
    lines: Sequence[Line] = (),
    *,
    quantization: str = "None",
    args: Mapping[str, str] | None = None,
    kv: str = "auto",
    end: str = "ready",
    api_pid: int = 1,
    core_pid: int = 123,
) -> str:
    """A vLLM ≥ 0.11 boot: arguments, engine line, `lines`, and its end: `ready`, `failed` or `cut`."""
    core = f"(EngineCore_DP0 pid={core_pid}) " if _minor(version) < 18 else f"(EngineCore pid={core_pid}) "
    api = f"(APIServer pid={api_pid}) "
    given = {"model": "org/model", **(args or {})}
    out = [
        f"{api}INFO 07-14 10:00:00 [utils.py:253] non-default args: {given!r}",
        f"{core}INFO 07-14 10:00:01 [core.py:105] Initializing a V1 LLM engine (v{version}) with config: "
        f"model='org/model', speculative_config=None, dtype=torch.bfloat16, max_seq_len=2048, tensor_parallel_size=1, "
        f"quantization={quantization}, enforce_eager=True, kv_cache_dtype={kv}, device_config=cuda",
    ]
    out += [f"{core}{level} 07-14 10:00:02 [{file}:34] {text}" for level, file, text in lines]
    if end == "ready":
        took = "(profile, create kv cache, warmup model) took 2.41 s"
        out += [
            f"{core}INFO 07-14 10:00:09 [core.py:402] init engine {took}",
            f"{api}INFO:     Application startup complete.",
        ]
    elif end == "failed":
        out.append(f"{core}ERROR 07-14 10:00:03 [core.py:900] EngineCore failed to start.")
    return "\n".join(out) + "\n"


def _minor(version: str) -> int:
    return int(version.split(".")[1])


@pytest.fixture
def judged(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """`judged(log_text, config, gpu=…)`: the document's only boot."""

    def run(text: str | bytes, config: Mapping[str, Any] | None = None, **given: Any) -> dict[str, Any]:
        from logscan.desk import triage

        log = tmp_path / "boot.log"
        log.write_bytes(text.encode() if isinstance(text, str) else text)
        if config is not None:
            (tmp_path / "config.json").write_text(json.dumps(config))
            given["ckpt"] = str(tmp_path / "config.json")
        document = triage(log, **given)
        (boot,) = document["logs"][0]["boots"]
        return dict(boot)

    return run


@pytest.fixture
def boot_text() -> Callable[..., str]:
    """`render`, for tests that want the text of a log."""
    return render


def row(boot: Mapping[str, Any], path: str = "linear") -> dict[str, Any]:
    """The boot's only row of a path."""
    (found,) = [r for r in boot["paths"] if r["path"] == path]
    return dict(found)


@pytest.fixture
def row_of() -> Callable[..., dict[str, Any]]:
    return row
