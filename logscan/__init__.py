"""logscan: did the engine run the numeric path that the checkpoint promised?

    >>> import logscan
    >>> document = logscan.triage("fixtures/vllm-0.24.0-a100-fp8-dynamic/boot.log", gpu="A100")
    >>> document["status"]
    'ready'

Public: `triage`, `expect`, `read_promise`, `scan_batch`, `InputError`. Nothing else is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["InputError", "expect", "read_promise", "scan_batch", "triage"]

if TYPE_CHECKING:
    from logscan.checkpoint import read_promise
    from logscan.desk import triage
    from logscan.fleet.batch import scan_batch
    from logscan.forecast import expect
    from logscan.model import InputError

_HOMES = {
    "triage": "logscan.desk",
    "expect": "logscan.forecast",
    "read_promise": "logscan.checkpoint",
    "scan_batch": "logscan.fleet.batch",
    "InputError": "logscan.model",
}


def __getattr__(name: str) -> Any:
    """The public functions, imported when first asked for: the command line needs one of them, not all."""
    if name not in _HOMES:
        raise AttributeError(f"module 'logscan' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
