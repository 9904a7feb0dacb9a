"""Why a checkpoint file is refused, and how hostile text is shown."""

from __future__ import annotations

from logscan.model import InputError

_SHOWN = 60


class CheckpointError(InputError):
    """A checkpoint file that cannot be read as a promise. `code` is an `E_…` word, `detail` what was wrong.

    `str()` is the one line for people: file, code, detail.
    """

    def __init__(self, code: str, detail: str, source: str = "") -> None:
        self.code = code
        self.detail = detail
        self.source = source
        super().__init__(f"{source}: {code}: {detail}" if source else f"{code}: {detail}")

    def at(self, source: str) -> CheckpointError:
        """The same refusal, naming the file it was met in."""
        return self if self.source else CheckpointError(self.code, self.detail, source)


def printable(text: str, limit: int) -> str:
    """`text` cut to `limit` characters, with escapes for what a terminal would act on or cannot encode."""
    if len(text) <= limit and text.isprintable():
        return text
    shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:limit])
    return shown[:limit] + ("…" if len(shown) > limit or len(text) > limit else "")


def show(value: object, limit: int = _SHOWN) -> str:
    """A value of the file as it may be printed: escaped, on one line, at most `limit` characters long."""
    if isinstance(value, str):
        text = ascii(value[:limit])
        return text[:limit] + ("…" if len(text) > limit or len(value) > limit else "")
    if isinstance(value, (dict, list, tuple)):
        return kind_of(value)
    text = ascii(value) if not isinstance(value, int) or abs(value) < 10**20 else "a huge integer"
    return text[:limit]


def kind_of(value: object) -> str:
    """The JSON word for a value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, (int, float)):
        return "a number"
    return "a list" if isinstance(value, (list, tuple)) else "an object"
