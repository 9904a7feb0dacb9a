"""Rows and facts → findings, under their permanent codes. Texts come from the catalogue."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from logscan import catalogue
from logscan.judge.evidence import cite
from logscan.judge.fmha import lost_fp8
from logscan.judge.inputs import Mismatch
from logscan.judge.limits import Denied
from logscan.model import SEVERITIES, Boot, Evidence, Fact, Finding, Promise, Row, replace

# The first that fits says why a boot failed: (code, names of facts, a word of their text).
_FAILURES = (
    ("LS505", (".refused",), ""),
    ("LS503", ("boot.error", "boot.exception"), "cache"),
    ("LS502", ("boot.memory", "boot.error", "boot.exception"), "memory"),
    ("LS504", ("boot.exception",), "ddress already in use"),
)
_NO_FEATURE = frozenset({"feature.generation_config"})  # a default replaced by the model's own: nothing is off
EVIDENCE = 5  # lines quoted in a finding
# Facts that say of a request that it was not honoured, and the rule: of the path it belongs to, or of none.
_REPLACED = {
    "moe.request_replaced": "LS208",
    "quant.request_ignored": "LS601",
    "quant.override_ignored": "LS601",
}


def findings(
    boot: Boot,
    rows: Sequence[Row],
    promise: Promise | None,
    wrong: Mismatch | None,
    outside: Denied,
) -> tuple[Finding, ...]:
    """Everything worth telling of a boot, worst first."""
    found = [f for row in rows for f in _of_row(row)]
    found += _of_boot(boot)
    found += _of_features(boot)
    found += _of_requests(boot)
    found += _of_promise(promise)
    found += _of_divergence(boot)
    lost = lost_fp8(boot, promise)
    if lost:
        found.append(_plain("LS308", f"FP8 context attention was dropped on an FP8 checkpoint: {lost[0].text}", lost))
    if wrong is not None:
        found.append(_plain("LS701", wrong.message, wrong.facts))
    if outside.hardware is not None:
        found.append(_plain("LS704", *outside.hardware))
    if outside.engine is not None:
        found.append(_plain("LS705", *outside.engine))
    if outside.release is not None:
        found.append(_plain("LS901", outside.release, [f for f in boot.facts if f.name == "engine.version"][:1]))
    return _worst_first(found)


def row_findings(rows: Sequence[Row]) -> tuple[Finding, ...]:
    """The findings that follow from rows alone, worst first: all that a prediction has."""
    return _worst_first([f for row in rows for f in _of_row(row)])


def _worst_first(found: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=lambda f: (-SEVERITIES.index(f.severity), f.code)))


def _of_row(row: Row) -> Iterable[Finding]:
    if row.verdict == "not-served":
        rule = catalogue.rule_for(row.path)
        yield _finding(rule, row, None, f"{_name(row)} was not served: {row.refusal or 'the engine refused it'}")
    for kind in row.kinds if row.verdict != "unproven" or "uncalibrated" in row.kinds else ():
        rule = catalogue.rule_for(row.path, kind)
        yield _finding(rule, row, kind, _message(row, kind))
    if row.disagreement:
        rule = catalogue.rules()["LS903"]
        yield _finding(rule, row, None, f"{_name(row)}: {row.disagreement}")


def _finding(rule: catalogue.Rule, row: Row, kind: str | None, message: str) -> Finding:
    severity = rule.severity
    if kind is not None:
        severity = catalogue.kinds()[kind].severity_for(row.path, against=row.against, cause=row.cause, reuse=row.reuse)
    evidence = tuple(e for e in row.evidence if e.role != "context")[:EVIDENCE]
    fix = rule.fix_for(row.cause)
    return Finding(
        rule.code,
        rule.slug,
        severity,
        message,
        f"{fix} {row.remedy}" if row.remedy and kind is not None else fix,
        row.path,
        kind,
        row.cause,
        rule.consequence,
        row.visibility,
        row.authority,
        evidence,
        fingerprint(rule.code, row.path, row.group, row.component, row.promised, row.ran),
        group=row.group,
    )


def fingerprint(code: str, path: str | None, *parts: str | None) -> str:
    """A stable identity of a finding: no line numbers, pods or file paths go in."""
    text = "\0".join(p or "" for p in (code, path, *parts))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _name(row: Row) -> str:
    return f"{row.path} ({row.group})" if row.group else row.path


def _message(row: Row, kind: str) -> str:
    wanted = row.default if row.against == "default" else row.requested if row.against == "request" else row.promised
    verb = {"request": "was asked for", "default": "is this release's default"}.get(row.against or "", "was promised")
    if kind == "uncalibrated":
        return f"{_name(row)}: scale 1.0 is in use for {row.ran or 'a quantized cache'}"
    if kind == "storage-only":
        return f"{_name(row)}: stored as {row.ran or 'a quantized type'}, attention computes in 16-bit"
    return f"{_name(row)}: {wanted} {verb}, {row.ran or 'another path'} ran ({kind})"


def _plain(code: str, message: str, facts: Sequence[Fact], severity: str | None = None) -> Finding:
    rule = catalogue.rules()[code]
    return Finding(
        rule.code,
        rule.slug,
        severity or rule.severity,  # type: ignore[arg-type]
        message,
        rule.fix_for(None),
        path=rule.path,  # type: ignore[arg-type]
        kind=rule.kind,
        consequence=rule.consequence,
        visibility="warned" if facts else None,
        authority="logged" if facts else None,
        evidence=tuple(cite(f) for f in facts[:EVIDENCE]),
        fingerprint=fingerprint(code, None, message),
    )


def _of_boot(boot: Boot) -> Iterable[Finding]:
    if boot.status == "failed":
        yield _failure(boot)
    elif boot.status == "died":
        facts = [f for f in boot.facts if f.name == "boot.died"]
        yield _plain("LS506", f"the engine died after it had been ready{_because(facts)}", facts)
    if boot.engine.kind == "unknown" and boot.engine.name is not None:
        span = f", read as {boot.engine.range}" if boot.engine.range else ""
        yield _plain("LS901", f"the release of {boot.engine.name} is not known{span}", ())
    if boot.unrecognised:
        line, text = boot.unrecognised[0]
        evidence = (Evidence(line, "context", "available", "", text),)
        count = len(boot.unrecognised)
        looks = "1 line looks like a selection and no pattern owns it"
        message = looks if count == 1 else f"{count} lines look like a selection and no pattern owns them"
        yield replace(_plain("LS902", message, ()), evidence=evidence)


def _failure(boot: Boot) -> Finding:
    """Why a boot failed, as far as one of its lines says so."""
    marks = [f for f in boot.facts if f.name in ("boot.failed", "boot.died", "boot.exception")]
    for code, names, word in _FAILURES:
        facts = [f for f in boot.facts if f.name.endswith(names) and word in f.text]
        if facts:
            return _plain(code, f"the engine did not get ready{_because(facts)}", [*facts, *marks])
    return _plain("LS501", f"the engine did not get ready{_because(marks)}", marks)


def _because(facts: Sequence[Fact]) -> str:
    return f": {facts[0].text[:300]}" if facts else ""


def _of_features(boot: Boot) -> Iterable[Finding]:
    fallback = [f for f in boot.facts if f.name == "boot.fallback"]
    if fallback:
        yield _plain("LS603", fallback[0].text, fallback)
    seen: set[str] = set()
    for fact in boot.facts:
        off = fact.name.startswith("feature.") and fact.name not in _NO_FEATURE
        if off and fact.means == "warned" and fact.pattern not in seen:
            seen.add(fact.pattern)
            asked = any(f.name == f"request.{fact.name[8:]}" for f in boot.facts)
            yield _plain("LS601" if asked else "LS602", fact.text, [fact])


def _of_requests(boot: Boot) -> Iterable[Finding]:
    for name, code in _REPLACED.items():
        facts = [f for f in boot.facts if f.name == name]
        if facts:
            yield _plain(code, facts[0].text, facts)


def _of_divergence(boot: Boot) -> Iterable[Finding]:
    """The engine itself compared the two files of the checkpoint."""
    facts = [f for f in boot.facts if f.name in ("quant.diverges", "quant.diverges_in")]
    if any(f.value != "unread" for f in facts if f.name == "quant.diverges"):
        yield _plain("LS702", "; ".join(f.text.strip() for f in facts)[:500], facts)


def _of_promise(promise: Promise | None) -> Iterable[Finding]:
    for note in promise.notes if promise is not None else ():
        if note.code == "N_SIDECAR_DISAGREES":
            yield _plain("LS702", note.message, ())
        elif note.code in ("N_TARGET_CLASH", "N_CONTRADICTED"):
            yield _plain("LS703", note.message, ())
