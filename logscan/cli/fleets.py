"""`logscan diff` and `logscan audit`: what they accept. Their work is imported when they run."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from logscan.cli import options
from logscan.cli.root import command, execute


@command(
    epilog="""\b
Examples
  logscan diff before.log after.log --ckpt config.json --gpu H100
  logscan diff old.log new.log --gpu-old A100 --gpu-new H100 --format markdown
  logscan diff boot.log boot.log --boot-old 1 --boot-new 2 --ckpt config.json
  logscan diff served.json new.log --ckpt-new config.json --gpu-new H100
  logscan diff audit-monday/ audit-tuesday/
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
    gpu_old: Annotated[
        str | None, typer.Option(metavar="GPU", help="The GPU of OLD only.", autocompletion=options.gpu_names)
    ] = None,
    gpu_new: Annotated[
        str | None, typer.Option(metavar="GPU", help="The GPU of NEW only.", autocompletion=options.gpu_names)
    ] = None,
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
    """Two boots, or two audits: what changed, with the lines of both; exit 1 if it got worse.

    OLD and NEW are boot logs, documents of `triage --format json`, or directories of `audit -o`. Compared are versions,
    hardware, promises, requests, settings, kernels and backends, KV cache, features, verdicts and findings; not ports,
    paths of caches, times. "(no line)" means that a side's log says nothing about it, not that it was off.

    \b
    Exit codes
      0  the same, better, or changed in what decides no verdict
      1  worse: the status, the verdict of a row, or a new finding at or above --fail-on
      2  usage, unreadable input, bad checkpoint, bad pack
      3  nothing recognised in one of the logs
    """
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


@command(
    epilog="""\b
Examples
  logscan audit logs/ --ckpt-root /models -o audits --html report.html
  logscan audit 's3://logs/prod/*.log.gz' --inputs fleet.csv -o audits
  find logs -name '*.log' -mtime -1 | logscan audit - --gpu H100 -o audits
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
    """A fleet of logs: verdicts by model, GPU and release, what they have in common, and which boots differ.

    \b
    Exit codes
      0  no finding at or above --fail-on
      1  findings at or above it
      2  usage, bad checkpoint or pack, or a log that cannot be read: the others are reported
      3  nothing recognised in any log; with --strict also any `unproven`
    """
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
