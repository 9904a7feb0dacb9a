"""Styled lines, wrapped to a width: plain without any import, coloured through rich."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Span(NamedTuple):
    """A piece of text and how it looks: `bad`, `warn`, `good`, `note`, `dim`, `bold`, or "" for plain."""

    text: str
    style: str = ""


class Line(NamedTuple):
    """A line before wrapping: `first` opens it, `rest` opens each line that it continues on."""

    spans: Sequence[Span]
    first: str = ""
    rest: str = ""


BLANK = Line(())
# Legible on light and on dark ground: no bright colours, and dim instead of grey.
_STYLES = {"bad": "bold red", "warn": "yellow", "good": "green", "note": "cyan", "dim": "dim", "bold": "bold"}


def line(*spans: Span | str, first: str = "", rest: str | None = None) -> Line:
    """A line of spans; it continues under its own first word unless `rest` says otherwise."""
    styled = [Span(s) if isinstance(s, str) else s for s in spans]
    return Line(styled, first, " " * cells(first) if rest is None else rest)


def cells(text: str) -> int:
    """Terminal columns that a text takes: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def wrap(source: Line, width: int) -> list[list[Span]]:
    """The line broken at spaces to at most `width` columns; a word longer than a line is cut where it ends."""
    room = max(width - max(cells(source.first), cells(source.rest)), 16)
    lines: list[list[Span]] = [[]]
    used = 0
    for word, style, gap in _words(source.spans):
        if used and used + gap + cells(word) > room:
            lines.append([])
            used = 0
        if gap and used:
            lines[-1].append(Span(" " * gap))
            used += gap
        while used + cells(word) > room:
            head = _cut(word, room - used)
            lines[-1].append(Span(head, style))
            lines.append([])
            word, used = word[len(head) :], 0
        lines[-1].append(Span(word, style))
        used += cells(word)
    return [[Span(source.rest if n else source.first), *spans] for n, spans in enumerate(lines)]


def _words(spans: Sequence[Span]) -> Iterable[tuple[str, str, int]]:
    """(word, style, spaces before it); a word may be made of pieces that follow without a space."""
    gap = 0
    for span in spans:
        for n, word in enumerate(span.text.split(" ")):
            gap += n > 0
            if word:
                yield word, span.style, gap
                gap = 0


def _cut(word: str, room: int) -> str:
    used = 0
    for n, char in enumerate(word):
        used += cells(char)
        if used > room:
            return word[: max(n, 1)]
    return word


def plain(lines: Iterable[Line], width: int) -> str:
    """The lines as text without any styling."""
    return "".join(
        "".join(span.text for span in spans).rstrip() + "\n" for source in lines for spans in wrap(source, width)
    )


def colored(lines: Iterable[Line], width: int) -> str:
    """The lines with terminal styling. Text is passed on as it is: no markup is read in it."""
    from rich.console import Console
    from rich.text import Text

    console = Console(force_terminal=True, color_system="standard", width=width, highlight=False, markup=False)
    with console.capture() as capture:
        for source in lines:
            for spans in wrap(source, width):
                text = Text(end="\n", no_wrap=True, overflow="ignore")
                for span in spans:
                    text.append(span.text, _STYLES.get(span.style, ""))
                text.rstrip()
                console.print(text, soft_wrap=True)
    return capture.get()
