"""What a checkpoint promises: every quantization config in one normal form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["CheckpointError", "promise_from_dict", "read_promise"]

if TYPE_CHECKING:
    from logscan.checkpoint.errors import CheckpointError
    from logscan.checkpoint.normalise import promise_from_dict
    from logscan.checkpoint.reader import read_promise

_HOMES = {"CheckpointError": "errors", "promise_from_dict": "normalise", "read_promise": "reader"}


def __getattr__(name: str) -> Any:
    """Imported when first asked for: a log without a checkpoint needs only what tells layer names apart."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
