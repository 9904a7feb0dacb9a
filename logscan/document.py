"""Judged boots → the JSON document `logscan.triage/1`. Keys may be added; `[]` and `null` are never left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from logscan import __version__
from logscan.judge import Judgement
from logscan.model import (
    SEVERITIES,
    VERDICTS_WORST_FIRST,
    Boot,
    Census,
    Evidence,
    Fact,
    Finding,
    Machine,
    Promise,
    Row,
)
from logscan.packs.schema import Pack

SCHEMA = "logscan.triage/1"
_STATUS_WORST_FIRST = ("failed", "died", "incomplete", "ready")
_SECRET = re.compile(r"(?:^|[._-])(?:api_?keys?|hf_token|token|password|secret|ssl_keyfile_password)$", re.I)
Text = Callable[[str], str]


class Judged(NamedTuple):
    """A boot with everything that its verdict rests on."""

    boot: Boot
    promise: Promise | None
    machine: Machine
    judgement: Judgement


class LogReport(NamedTuple):
    """One log: what was read, and its boots in order."""

    name: str
    bytes: int
    lines: int
    sha256: str
    envelopes: tuple[str, ...]
    census: Census
    boots: tuple[Judged, ...]
    notes: tuple[str, ...] = ()


def document(
    logs: Sequence[LogReport],
    packs: Sequence[Pack],
    given: dict[str, Any],
    counted: str = "last",
    clean: Text | None = None,
) -> dict[str, Any]:
    """The whole document. `counted`: `last` (of each source) or `all` boots decide verdict, status and worst.

    `clean` is applied to every text that comes from a log: redaction, control characters.
    """
    text: Text = clean or (lambda s: s)
    judged = [j for log in logs for j in counting(log.boots, counted)]
    return {
        "schema": SCHEMA,
        "tool": {
            "version": __version__,
            "packs": [{"id": p.id, "version": p.version, "digest": p.digest} for p in packs],
        },
        "verdict": _first(VERDICTS_WORST_FIRST, (j.judgement.verdict for j in judged)),
        "status": _first(_STATUS_WORST_FIRST, (j.boot.status for j in judged)),
        "worst": _first(
            SEVERITIES[::-1], (f.severity for j in judged for f in j.judgement.findings if f.waived is None)
        ),
        "given": given_document(given, text),
        "logs": [_log(log, text) for log in logs],
    }


def given_document(given: dict[str, Any], text: Text) -> dict[str, Any]:
    """What the user gave, its variables cleaned like the log's: a value is masked by the name that it stands under."""
    env = {name: text(f"{name}={value}").partition("=")[2] for name, value in given["env"].items()}
    return {**given, "env": env}


def counting(boots: Sequence[Judged], counted: str) -> list[Judged]:
    """The boots that decide: every one, or each source's last."""
    if counted == "all":
        return list(boots)
    last: dict[str, Judged] = {}
    for judged in boots:
        last[judged.boot.source] = judged
    return list(last.values())


def _first(order: Sequence[str], found: Iterable[str]) -> str | None:
    present = set(found)
    return next((word for word in order if word in present), None)


def _log(log: LogReport, text: Text) -> dict[str, Any]:
    return {
        "name": log.name,
        "bytes": log.bytes,
        "lines": log.lines,
        "sha256": log.sha256,
        "envelopes": list(log.envelopes),
        "notes": list(log.notes),
        "census": _census(log.census),
        "boots": [boot_document(j, text) for j in log.boots],
    }


def _census(census: Census) -> dict[str, Any]:
    return {
        "records": census.records,
        "levels": dict(census.levels),
        "head": census.head,
        "tail": census.tail,
        "sources": census.sources,
    }


def boot_document(judged: Judged, text: Text) -> dict[str, Any]:
    """One boot, as it stands in `logs[].boots` and on a line of `--format jsonl`."""
    boot, machine, promise = judged.boot, judged.machine, judged.promise
    return {
        "index": boot.number,
        "source": text(boot.source),
        "lines": {"first": boot.first, "last": boot.last, "interleaved": boot.interleaved},
        "status": boot.status,
        "decided": boot.decided,
        "verdict": judged.judgement.verdict,
        "engine": {
            "name": boot.engine.name,
            "version": _maybe(boot.engine.version, text),
            "kind": boot.engine.kind,
            "authority": boot.engine.authority,
            "line": boot.engine.line,
            "range": boot.engine.range,
            "releases": list(boot.engine.releases),
        },
        "model": _maybe(boot.model, text),
        "hardware": {
            "gpu": _maybe(machine.gpu or None, text),
            "platform": machine.platform,
            "sm": f"{machine.sm // 10}.{machine.sm % 10}" if machine.sm else machine.gfx,
            "cuda": ".".join(map(str, machine.cuda)) if machine.cuda else None,
            "authority": {key: machine.authority.get(key) for key in ("gpu", "sm", "cuda")},
        },
        "promise": _promise(promise, text),
        "paths": [row_document(row, text) for row in judged.judgement.rows],
        "findings": [finding_document(f, text) for f in judged.judgement.findings],
        "facts": [_fact(f, text) for f in boot.facts],
        "unrecognised": [{"line": line, "text": text(t)} for line, t in boot.unrecognised],
    }


def _maybe(value: str | None, text: Text) -> str | None:
    return None if value is None else text(value)


def _promise(promise: Promise | None, text: Text) -> dict[str, Any] | None:
    if promise is None:
        return None
    return {
        "source": text(promise.source),
        "authority": "logged" if promise.source.startswith("log:") else "given",
        "method": text(promise.method),
        "label": text(promise.label),
        "notes": [{"code": n.code, "message": text(n.message)} for n in promise.notes],
    }


def row_document(row: Row, text: Text) -> dict[str, Any]:
    """One row, of `triage` and of `expect` alike."""
    return {
        "path": row.path,
        "group": text(row.group),
        "component": row.component,
        "requested": _maybe(row.requested, text),
        "promised": _maybe(row.promised, text),
        "default": _maybe(row.default, text),
        "ran": _maybe(row.ran, text),
        "against": row.against,
        "verdict": row.verdict,
        "extent": row.extent,
        "kinds": list(row.kinds),
        "cause": row.cause,
        "visibility": row.visibility,
        "authority": row.authority,
        "kernels": [{"name": text(k.name), "authority": k.authority} for k in row.kernels],
        "reasons": list(row.reasons),
        "caveats": list(row.caveats),
        "evidence": [_evidence(e, text) for e in row.evidence],
        "refusal": _maybe(row.refusal, text),
        "because": list(row.because),
    }


def finding_document(finding: Finding, text: Text) -> dict[str, Any]:
    """One finding."""
    return {
        "code": finding.code,
        "slug": finding.slug,
        "severity": finding.severity,
        "path": finding.path,
        "group": text(finding.group),
        "kind": finding.kind,
        "cause": finding.cause,
        "consequence": list(finding.consequence),
        "visibility": finding.visibility,
        "authority": finding.authority,
        "message": text(finding.message),
        "fix": finding.fix,
        "evidence": [_evidence(e, text) for e in finding.evidence],
        "fingerprint": finding.fingerprint,
        "waived": finding.waived,
    }


def _evidence(evidence: Evidence, text: Text) -> dict[str, Any]:
    return {
        "line": evidence.line,
        "role": evidence.role,
        "means": evidence.means,
        "pattern": evidence.pattern or None,
        "text": text(evidence.text),
        "distrusted_by": evidence.distrusted_by,
    }


def _secret(fact: Fact) -> bool:
    """Whether a fact is an argument that holds a secret. Names of our own (`kv.bytes_per_token`) are none."""
    own = not fact.name.startswith(("request.", "config.", "env."))
    return not own and _SECRET.search(fact.name) is not None and fact.value not in ("None", "")


def _fact(fact: Fact, text: Text) -> dict[str, Any]:
    return {
        "name": text(fact.name),
        "value": "[redacted]" if _secret(fact) else text(fact.value),
        "line": fact.line,
        "means": fact.means,
        "component": fact.component,
        "pattern": fact.pattern,
    }
