"""The root of the command line: its own options, and how commands are declared."""

from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo

from logscan import __version__
from logscan.cli.running import run

_F = TypeVar("_F", bound=Callable[..., Any])

# Where each command is declared, as help lists them.
COMMANDS = {
    "triage": "logscan.cli.commands",
    "audit": "logscan.cli.fleets",
    "diff": "logscan.cli.fleets",
    "expect": "logscan.cli.commands",
    "promise": "logscan.cli.commands",
    "explain": "logscan.cli.commands",
    "rules": "logscan.cli.commands",
    "demo": "logscan.cli.commands",
}
# Commands with sub-commands of their own.
GROUPS = {"packs": "logscan.cli.packs"}
_DECLARED: dict[str, CommandInfo] = {}


class Command(TyperCommand):
    """A command whose usage line names its arguments as its help does: `LOG...`, not `{LOG...}`."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words after the command's name."""
        return [piece.removeprefix("{").removesuffix("}") for piece in super().collect_usage_pieces(ctx)]


class _Commands(TyperGroup):
    """The root group. Only the command that is asked for is imported and built: all of them cost 20 ms."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *GROUPS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in GROUPS:
            return typer.main.get_group(import_module(GROUPS[cmd_name]).app)
        if cmd_name not in COMMANDS:
            return None
        import_module(COMMANDS[cmd_name])
        return typer.main.get_command_from_info(
            _DECLARED[cmd_name], pretty_exceptions_short=False, rich_markup_mode=None
        )


def command(epilog: str | None = None) -> Callable[[_F], _F]:
    """Declare a command of the root group, named like its function."""

    def declare(function: _F) -> _F:
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
        name = function.__name__
        _DECLARED[name] = CommandInfo(name, cls=Command, callback=function, epilog=epilog, context_settings=settings)
        return function

    return declare


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
    """Run `module:function` and leave with its exit code, as `running.run` says."""
    raise typer.Exit(run(implementation, arguments))


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
      1  findings at or above it, or a requirement that does not hold
      2  usage, unreadable input, bad checkpoint, pack or policy
      3  nothing recognised in the log; with --strict also any `unproven`
    """
