"""A log line that no pattern owns → the TOML of a pattern, ready to be completed."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from logscan.model import Record

_VARIABLE = re.compile(
    r"(?P<quoted>'[^'\n]{1,200}'|\"[^\"\n]{1,200}\"|`[^`\n]{1,200}`)"
    r"|(?P<list>\[[^\]\n]{0,400}\]|\{[^}\n]{0,400}\})"
    r"|(?P<path>(?<!\w)/[\w./+=,@-]{2,})"
    r"|(?P<torch>\btorch\.\w+)"
    r"|(?P<name>\b(?:[A-Z][a-z0-9]+){2,}[A-Za-z0-9]*\b|\b[A-Z0-9]+(?:_[A-Z0-9]+)+\b)"
    r"|(?P<number>(?<![\w.])\d+(?:\.\d+)?(?![\w.]))"
)
_CLASS = {
    "quoted": "[^'\"`\\n]{1,200}",
    "list": "[^\\n]{0,400}",
    "path": "\\S{1,400}",
    "torch": "torch\\.\\w{1,40}",
    "name": "\\w{1,120}",
    "number": "[\\d.]{1,16}",
}
_FAMILIES = (
    (r"\bMoE\b|experts", "moe", "moe"),
    (r"kv[ _-]?cache|KV cache", "kv", "kv_cache"),
    (r"[Aa]ttention|Flash(?:Infer|MLA)|\bMLA\b", "attention", "attention"),
    (r"GEMM|[Kk]ernel|[Ll]inear|Marlin|quantiz", "linear", "linear"),
)
_NAMES = {"moe": "backend", "attention": "backend", "kv": "detail", "linear": "kernel", "feature": "detail"}


class Stub(NamedTuple):
    """A proposal; every part of it is for a person to check."""

    id: str
    literal: str
    regex: str
    emits: str
    path: str
    means: str


def propose(record: Record, pack: str) -> Stub:
    """A pattern for the record's first line: names, numbers and paths in it become groups."""
    text = record.text.split(b"\n")[0].decode("utf-8", "replace")
    family, path = next(((f, p) for rx, f, p in _FAMILIES if re.search(rx, text)), ("feature", ""))
    selects = bool(re.match(r"(?:Using|Selected)\b", text))
    means = "warned" if record.level not in ("", "DEBUG", "INFO") else "selected" if selects else "available"
    emits = f"{family}.{_NAMES[family] if selects else 'detail'}"
    words = re.findall(r"[a-z]{3,}", _VARIABLE.sub(" ", text).lower())
    regex, pieces = _regex(text, _NAMES[family] if selects else "value")
    return Stub(f"{pack}.{family}.{'_'.join(words[:4]) or 'new'}", max(pieces, key=len), regex, emits, path, means)


def _regex(text: str, first: str) -> tuple[str, list[str]]:
    out, pieces, at = ["^"], [""], 0
    names = iter([first, *(f"value{n}" for n in range(2, 99))])
    for m in _VARIABLE.finditer(text):
        pieces.append(text[at : m.start()])
        kind = str(m.lastgroup)
        quote = re.escape(m[0][0]) if kind == "quoted" else ""
        out += [_escape(pieces[-1]), quote, f"(?P<{next(names)}>{_CLASS[kind]})", quote]
        at = m.end()
    pieces.append(text[at:])
    return "".join([*out, _escape(pieces[-1]), "$"]), pieces


def _escape(text: str) -> str:
    return re.sub(r"[.^$*+?{}\[\]\\|()]", lambda m: "\\" + m[0], text)


def toml(stub: Stub, record: Record) -> str:
    """The stub as the TOML of one `[[pattern]]`, with what is still to be done as comments."""
    text = record.text.split(b"\n")[0].decode("utf-8", "replace")
    lines = [
        "[[pattern]]",
        f'id = "{stub.id}"  # say it shorter',
        f"literal = {_text(stub.literal)}",
        f"regex = {_text(stub.regex)}",
        f'emits = "{stub.emits}"',
        f"match = [{_text(text)}]",
        'nomatch = [""]  # a line that is near, and is not this',
        "[[pattern.site]]",
        'engine = ""  # releases that print it: >=0.34.0',
        f'source = "{record.file}:"  # path/file.py:Class.function',
        f'level = "{record.level}"',
        f'means = "{stub.means}"',
    ]
    return "\n".join(lines + ([f'path = "{stub.path}"'] if stub.path else [])) + "\n"


def _text(value: str) -> str:
    if "'" not in value:
        return f"'{value}'"
    if "\\" in value and "'''" not in value and not value.endswith("'"):
        return f"'''{value}'''"
    return json.dumps(value, ensure_ascii=False)
