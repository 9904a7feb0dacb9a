"""Small fleets: pods of one deployment and odd ones among them; and a browser to look at their page with."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

CONFIG = Path(__file__).parents[2] / "fixtures" / "vllm-0.24.0-a100-fp8-dynamic" / "config.json"
CUTLASS = ("INFO", "__init__.py", "Selected CutlassFP8ScaledMMLinearKernel for CompressedTensorsW8A8Fp8")
FLASHINFER = ("INFO", "__init__.py", "Selected FlashInferFP8ScaledMMLinearKernel for CompressedTensorsW8A8Fp8")
MARLIN = (
    "WARNING",
    "marlin_utils_fp8.py",
    "Your GPU does not have native support for FP8 computation but FP8 quantization is being used. Weight-only FP8 "
    "compression will be used leveraging the Marlin kernel. This may degrade performance for compute-heavy workloads.",
)


class Fleet:
    """A directory of logs, the checkpoint of all of them, and what was given for them."""

    def __init__(self, root: Path, render: Callable[..., str]) -> None:
        self.root, self.logs, self.ckpt = root, root / "logs", root / "models" / "org" / "model"
        self.logs.mkdir()
        self.ckpt.mkdir(parents=True)
        (self.ckpt / "config.json").write_bytes(CONFIG.read_bytes())
        self.inputs = root / "inputs.csv"
        self._render = render

    cutlass = (CUTLASS,)
    marlin = (MARLIN,)
    flashinfer = (FLASHINFER,)

    def text(self, lines: Sequence[Any] = (CUTLASS,), version: str = "0.24.0", **options: Any) -> str:
        """A boot of vLLM that serves the checkpoint."""
        return self._render(version, lines, quantization="compressed-tensors", **options)

    def add(self, name: str, lines: Sequence[Any] = (CUTLASS,), version: str = "0.24.0", **options: Any) -> Path:
        """A boot log of vLLM that serves the checkpoint."""
        log = self.logs / name
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(self.text(lines, version, **options))
        return log

    def give(self, *rows: str) -> Path:
        """The rules: those of `rows`, then an H100 for all."""
        header = "glob,ckpt,gpu,cuda,engine,env"
        self.inputs.write_text("\n".join([header, *rows, f"*,{self.ckpt},H100,12.8,,"]) + "\n")
        return self.inputs

    def mixed(self) -> dict[str, str]:
        """Six pods that are right, and one of each kind that is not; name → what it is."""
        for i in range(6):
            self.add(f"node-{i}/llm-{i}.log", core_pid=100 + i)
        self.add("node-7/slow.log", [MARLIN])
        self.add("node-7/other.log", [FLASHINFER])
        self.add("node-8/failed.log", end="failed")
        self.add("node-8/cut.log", end="cut")
        (self.logs / "node-8" / "weights.log").write_bytes(bytes(range(256)) * 20)
        (self.logs / "node-9.log").write_text("nginx started\n")
        self.give(f"*/slow.log,{self.ckpt},A100,12.8,,")
        return {"slow": "downgraded", "other": "outlier", "failed": "failed", "cut": "incomplete", "weights": "error"}


@pytest.fixture
def fleet(tmp_path: Path, boot_text: Callable[..., str]) -> Fleet:
    return Fleet(tmp_path, boot_text)


@pytest.fixture
def audit(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """`audit(*arguments)`: exit code, stdout, stderr of the command."""
    from logscan.cli.commands import app

    def run(*arguments: Any) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            app(["audit", *map(str, arguments)], prog_name="logscan")
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return run


class Browser:
    """A headless Chromium, spoken to over a pipe: no driver, no port."""

    def __init__(self, program: str, profile: str) -> None:
        # DevTools reads descriptor 3 and writes 4; ours must be neither while the shell moves them there.
        pipes = os.pipe(), os.pipe()
        read, write = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (pipes[0][0], pipes[1][1]))
        self._in, self._out = pipes[0][1], pipes[1][0]
        for fd in (pipes[0][0], pipes[1][1]):
            os.close(fd)
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--no-first-run",
            "--disable-dev-shm-usage",
        ]
        command = [program, *flags, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        shell = f'exec "$@" 3<&{read} 4>&{write}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "chromium", *command], pass_fds=(read, write), stderr=subprocess.DEVNULL
        )
        os.close(read)
        os.close(write)
        self._left = b""
        self._number = 0
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._loaded = 0
        self._session: str | None = None
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of one command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            block = os.read(self._out, 1 << 20)
            assert block, "the browser is gone"
            self._left += block
        line, _, self._left = self._left.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, params: Mapping[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded += 1
        elif method == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(str(params["args"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.errors.append(f"dialog: {params['message']}")

    def open(self, page: Path, width: int = 1440, height: int = 1000, dark: bool = False) -> None:
        """Show a file, and wait until it has drawn itself."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 700
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        loaded = self._loaded
        self.send("Page.navigate", url=page.as_uri())
        while self._loaded == loaded:
            self._receive()

    def run(self, script: str) -> Any:
        """The value of an expression; a promise is waited for."""
        result = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """One key, as a keyboard sends it."""
        text = {"Enter": "\r", "Tab": ""}.get(key, key)
        codes = {"Enter": 13, "Tab": 9, "/": 191}
        common = {"key": key, "windowsVirtualKeyCode": codes.get(key, ord(key[0].upper()))}
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def close(self) -> None:
        self._session = None
        os.write(self._in, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
        self._process.wait(timeout=20)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
    if program is None:
        pytest.skip("no Chromium is installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        opened = Browser(program, profile)
        yield opened
        opened.close()
