"""What people and logs call a GPU, a toolkit, a package → a Machine.

Names come from `patterns/knowledge/gpus.toml`. A name is compared word by word, so that marketing names, node labels
(`NVIDIA-A100-SXM4-80GB`) and torch's names (`NVIDIA_H100_80GB_HBM3`) all find their card.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from logscan.model import Authority, InputError, Machine
from logscan.packs import patterns_dir
from logscan.tomlcache import read

PACKAGES = frozenset(
    {"aiter", "b12x", "bitblas", "conch", "deep_gemm", "fbgemm_gpu", "flashinfer", "humming", "quark", "triton_kernels"}
    | {"tokenspeed_mla", "zentorch"}
)
_PACKAGE_ALIASES = {
    "flashinfer-python": "flashinfer", "flashinfer_python": "flashinfer", "deepgemm": "deep_gemm", "deep-gemm":
    "deep_gemm", "humming-kernels": "humming", "humming_kernels": "humming", "amd-quark": "quark",
    "conch-triton-kernels": "conch", "triton-kernels": "triton_kernels", "fbgemm-gpu": "fbgemm_gpu",
}  # fmt: skip
_SM = re.compile(r"(?:sm[_ -]?|cc[_ -]?|compute[_ -]?)?(\d{2,3})[af]?\Z", re.I | re.A)
_CAPABILITY = re.compile(r"(\d{1,2})\.(\d)\Z", re.A)
_GFX = re.compile(r"gfx[0-9a-f]{3,4}", re.I | re.A)
_CUDA = re.compile(r"(?:cuda[ _-]?)?v?(\d{1,2})\.(\d{1,2})(?:\.\d+)*\Z", re.I | re.A)
_CUDA_TAG = re.compile(r"(?:.*\+)?cu(\d{2})(\d{1,2})\Z", re.A)
_WORDS = re.compile(r"[a-z]+|\d+", re.A)
_KNOWN_SM = (60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121)


class Gpu(NamedTuple):
    """What a name stands for. `name` is the row's spelling, empty for a bare capability."""

    platform: str
    sm: int | None = None
    gfx: str | None = None
    name: str = ""


def gpu(text: str) -> Gpu:
    """The GPU behind a name, a capability (`sm_89`, `8.9`, `89`), a gfx target or a platform (`cpu`, `xpu`, `tpu`).

    Raises InputError with the nearest known names.
    """
    found = lookup(text)
    if found is None:
        raise InputError(
            f"unknown GPU {text!r}; nearest known: {', '.join(nearest(text))} (or give sm_89, 8.9, gfx942, cpu)"
        )
    return found


def lookup(text: str) -> Gpu | None:
    """As `gpu`, but None for a name that is not known (a log may hold anything)."""
    text = text.strip()
    if m := _CAPABILITY.match(text):
        return _capability(int(m[1]) * 10 + int(m[2]))
    if m := _SM.match(text):
        return _capability(int(m[1]))
    if m := _GFX.search(text):
        return Gpu("rocm", gfx=m[0].lower())
    words = _words(text)
    best: tuple[int, Gpu] | None = None
    for _, names_words, found in _names():
        if _holds(words, names_words) and (best is None or len("".join(names_words)) > best[0]):
            best = len("".join(names_words)), found
    return best[1] if best else None


def _capability(sm: int) -> Gpu | None:
    return Gpu("cuda", sm=sm) if sm in _KNOWN_SM else None


def nearest(text: str, count: int = 3) -> list[str]:
    """The known names that look most like `text`."""
    import difflib

    spellings = {"".join(words): name for name, words, _ in _names()}
    close = difflib.get_close_matches("".join(_words(text)), spellings, n=count, cutoff=0.3)
    return [spellings[c] for c in close] or ["A100", "H100", "RTX 4090"][:count]


def names() -> list[str]:
    """Every name that is known, of cards and of platforms, in one word each: `RTX-4090` is `RTX 4090`."""
    return [name.replace(" ", "-") for name, _, _ in _names()]


@lru_cache(maxsize=1)
def _names() -> tuple[tuple[str, tuple[str, ...], Gpu], ...]:
    rows: Sequence[Mapping[str, Any]] = read(patterns_dir() / "knowledge" / "gpus.toml")["gpu"]
    out = []
    for row in rows:
        platform = row.get("platform") or ("cuda" if "sm" in row else "rocm")
        out += [(n, _words(n), Gpu(platform, row.get("sm"), row.get("gfx"), n)) for n in row["names"]]
    return tuple(out)


def _words(text: str) -> tuple[str, ...]:
    """`NVIDIA-A100-SXM4-80GB` → nvidia a 100 sxm 4 80 gb: letters and digits apart, so that `4090D` holds `4090`."""
    return tuple(_WORDS.findall(text.lower()))


def _holds(words: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Whether `wanted` stands in `words` as a run: `l 40 s` holds `l 40`, `h 100` does not hold `h 10`."""
    n = len(wanted)
    return any(words[i : i + n] == wanted for i in range(len(words) - n + 1))


def cuda(text: str) -> tuple[int, int]:
    """(major, minor) of `12.4`, `12.4.1`, `cu124`, `0.19.0+cu129`, `CUDA 13.0`. Raises InputError for anything else."""
    text = text.strip()
    if m := _CUDA.match(text) or _CUDA_TAG.match(text):
        return int(m[1]), int(m[2])
    raise InputError(f"not a CUDA version: {text!r} (write it like 12.4 or cu124)")


def packages(have: Collection[str] | str | None) -> dict[str, bool]:
    """`--have a,b`: exactly these optional packages are installed; `none`: none of them; None: unknown.

    Raises InputError for a package that no gate asks about.
    """
    if have is None:
        return {}
    given = [p.strip() for p in (have.split(",") if isinstance(have, str) else have)]
    names = {_PACKAGE_ALIASES.get(p.lower(), p.lower().replace("-", "_")) for p in given if p and p.lower() != "none"}
    unknown = sorted(names - PACKAGES)
    if unknown:
        raise InputError(f"unknown package {unknown[0]!r} in --have; known: {', '.join(sorted(PACKAGES))}, or none")
    return {p: p in names for p in sorted(PACKAGES)}


def machine(
    gpu_name: str | None = None,
    cuda_version: str | None = None,
    env: Mapping[str, str] | None = None,
    have: Collection[str] | str | None = None,
    *,
    platform: str | None = None,
    authority: Authority = "given",
) -> Machine:
    """A Machine from what was given (or, with `authority="logged"`, from what a log says).

    `platform` is the log's word (`cuda`, `cpu` …) where no GPU is named. Raises InputError for a name, version or
    package that is not known.
    """
    found = gpu(gpu_name) if gpu_name else None
    where = found.platform if found else platform
    toolkit = cuda(cuda_version) if cuda_version else None
    if toolkit is not None and where is None:
        where = "cuda"
    known: dict[str, Authority] = {}
    if found is not None:
        known["gpu"] = authority
        if found.sm is not None:
            known["sm"] = "derived" if found.name else authority
    if toolkit is not None:
        known["cuda"] = authority
    return Machine(
        platform=where,
        gpu=gpu_name,
        sm=found.sm if found else None,
        gfx=found.gfx if found else None,
        cuda=toolkit,
        packages=packages(have),
        env=dict(env or {}),
        authority=known,
    )
