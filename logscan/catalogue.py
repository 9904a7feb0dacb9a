"""The catalogue of rules: what each looks for, why it matters, and what to do about it.

Rules and kinds are data (`patterns/knowledge/rules.toml`, `kinds.toml`); `explain`, the judge and every report read
them from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

from logscan import tomlcache
from logscan.model import PATHS, SEVERITIES, InputError, Severity
from logscan.packs import patterns_dir

Cause = Literal["request", "hardware", "version", "build", "checkpoint", "unknown"]
CAUSES: tuple[Cause, ...] = ("request", "hardware", "version", "build", "checkpoint", "unknown")
Moves = Literal["always", "never", "request", "default", "static-scale"]
NOT_SERVED = "00"


class Kind(NamedTuple):
    """A kind of deviation. `severity_of` overrides `severity` by `path`, `against` or `reuse`; the first match wins."""

    id: str
    code: str  # last two digits of its rules
    moves: Moves
    severity: Severity
    consequence: tuple[str, ...]
    what: str
    why: str
    fix: Mapping[str, str]
    severity_of: tuple[Mapping[str, str], ...] = ()

    def moves_verdict(self, against: str | None, *, static_scale: bool = False) -> bool:
        """Whether this deviation makes a row `downgraded` when measured `against` request, promise or default.

        `static_scale`: the checkpoint promises a static scale on this path.
        """
        if self.moves == "static-scale":
            return static_scale
        return self.moves == "always" or self.moves == against

    def severity_for(
        self, path: str, *, against: str | None = None, cause: str | None = None, reuse: str | None = None
    ) -> Severity:
        """Severity of a deviation of this kind. `reuse`: KV reuse or chunked prefill is `on`, `off` or `unknown`.

        What was asked for (cause `request`) is information, never an alarm.
        """
        if cause == "request":
            return "info"
        known = {"path": path, "against": against, "reuse": reuse}
        for override in self.severity_of:
            if all(known[key] == value for key, value in override.items() if key != "is"):
                return _severity(override["is"])
        return self.severity


class Rule(NamedTuple):
    """One rule. `fix` by cause; its `unknown` entry serves every cause that it does not list."""

    code: str
    slug: str
    title: str
    what: str
    why: str
    severity: Severity
    consequence: tuple[str, ...]
    fix: Mapping[str, str]
    sources: tuple[str, ...]
    path: str | None = None
    kind: str | None = None

    def fix_for(self, cause: str | None) -> str:
        """What to do, for what would have to change."""
        return self.fix.get(cause or "unknown") or self.fix["unknown"]


@cache
def kinds() -> Mapping[str, Kind]:
    """Every kind of deviation, by id."""
    entries = tomlcache.read(patterns_dir() / "knowledge" / "kinds.toml")["kind"]
    return {entry["id"]: _kind(entry) for entry in entries}


class Reason(NamedTuple):
    """Why a row is unproven (with `advice`), or what limits any verdict (a caveat: advice is empty)."""

    id: str
    what: str
    advice: str = ""


@cache
def reasons() -> Mapping[str, Reason]:
    """Every reason of `unproven`, by id."""
    return {entry["id"]: Reason(**entry) for entry in _reasons_file()["reason"]}


@cache
def caveats() -> Mapping[str, Reason]:
    """Every caveat, by id."""
    return {entry["id"]: Reason(**entry) for entry in _reasons_file()["caveat"]}


def _reasons_file() -> dict[str, Any]:
    return tomlcache.read(patterns_dir() / "knowledge" / "reasons.toml")


@cache
def rules() -> Mapping[str, Rule]:
    """Every rule, by code, in the order of codes."""
    entries = tomlcache.read(patterns_dir() / "knowledge" / "rules.toml")["rule"]
    return {entry["code"]: _rule(entry) for entry in sorted(entries, key=lambda entry: str(entry["code"]))}


def rule(name: str) -> Rule:
    """The rule of this code or slug, in any letter case.

    Raises InputError that names the nearest ones.
    """
    known = rules()
    found = known.get(name.upper()) or next((r for r in known.values() if r.slug == name.lower()), None)
    if found is None:
        raise InputError(f"no rule {name!r}; {_nearest(name)}")
    return found


def rule_for(path: str, kind: str | None = None) -> Rule:
    """The rule of a kind of deviation on a path; without a kind, that of a path that is not served.

    Raises KeyError for a pair that no rule covers.
    """
    digits = kinds()[kind].code if kind else NOT_SERVED
    return rules()[f"LS{PATHS.index(path) + 1}{digits}"]


def _nearest(name: str) -> str:
    from difflib import get_close_matches

    names = [text for r in rules().values() for text in (r.code, r.slug)]
    near = get_close_matches(name.upper(), names, 3) or get_close_matches(name.lower(), names, 3)
    return f"did you mean {' or '.join(near)}?" if near else "`logscan rules` lists them"


def _kind(entry: Mapping[str, Any]) -> Kind:
    fields = dict(entry)
    fields["consequence"] = tuple(entry["consequence"])
    fields["severity_of"] = tuple(entry.get("severity_of", ()))
    return Kind(**fields)


def _rule(entry: Mapping[str, Any]) -> Rule:
    fields = dict(entry)
    kind = kinds()[entry["kind"]] if "kind" in entry else None
    if kind is not None:
        fields.setdefault("why", kind.why)
        fields.setdefault("severity", kind.severity_for(entry["path"]))
        fields.setdefault("consequence", kind.consequence)
        fields["fix"] = {**kind.fix, **entry.get("fix", {})}
    fields["consequence"] = tuple(fields["consequence"])
    fields["sources"] = tuple(entry["sources"])
    return Rule(**fields)


def _severity(text: str) -> Severity:
    if text not in SEVERITIES:
        raise ValueError(f"{text!r} is no severity")
    return text
