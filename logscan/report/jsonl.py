"""One boot a line, for streams and log collectors."""

from __future__ import annotations

import json
from typing import Any

from logscan.report.view import Json

SCHEMA = "logscan.boot/1"


def render(doc: Json, **_: Any) -> str:
    """Every boot of every log, in order: the boot's keys, with the `schema` and the `log` that it stands in."""
    return "".join(boot_line(log["name"], boot) for log in doc["logs"] for boot in log["boots"])


def boot_line(log: str, boot: Json) -> str:
    """One line for a boot; a live stream writes it again when the boot changes: the last of a log and index holds."""
    return json.dumps({"schema": SCHEMA, "log": log, **boot}) + "\n"
