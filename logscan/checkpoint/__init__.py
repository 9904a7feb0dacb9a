"""What a checkpoint promises: every quantization config in one normal form."""

from __future__ import annotations

from logscan.checkpoint.errors import CheckpointError
from logscan.checkpoint.normalise import promise_from_dict
from logscan.checkpoint.reader import read_promise

__all__ = ["CheckpointError", "promise_from_dict", "read_promise"]
