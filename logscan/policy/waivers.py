"""Findings that a team has accepted: each with a reason, and a day after which it must be decided anew.

[[waiver]]
code = "LS101"                 # a rule's code or slug; or fingerprint = "…", of one finding
path = "linear"                # optional, like group and model (a glob)
model = "org/llama-*"
reason = "A100s are retired in March"
expires = 2027-03-31           # the last day on which it holds
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any, NamedTuple

from logscan import catalogue
from logscan.model import PATHS, InputError
from logscan.policy.located import Located, unknown_key
from logscan.policy.located import read as read_toml

_KEYS = ("code", "fingerprint", "path", "group", "model", "reason", "expires")
_FINGERPRINT = re.compile(r"[0-9a-f]{8,64}")


class Waiver(NamedTuple):
    """One accepted finding, or all that fit."""

    reason: str
    expires: date
    code: str | None = None
    fingerprint: str | None = None
    path: str | None = None
    group: str | None = None
    model: str | None = None
    where: str = ""

    def matches(self, finding: Mapping[str, Any], boot: Mapping[str, Any]) -> bool:
        """Whether everything that the waiver names fits a finding of a boot."""
        from fnmatch import fnmatchcase

        pairs = (
            (self.code, finding["code"]),
            (self.fingerprint, finding["fingerprint"]),
            (self.path, finding["path"]),
            (self.group, finding.get("group")),
        )
        if any(wanted is not None and wanted != found for wanted, found in pairs):
            return False
        return self.model is None or fnmatchcase(boot["model"] or "", self.model)


def read(path: Path) -> tuple[Waiver, ...]:
    """The waivers of a file. Raises InputError, with file and line, for what is not one."""
    located = read_toml(path)
    for key in located.tree:
        if key != "waiver":
            raise unknown_key(key, ("waiver",), located.where(key=key) if "=" in key else located.where(key))
    return entries(located)


def entries(located: Located) -> tuple[Waiver, ...]:
    """The `[[waiver]]` tables of a file."""
    found = located.tree.get("waiver", [])
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise InputError(f"{located.where('waiver')}: write [[waiver]], one table for each")
    return tuple(_waiver(entry, located, n) for n, entry in enumerate(found))


def overdue(waiver: Waiver, finding: Mapping[str, Any]) -> dict[str, Any]:
    """The finding that a waiver has expired."""
    from logscan.judge.findings import fingerprint
    from logscan.policy.require import finding as own

    message = f"{waiver.where}: the waiver of {finding['code']} expired on {waiver.expires}: {waiver.reason}"
    return own("LS803", message, fingerprint("LS803", None, finding["fingerprint"], str(waiver.expires)))


def _waiver(entry: Mapping[str, Any], located: Located, n: int) -> Waiver:
    here = located.where("waiver", n)
    for key, value in entry.items():
        at = located.where("waiver", n, key)
        if key not in _KEYS:
            raise unknown_key(key, _KEYS, at)
        if key != "expires" and not (isinstance(value, str) and value.strip()):
            raise InputError(f"{at}: {key} must be a text that is not empty, not {value!r}")
    if "code" not in entry and "fingerprint" not in entry:
        raise InputError(f"{here}: a waiver names a code (LS101) or the fingerprint of a finding")
    for key, why in (("reason", "why it is accepted"), ("expires", "the last day on which it holds, 2027-03-31")):
        if key not in entry:
            raise InputError(f"{here}: {key} is missing: say {why}")
    if entry.get("path", PATHS[0]) not in PATHS:
        raise InputError(f"{located.where('waiver', n, 'path')}: path must be one of {', '.join(PATHS)}")
    if not _FINGERPRINT.fullmatch(entry.get("fingerprint", "0" * 16)):
        raise InputError(f"{located.where('waiver', n, 'fingerprint')}: copy the fingerprint from --format json")
    return Waiver(
        reason=entry["reason"].strip(),
        expires=_day(entry["expires"], located.where("waiver", n, "expires")),
        code=_code(entry["code"], located.where("waiver", n, "code")) if "code" in entry else None,
        fingerprint=entry.get("fingerprint"),
        path=entry.get("path"),
        group=entry.get("group"),
        model=entry.get("model"),
        where=here,
    )


def _code(text: str, where: str) -> str:
    try:
        found = catalogue.rule(text)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    if found.code == "LS803":
        raise InputError(f"{where}: an expired waiver cannot be waived; give the first one a new date")
    return found.code


def _day(value: object, where: str) -> date:
    if isinstance(value, datetime):
        return value.date()
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(str(value))
    except ValueError as error:
        raise InputError(f"{where}: expires must be a day such as 2027-03-31, not {value!r}") from error
