"""`logscan expect`: from arguments to a prediction and an exit code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from logscan.cli.output import wants_color, write
from logscan.forecast import expect
from logscan.model import SEVERITIES

FOUND, UNPROVEN = 1, 3


def run(
    *,
    ckpt: str,
    gpu: str,
    engine: str,
    cuda: str | None = None,
    have: str | None = None,
    flags: Mapping[str, str] = {},
    env: Mapping[str, str] = {},
    format: str = "table",
    output: Path | None = None,
    fail_on: str = "high",
    strict: bool = False,
    verbose: bool = False,
    color: str = "auto",
) -> int:
    """Write the prediction; the exit code: 1 for a finding at or above `fail_on`, 3 for a strict unproven."""
    doc: Any = expect(ckpt, gpu, engine, cuda=cuda, have=have, flags=flags, env=env)
    if format == "json":
        text = json.dumps(doc, indent=2, ensure_ascii=False) + "\n"
    else:
        from logscan.report import forecast

        text = forecast.render(doc, verbose=verbose, color=wants_color(color, output))
    write(text, output)
    outcomes: list[dict[str, Any]] = doc.get("releases") or [doc]
    found = [SEVERITIES.index(f["severity"]) for o in outcomes for f in o["findings"]]
    if fail_on != "never" and found and max(found) >= SEVERITIES.index(fail_on):
        return FOUND
    return UNPROVEN if strict and any(o["verdict"] == "unproven" for o in outcomes) else 0
