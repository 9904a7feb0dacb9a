"""Plain command lines: what is read without typer is what typer reads."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from logscan.cli import commands, plain, root

ROOT = Path(__file__).parents[2]
LOG = "fixtures/vllm-0.24.0-a100-fp8-dynamic/boot.log"
TEXTS = ["A100", "config.json", "vllm==0.31.0", "sm_89", "a b", "é", "*", "[x]", "12.8", "1", "."]


def option(name, value):
    if value == ():
        return st.just([name])
    return st.sampled_from(value if isinstance(value, tuple) else TEXTS).map(lambda v: [name, v])


def lines():
    """Plain lines of each command, their options in any order among what they are for."""

    def of(name):
        command = plain._COMMANDS[name]
        needed = [option(f"--{n}", command.options[f"--{n}"]) for n in command.needed]
        free = [option(n, v) for n, v in command.options.items() if n[2:] not in command.needed]
        words = st.lists(st.sampled_from([*TEXTS, "-"]), min_size=1, max_size=3 if command.many else 1)
        given = words.map(lambda ws: [[w] for w in ws]) if command.positional else st.just([])
        chosen = st.lists(st.sampled_from(free), max_size=6, unique=True).flatmap(lambda c: st.tuples(*c, *needed))
        return st.tuples(chosen, given).flatmap(
            lambda parts: st.permutations([*parts[0], *parts[1]]).map(
                lambda p: [name, *(w for part in p for w in part)]
            )
        )

    return st.sampled_from(sorted(plain._COMMANDS)).flatmap(of)


def whole(implementation, arguments):
    """The arguments as the function sees them, its defaults filled in; sequences compared by what is in them."""
    module, _, function = implementation.partition(":")
    bound = inspect.signature(getattr(importlib.import_module(module), function)).bind(**arguments)
    bound.apply_defaults()
    return {k: tuple(v) if isinstance(v, list) else v for k, v in bound.arguments.items()}


def typers(words):
    """What typer makes of the words: the implementation and its arguments."""
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(root, "run", lambda implementation, arguments: seen.append((implementation, arguments)) or 0)
        result = CliRunner().invoke(commands.app, words)
    assert result.exit_code == 0, result.output
    return seen[0]


@given(lines())
@settings(max_examples=300, deadline=None)
@example(["triage", "a.log", "-f", "json", "-q", "-v", "-o", "out.json"])
@example(["promise", "config.json"])
def test_it_reads_what_typer_reads(words):
    order = plain.read(words)
    assert order is not None
    implementation, arguments = typers(words)
    assert order.implementation == implementation
    assert whole(*order) == whole(implementation, arguments)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--version"],
        ["triage"],
        ["triage", "--help"],
        ["triage", "a.log", "-h"],
        ["triage", "a.log", "--ckpt"],
        ["triage", "a.log", "--ckpt", "--gpu"],
        ["triage", "a.log", "--ckpt", ""],
        ["triage", "a.log", "--ckpt=config.json"],
        ["triage", "a.log", "--gpu", "A100", "--gpu", "H100"],
        ["triage", "a.log", "-fjson"],
        ["triage", "a.log", "-f", "JSON"],
        ["triage", "a.log", "--format", "yaml"],
        ["triage", "--", "a.log"],
        ["triage", "a.log", "--env", "A=1"],
        ["triage", "a.log", "--no-redact"],
        ["triage", "a.log", "--timeout", "3"],
        ["triage", "a.log", "-qv"],
        ["expect", "--ckpt", "config.json", "--gpu", "A100"],
        ["expect", "--ckpt", "c", "--gpu", "A100", "--engine", "vllm==0.31.0", "more"],
        ["promise", "a", "b"],
        ["promise", "--format", "json"],
        ["audit", "fleet"],
        ["rules"],
    ],
    ids=" ".join,
)
def test_all_else_is_typer_s(words):
    assert plain.read(words) is None


def test_completion_is_typer_s(monkeypatch):
    monkeypatch.setenv("_LOGSCAN_COMPLETE", "complete_bash")
    assert plain.read(["triage", "a.log"]) is None


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["triage", LOG, "--gpu", "A100", "--format", "json"], 0),
        (["triage", "/nowhere.log"], 2),
        (["promise", "fixtures/vllm-0.24.0-a100-fp8-dynamic/config.json"], 0),
    ],
)
def test_a_plain_line_imports_no_typer(words, code):
    script = (
        "import sys\nsys.modules.update(dict.fromkeys(['typer', 'rich', 'polars', 'dataclasses']))\n"
        "from logscan.cli.main import main\nsys.argv = ['logscan', *sys.argv[1:]]\nmain()"
    )
    main = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, cwd=ROOT)
    assert (main.returncode, main.stderr.startswith("logscan: /nowhere.log")) == (code, code == 2)
