"""The command line itself: what it accepts, how it fails, what it imports."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from logscan import __version__
from logscan.cli import commands, options, output
from logscan.model import InputError

runner = CliRunner()
LOG = "logscan/demo/h100-0.24.log"


def run(*arguments, **environment):
    command = [sys.executable, "-m", "logscan", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "80", **environment})


def test_version():
    result = runner.invoke(commands.app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"logscan {__version__}\n")


def test_as_a_module():
    result = run("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"logscan {__version__}\n", "")


@pytest.mark.parametrize("command", [[], ["triage"], ["explain"], ["rules"]], ids=" ".join)
def test_help(command, snapshot, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = runner.invoke(commands.app, [*command, "--help"], prog_name="logscan")
    assert result.exit_code == 0
    assert result.output == snapshot


@pytest.mark.parametrize(
    "arguments",
    [
        ["triage"],
        ["nonsense"],
        ["triage", "x", "--format", "yaml"],
        ["triage", "x", "--fail-on", "always"],
        ["triage", "x", "--env", "NOVALUE"],
        ["triage", "x", "--env-file", "no/such/file"],
        ["--nonsense"],
    ],
    ids=" ".join,
)
def test_usage_errors_are_exit_2(arguments):
    result = runner.invoke(commands.app, arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_bad_input_is_one_line_and_exit_2():
    result = run("explain", "LS9")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("logscan: no rule 'LS9'") and result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["triage", "audit", "diff", "expect", "promise", "explain", "rules"])
def test_every_format_has_a_short_option(command):
    assert "-f, --format" in runner.invoke(commands.app, [command, "--help"]).output


@pytest.mark.parametrize("command", ["list", "verify"])
def test_every_format_of_packs_has_a_short_option(command):
    assert "-f, --format" in runner.invoke(commands.app, ["packs", command, "--help"]).output


def raising(error):
    def implementation():
        raise error

    return implementation


@pytest.mark.parametrize(("error", "code"), [(InputError("bad"), 2), (KeyboardInterrupt(), 130)], ids=repr)
def test_how_commands_end(error, code, monkeypatch, capsys):
    import typer

    monkeypatch.setattr("logscan.cli.explain.stop", raising(error), raising=False)
    with pytest.raises(typer.Exit) as ended:
        commands.execute("logscan.cli.explain:stop")
    assert ended.value.exit_code == code
    assert capsys.readouterr().err == ("logscan: bad\n" if code == 2 else "")


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1), (3, 3)])
def test_the_exit_code_is_the_implementation_s(returned, code, monkeypatch):
    import typer

    monkeypatch.setattr("logscan.cli.explain.stop", lambda: returned, raising=False)
    with pytest.raises(typer.Exit) as ended:
        commands.execute("logscan.cli.explain:stop")
    assert ended.value.exit_code == code


def test_a_closed_pipe_ends_quietly():
    process = subprocess.Popen(
        [sys.executable, "-m", "logscan", "rules", "--format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 141


def test_start_up_imports_nothing_heavy():
    heavy = {"rich", "polars", "pydantic", "regex", "tomllib", "logscan.catalogue"}
    code = "import sys, logscan.cli.commands; print(*sys.modules)"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.split()
    assert "logscan.cli.commands" in imported
    assert heavy.isdisjoint(imported)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell):
    result = run("--show-completion", shell)
    assert result.returncode == 0
    assert "_LOGSCAN_COMPLETE" in result.stdout or "logscan" in result.stdout


def test_explain(snapshot, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = runner.invoke(commands.app, ["explain", "kv-cache-ignored"])
    assert result.exit_code == 0
    assert result.output == snapshot


@pytest.mark.parametrize("option", ["--format", "-f"])
def test_explain_as_json(option):
    result = runner.invoke(commands.app, ["explain", "LS101", option, "json"])
    assert [rule["slug"] for rule in json.loads(result.output)["rules"]] == ["linear-weight-only"]


@pytest.mark.parametrize("columns", ["60", "80", "160"])
def test_rules(columns, snapshot, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    result = runner.invoke(commands.app, ["rules"])
    assert result.output == snapshot
    assert max(map(len, result.output.splitlines())) <= int(columns)


def test_output_to_a_file(tmp_path):
    result = runner.invoke(commands.app, ["rules", "-o", str(tmp_path / "rules.txt")])
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "rules.txt").read_text().startswith("LS100 ")
    assert [path.name for path in tmp_path.iterdir()] == ["rules.txt"]


def test_output_to_a_place_that_is_none(tmp_path):
    result = run("rules", "-o", str(tmp_path / "no" / "such"))
    assert result.returncode == 2
    assert result.stderr.startswith("logscan: ") and "give another file" in result.stderr


@pytest.mark.parametrize("place", [".", "/", "a" * 300])
def test_output_that_is_no_file_s_name(place, tmp_path):
    with pytest.raises(InputError, match="cannot be written"):
        output.write("x", Path(place) if place != "." else tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_output_keeps_what_stands_there(tmp_path):
    """A link, the permissions of a file, a pipe; a name that leaves no room for a longer one."""
    report, link, long, pipe = (tmp_path / name for name in ("report", "link", "n" * 250, "pipe"))
    report.write_text("old")
    report.chmod(0o640)
    link.symlink_to("report")
    output.write("new", link)
    assert (report.read_text(), report.stat().st_mode & 0o777, link.is_symlink()) == ("new", 0o640, True)
    output.write("x", long)
    assert long.read_text() == "x"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    output.write("through", pipe)
    assert (reader.communicate()[0], pipe.is_fifo()) == (b"through", True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["report", "link", "n" * 250, "pipe"])


@pytest.mark.parametrize("command", ["triage", "expect"])
def test_variables_with_secrets_are_masked(command):
    home = Path(__file__).parents[2]
    given = {
        "triage": [str(home / LOG)],
        "expect": ["--ckpt", str(home / "logscan/demo/config.json"), "--gpu", "A100", "--engine", "vllm==0.31.0"],
    }
    secret = ["--env", "HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz12", "--env", "AWS_SECRET_ACCESS_KEY=abcdefgh12"]
    told = run(command, *given[command], *secret, "--env", "A=1", "--format", "json", "--fail-on", "never").stdout
    assert json.loads(told)["given"]["env"] == {
        "HF_TOKEN": "[redacted]",
        "AWS_SECRET_ACCESS_KEY": "[redacted]",
        "A": "1",
    }


@pytest.mark.parametrize("word", ["x\n::error::pwn", "\x1b]0;pwn\x07x"])
def test_a_file_s_name_cannot_act(word):
    for arguments in (["triage", word], ["promise", word], ["triage", LOG, "--ckpt", word]):
        told = run(*arguments).stderr
        assert told.startswith("logscan: ") and told.count("\n") == 1 and "\x1b" not in told


def test_from_a_folder_that_is_gone(tmp_path):
    home = Path(__file__).parents[2]
    script = f"mkdir gone; cd gone; rmdir ../gone; {sys.executable} -m logscan triage {home / LOG}"
    environment = {**os.environ, "PYTHONPATH": str(home), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")


def test_text_that_stdout_cannot_encode_is_replaced():
    result = run("rules", PYTHONIOENCODING="ascii", COLUMNS="80")
    assert result.returncode == 0
    assert "..." in result.stdout and "?" not in result.stdout


@pytest.mark.parametrize(
    ("encoding", "written"),
    [
        ("utf-8", "✗ ✓ – · → … é 漢"),
        ("ascii", "x ok - | -> ... ? ?"),
        ("latin-1", "x ok - · -> ... é ?"),
        ("cp1252", "x ok – · -> … é ?"),
    ],
)
def test_marks_of_an_encoding_without_them(encoding, written):
    """`?` says unproven; a mark that cannot be written must not turn into it."""
    assert output.encodable("✗ ✓ – · → … é 漢", encoding) == written


def test_a_report_in_ascii_tells_kept_from_unproven():
    demo = ["logscan/demo/h100-0.24.log", "--ckpt", "logscan/demo/config.json", "--gpu", "H100"]
    home = Path(__file__).parents[2]
    told = run("triage", *(str(home / a) if "/" in a else a for a in demo), PYTHONIOENCODING="ascii").stdout
    assert "\n  ok linear group_0 KEPT\n" in told and told.startswith("KEPT | ready | ")


@pytest.mark.parametrize(
    ("when", "terminal", "environment", "wanted"),
    [
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {}, False),
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", True, {"TERM": "dumb"}, False),
    ],
)
def test_colour(when, terminal, environment, wanted, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    assert output.wants_color(when) is wanted


def test_no_colour_into_a_file(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert output.wants_color("auto", tmp_path / "report") is False


def test_environment(tmp_path):
    file = tmp_path / "env"
    file.write_text("# comment\nA=1\n\nB = x=y\nC=file\n")
    assert options.environment(["C=option", "D="], file) == {"A": "1", "B": " x=y", "C": "option", "D": ""}
    assert options.environment(None, None) == {}


def test_environment_names_the_line(tmp_path):
    import typer

    file = tmp_path / "env"
    file.write_text("A=1\nbroken\n")
    with pytest.raises(typer.BadParameter, match="env:2: 'broken' is not K=V"):
        options.environment(None, file)


def test_job_summary(tmp_path, monkeypatch):
    file = tmp_path / "summary.md"
    file.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    assert output.job_summary("after\n") is True
    assert output.job_summary("x" * (1 << 20) + "x") is False
    assert file.read_text() == "before\nafter\n"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "such"))
    with pytest.raises(InputError, match="cannot be written"):
        output.job_summary("x")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    assert output.job_summary("x") is False


def in_a_shell(script):
    """A command line as a shell runs it, with `logscan` in it."""
    home = Path(__file__).parents[2]
    command = script.replace("logscan ", f"{sys.executable} -m logscan ", 1)
    return subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=home, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (f"logscan triage {LOG} >&-", "logscan: stdout: is closed; leave it open, or give a file with -o\n"),
        (f"logscan triage {LOG} --format json >&-", "logscan: stdout: is closed; leave it open, or give a file"),
        (f"logscan triage {LOG} --format jsonl >&-", "logscan: stdout: is closed"),
        ("logscan demo >&-", "logscan: stdout: is closed"),
        ("logscan rules >&-", "logscan: stdout: is closed"),
        (f"logscan triage {LOG} > /dev/full", "logscan: stdout: cannot be written: No space left on device\n"),
        (f"logscan triage {LOG} --format jsonl > /dev/full", "logscan: stdout: cannot be written: No space left"),
        ("logscan rules > /dev/full", "logscan: stdout: cannot be written: No space left on device\n"),
        ("logscan packs list > /dev/full", "logscan: stdout: cannot be written: No space left on device\n"),
        ("logscan packs new 'Using FooBar for x' > /dev/full", "logscan: stdout: cannot be written: No space left"),
        ("logscan --help > /dev/full", "logscan: cannot write: No space left on device\n"),
        ("logscan --version > /dev/full", "logscan: cannot write: No space left on device\n"),
        ("logscan triage - <&-", "logscan: stdin: cannot be read: Bad file descriptor\n"),
        ("logscan packs new - <&-", "logscan: packs new: stdin is closed"),
        ("logscan audit - <&-", "logscan: stdin: is closed"),
        (f"logscan triage {LOG} no/such 2>/dev/full", ""),
    ],
)
def test_streams_that_are_closed_or_full(command, told):
    ended = in_a_shell(command)
    assert (ended.returncode, ended.stdout if "2>" not in command else "") == (2, "")
    assert ended.stderr.startswith(told) and ended.stderr.count("\n") == bool(told)


def test_a_file_needs_no_stdout(tmp_path):
    ended = in_a_shell(f"logscan triage {LOG} -o {tmp_path}/report --quiet >&-")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (tmp_path / "report").read_text()


def test_messages_never_end_up_among_the_data():
    ended = in_a_shell("logscan packs test 2>&-")
    assert (ended.returncode, ended.stdout) == (0, "")


@pytest.mark.parametrize(
    ("unknown", "told"),
    [
        (1, "1 line looks like a selection and no pattern owns it"),
        (2, "2 lines look like a selection and no pattern owns them"),
    ],
)
def test_one_unrecognised_line_is_no_lines(unknown, told, tmp_path):
    from logscan.desk import triage

    lines = (Path(__file__).parents[2] / LOG).read_text().split("\n")
    at = next(n for n, line in enumerate(lines) if "Selected Cutlass" in line)
    head = lines[at].partition("Selected")[0]
    lines[at:at] = [f"{head}Using FooBar{n} kernel for the shared experts" for n in range(unknown)]
    log = tmp_path / "boot.log"
    log.write_text("\n".join(lines))
    (boot,) = triage(log)["logs"][0]["boots"]
    assert [f["message"] for f in boot["findings"] if f["code"] == "LS902"] == [told]
