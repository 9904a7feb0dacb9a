"""The documentation page of a pack, from the pack itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from logscan.packs.ledger import claimed, spans
from logscan.packs.schema import Pack, Pattern

_LONGEST = 110


def page(pack: Pack, ledger: Mapping[str, Any]) -> str:
    """Markdown: what the pack knows, file by file, and in which releases each pattern was proven."""
    proven = sum(p.id in ledger for p in pack.patterns)
    known = (
        f"{pack.releases[0]} to {pack.releases[-1]}, {len(pack.releases)} of them" if pack.releases else "not listed"
    )
    lines = [
        f"# Pattern pack `{pack.id}`",
        "",
        "Made from the pack's own data; edit the TOML, not this page.",
        "",
        f"Version {pack.version} · {len(pack.patterns)} patterns · releases known: {known}.",
    ]
    if proven:
        lines.append(
            f"{proven} patterns were proven against the engine's source; the others are printed by something else "
            "(uvicorn, Triton, a plugin, a traceback's frames)."
        )
    for file, patterns in groupby(pack.patterns, lambda p: p.where.partition(":")[0]):
        lines += [
            "",
            f"## `{file}`",
            "",
            "| pattern | fact | means | releases | a line of it |",
            "|---|---|---|---|---|",
        ]
        lines += [_row(p, pack) for p in patterns]
        lines += _notes(pack, file)
    return "\n".join(lines) + "\n"


def _row(p: Pattern, pack: Pack) -> str:
    means = ", ".join(dict.fromkeys(s.means for s in p.sites))
    releases = ", ".join(spans(claimed(p, pack), pack)) or "any"
    example = p.match[0] if p.match else ""
    example = example if len(example) <= _LONGEST else example[: _LONGEST - 1] + "…"
    return f"| `{p.id}` | `{p.emits}` | {means} | {releases} | {_code(example)} |"


def _notes(pack: Pack, file: str) -> Iterator[str]:
    noted = [p for p in pack.patterns if p.note and p.where.startswith(f"{file}:")]
    if noted:
        yield ""
    for p in noted:
        yield f"- `{p.id}`: {p.note}"


def _code(text: str) -> str:
    text = text.replace("|", "\\|").replace("\n", " ")
    return f"`` {text} ``" if text else ""
