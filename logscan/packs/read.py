"""TOML of a pack → `Pack`, with every error at its file and line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import regex

from logscan import versions
from logscan.model import PATHS, Means, Origin
from logscan.packs.schema import Pack, Pattern, Patterns, Site

_HEADER = re.compile(rb"^[ \t]*\[\[\s*(pattern|pattern\.site)\s*\]\]", re.MULTILINE)
_ID = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)+")
_LEVELS = ("", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_PARSERS = ("", "pydict", "namespace", "engine-config")
_TEXT, _TEXTS = "text", "text or a list of texts"
_PACK_KEYS = {"id": _TEXT, "engine": _TEXT, "version": _TEXT, "releases": _TEXTS}
_PATTERN_KEYS = {
    "id": _TEXT, "regex": _TEXT, "literal": _TEXTS, "emits": _TEXT, "value": _TEXT, "origin": _TEXTS, "phase": _TEXT,
    "parse": _TEXT, "component": _TEXT, "match": _TEXTS, "nomatch": _TEXTS, "note": _TEXT, "site": "tables",
}  # fmt: skip
_SITE_KEYS = {"means": _TEXT, "engine": _TEXT, "source": _TEXT, "level": _TEXT, "path": _TEXTS, "note": _TEXT}


class _Report:
    """Errors of one file, each with the line of the entry it is about."""

    def __init__(self, errors: list[str], name: str) -> None:
        self.errors, self.name, self.line = errors, name, 1

    def __call__(self, message: str) -> None:
        self.errors.append(f"{self.name}:{self.line}: {message}")


def read_pack(files: Sequence[tuple[str, bytes]], label: str, digest: str, errors: list[str]) -> Pack | None:
    """The pack that `files` (name, bytes) hold; None where `errors` has grown.

    `label` is the folder as messages name it.
    """
    before = len(errors)
    head: dict[str, Any] = {}
    patterns: list[Pattern] = []
    for name, data in files:
        report = _Report(errors, f"{label}/{name}")
        doc = _parse(data, report)
        if doc is None:
            continue
        if name == "pack.toml":
            head = _head(doc, report)
        else:
            patterns += _patterns(doc, data, report)
    _duplicates(patterns, errors)
    if len(errors) > before:
        return None
    return Pack(digest=digest, patterns=Patterns.of(patterns), **head)


def _parse(data: bytes, report: _Report) -> dict[str, Any] | None:
    try:
        return tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as e:
        report.line = data.count(b"\n", 0, e.start) + 1
        report("not UTF-8")
    except tomllib.TOMLDecodeError as e:
        at = re.search(r" \(at line (\d+), column \d+\)$", str(e))
        report.line = int(at[1]) if at else data.count(b"\n") + 1
        report(f"not TOML: {str(e)[: at.start()] if at else e}")
    return None


def _head(doc: dict[str, Any], report: _Report) -> dict[str, Any]:
    _check_keys(doc, _PACK_KEYS, ("id", "engine", "version"), report)
    releases = _texts(doc.get("releases", []))
    parsed = [versions.parse(r) for r in releases]
    for text, v in zip(releases, parsed, strict=True):
        if v is None:
            report(f"releases: not a version: {text!r}")
    keys = [v.key for v in parsed if v]
    if keys != sorted(set(keys)):
        report("releases: not in ascending order, or one stands twice")
    return {
        "id": str(doc.get("id", "")),
        "engine": str(doc.get("engine", "")),
        "version": str(doc.get("version", "")),
        "releases": releases,
    }


def _patterns(doc: dict[str, Any], data: bytes, report: _Report) -> Iterator[Pattern]:
    for key in doc.keys() - {"pattern"}:
        report(f"unknown table {key!r}; a pack's file holds [[pattern]] entries")
    entries = doc.get("pattern", [])
    if not isinstance(entries, list):
        report("write [[pattern]], not [pattern]")
        return
    lines = _entry_lines(data, len(entries))
    for entry, (line, site_lines) in zip(entries, lines, strict=True):
        report.line = line
        pattern = _pattern(entry, site_lines, report)
        if pattern is not None:
            yield pattern
    report.line = 1


def _entry_lines(data: bytes, count: int) -> list[tuple[int, list[int]]]:
    """The line of each `[[pattern]]` header and those of its sites; tomllib does not tell them."""
    out: list[tuple[int, list[int]]] = []
    line, at = 1, 0
    for m in _HEADER.finditer(data):
        line += data.count(b"\n", at, m.start())
        at = m.start()
        if m[1] == b"pattern":
            out.append((line, []))
        elif out:
            out[-1][1].append(line)
    # Inline tables have no headers: their errors then stand at the file's first line.
    return out if len(out) == count else [(1, [])] * count


def _pattern(entry: dict[str, Any], site_lines: list[int], report: _Report) -> Pattern | None:
    line = report.line
    if not _check_keys(entry, _PATTERN_KEYS, ("id", "regex", "literal", "emits"), report):
        return None
    pattern = Pattern(
        id=entry["id"],
        regex=entry["regex"],
        literals=_texts(entry["literal"]),
        emits=entry["emits"],
        value=entry.get("value", ""),
        origin=_texts(entry.get("origin", "engine")),  # type: ignore[arg-type]
        phase=entry.get("phase", "boot"),
        parse=entry.get("parse", ""),
        component=entry.get("component", ""),
        match=_texts(entry.get("match", [])),
        nomatch=_texts(entry.get("nomatch", [])),
        sites=tuple(_sites(entry.get("site", []), site_lines, report)),
        note=entry.get("note", ""),
        where=f"{report.name}:{line}",
    )
    report.line = line
    _check(pattern, report)
    return pattern


def _sites(entries: list[dict[str, Any]], lines: list[int], report: _Report) -> Iterator[Site]:
    for n, entry in enumerate(entries):
        report.line = lines[n] if n < len(lines) else report.line
        if not _check_keys(entry, _SITE_KEYS, ("means",), report):
            continue
        site = Site(
            means=entry["means"],
            engine=entry.get("engine", ""),
            source=entry.get("source", ""),
            level=entry.get("level", ""),
            paths=_texts(entry.get("path", [])),
            note=entry.get("note", ""),
        )
        try:
            versions.clauses(site.engine)
        except ValueError as e:
            report(f"engine: {e}")
        _one_of("means", [site.means], get_args(Means), report)
        _one_of("level", [site.level], _LEVELS, report)
        _one_of("path", site.paths, PATHS, report)
        yield site


def _check(p: Pattern, report: _Report) -> None:
    for name, text in (("id", p.id), ("emits", p.emits)):
        if not _ID.fullmatch(text):
            report(f"{name}: {text!r} is not a dotted name such as vllm.linear.selected")
    _one_of("origin", p.origin, get_args(Origin), report)
    _one_of("phase", [p.phase], ("boot", "any"), report)
    _one_of("parse", [p.parse], _PARSERS, report)
    _one_of("component", [p.component], ("", "target", "drafter", "encoder"), report)
    if not p.sites:
        report(f"{p.id}: no [[pattern.site]]; it says what the line means, and since which release")
    if not p.literals or not all(p.literals):
        report(f"{p.id}: literal is empty; give a text that stands in every match")
    try:
        regex.compile(p.regex.encode(), regex.MULTILINE)
    except (regex.error, RecursionError) as e:
        report(f"{p.id}: regex: {e}")


def _check_keys(entry: object, known: dict[str, str], needed: Sequence[str], report: _Report) -> bool:
    """Whether `entry` is a table of the known keys with values of the right type; says what is wrong."""
    if not isinstance(entry, dict):
        report(f"a table is wanted here, not {entry!r}")
        return False
    bad = [f"unknown key {k!r} (known: {', '.join(known)})" for k in entry.keys() - known.keys()]
    bad += [f"{k!r} is missing" for k in needed if k not in entry]
    bad += [f"{k!r} must be {known[k]}, not {v!r}" for k, v in entry.items() if k in known and not _fits(v, known[k])]
    for message in sorted(bad):
        report(message)
    return not bad


def _fits(value: object, wanted: str) -> bool:
    if wanted == "tables":
        return isinstance(value, list)
    if isinstance(value, list):
        return wanted == _TEXTS and all(isinstance(v, str) for v in value)
    return isinstance(value, str)


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


def _one_of(name: str, values: Sequence[str], allowed: Sequence[str], report: _Report) -> None:
    for value in values:
        if value not in allowed:
            report(f"{name}: {value!r} is not one of {', '.join(a for a in allowed if a)}")


def _duplicates(patterns: Sequence[Pattern], errors: list[str]) -> None:
    seen: dict[str, str] = {}
    for p in patterns:
        if p.id in seen:
            errors.append(f"{p.where}: pattern {p.id!r} is already defined at {seen[p.id]}; give it another id")
        seen.setdefault(p.id, p.where)
