"""`logscan`: what the commands are called and what they accept. No command is imported before it runs."""

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from logscan import __version__
from logscan.cli import options

# Commands with sub-commands of their own, imported only when one of them is asked for.
GROUPS = {"packs": "logscan.cli.packs"}


class _Commands(TyperGroup):
    """The root group: its own commands, then `GROUPS`."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *GROUPS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in GROUPS:
            return typer.main.get_command(import_module(GROUPS[cmd_name]).app)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    name="logscan",
    cls=_Commands,
    no_args_is_help=True,
    # Both would import rich (0.1 s) for a help page or an error message.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def execute(implementation: str, **arguments: Any) -> None:
    """Run `module:function` and leave with the exit code that it returns (None is 0).

    Bad input of the user's is one line on stderr and exit 2; Ctrl-C is 130 and a closed pipe 141, both without a word,
    as a shell reports a process that dies of the signal.
    """
    from logscan.model import InputError

    module, _, function = implementation.partition(":")
    try:
        code = getattr(import_module(module), function)(**arguments)
        sys.stdout.flush()
    except InputError as error:
        typer.echo(f"logscan: {error}", err=True)
        code = 2
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # The interpreter flushes stdout once more on its way out; let that go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    raise typer.Exit(code or 0)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"logscan {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Did the engine run the numeric path that the checkpoint promised?

    Reads the boot logs of vLLM, TensorRT-LLM and SGLang, joins them with the checkpoint and the hardware, and says for
    linear layers, experts, attention and KV cache: kept, downgraded, or unproven and why, with the lines that show it.

    \b
    Exit codes
      0  no finding at or above --fail-on
      1  findings at or above it
      2  usage, unreadable input, bad checkpoint, bad pack
      3  nothing recognised in the log; with --strict also any `unproven`
    """


@app.command(
    epilog="""\b
Examples
  logscan triage vllm.log --ckpt /models/llama-fp8 --gpu A100
  kubectl logs deploy/llm | logscan triage - --ckpt config.json --gpu H100
  logscan triage boot.log.gz --format json | jq .verdict
  logscan triage vllm.log --ckpt config.json --fail-on medium --strict     (gate a rollout)
  logscan triage vllm.log --ckpt config.json --require 'linear.kernel~=Cutlass|FlashInfer'
  logscan triage vllm.log --ckpt config.json --baseline accepted.json --waivers waivers.toml
  kubectl logs -f pod/llm-0 | logscan triage - --until ready --timeout 900   (wait for a boot)
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
    """A verdict for each boot in LOG: what was promised, what ran, and the lines that show it."""
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


@app.command(
    epilog="""\b
Examples
  logscan expect --ckpt config.json --gpu A100 --engine vllm==0.31.0
  logscan expect --ckpt config.json --gpu sm_90 --engine 'vllm>=0.28,<0.32' --have none
"""
)
def expect(
    ckpt: Annotated[str, typer.Option(metavar="PATH", help="The checkpoint, as for triage.")],
    gpu: Annotated[str, typer.Option(metavar="GPU", help="The GPU, as for triage.")],
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
    """Before deploying: what will run, and which line will (or will not) prove it."""
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


@app.command(
    epilog="""\b
Examples
  logscan diff before-upgrade.log after-upgrade.log --ckpt config.json --gpu H100
  logscan diff old.json new.json              (documents of triage --format json)
  logscan diff boot.log boot.log --boot-old 1 --boot-new 2 --ckpt config.json
  logscan diff old.log new.log --gpu-old A100 --gpu-new H100 --format markdown
  logscan diff audit-monday/ audit-tuesday/   (directories of logscan audit -o)
"""
)
def diff(
    old: Annotated[str, typer.Argument(metavar="OLD", help="A boot log, a triage document, or an audit's directory.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The same of the boot to compare; one may be `-`.")],
    ckpt: options.Checkpoint = None,
    gpu: options.Gpu = None,
    cuda: options.Cuda = None,
    env: options.Env = None,
    ckpt_old: Annotated[str | None, typer.Option(metavar="PATH", help="The checkpoint of OLD only.")] = None,
    ckpt_new: Annotated[str | None, typer.Option(metavar="PATH", help="The checkpoint of NEW only.")] = None,
    gpu_old: Annotated[str | None, typer.Option(metavar="GPU", help="The GPU of OLD only.")] = None,
    gpu_new: Annotated[str | None, typer.Option(metavar="GPU", help="The GPU of NEW only.")] = None,
    cuda_old: Annotated[str | None, typer.Option(metavar="VERSION", help="The CUDA toolkit of OLD only.")] = None,
    cuda_new: Annotated[str | None, typer.Option(metavar="VERSION", help="The CUDA toolkit of NEW only.")] = None,
    engine_old: Annotated[str | None, typer.Option(metavar="ENGINE", help="Overrides what OLD says.")] = None,
    engine_new: Annotated[str | None, typer.Option(metavar="ENGINE", help="Overrides what NEW says.")] = None,
    boot_old: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Which boot of OLD; the last if left out.")
    ] = None,
    boot_new: Annotated[int | None, typer.Option(metavar="N", min=1, help="Which boot of NEW.")] = None,
    format: Annotated[
        Literal["table", "json", "markdown"], typer.Option("--format", "-f", help="How to write it.")
    ] = "table",
    output: options.Output = None,
    fail_on: Annotated[
        options.FailOn, typer.Option(help="A new finding from this severity on makes it worse; never: always exit 0.")
    ] = "high",
    packs: options.Packs = None,
    no_redact: options.NoRedact = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    color: options.Color = "auto",
) -> None:
    """Two boots, or two audits: what changed, with the lines of both; exit 1 if it got worse."""
    from logscan.cli.diff import Input
    from logscan.desk import Given

    environment = options.environment(env, None)
    execute(
        "logscan.cli.diff:run",
        old=Input(old, Given(ckpt_old or ckpt, gpu_old or gpu, cuda_old or cuda, engine_old, environment), boot_old),
        new=Input(new, Given(ckpt_new or ckpt, gpu_new or gpu, cuda_new or cuda, engine_new, environment), boot_new),
        format=format,
        output=output,
        fail_on=fail_on,
        packs=packs or [],
        redact=not no_redact,
        quiet=quiet,
        verbose=verbose,
        color=color,
    )


@app.command(
    epilog="""\b
Examples
  logscan audit logs/ --ckpt-root /models -o audits --html report.html
  logscan audit 's3://logs/prod/*.log.gz' --inputs fleet.csv -o audits
  kubectl get pods -o name | xargs -I{} echo logs/{}.log | logscan audit - --gpu H100
"""
)
def audit(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH...", help="Logs, globs, directories, archives, s3:// or gs:// URLs; `-` is a list of them."
        ),
    ],
    inputs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="CSV or JSON lines of glob, ckpt, gpu, cuda, engine, env: what belongs to what."
        ),
    ] = None,
    ckpt_root: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Find each boot's checkpoint here, by its model's name or path.")
    ] = None,
    gpu: options.Gpu = None,
    cuda: options.Cuda = None,
    engine: Annotated[
        str | None, typer.Option(metavar="ENGINE", help="vllm==0.31.0: overrides what the logs say.")
    ] = None,
    env: options.Env = None,
    env_file: options.EnvFile = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="Keep boots, paths and findings there as Parquet; go on from what it has.",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write one self-contained page.")] = None,
    shard: Annotated[str | None, typer.Option(metavar="i/n", help="Only this part of the logs, such as 2/8.")] = None,
    runner: Annotated[
        Literal["local", "ray"], typer.Option(help="Scan in processes here, or on a Ray cluster.")
    ] = "local",
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", metavar="N", min=1, help="Processes; as many as CPUs by default.")
    ] = None,
    format: Annotated[
        Literal["table", "json", "jsonl", "csv"],
        typer.Option("--format", "-f", help="How to write the summary, or the rows."),
    ] = "table",
    table: Annotated[
        Literal["boots", "paths", "findings"], typer.Option(help="Which rows --format csv writes.")
    ] = "boots",
    fail_on: Annotated[options.FailOn, typer.Option(help="Exit 1 from this severity on.")] = "high",
    strict: Annotated[bool, typer.Option("--strict", help="Exit 3 for any `unproven`.")] = False,
    packs: options.Packs = None,
    no_redact: options.NoRedact = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
    color: options.Color = "auto",
) -> None:
    """A fleet of logs: verdicts by model, GPU and release, what they have in common, and which boots differ."""
    execute(
        "logscan.cli.audit:run",
        paths=paths,
        inputs=inputs,
        ckpt_root=ckpt_root,
        gpu=gpu,
        cuda=cuda,
        engine=engine,
        env=options.environment(env, env_file),
        output=output,
        html=html,
        shard=shard,
        runner=runner,
        jobs=jobs,
        format=format,
        table=table,
        fail_on=fail_on,
        strict=strict,
        packs=packs or [],
        redact=not no_redact,
        quiet=quiet,
        verbose=verbose,
        color=color,
    )


@app.command(epilog="\b\nExamples\n  logscan promise config.json\n  logscan promise /models/llama-fp8 --format json\n")
def promise(
    checkpoint: Annotated[str, typer.Argument(metavar="P", help="The checkpoint, as for triage --ckpt.")],
    format: options.JsonOrTable = "table",
    output: options.Output = None,
) -> None:
    """What a checkpoint promises: its numeric path, layer group by layer group."""
    execute("logscan.cli.promise:run", checkpoint=checkpoint, format=format, output=output)


@app.command(epilog="\b\nExamples\n  logscan explain LS101\n  logscan explain kv-cache-storage-only\n")
def explain(
    rule: Annotated[str, typer.Argument(metavar="CODE", help="A rule's code or slug.")],
    format: options.JsonOrTable = "table",
    output: options.Output = None,
) -> None:
    """What a rule looks for, why it matters, and what to do about it."""
    execute("logscan.cli.explain:explain", rule=rule, format=format, output=output)


@app.command(epilog="\b\nExamples\n  logscan rules\n  logscan rules --format json | jq -r '.rules[].code'\n")
def rules(format: options.JsonOrTable = "table", output: options.Output = None) -> None:
    """The catalogue of rules."""
    execute("logscan.cli.explain:rules", format=format, output=output)


def main() -> None:
    """The console script."""
    app(prog_name="logscan")
