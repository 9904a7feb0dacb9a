"""What a team asks of its boots: required and forbidden facts, thresholds by rule, waivers, a baseline.

A policy reads and marks documents of `triage`; it never changes a verdict, only which findings fail.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from logscan.model import SEVERITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import date

    from logscan.policy.require import Requirement
    from logscan.policy.waivers import Waiver

NAME = "logscan.toml"
DEFAULT_FAIL_ON = "high"
# A demand of the user's own fails whatever the threshold for what logscan finds by itself; `never` still wins.
_OWN = "LS8"


class Policy(NamedTuple):
    """Everything that decides whether a finding fails."""

    fail_on: str = DEFAULT_FAIL_ON
    fail_on_rules: Mapping[str, str] = {}  # code or its beginning → severity or never; the longest one counts
    requirements: tuple[Requirement, ...] = ()
    waivers: tuple[Waiver, ...] = ()
    baseline: Mapping[str, str] = {}  # fingerprint → where it is known from
    source: str | None = None  # the logscan.toml

    def threshold(self, code: str) -> str:
        """The severity from which a finding of this rule fails, or `never`."""
        if self.fail_on == "never":
            return "never"
        named = [prefix for prefix in self.fail_on_rules if code.startswith(prefix)]
        if named:
            return self.fail_on_rules[max(named, key=len)]
        return SEVERITIES[0] if code.startswith(_OWN) else self.fail_on

    def fails(self, finding: Mapping[str, Any]) -> bool:
        """Whether a finding (as in a document) makes the run fail."""
        limit = self.threshold(finding["code"])
        if finding["waived"] is not None or limit == "never":
            return False
        return SEVERITIES.index(finding["severity"]) >= SEVERITIES.index(limit)


def discover(start: Path | None = None) -> Path | None:
    """The nearest `logscan.toml` in a folder or above it; by default in the one that this runs in, if it is there."""
    if start is None:
        try:
            start = Path.cwd()
        except FileNotFoundError:
            return None
    return next((file for folder in (start, *start.parents) if (file := folder / NAME).is_file()), None)


def gather(
    *,
    config: Path | None = None,
    isolated: bool = False,
    fail_on: str | None = None,
    require: Sequence[str] = (),
    waivers: Path | None = None,
    baseline: Path | None = None,
    start: Path | None = None,
) -> Policy:
    """The policy of a run: `logscan.toml` (given, or found upward from `start`), and what the command line adds.

    Options win over the file: `fail_on`, `baseline`; requirements and waivers are added to the file's.
    Raises InputError, with file and line, for what cannot be read.
    """
    policy = Policy()
    file = config or (None if isolated else discover(start))
    if file is not None:
        from logscan.policy.config import read as settings

        policy = settings(file)
    if fail_on is not None:
        policy = policy._replace(fail_on=fail_on)
    if require:
        from logscan.policy.require import parse

        policy = policy._replace(requirements=(*policy.requirements, *(parse(text, "--require") for text in require)))
    if waivers is not None:
        from logscan.policy.waivers import read

        policy = policy._replace(waivers=(*policy.waivers, *read(waivers)))
    if baseline is not None:
        from logscan.policy.baseline import read as known

        policy = policy._replace(baseline=known(baseline))
    return policy


def apply(
    policy: Policy,
    boots: Iterable[dict[str, Any]],
    counted: Sequence[Mapping[str, Any]],
    today: date | None = None,
) -> tuple[str, ...]:
    """Add the findings of the policy to the boots that count, and mark those of all `boots` that are waived.

    `boots` are the boot objects of a document, changed in place. Waivers end by `today`: UTC, unless given.
    Returns remarks: expired waivers that waive nothing any more.
    """
    if not (policy.requirements or policy.waivers or policy.baseline):
        return ()
    if today is None:
        from datetime import UTC, datetime

        today = datetime.now(UTC).date()
    fitting: set[str] = set()
    for boot in boots:
        expired: dict[str, dict[str, Any]] = {}
        if policy.requirements and any(boot is other for other in counted):
            from logscan.policy.require import check

            boot["findings"] += [f for r in policy.requirements if (f := check(r, boot)) is not None]
        for finding in boot["findings"]:
            _waive(policy, finding, boot, today, expired)
        boot["findings"] += list(expired.values())
        fitting |= expired.keys()
    idle = [w for w in policy.waivers if w.expires < today and w.where not in fitting]
    return tuple(f"{w.where}: this waiver expired on {w.expires} and waives nothing here; remove it" for w in idle)


def _waive(
    policy: Policy, finding: dict[str, Any], boot: Mapping[str, Any], today: date, expired: dict[str, dict[str, Any]]
) -> None:
    known = policy.baseline.get(finding["fingerprint"])
    if known is not None:
        finding["waived"] = f"known: {known}"
        return
    matching = [w for w in policy.waivers if w.matches(finding, boot)]
    valid = next((w for w in matching if today <= w.expires), None)
    if valid is not None:
        finding["waived"] = f"{valid.reason} (until {valid.expires})"
        return
    for waiver in matching:
        from logscan.policy.waivers import overdue

        expired.setdefault(waiver.where, overdue(waiver, finding))
