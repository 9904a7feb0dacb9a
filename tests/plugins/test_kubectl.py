"""`kubectl vllm-triage` against a stub of kubectl that answers from files and keeps what it was asked."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugins" / "kubectl-vllm_triage"
FIXTURE = ROOT / "fixtures" / "vllm-0.24.0-a100-fp8-dynamic"

STUB = """#!{python}
import json, os, sys, time
home = {home!r}
words = sys.argv[1:]
with open(home + "/asked", "a") as asked:
    asked.write(json.dumps(words) + "\\n")
verb = [w for w in words if w in ("get", "logs", "exec")][0]
def fail(text):
    sys.stderr.write(text + "\\n")
    sys.exit(1)
if verb == "get":
    kind, rest = words[words.index("get") + 1], words[words.index("get") + 2:]
    name = "pods.json" if "-l" in rest else kind + "-" + rest[0] + ".json"
    try:
        sys.stdout.write(open(home + "/" + name).read())
    except OSError:
        fail('Error from server (NotFound): ' + kind + ' "' + rest[0] + '" not found')
elif verb == "logs":
    pod = words[words.index("-n") + 2]
    try:
        data = open(home + "/" + pod + ".log", "rb").read()
    except OSError:
        fail("Error from server (BadRequest): container is waiting to start: ContainerCreating")
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
    if "--follow" in words:
        time.sleep(60)
else:
    script = words[words.index("--") + 1:]
    path = home + "/pod" + script[4] + "/" + script[6]
    if not os.path.exists(path):
        fail("cat: no such file")
    sys.stdout.write(open(path).read())
"""


def pod(name: str = "llm-0", **changes: Any) -> dict[str, Any]:
    container = {
        "name": "engine",
        "image": "vllm/vllm-openai:v0.24.0",
        "args": ["--model", "/models/llama", "--port", "8000"],
        "env": [],
        **changes,
    }
    sidecar = {"name": "proxy", "image": "envoyproxy/envoy:v1.30"}
    return {
        "metadata": {"name": name, "namespace": "serving"},
        "spec": {"nodeName": "gpu-1", "containers": [sidecar, container]},
    }


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    """A folder with the stub's answers: pod `llm-0` on node `gpu-1` (an A100), its log, and its checkpoint."""
    bin = tmp_path / "bin"
    bin.mkdir()
    scripts = {
        "kubectl": STUB.format(python=sys.executable, home=str(tmp_path)),
        "logscan": f'#!/bin/sh\nexec {sys.executable} -m logscan "$@"\n',
    }
    for name, text in scripts.items():
        (bin / name).write_text(text)
        (bin / name).chmod(0o755)
    node = {"metadata": {"name": "gpu-1", "labels": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}}}
    (tmp_path / "node-gpu-1.json").write_text(json.dumps(node))
    (tmp_path / "pod-llm-0.json").write_text(json.dumps(pod()))
    (tmp_path / "llm-0.log").write_bytes((FIXTURE / "boot.log").read_bytes())
    folder = tmp_path / "pod" / "models" / "llama"
    folder.mkdir(parents=True)
    (folder / "config.json").write_bytes((FIXTURE / "config.json").read_bytes())
    return tmp_path


@pytest.fixture
def run(cluster: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def call(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PATH": f"{cluster / 'bin'}:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT),
            "COLUMNS": "80",
        }
        command = [sys.executable, str(PLUGIN), *arguments]
        return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=cluster, timeout=timeout)

    return call


def asked(cluster: Path) -> list[list[str]]:
    return [json.loads(line) for line in (cluster / "asked").read_text().splitlines()]


def given(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)["given"]
    return found


def test_it_is_a_plugin_that_kubectl_finds() -> None:
    assert PLUGIN.name == "kubectl-vllm_triage"  # found as `kubectl vllm-triage`
    assert PLUGIN.stat().st_mode & stat.S_IXUSR
    assert PLUGIN.read_text().startswith("#!/usr/bin/env python3\n")


def test_gpu_from_the_node_and_checkpoint_from_the_pod(run: Any, cluster: Path) -> None:
    result = run("llm-0", "-n", "serving", "--exec", "--", "--format", "json")
    assert (result.returncode, result.stderr) == (1, "")
    doc = json.loads(result.stdout)
    assert doc["given"]["gpu"] == "NVIDIA-A100-SXM4-80GB"
    (row,) = [row for row in doc["logs"][0]["boots"][0]["paths"] if row["path"] == "linear"]
    assert (row["verdict"], row["kinds"]) == ("downgraded", ["weight-only"])
    words = asked(cluster)
    assert words[0] == ["get", "pod", "llm-0", "-n", "serving", "-o", "json"]
    assert words[-1] == ["logs", "-n", "serving", "llm-0", "-c", "engine"]


def test_the_pod_is_not_entered_unasked(run: Any, cluster: Path) -> None:
    result = run("pod/llm-0", "--", "--format", "json")
    assert result.returncode == 0
    assert given(result)["ckpt"] is None
    assert "/models/llama is not readable here; --exec reads its config in the pod" in result.stderr
    assert not any("exec" in words for words in asked(cluster))


def test_a_checkpoint_that_is_mounted_here_too(run: Any, cluster: Path) -> None:
    path = str(cluster / "pod" / "models" / "llama")
    (cluster / "pod-llm-0.json").write_text(json.dumps(pod(args=[f"--model={path}"])))
    result = run("llm-0", "--", "--format", "json")
    assert (result.returncode, given(result)["ckpt"], result.stderr) == (1, path, "")


def test_what_is_given_wins(run: Any, cluster: Path) -> None:
    result = run("llm-0", "--gpu", "H100", "--ckpt", str(FIXTURE / "config.json"), "--", "--format", "json")
    assert (given(result)["gpu"], given(result)["ckpt"]) == ("H100", str(FIXTURE / "config.json"))
    assert not any("node" in words for words in asked(cluster))


@pytest.mark.parametrize(
    ("command", "args", "env", "path"),
    [
        (["vllm"], ["serve", "/models/llama", "--port", "1"], [], "/models/llama"),
        (["sh", "-c"], ["exec vllm serve '/models/llama' --port 1"], [], "/models/llama"),
        (["python3", "-m", "sglang.launch_server"], ["--model-path=/models/llama"], [], "/models/llama"),
        ([], ["--model", "$(MODEL_DIR)/llama"], [{"name": "MODEL_DIR", "value": "/models"}], "/models/llama"),
        (["bash", "-c"], ['vllm serve "${M}"'], [{"name": "M", "value": "/models/llama"}], "/models/llama"),
        ([], ["--model", "$(M)"], [{"name": "M", "valueFrom": {"configMapKeyRef": {}}}], None),
        (["vllm"], ["serve", "--port", "1"], [], None),
        ([], [], [], None),
    ],
)
def test_where_the_arguments_name_the_checkpoint(
    run: Any, cluster: Path, command: list[str], args: list[str], env: list[Any], path: str | None
) -> None:
    (cluster / "pod-llm-0.json").write_text(json.dumps(pod(command=command, args=args, env=env)))
    result = run("llm-0", "--exec", "--", "--format", "json", "--fail-on", "never")
    assert (given(result)["ckpt"] is not None) is (path is not None)
    executed = [words[words.index("sh", words.index("sh") + 1) + 1] for words in asked(cluster) if "exec" in words]
    assert set(executed) == ({path} if path else set())
    assert ("its arguments name no checkpoint" in result.stderr) is (path is None)


def test_a_model_of_the_hub_is_looked_for_in_the_pod_s_cache(tmp_path: Path) -> None:
    """The script that runs in the pod, run here."""
    namespace: dict[str, Any] = {"__name__": "plugin"}
    exec(compile(PLUGIN.read_text(), str(PLUGIN), "exec"), namespace)
    snapshot = tmp_path / "hub" / "models--org--model" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    for model, directory in (("org/model", "org--model"), (str(snapshot), "x")):
        command = ["sh", "-c", namespace["READ_CONFIG"], "sh", model, directory, "config.json"]
        done = subprocess.run(
            command, capture_output=True, text=True, env={"HF_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        )
        assert (done.returncode, done.stdout) == (0, "{}")
    command = ["sh", "-c", namespace["READ_CONFIG"], "sh", "org/other", "org--other", "config.json"]
    assert (
        subprocess.run(command, capture_output=True, env={"HF_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}).returncode
        != 0
    )


def test_engine_variables_are_passed_on_and_secrets_are_not(run: Any, cluster: Path) -> None:
    env = [
        {"name": "VLLM_USE_DEEP_GEMM", "value": "0"},
        {"name": "VLLM_API_KEY", "value": "s3cret-s3cret"},
        {"name": "HF_TOKEN", "value": "hf_aaaaaaaaaaaaaaaaaaaaaaaa"},
        {"name": "VLLM_ATTENTION_BACKEND", "valueFrom": {"configMapKeyRef": {}}},
        {"name": "PATH", "value": "/bin"},
    ]
    (cluster / "pod-llm-0.json").write_text(json.dumps(pod(env=env)))
    result = run("llm-0", "--", "--format", "json")
    assert given(result)["env"] == {"VLLM_USE_DEEP_GEMM": "0"}
    assert "s3cret" not in result.stdout + result.stderr


class TestGpu:
    def node(self, cluster: Path, labels: dict[str, str]) -> None:
        (cluster / "node-gpu-1.json").write_text(json.dumps({"metadata": {"labels": labels}}))

    @pytest.mark.parametrize(
        ("labels", "gpu"),
        [
            ({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED"}, "NVIDIA-A100-SXM4-80GB"),
            ({"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"}, "NVIDIA-H100-80GB-HBM3"),
            ({"cloud.google.com/gke-accelerator": "nvidia-l4"}, "nvidia-l4"),
            ({"karpenter.k8s.aws/instance-gpu-name": "h100"}, "h100"),
        ],
    )
    def test_labels(self, run: Any, cluster: Path, labels: dict[str, str], gpu: str) -> None:
        self.node(cluster, labels)
        assert given(run("llm-0", "--", "--format", "json"))["gpu"] == gpu

    def test_a_node_without_labels(self, run: Any, cluster: Path) -> None:
        self.node(cluster, {})
        result = run("llm-0", "--", "--format", "json")
        assert given(result)["gpu"] is None and "has no label nvidia.com/gpu.product" in result.stderr

    def test_a_node_that_may_not_be_read(self, run: Any, cluster: Path) -> None:
        (cluster / "node-gpu-1.json").unlink()
        result = run("llm-0", "--", "--format", "json")
        assert given(result)["gpu"] is None and "the GPU is unknown: Error from server" in result.stderr


class TestSeveral:
    @pytest.fixture(autouse=True)
    def _pods(self, cluster: Path) -> None:
        pods = [pod("llm-1"), pod("llm-0")]
        (cluster / "pods.json").write_text(json.dumps({"items": pods}))
        (cluster / "llm-1.log").write_text("nothing to see\n")

    def test_each_pod_of_a_selector(self, run: Any, cluster: Path) -> None:
        result = run("-l", "app=llm", "--exec", "--", "--format", "json", "--quiet")
        assert result.returncode == 1  # findings outweigh a log in which nothing is recognised
        decoder, text, documents = json.JSONDecoder(), result.stdout, []
        while text.strip():
            doc, end = decoder.raw_decode(text.lstrip())
            documents.append(doc)
            text = text.lstrip()[end:]
        assert [doc["verdict"] for doc in documents] == ["downgraded", None]
        assert "serving/llm-0 · container engine · node gpu-1 · GPU NVIDIA-A100-SXM4-80GB" in result.stderr

    def test_trouble_with_one_does_not_stop_the_others(self, run: Any, cluster: Path) -> None:
        (cluster / "llm-0.log").unlink()
        result = run("-l", "app=llm")
        assert result.returncode == 2
        assert "llm-0: Error from server (BadRequest): container is waiting" in result.stderr
        assert "NOTHING RECOGNISED" in result.stdout

    def test_no_pod(self, run: Any, cluster: Path) -> None:
        (cluster / "pods.json").write_text('{"items": []}')
        result = run("-l", "app=none")
        assert (result.returncode, result.stderr) == (2, "kubectl vllm-triage: no pod has the labels app=none\n")


def test_containers(run: Any, cluster: Path) -> None:
    run("llm-0", "-c", "proxy", "--previous", "--context", "prod", "--", "--quiet")
    assert asked(cluster)[-1] == ["--context", "prod", "logs", "-n", "serving", "llm-0", "-c", "proxy", "--previous"]
    result = run("llm-0", "-c", "sidecar")
    assert (result.returncode, result.stderr) == (
        2,
        "kubectl vllm-triage: pod llm-0 has no container sidecar; it has proxy, engine\n",
    )


def test_following_ends_when_the_engine_is_ready(run: Any) -> None:
    result = run("llm-0", "--follow", "--", "--until", "ready", "--timeout", "30", timeout=30)
    assert result.returncode == 0 and "ready" in result.stdout


@pytest.mark.parametrize("arguments", [(), ("llm-0", "-l", "app=llm"), ("llm-0", "--nonsense")])
def test_usage(run: Any, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.returncode == 2 and "Traceback" not in result.stderr


def test_a_missing_pod(run: Any) -> None:
    result = run("none")
    assert (result.returncode, result.stderr) == (
        2,
        'kubectl vllm-triage: Error from server (NotFound): pod "none" not found\n',
    )


def test_a_missing_tool(run: Any) -> None:
    result = run("llm-0", "--logscan", "no-such-logscan")
    assert result.returncode == 2 and "no-such-logscan is not on PATH" in result.stderr


def test_help(run: Any) -> None:
    shown = run("--help").stdout
    assert shown.startswith("usage: kubectl vllm-triage")
    assert "kubectl vllm-triage -l app=llm -n serving" in shown and "exit codes: those of logscan" in shown
