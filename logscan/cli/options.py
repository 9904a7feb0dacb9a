"""The options that several commands share: spelled once, so that they read alike everywhere."""

from pathlib import Path
from typing import Annotated, Literal

import typer

FormatName = Literal["table", "json", "jsonl", "markdown", "junit", "github", "prom"]
FailOn = Literal["info", "low", "medium", "high", "critical", "never"]
When = Literal["auto", "always", "never"]

Checkpoint = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="The checkpoint: config.json, hf_quant_config.json, params.json, a model directory, or an HF cache or"
        " snapshot directory.",
    ),
]


def gpu_names(incomplete: str) -> list[str]:
    """Names of GPUs, and of platforms, for the shell's completion; what was typed keeps its case."""
    from logscan import hardware

    found = [name for name in hardware.names() if name.lower().startswith(incomplete.lower())]
    return [incomplete + name[len(incomplete) :] for name in found]


Gpu = Annotated[
    str | None,
    typer.Option(
        metavar="GPU",
        help="A100, NVIDIA-A100-SXM4-80GB, 'RTX 4090', sm_89, 8.9, gfx942; cpu, xpu and tpu name the platform.",
        autocompletion=gpu_names,
    ),
]
Cuda = Annotated[
    str | None, typer.Option(metavar="VERSION", help="The CUDA toolkit that the engine was built with, such as 12.8.")
]
Env = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="K=V", help="An environment variable of the engine's. Repeatable."),
]
EnvFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The engine's environment, one K=V a line, as `docker run --env-file` reads it."),
]
Packs = Annotated[
    list[str] | None,
    typer.Option("--packs", metavar="DIR", help="Patterns of your own, beside the shipped ones. Repeatable."),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write there (atomically) instead of to stdout.")
]
Color = Annotated[When, typer.Option(help="Colour; auto is for terminals only and obeys NO_COLOR.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Also show every fact that was read, and all evidence.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Nothing on stderr but errors.")]
Require = Annotated[
    list[str] | None,
    typer.Option(
        "--require",
        metavar="FACT~=REGEX",
        help="A fact that must match in every boot that counts; a missing one fails. Repeatable.",
    ),
]
Waivers = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Accepted findings (TOML), each with a reason and a last day.")
]
Baseline = Annotated[
    Path | None, typer.Option(metavar="FILE", help="An earlier report (--format json): its findings do not fail.")
]
Config = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="A policy, instead of the logscan.toml found upward from here."),
]
Isolated = Annotated[bool, typer.Option("--isolated", help="Look for no logscan.toml.")]
NoRedact = Annotated[bool, typer.Option("--no-redact", help="Show keys and tokens that the log contains.")]
JsonOrTable = Annotated[Literal["table", "json"], typer.Option("--format", "-f", help="How to write it.")]


def rule_names(incomplete: str) -> list[str]:
    """Codes and slugs for the shell's completion."""
    from logscan import catalogue

    names = [name for rule in catalogue.rules().values() for name in (rule.code, rule.slug)]
    return [name for name in names if name.lower().startswith(incomplete.lower())]


def environment(pairs: list[str] | None, file: Path | None) -> dict[str, str]:
    """The engine's environment: the file's K=V lines (`#` comments), then the `--env` pairs, which win.

    Raises `typer.BadParameter` (exit 2) for an unreadable file or an entry without `=`.
    """
    entries: list[tuple[str, str]] = []
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise typer.BadParameter(
                f"--env-file {file}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}"
            ) from error
        lines = enumerate(text.split("\n"), 1)
        entries += [(f"{file}:{n}", line.strip()) for n, line in lines if line.strip() and line.strip()[0] != "#"]
    entries += [("--env", pair) for pair in pairs or []]
    found = {}
    for where, entry in entries:
        name, equals, value = entry.partition("=")
        if not equals or not name.strip():
            raise typer.BadParameter(f"{where}: {entry!r} is not K=V; write for example VLLM_USE_DEEP_GEMM=0")
        found[name.strip()] = value
    return found
