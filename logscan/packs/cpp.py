"""The texts a C++ source can print: the literals of TensorRT-LLM's logging macros, of its checks, and the others.

No preprocessor runs: macros are found by name, their arguments by matching brackets, with comments and strings stepped
over. What is not a literal is a hole, as is every printf conversion.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

from logscan.packs.templates import HOLE, Template

SUFFIXES = (".cpp", ".cc", ".cu", ".cuh", ".h", ".hpp")
# Macro → level, and which argument is the text (tensorrt_llm/common/logger.h, assert.h, tllmException.h).
_MACROS = {
    b"TLLM_LOG_TRACE": ("DEBUG", 0),
    b"TLLM_LOG_DEBUG": ("DEBUG", 0),
    b"TLLM_LOG_INFO": ("INFO", 0),
    b"TLLM_LOG_WARNING": ("WARNING", 0),
    b"TLLM_LOG_ERROR": ("ERROR", 0),
    b"TLLM_LOG_EXCEPTION": ("ERROR", 0),
    b"TLLM_THROW": ("raise", 0),
    b"TLLM_CHECK_WITH_INFO": ("assert", 1),
    b"TLLM_CHECK_DEBUG_WITH_INFO": ("assert", 1),
}
_TOKEN = re.compile(
    rb"""//[^\n]*|/\*.*?\*/|R"\((?P<raw>.*?)\)"|"(?P<string>(?:[^"\\\n]|\\.)*)"|'(?:[^'\\\n]|\\.)'|(?P<word>[A-Za-z_]\w*)"""
    rb"""|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<comma>,)|(?P<space>\s+)|(?P<other>.)""",
    re.DOTALL,
)
_DEFINED = re.compile(rb"^(?:[\w:<>*&,~ ]+ )?((?:\w+::)+~?\w+)\(", re.MULTILINE)
_PRINTF = re.compile(r"%[-+ #0]*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh?|ll?|[zjtL])?[diouxXeEfFgGaAcsp]|%\0")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "'": "'"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SHORT = 8


def templates(data: bytes) -> list[Template]:
    """The templates of one C++ file, those of checks as the program prints them."""
    found: list[Template] = []
    spoken: set[int] = set()
    place = _Places(data)
    for name, start, arguments in _calls(data):
        level, index = _MACROS[name]
        if index >= len(arguments):
            continue
        spoken.update(offset for offset, _ in arguments[index])
        text = _template(_joined(arguments[index]))
        if text.strip(HOLE):
            said = [text, f"{HOLE}Assertion failed: {text}{HOLE}"] if level == "assert" else [text]
            found += [Template(t, level, *place.of(start)) for t in said]
    for m in _TOKEN.finditer(data):
        literal = _literal(m)
        if literal is not None and m.start() not in spoken and len(literal) >= _SHORT:
            found.append(Template(_template(literal), "text", *place.of(m.start())))
    return found


class _Places:
    """Where an offset lies: the method that is defined last before it, and the line."""

    def __init__(self, data: bytes) -> None:
        self._lines = [m.start() for m in re.finditer(rb"\n", data)]
        self._methods = [(m.start(), m[1].decode("ascii", "replace")) for m in _DEFINED.finditer(data)]

    def of(self, offset: int) -> tuple[str, int]:
        """Method (`<file>` where none is) and line, from 1."""
        before = bisect_right(self._methods, offset, key=lambda method: method[0])
        return self._methods[before - 1][1] if before else "<file>", bisect_right(self._lines, offset) + 1


Piece = tuple[int, str | None]  # offset, and a literal's text; None for anything else


def _calls(data: bytes) -> Iterator[tuple[bytes, int, list[list[Piece]]]]:
    """Each macro call: name, offset, arguments as pieces."""
    at = 0
    while m := _TOKEN.match(data, at):
        at = m.end()
        word = m["word"]
        if word in _MACROS and data[at : at + 1] == b"(":
            arguments, end = _arguments(data, at + 1)
            yield word, m.start(), arguments
            at = max(end, at)


def _arguments(data: bytes, at: int) -> tuple[list[list[Piece]], int]:
    """The arguments from behind the opening bracket to the closing one."""
    out: list[list[Piece]] = [[]]
    depth = 0
    while m := _TOKEN.match(data, at):
        at = m.end()
        literal = _literal(m)
        if m["close"]:
            if depth == 0:
                break
            depth -= 1
        elif m["comma"] and depth == 0:
            out.append([])
            continue
        depth += bool(m["open"])
        if literal is not None:
            # An argument of a function inside the text is a value, not part of the text.
            out[-1].append((m.start(), literal if depth == 0 or _formatted(out[-1]) else None))
        elif not m["space"] and m["other"] != b"+" and (m["word"] or m["other"] or m["open"] or m["close"]):
            out[-1].append((m.start(), None))
    return out, at


def _formatted(pieces: list[Piece]) -> bool:
    """Whether nothing but the name of a wrapper stands before: `fmtstr("…", x)`, `std::string("…")`."""
    return all(text is None for _, text in pieces)


def _literal(m: re.Match[bytes]) -> str | None:
    if m["string"] is not None:
        return _ESCAPE.sub(lambda e: _ESCAPES.get(e[1], e[1]), m["string"].decode("utf-8", "replace"))
    return m["raw"].decode("utf-8", "replace") if m["raw"] is not None else None


def _joined(pieces: list[Piece]) -> str:
    """Adjacent literals are one; whatever stands between them is one hole."""
    first = next((i for i, (_, text) in enumerate(pieces) if text is not None), 0)
    # What stands before the first literal is the name of a wrapper and its bracket.
    return "".join(HOLE if piece is None else piece for _, piece in pieces[first:])


def _template(text: str) -> str:
    return re.sub(f"{HOLE}+", HOLE, _PRINTF.sub(HOLE, text))
