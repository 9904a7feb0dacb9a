"""The document itself."""

from __future__ import annotations

import json
from typing import Any

from logscan.report.view import Json


def render(doc: Json, **_: Any) -> str:
    """The document, indented. ASCII only: what a log smuggles in cannot reach a terminal through `jq -C` or `cat`."""
    return json.dumps(doc, indent=2) + "\n"
