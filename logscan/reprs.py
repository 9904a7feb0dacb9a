"""Reading the Python reprs that engines print: dict, Namespace, and the engine line's `key=value, …`.

Nothing is evaluated. Values hold arbitrary reprs (`<Enum.X: 'a'>`, nested calls, chat templates), so the text is cut at
commas outside quotes and brackets, and the values stay text.
"""

from __future__ import annotations

import re
from typing import Literal

Style = Literal["pydict", "namespace", "engine-config"]
MAX_CHARS = 1 << 17
MAX_VALUE = 4000
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[\[\](){},]", re.S)
_KEY = {
    "pydict": re.compile(r"\s*'([^'\\]{1,100})'\s*:\s*"),
    "namespace": re.compile(r"\s*([A-Za-z_]\w{0,99})\s*=\s*"),
    "engine-config": re.compile(r"\s*([A-Za-z_]\w{0,99})\s*=\s*"),
}
_OPEN = {"pydict": "{", "namespace": "(", "engine-config": ""}


def pairs(text: str, style: Style) -> dict[str, str]:
    """Top-level keys and values of a printed repr; a quoted value loses its quotes. A cut-off text gives what it holds.

    `pydict`: `{'model': 'org/m', 'port': 8000}` · `namespace`: `Namespace(model='org/m', port=8000)` ·
    `engine-config`: `model='org/m', dtype=torch.bfloat16`.
    """
    text = text[:MAX_CHARS]
    opener = _OPEN[style]
    start = text.find(opener) + 1 if opener else 0
    if opener and start == 0:
        return {}
    out: dict[str, str] = {}
    for part in _parts(text, start):
        m = _KEY[style].match(part)
        if m is not None:
            out.setdefault(m[1], unquote(part[m.end() :].strip()[:MAX_VALUE]))
    return out


def _parts(text: str, start: int) -> list[str]:
    """`text[start:]` cut at commas of depth 0, up to the bracket that closes it."""
    parts: list[str] = []
    depth, cut, end = 0, start, len(text)
    for m in _TOKEN.finditer(text, start):
        c = text[m.start()]
        if c in "[({":
            depth += 1
        elif c in "])}":
            depth -= 1
            if depth < 0:
                end = m.start()
                break
        elif c == "," and depth == 0:
            parts.append(text[cut : m.start()])
            cut = m.end()
    parts.append(text[cut:end])
    return parts


def unquote(value: str) -> str:
    """A repr of a string without its quotes; anything else as it is."""
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1].replace("\\'", "'").replace('\\"', '"').replace("\\\\", "\\")
    return value
