"""Which unframed lines belong to a Python traceback, and which are bare prints."""

from __future__ import annotations

import re

from logscan.model import Origin

_START = (b"Traceback (most recent call last):", b"  + Exception Group Traceback", b"terminate called ", b"  what():  ")
_BETWEEN = (b"During handling of the above", b"The above exception was")
_ERROR = re.compile(rb"(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Interrupt|Exit|Fault)|AssertionError)(?::|$)")
_FRAME = b'  File "'
_MESSAGE_LINES = 24  # an exception's message may go on for that many lines
_STREAMS = 1024  # processes remembered at once


class Tracebacks:
    """Follows the traceback of each process through the stream."""

    def __init__(self) -> None:
        # Lines of message that may still come, -1 within the stack. Any record ends all of them: a traceback that a
        # record interrupts is picked up again at its next frame or at its error.
        self.open: dict[tuple[str, str], int] = {}

    def origin(self, source: str, process: str, text: bytes) -> Origin:
        """Of an unframed line: `traceback` or `print`."""
        key = (source, process)
        left = self.open.get(key)
        if text.startswith(_START) or text.startswith(_FRAME):
            self._set(key, -1)
            return "traceback"
        if _ERROR.match(text):
            self._set(key, _MESSAGE_LINES)
            return "traceback"
        if left is None:
            return "print"
        if text.startswith(_BETWEEN):
            return "traceback"
        if left < 0:
            if text and text[:1] != b" ":  # an exception whose name ends otherwise
                self._set(key, _MESSAGE_LINES)
            return "traceback"
        if left == 0 or not text:
            del self.open[key]
            return "print"
        self.open[key] = left - 1
        return "traceback"

    def _set(self, key: tuple[str, str], left: int) -> None:
        if len(self.open) >= _STREAMS:
            self.open.clear()
        self.open[key] = left
