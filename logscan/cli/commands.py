"""What the commands are called and what they accept. No command is imported before it runs."""

from typing import Annotated, Literal

import typer

from logscan.cli import options
from logscan.cli.root import app, command, execute

__all__ = ["app", "execute"]


@command(
    epilog="""\b
Examples
  logscan triage vllm.log --ckpt /models/llama-fp8 --gpu A100
  kubectl logs deploy/llm | logscan triage - --ckpt config.json --gpu H100
  logscan triage boot.log.gz --format json | jq .verdict
  logscan triage boot.log --ckpt config.json --fail-on medium --strict
  logscan triage boot.log --ckpt llama-fp8/ --require linear.kernel~=Cutlass
  logscan triage boot.log --ckpt config.json --baseline old.json
  kubectl logs -f pod/llm-0 | logscan triage - --until ready --timeout 900
"""
)
def triage(
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="Boot logs; `-` is stdin; .gz and .zst are read.")
    ],
    ckpt: options.Checkpoint = None,
    gpu: options.Gpu = None,
    cuda: options.Cuda = None,
    engine: Annotated[
        str | None, typer.Option(metavar="ENGINE", help="vllm==0.31.0: overrides what the log says.")
    ] = None,
    env: options.Env = None,
    env_file: options.EnvFile = None,
    format: Annotated[options.FormatName, typer.Option("--format", "-f", help="How to write the report.")] = "table",
    output: options.Output = None,
    fail_on: Annotated[
        options.FailOn | None,
        typer.Option(
            help="Exit 1 from this severity on; high, unless logscan.toml says otherwise.", show_default=False
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 3 for any `unproven`.")] = False,
    boots: Annotated[
        Literal["last", "all"], typer.Option(help="Which boots of a log count, and are drawn in the table.")
    ] = "last",
    until: Annotated[
        Literal["ready", "end"], typer.Option(help="Stop reading when the engine is ready, or at the log's end.")
    ] = "end",
    timeout: Annotated[float | None, typer.Option(metavar="S", help="Stop reading after S seconds.")] = None,
    select: Annotated[
        list[str] | None, typer.Option("--select", metavar="CODES", help="Only these rules: LS101,LS2. Repeatable.")
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="CODES", help="Not these rules. Repeatable.")
    ] = None,
    require: options.Require = None,
    waivers: options.Waivers = None,
    baseline: options.Baseline = None,
    config: options.Config = None,
    isolated: options.Isolated = False,
    packs: options.Packs = None,
    no_redact: options.NoRedact = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    color: options.Color = "auto",
) -> None:
    """A verdict for each boot in LOG: what was promised, what ran, and the lines that show it.

    The promise comes from --ckpt, the machine from --gpu and --cuda. Each may be left out: what the log alone cannot
    tell is `unproven`, with a reason that says what to give.

    A team's policy (required and forbidden facts, thresholds by rule, waivers, a baseline) is read from the
    logscan.toml in this directory or above it; the options below add to it or win over it.

    \b
    Exit codes
      0  no finding at or above --fail-on
      1  findings at or above it, or a requirement that does not hold
      2  usage, unreadable input, bad checkpoint, pack or policy
      3  nothing recognised in LOG; with --strict also any `unproven`
    """
    execute(
        "logscan.cli.triage:run",
        logs=logs,
        ckpt=ckpt,
        gpu=gpu,
        cuda=cuda,
        engine=engine,
        env=options.environment(env, env_file),
        format=format,
        output=output,
        fail_on=fail_on,
        strict=strict,
        boots=boots,
        until=until,
        timeout=timeout,
        select=select or [],
        ignore=ignore or [],
        require=require or [],
        waivers=waivers,
        baseline=baseline,
        config=config,
        isolated=isolated,
        packs=packs or [],
        redact=not no_redact,
        quiet=quiet,
        verbose=verbose,
        color=color,
    )


@command(
    epilog="""\b
Examples
  logscan expect --ckpt config.json --gpu A100 --engine vllm==0.31.0
  logscan expect --ckpt config.json --gpu sm_90 --engine 'vllm>=0.28,<0.32'
  logscan expect --ckpt config.json --gpu L40S --engine vllm==0.31.0 --strict
"""
)
def expect(
    ckpt: Annotated[str, typer.Option(metavar="PATH", help="The checkpoint, as for triage.")],
    gpu: Annotated[str, typer.Option(metavar="GPU", help="The GPU, as for triage.", autocompletion=options.gpu_names)],
    engine: Annotated[str, typer.Option(metavar="ENGINE", help="vllm==0.31.0, or a range: 'vllm>=0.28,<0.32'.")],
    cuda: options.Cuda = None,
    have: Annotated[
        str | None,
        typer.Option(
            metavar="PACKAGES",
            help="Exactly these optional packages are installed: humming,flashinfer; none: none of them."
            " Left out, they are unknown.",
        ),
    ] = None,
    quantization: Annotated[str | None, typer.Option(metavar="METHOD", help="As the engine's flag.")] = None,
    kv_cache_dtype: Annotated[str | None, typer.Option(metavar="DTYPE", help="As the engine's flag.")] = None,
    linear_backend: Annotated[str | None, typer.Option(metavar="BACKEND", help="As the engine's flag.")] = None,
    moe_backend: Annotated[str | None, typer.Option(metavar="BACKEND", help="As the engine's flag.")] = None,
    attention_backend: Annotated[str | None, typer.Option(metavar="BACKEND", help="As the engine's flag.")] = None,
    env: options.Env = None,
    format: options.JsonOrTable = "table",
    output: options.Output = None,
    fail_on: Annotated[options.FailOn, typer.Option(help="Exit 1 from this severity on.")] = "high",
    strict: Annotated[bool, typer.Option("--strict", help="Exit 3 for any `unproven`.")] = False,
    verbose: options.Verbose = False,
    color: options.Color = "auto",
) -> None:
    """Before deploying: what will run, and which line will (or will not) prove it.

    \b
    Exit codes
      0  no finding at or above --fail-on in any of the releases
      1  findings at or above it
      2  usage, bad checkpoint, unknown GPU, release or package
      3  with --strict: any `unproven`
    """
    execute(
        "logscan.cli.expect:run",
        ckpt=ckpt,
        gpu=gpu,
        engine=engine,
        cuda=cuda,
        have=have,
        flags={
            name: value
            for name, value in {
                "quantization": quantization,
                "kv_cache_dtype": kv_cache_dtype,
                "linear_backend": linear_backend,
                "moe_backend": moe_backend,
                "attention_backend": attention_backend,
            }.items()
            if value is not None
        },
        env=options.environment(env, None),
        format=format,
        output=output,
        fail_on=fail_on,
        strict=strict,
        verbose=verbose,
        color=color,
    )


@command(epilog="\b\nExamples\n  logscan promise config.json\n  logscan promise /models/llama-fp8 --format json\n")
def promise(
    checkpoint: Annotated[str, typer.Argument(metavar="CHECKPOINT", help="As for triage --ckpt.")],
    format: options.JsonOrTable = "table",
    output: options.Output = None,
) -> None:
    """What a checkpoint promises: its numeric path, layer group by layer group."""
    execute("logscan.cli.promise:run", checkpoint=checkpoint, format=format, output=output)


@command(epilog="\b\nExamples\n  logscan explain LS101\n  logscan explain kv-cache-storage-only\n")
def explain(
    rule: Annotated[
        str, typer.Argument(metavar="CODE", help="A rule's code or slug.", autocompletion=options.rule_names)
    ],
    format: options.JsonOrTable = "table",
    output: options.Output = None,
) -> None:
    """What a rule looks for, why it matters, and what to do about it."""
    execute("logscan.cli.explain:explain", rule=rule, format=format, output=output)


@command(epilog="\b\nExamples\n  logscan rules\n  logscan rules --format json | jq -r '.rules[].code'\n")
def rules(format: options.JsonOrTable = "table", output: options.Output = None) -> None:
    """The catalogue of rules."""
    execute("logscan.cli.explain:rules", format=format, output=output)


@command(epilog="\b\nExamples\n  logscan demo\n  logscan demo --color always | less -R\n")
def demo(color: options.Color = "auto") -> None:
    """Three packaged boots of one checkpoint: kept, downgraded with a warning, downgraded in silence."""
    execute("logscan.cli.demo:run", color=color)
