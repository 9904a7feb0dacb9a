"""What the pages tell a reader to type: commands and options exist, files are read, examples are what is printed."""

from __future__ import annotations

import doctest
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from typer.testing import CliRunner

from logscan import results
from logscan.cli.commands import app

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
# Pages of packs are made by a program, and tested beside it.
PAGES = sorted(p for p in (ROOT / "docs").rglob("*.md") if "packs" not in p.parts)
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
runner = CliRunner()


def blocks(language: str, pages: list[Path] = PAGES) -> list[tuple[str, str]]:
    return [(page.name, text) for page in pages for name, text in FENCE.findall(page.read_text()) if name == language]


def commands(text: str) -> Iterator[list[str]]:
    """The words of each `logscan …` in a script: continued lines joined, comments and later pipeline parts cut off."""
    for line in text.replace("\\\n", " ").split("\n"):
        for part in re.split(r"\|\||&&|(?<!\\)\|(?=\s)|;", line) if "'" not in line else [line]:
            words = lexed(part)
            if "logscan" in words:
                found = words[words.index("logscan") + 1 :]
                yield found[: found.index("|")] if "|" in found else found


def lexed(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return []


def known_options(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words name, and the rest of them."""
    import typer

    command: Any = typer.main.get_command(app)
    rest = list(words)
    while rest and hasattr(command, "get_command") and not rest[0].startswith("-"):
        command = command.get_command(None, rest.pop(0))
        assert command is not None, words
    return command, rest


def check(words: list[str]) -> None:
    command, rest = known_options(words)
    known = {name for p in command.params for name in (*p.opts, *p.secondary_opts)} | {"--help"}
    given = {word.split("=")[0] for word in rest if re.match(r"--?[a-zA-Z]", word)}
    assert given <= known | {"2>&1"}, words


SCRIPTS = [pytest.param(text, id=f"{page}-{n}") for n, (page, text) in enumerate(blocks("sh"))]


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_are_shell(script: str) -> None:
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def test_there_are_commands_to_check() -> None:
    assert sum(len(list(commands(text))) for _, text in blocks("sh")) > 30


@pytest.mark.parametrize("script", SCRIPTS)
def test_commands_and_options_exist(script: str) -> None:
    for words in commands(script):
        check(words)


def manifests() -> Iterator[tuple[str, Any]]:
    for page, text in blocks("yaml"):
        yield from ((page, doc) for doc in yaml.safe_load_all(text))


def logscan_words(node: Any) -> Iterator[list[str]]:
    """Every container's or probe's command that is logscan."""
    if isinstance(node, dict):
        words = (
            [*(node.get("command") or []), *(node.get("args") or [])] if isinstance(node.get("command"), list) else []
        )
        if words and words[0] == "logscan":
            yield [str(word) for word in words[1:]]
        for value in node.values():
            yield from logscan_words(value)
    elif isinstance(node, list):
        for value in node:
            yield from logscan_words(value)


def test_manifests_are_yaml_and_their_commands_exist() -> None:
    found = [words for _, doc in manifests() for words in logscan_words(doc)]
    assert [words[0] for words in found] == ["expect", "triage"]
    for words in found:
        check(words)


def test_the_workflow_s_inputs_exist() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    workflow = next(doc for _, doc in manifests() if isinstance(doc, dict) and doc.get("name") == "boot")
    (step,) = [step for step in workflow["jobs"]["boot"]["steps"] if step.get("id") == "logscan"]
    assert set(step["with"]) <= set(action["inputs"])
    page = (ROOT / "docs" / "recipes" / "github-action.md").read_text()
    table = page.split("| input |")[1].split("\n\n")[0]
    assert set(re.findall(r"`([\w-]+)`", table)) - {"logscan triage", "require"} <= set(action["inputs"])
    assert set(action["inputs"]) <= set(re.findall(r"`([\w-]+)`", table))


def test_hooks_exist() -> None:
    hooks = {hook["id"] for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
    named = {h["id"] for _, d in manifests() if isinstance(d, dict) for r in d.get("repos", []) for h in r["hooks"]}
    assert named == hooks


def test_metrics_of_the_alerts_exist() -> None:
    from logscan.report.prom import _HELP

    for _, text in blocks("yaml"):
        assert set(re.findall(r"\blogscan_\w+", text)) <= set(_HELP)


def test_the_walk_has_the_six_tasks() -> None:
    """`.ci/walk` types them; here only that it finds them."""
    readme = (ROOT / "README.md").read_text()
    walk = readme.split("<!-- walk: begin -->")[1].split("<!-- walk: end -->")[0]
    assert re.findall(r"^# (\d)\. ", walk, re.M) == list("123456")
    ((_, script),) = FENCE.findall(walk)
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    for words in commands(script):
        check(words)


def test_the_readme_s_policy_is_read(tmp_path: Path) -> None:
    from logscan.policy import config

    ((_, text),) = [block for block in blocks("toml", [ROOT / "README.md"]) if "[[waiver]]" in block[1]]
    (tmp_path / "logscan.toml").write_text(text)
    policy = config.read(tmp_path / "logscan.toml")
    assert (len(policy.requirements), len(policy.waivers), policy.threshold("LS602")) == (2, 1, "never")


def test_links_of_the_readme_lead_somewhere() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / name).read_text())
        assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_readme_has_no_link_that_breaks_on_another_page() -> None:
    """It is the package's long description as well: there, only whole URLs and anchors lead anywhere."""
    assert re.findall(r"\]\((?!https?://|#)[^)]*\)", (ROOT / "README.md").read_text()) == []


def test_every_schema_is_listed() -> None:
    page = (ROOT / "docs" / "reference" / "formats.md").read_text()
    names = {path.stem for path in (ROOT / "logscan" / "schemas").glob("*.json")}
    assert set(re.findall(r"^\| `logscan\.([\w-]+)/1` \|", page, re.M)) == names


@pytest.mark.parametrize("command", ["triage", "expect", "audit", "diff"])
def test_a_command_that_gates_tells_its_exit_codes(command: str) -> None:
    text = runner.invoke(app, [command, "--help"], prog_name="logscan").output
    assert re.findall(r"^    (\d)  \S", text.split("Exit codes")[1], re.M)[:4] == list("0123")


def test_policies_are_read(tmp_path: Path) -> None:
    from logscan.policy import config, waivers

    (tmp_path / "baseline.json").write_text('{"schema": "logscan.triage/1", "logs": []}')
    read = 0
    for page, text in blocks("toml"):
        if page != "policy.md":
            continue
        name = re.match(r"# (\S+)", text)
        assert name is not None
        (tmp_path / name[1]).write_text(text)
        policy = config.read(tmp_path / name[1]) if name[1] == "logscan.toml" else waivers.read(tmp_path / name[1])
        assert policy
        read += 1
    assert read == 2


@pytest.mark.parametrize("page", ["docs/library.md", "logscan/__init__.py"])
def test_examples_run(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = (ROOT / page).read_text()
    if page.endswith(".py"):
        text = text.split('"""')[1]
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    assert test.examples
    report: list[str] = []
    outcome = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=report.append)
    assert outcome.failed == 0, "".join(report)


def without_cuts(block: str) -> list[str]:
    return [line.rstrip() for line in block.split("\n") if line.strip() and "…" not in line]


def test_the_verdict_shown_is_what_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(ROOT / "fixtures" / "vllm-0.24.0-a100-fp8-dynamic")
    shown = runner.invoke(app, ["triage", "boot.log", "--ckpt", "config.json", "--gpu", "A100"]).stdout.split("\n")
    ((_, block),) = blocks("text", [ROOT / "docs" / "verdict.md"])
    assert [line for line in without_cuts(block) if line not in shown] == []


def test_the_difference_shown_is_what_is_printed() -> None:
    snapshots = (ROOT / "tests" / "diff" / "__snapshots__" / "test_command.ambr").read_text()
    shown = {line.removeprefix("  ").rstrip() for line in snapshots.split("\n")}
    ((_, block),) = blocks("text", [ROOT / "docs" / "diff.md"])
    assert [line for line in without_cuts(block) if line not in shown] == []


def test_documents_and_formats_are_all_named() -> None:
    from logscan.report import FORMATS

    page = (ROOT / "docs" / "reference" / "formats.md").read_text()
    assert re.findall(r"^\| `(\w+)` \|", page, re.M) == list(FORMATS)


SCHEMA = json.loads((ROOT / "logscan" / "schemas" / "triage.json").read_text())
SHAPES = {
    "Triage": SCHEMA,
    **{
        name: SCHEMA["$defs"][name.lower()]
        for name in ("Log", "Boot", "Row", "Finding", "Fact", "Evidence", "Kernel", "Engine", "Hardware", "Promise")
        + ("Census", "Given")
    },
}


@pytest.mark.parametrize("name", SHAPES)
def test_types_have_the_keys_of_the_schema(name: str) -> None:
    hints = get_type_hints(getattr(results, name))
    assert set(SHAPES[name]["properties"]) <= set(hints)


def test_types_have_the_keys_of_the_documents() -> None:
    import logscan

    demo = ROOT / "logscan" / "demo"
    given: Any = {"ckpt": str(demo / "config.json"), "gpu": "A100"}
    document = logscan.triage(demo / "a100-0.24.log", **given)
    assert set(document) == set(get_type_hints(results.Triage))
    log = document["logs"][0]
    boot = log["boots"][0]
    pairs: list[tuple[Any, Any]] = [(log, results.Log), (boot, results.Boot), (boot["paths"][0], results.Row)]
    pairs += [(boot["findings"][0], results.Finding), (boot["facts"][0], results.Fact)]
    pairs += [(boot["engine"], results.Engine), (boot["hardware"], results.Hardware)]
    pairs += [(boot["promise"], results.Promise), (boot["paths"][0]["evidence"][0], results.Evidence)]
    for found, shape in pairs:
        assert set(found) == set(get_type_hints(shape)), shape
    prediction = logscan.expect(given["ckpt"], "A100", "vllm==0.30.0")
    assert set(prediction) == {"schema", "given", "verdict", "paths", "findings"}
    assert set(prediction["paths"][0]) == set(get_type_hints(results.ExpectedRow))
