"""Findings that were there before: a document of `triage --format json`, whose fingerprints do not fail again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from logscan.model import InputError

_LARGEST = 256 << 20


def read(path: Path) -> Mapping[str, str]:
    """Fingerprint → what it is known from. Raises InputError for a file that is no such document."""
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path}: too large for a baseline")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: the baseline cannot be read: {error.strerror}") from error
    try:
        doc = json.loads(data)
        if not str(doc["schema"]).startswith("logscan.triage/"):
            raise ValueError(doc["schema"])
        found = [f["fingerprint"] for log in doc["logs"] for boot in log["boots"] for f in boot["findings"]]
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: not JSON: {error.msg}; {_ADVICE}") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(f"{path}: not a document of triage; {_ADVICE}") from error
    return {str(fingerprint): f"baseline {path}" for fingerprint in found}


_ADVICE = "write one with `logscan triage LOG --format json -o baseline.json`"
