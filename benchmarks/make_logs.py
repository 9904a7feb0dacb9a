"""Synthetic logs of any size for the benchmarks: a boot, then requests, as a server that runs for days prints them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

_BOOT = """\
(APIServer pid=1) INFO 08-02 09:00:00 [api_utils.py:339] non-default args: {'model': 'org/model', 'quantization': 'fp8'}
(APIServer pid=1) INFO 08-02 09:00:05 [model.py:617] Resolved architecture: LlamaForCausalLM
(EngineCore pid=101) INFO 08-02 09:00:20 [core.py:113] Initializing a V1 LLM engine (v0.24.0) with config: \
model='org/model', dtype=torch.bfloat16, quantization=fp8, kv_cache_dtype=auto, device_config=cuda
(EngineCore pid=101) INFO 08-02 09:00:24 [__init__.py:210] Selected CutlassFP8ScaledMMLinearKernel for Fp8LinearMethod
(EngineCore pid=101) INFO 08-02 09:00:25 [cuda.py:418] Using FLASH_ATTN attention backend out of potential backends
(EngineCore pid=101) INFO 08-02 09:01:02 [gpu_model_runner.py:4820] Model loading took 15.3 GiB memory and 36.1 seconds
(EngineCore pid=101) INFO 08-02 09:01:30 [core.py:282] init engine (profile, create kv cache, warmup model) took 27.1 s
(APIServer pid=1) INFO 08-02 09:01:31 [launcher.py:38] Available routes are:
(APIServer pid=1) INFO:     Application startup complete.
"""
_FILLER = (
    "(EngineCore pid=101) INFO 08-02 09:00:{:02d} [weight_utils.py:801] Prefetching checkpoint files: {}% ({}/100)\n"
)
_ACCESS = '(APIServer pid=1) INFO:     10.0.{}.{}:{} - "POST /v1/{} HTTP/1.1" {} {}\n'
_STATS = (
    "(APIServer pid=1) INFO 08-02 {:02d}:{:02d}:{:02d} [loggers.py:259] Engine 000: Avg prompt throughput: {:.1f} "
    "tokens/s, Avg generation throughput: {:.1f} tokens/s, Running: {} reqs, GPU KV cache usage: {:.1f}%\n"
)


def boot(lines: int = 9) -> bytes:
    """A boot of at least nine lines, padded with loading progress."""
    head, *tail = _BOOT.splitlines(keepends=True)
    filler = [_FILLER.format(i % 60, i * 100 // max(lines, 1), i % 100) for i in range(lines - len(tail) - 1)]
    return "".join([head, *tail[:5], *filler, *tail[5:]]).encode()


def requests(rng: random.Random, count: int) -> bytes:
    """Access lines, and every ten of them one of statistics."""
    lines = []
    for i in range(count):
        if i % 10:
            path, status, text = rng.choice(
                [("chat/completions", 200, "OK"), ("completions", 200, "OK"), ("models", 404, "Not Found")]
            )
            lines.append(
                _ACCESS.format(rng.randrange(256), rng.randrange(256), rng.randrange(1 << 16), path, status, text)
            )
        else:
            lines.append(
                _STATS.format(
                    i // 3600 % 24,
                    i // 60 % 60,
                    i % 60,
                    rng.random() * 9e3,
                    rng.random() * 9e2,
                    rng.randrange(64),
                    rng.random() * 99,
                )
            )
    return "".join(lines).encode()


def chunks(size: int, seed: int = 7) -> Iterator[bytes]:
    """A log of `size` bytes: a boot, requests, a restart in the middle, requests."""
    rng = random.Random(seed)
    filling = requests(rng, 40_000)
    written = boots = 0
    while written < size:
        part = filling
        if written >= boots * size // 2:
            part, boots = boot() + filling, boots + 1
        yield part
        written += len(part)


def write(path: Path, size: int) -> Path:
    """The log as a file; kept when it is there."""
    if not path.exists() or path.stat().st_size < size:
        with path.open("wb") as out:
            for part in chunks(size):
                out.write(part)
    return path
