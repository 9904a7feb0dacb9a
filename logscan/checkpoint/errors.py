"""Why a checkpoint file is refused, and how hostile text is shown."""

from __future__ import annotations

from logscan.model import InputError

_SHOWN = 60
_CONFIG = "give the config.json, hf_quant_config.json or params.json of a model, or its directory"
_AGAIN = "give the file as the model's publisher has it: download it again"
# Of what is wrong with a file as a whole; what is wrong with a value names what is known instead.
_INSTEAD = {
    "E_OPEN": _CONFIG,
    "E_DIR": _CONFIG,
    "E_DIR_EMPTY": _CONFIG,
    "E_NOT_FILE": _CONFIG,
    "E_NOT_CONFIG": _CONFIG,
    "E_YAML": _CONFIG,
    "E_BINARY": _CONFIG,
    "E_DANGLING": _AGAIN,
    "E_EMPTY": _AGAIN,
    "E_ENCODING": _AGAIN,
    "E_JSON": _AGAIN,
    "E_DEPTH": _AGAIN,
    "E_HUGE": _AGAIN,
}


class CheckpointError(InputError):
    """A checkpoint file that cannot be read as a promise. `code` is an `E_…` word, `detail` what was wrong.

    `str()` is the one line for people: file, code, detail, and what to give instead where the detail does not say.
    """

    def __init__(self, code: str, detail: str, source: str = "") -> None:
        self.code = code
        self.detail = detail
        self.source = source
        instead = _INSTEAD.get(code, "") if "; give" not in detail else ""
        told = f"{code}: {detail}; {instead}" if instead else f"{code}: {detail}"
        super().__init__(f"{source}: {told}" if source else told)

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
