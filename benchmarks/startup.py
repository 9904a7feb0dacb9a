"""What a run costs before and beside its work: CPU time as a multiple of `python -c pass`.

    python benchmarks/startup.py [--rounds 20] [--log boot.log --ckpt config.json]

Rounds are interleaved, so that a busy machine slows every command alike: read the ratios, not the seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

BARE_TYPER = """
import typer
app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
@app.command()
def one(name: str = ""): pass
@app.command()
def two(name: str = ""): pass
app(["one"])
"""
# What a console script does; `python -m` would add the cost of runpy.
LOGSCAN = "from logscan.cli.main import main; main()"
LIMIT = 10.0  # a whole triage, as a multiple of `python -c pass`
LINES = 1500


def main() -> int:
    """Print one line a command; exit 1 where a triage costs more than `LIMIT`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--log", type=Path, help="default: a boot of 1,500 lines, rendered here")
    parser.add_argument("--ckpt", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log, ckpt = given.log, given.ckpt
        if log is None:
            log, ckpt = render(Path(folder))
        order = ["--ckpt", str(ckpt)] if ckpt else []
        triage = ["triage", str(log), "--gpu", "A100", *order, "--fail-on", "never"]
        commands = {
            "python -c pass": ["-c", "pass"],
            "bare typer app": ["-c", BARE_TYPER],
            "logscan --version": ["-c", LOGSCAN, "--version"],
            f"logscan triage, {log.read_bytes().count(10)} lines": ["-c", LOGSCAN, *triage],
        }
        return report(measure(commands, given.rounds))


def measure(commands: dict[str, list[str]], rounds: int) -> dict[str, list[float]]:
    """CPU seconds (user and system, children included) of each command in each round, after one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, arguments in commands.items():
            used = cpu_seconds([sys.executable, *arguments])
            if number:
                seconds[name].append(used)
    return seconds


def cpu_seconds(command: Sequence[str]) -> float:
    """CPU time of one run, its output thrown away. Raises SystemExit where the run fails."""
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(command[0], list(command))
    _, status, usage = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"{' '.join(command[:4])} … ended with {os.waitstatus_to_exitcode(status)}")
    return usage.ru_utime + usage.ru_stime


def report(seconds: dict[str, list[float]]) -> int:
    """Print medians and their ratios to the first two commands."""
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    bare, typer = list(medians.values())[:2]
    print(f"{'command':<32} {'CPU ms':>8} {'× pass':>8} {'× typer':>8}")
    for name, value in medians.items():
        print(f"{name:<32} {1000 * value:>8.1f} {value / bare:>8.2f} {value / typer:>8.2f}")
    ratio = list(medians.values())[-1] / bare
    print(f"triage: {ratio:.1f} × python -c pass (at most {LIMIT:g})")
    return int(ratio > LIMIT)


def render(folder: Path) -> tuple[Path, Path]:
    """A vLLM 0.24.0 boot of an FP8 checkpoint on an A100, and requests after it, with the checkpoint's config."""
    core, api = "(EngineCore pid=120) ", "(APIServer pid=1) "
    head = [
        f"{api}INFO 07-14 10:00:00 [utils.py:253] non-default args: {{'model': 'org/model', 'max_model_len': 8192}}",
        f"{core}INFO 07-14 10:00:01 [core.py:105] Initializing a V1 LLM engine (v0.24.0) with config: "
        "model='org/model', speculative_config=None, dtype=torch.bfloat16, max_seq_len=8192, tensor_parallel_size=1, "
        "quantization=compressed-tensors, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda",
        f"{core}WARNING 07-14 10:00:02 [marlin_utils_fp8.py:92] Your GPU does not have native support for FP8 "
        "computation but FP8 quantization is being used. Weight-only FP8 compression will be used leveraging the "
        "Marlin kernel. This may degrade performance for compute-heavy workloads.",
    ]
    load = [
        f"{core}INFO 07-14 10:00:03 [weights.py:{n}] Loading shard {n} of 300 into layer {n % 80}" for n in range(300)
    ]
    ready = [
        f"{core}INFO 07-14 10:00:09 [core.py:402] init engine (profile, create kv cache, warmup model) took 2.41 s",
        f"{api}INFO:     Application startup complete.",
    ]
    count = LINES - len(head) - len(load) - len(ready)
    requests = [
        f'{api}INFO:     10.0.0.{n % 250}:5{n:04d} - "POST /v1/chat/completions HTTP/1.1" 200 OK' for n in range(count)
    ]
    weights = {"num_bits": 8, "type": "float", "strategy": "channel", "dynamic": False, "symmetric": True}
    inputs = {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True, "symmetric": True}
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    quantization = {
        "quant_method": "compressed-tensors",
        "format": "float-quantized",
        "config_groups": {"group_0": group},
        "ignore": ["lm_head"],
    }
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "quantization_config": quantization}
    log, ckpt = folder / "boot.log", folder / "config.json"
    log.write_text("\n".join([*head, *load, *ready, *requests]) + "\n")
    ckpt.write_text(json.dumps(config))
    return log, ckpt


if __name__ == "__main__":
    raise SystemExit(main())
