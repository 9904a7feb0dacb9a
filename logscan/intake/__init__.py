"""Intake: a file, a pipe or a compressed stream becomes records, its wrappers peeled."""

from logscan.intake.source import Source, open_source

__all__ = ["Source", "open_source"]
