"""The pages that follow from the program itself: a page for each rule, the words, the commands. A hook of mkdocs.

They are made when the site is built and stand in no repository, so they cannot be out of date.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from logscan import catalogue
from logscan.catalogue import Rule

HERE = Path(__file__).parent
FAMILIES = (
    ("LS1", "Linear layers"),
    ("LS2", "Experts (MoE)"),
    ("LS3", "Attention"),
    ("LS4", "KV cache"),
    ("LS5", "Boot failures"),
    ("LS6", "Requests and features"),
    ("LS7", "Inputs that disagree"),
    ("LS8", "Policy"),
    ("LS9", "The scanner's own health"),
)
NAV: Sequence[tuple[str, Sequence[str]]] = (
    ("Use", ("start.md", "verdict.md", "limits.md", "diff.md", "policy.md", "library.md")),
    (
        "Recipes",
        (
            "recipes/index.md",
            "recipes/kubectl.md",
            "recipes/init-container.md",
            "recipes/cronjob.md",
            "recipes/github-action.md",
            "recipes/slurm.md",
            "recipes/loki.md",
            "recipes/fleet.md",
        ),
    ),
    ("Reference", ("reference/commands.md", "reference/words.md", "reference/formats.md")),
    ("Rules", ("rules/index.md",)),
    ("Packs", ()),
)
_HTML = re.compile(r"[<>&*_\[\]|\\]")


def pages() -> dict[str, str]:
    """Every generated page: path below `docs/` → Markdown."""
    found = {"rules/index.md": rules_index(), "reference/words.md": words(), "reference/commands.md": commands()}
    found |= {f"rules/{rule.code}.md": rule_page(rule) for rule in catalogue.rules().values()}
    return found


def text(words: str) -> str:
    """Text of the catalogue as Markdown: its `code spans` stay, everything else is literal."""
    parts = re.split(r"(`[^`]+`)", words)
    return "".join(part if part.startswith("`") else _HTML.sub(r"\\\g<0>", part) for part in parts)


def rule_page(rule: Rule) -> str:
    """The page of a rule: what `logscan explain` shows."""
    kind = catalogue.kinds()[rule.kind] if rule.kind else None
    lines = [f"# {rule.code} {rule.slug}", "", f"**{text(rule.title)}.**", ""]
    facts = [f"severity **{rule.severity}**", f"touches {', '.join(rule.consequence)}"]
    if rule.path:
        facts.append(f"path `{rule.path}`")
    if kind:
        facts.append(f"kind [`{kind.id}`](../reference/words.md#{kind.id})")
    lines += [" · ".join(facts), "", "## What it finds", "", text(rule.what), ""]
    lines += ["## Why it matters", "", text(rule.why), "", "## What to do", ""]
    for cause in catalogue.CAUSES:
        if cause in rule.fix:
            label = "" if len(rule.fix) == 1 else f"*{'otherwise' if cause == 'unknown' else cause}*: "
            lines += [f"{'- ' if label else ''}{label}{text(rule.fix[cause])}"]
    lines += ["", "## Where it is decided or printed", "", *(f"- `{source}`" for source in rule.sources), ""]
    lines += ["To accept it for a time, see [waivers](../policy.md#waivers).", ""]
    return "\n".join(lines)


def rules_index() -> str:
    """All rules, family by family."""
    lines = ["# Rules", ""]
    lines += [
        "Codes are permanent and never used again. `logscan rules` lists them, `logscan explain CODE` shows one.",
        "",
    ]
    for prefix, title in FAMILIES:
        lines += [f"## {title}", "", "| code | name | severity | finds |", "|---|---|---|---|"]
        for rule in catalogue.rules().values():
            if rule.code.startswith(prefix):
                lines.append(f"| [{rule.code}]({rule.code}.md) | {rule.slug} | {rule.severity} | {text(rule.title)} |")
        lines.append("")
    return "\n".join(lines)


def words() -> str:
    """Kinds, reasons and caveats, each with its own anchor."""
    lines = ["# The words of logscan", "", "## Kinds of deviation", "", "What ran differs from the order. How:", ""]
    for kind in catalogue.kinds().values():
        moves = {
            "always": "makes the row `downgraded`",
            "never": "leaves the verdict as it is",
            "request": "makes the row `downgraded` where it was requested",
            "default": "makes the row `downgraded` against the engine's default",
            "static-scale": "makes the row `downgraded` where a static scale is promised",
        }[kind.moves]
        lines += [f"### {kind.id} {{ #{kind.id} }}", "", text(kind.what), "", text(kind.why), ""]
        lines += [f"Severity {kind.severity}; {moves}; touches {', '.join(kind.consequence)}.", ""]
    lines += ["## Reasons of `unproven`", "", "What is not known, and what you can do about it.", ""]
    lines += _glossary(catalogue.reasons())
    lines += ["## Caveats", "", "What limits a verdict, whatever it is.", ""]
    lines += _glossary(catalogue.caveats())
    return "\n".join(lines)


def _glossary(entries: Mapping[str, catalogue.Reason]) -> Iterator[str]:
    for entry in entries.values():
        yield from (f"### {entry.id} {{ #{entry.id} }}", "", text(entry.what), "")
        if entry.advice:
            yield from (text(entry.advice), "")


def commands() -> str:
    """The help of every command, as the program prints it at 88 columns."""
    import typer

    from logscan.cli.commands import app

    root: Any = typer.main.get_command(app)
    lines = ["# Commands", "", "What `logscan COMMAND --help` prints.", ""]
    for path, command in _commands(root, ("logscan",)):
        lines += [
            f"## {' '.join(path)} {{ #{'-'.join(path)} }}",
            "",
            "```text",
            _help(command, " ".join(path)),
            "```",
            "",
        ]
    return "\n".join(lines)


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from _commands(command.get_command(None, name), (*path, name))


def _help(command: Any, name: str) -> str:
    context = command.make_context(name, [], resilient_parsing=True)
    context.terminal_width = 88
    return str(command.get_help(context)).rstrip()


# ---------------------------------------------------------------- mkdocs


def on_config(config: Any) -> Any:
    """The navigation: what there is of it. Packs have pages where they were generated."""
    made = pages()
    nav: list[Any] = [{"Home": "index.md"}]
    for title, paths in NAV:
        entries: list[Any] = [path for path in paths if path in made or (HERE / path).is_file()]
        if title == "Rules":
            entries += [f"rules/{code}.md" for code in catalogue.rules()]
        if title == "Packs":
            entries += [p.relative_to(HERE).as_posix() for p in sorted((HERE / "packs").rglob("*.md"))]
        if entries:
            nav.append({title: entries})
    config.nav = nav
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    from mkdocs.structure.files import File

    os.environ.setdefault("NO_COLOR", "1")
    for path, content in pages().items():
        files.append(File.generated(config, path, content=content))
    return files
