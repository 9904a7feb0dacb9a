"""Is what a pack claims true of a release's source? And what does that source print that no pattern knows?

For each release: *proven* (a template that prints the pattern's line stands where the site says), *stale* (claimed, not
found), *too narrow* (found in a release that no site claims), *moved* (found, but at another file or level), and
*uncovered* (a template that looks like a selection, fallback or refusal and that no pattern owns), unless an ignore
rule of the pack says why.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal, NamedTuple

from logscan import versions
from logscan.model import InputError
from logscan.packs import cpp
from logscan.packs.prove import Owners
from logscan.packs.schema import Pack, Pattern, Site
from logscan.packs.source import Source, roots
from logscan.packs.templates import HOLE, Template, templates

Kind = Literal["proven", "stale", "too-narrow", "moved", "uncovered", "ignored"]
KINDS: tuple[Kind, ...] = ("proven", "stale", "too-narrow", "moved", "uncovered", "ignored")
_LOGGED = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOOKS = re.compile(
    r"\b(?:[Uu]sing|[Ss]elect(?:ed|ing)) .{0,60}\b(?:[Kk]ernel|[Bb]ackend|[Ee]xperts|GEMM|gemm)"
    r"|[Ff]all(?:ing|s)?[ -]?back|not (?:yet )?supported|[Uu]nsupported|does(?: not|n't) support"
    r"|[Dd]isabl(?:ed|ing)|weight-only|[Ee]mulat|dequantiz|[Oo]verrid(?:e|ing)|will be ignored|not available"
    r"|[Ss]ub-?optimal|degrad",
    re.DOTALL,
)


class Finding(NamedTuple):
    """One result: of a pattern (empty for uncovered templates) in one release."""

    kind: Kind
    pattern: str
    where: str  # file:function
    level: str  # as Template.level
    detail: str  # the template, or what was expected


class Release(NamedTuple):
    """What one source said about the pack."""

    source: str
    version: str
    findings: tuple[Finding, ...]

    def count(self, kind: Kind) -> int:
        """How many findings are of this kind."""
        return sum(f.kind == kind for f in self.findings)


class Ignored(NamedTuple):
    """Templates that no pattern needs to own: by file, level and text, with the reason."""

    files: tuple[str, ...]  # globs; empty: every file
    levels: tuple[str, ...]  # of Template.level; empty: every level
    text: re.Pattern[str] | None
    reason: str

    def covers(self, file: str, template: Template) -> bool:
        """Whether this rule takes the template out of the uncovered ones."""
        return (
            (not self.files or any(fnmatchcase(file, glob) for glob in self.files))
            and (not self.levels or template.level in self.levels)
            and (self.text is None or self.text.search(template.text.replace(HOLE, "{}")) is not None)
        )


class Verifier:
    """Holds a pack ready for many releases; files that did not change between them are read once."""

    def __init__(self, pack: Pack, ignored: Sequence[Ignored] = ()) -> None:
        self.pack = pack
        self._ignored = ignored
        self._patterns = {p.id: p for p in pack.patterns if sourced(p, pack.engine)}
        self._owners = Owners(tuple(self._patterns.values()))
        self._templates: dict[bytes, list[Template]] = {}

    def release(self, source: Source) -> Release:
        """Check the pack against one source. Raises InputError where its version is unknown."""
        if source.version is None or versions.parse(source.version) is None:
            raise InputError(f"{source.name}: its version is not to be found (PKG-INFO, METADATA, file name)")
        found: dict[str, dict[tuple[str, str], str]] = {}
        loose: list[Finding] = []
        for file, data in source.files:
            for t in self._read(file, data):
                owners = self._owners.of(t.text)
                for pattern in owners:
                    found.setdefault(pattern, {}).setdefault((file, t.level), t.function)
                if not owners and t.level not in ("text", "print", "DEBUG") and LOOKS.search(t.text):
                    loose += self._loose(file, t)
        # A wheel holds no C++: what is printed from there can be neither proven nor missed.
        there = tuple(r for r in roots(self.pack.engine) if any(file.startswith(f"{r}/") for file, _ in source.files))
        patterns = [seen for p in self._patterns.values() if (seen := _within(p, there, self.pack.engine)) is not None]
        findings = [f for p in patterns for f in judge(p, source.version, found.get(p.id, {}))]
        return Release(source.name, source.version, tuple(findings + list(dict.fromkeys(loose))))

    def _read(self, file: str, data: bytes) -> list[Template]:
        key = hashlib.blake2b(data, digest_size=16).digest()
        if key not in self._templates:
            self._templates[key] = templates(data) if file.endswith(".py") else cpp.templates(data)
        return self._templates[key]

    def _loose(self, file: str, t: Template) -> list[Finding]:
        if self._owners.knows(t.text):
            return []
        reason = next((i.reason for i in self._ignored if i.covers(file, t)), None)
        text = t.text.replace(HOLE, "{}")
        return [Finding("ignored" if reason else "uncovered", "", f"{file}:{t.function}", t.level, reason or text)]


def sourced(pattern: Pattern, engine: str) -> bool:
    """Whether the engine's own source prints the pattern (uvicorn, Triton and plugins do not count)."""
    return any(_of(site, roots(engine)) for site in pattern.sites)


def _of(site: Site, folders: Sequence[str]) -> bool:
    return site.source.startswith(tuple(f"{folder}/" for folder in folders))


def _within(pattern: Pattern, folders: Sequence[str], engine: str) -> Pattern | None:
    """The pattern without the sites of folders that a source does not have; None where it has only such."""
    sites = tuple(s for s in pattern.sites if _of(s, folders) or not _of(s, roots(engine)))
    return pattern._replace(sites=sites) if any(_of(s, folders) for s in sites) else None


def judge(pattern: Pattern, release: str, found: Mapping[tuple[str, str], str]) -> list[Finding]:
    """What the places where a release prints a pattern say about its sites. `found`: (file, level) → function."""
    sites = [s for s in pattern.sites if s.source and versions.contains(s.engine, release)]
    spoken = {place: f for place, f in found.items() if place[1] not in ("text", "print")}
    out: list[Finding] = []
    explained: set[tuple[str, str]] = set()
    for site in sites:
        file, _, function = site.source.partition(":")
        at = {(f, level) for f, level in found if f == file and _fits(site, level)}
        explained |= at
        if at:
            out.append(Finding("proven", pattern.id, site.source, site.level, ""))
        elif spoken:
            places = ", ".join(sorted(f"{f} {level}" for f, level in spoken))
            out.append(Finding("moved", pattern.id, site.source, site.level, f"found at {places}"))
        else:
            out.append(Finding("stale", pattern.id, site.source, site.level, "found nowhere"))
    for (file, level), function in spoken.items():
        if (file, level) not in explained and (level != "DEBUG" or sites):
            kind: Kind = "moved" if sites else "too-narrow"
            out.append(Finding(kind, pattern.id, f"{file}:{function}", level, "printed here; no site says so"))
    return out


def _fits(site: Site, level: str) -> bool:
    return level == site.level if site.level else level not in _LOGGED


def read_ignored(path: Path) -> tuple[Ignored, ...]:
    """The ignore rules of a pack (`verify/ignore.toml`); none where the file does not exist.

    Raises InputError for a file that is not TOML, or for a rule without a reason.
    """
    if not path.is_file():
        return ()
    try:
        entries: list[dict[str, Any]] = tomllib.loads(path.read_text("utf-8")).get("ignore", [])
        return tuple(_ignored(entry, path, n) for n, entry in enumerate(entries, 1))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, re.error) as e:
        raise InputError(f"{path}: {e}") from e


def _ignored(entry: Mapping[str, Any], path: Path, n: int) -> Ignored:
    unknown = entry.keys() - {"file", "level", "text", "reason"}
    if unknown or not entry.get("reason"):
        raise InputError(f"{path}: [[ignore]] number {n}: wants file, level or text, and a reason")
    text = entry.get("text")
    return Ignored(
        _texts(entry.get("file")), _texts(entry.get("level")), re.compile(text) if text else None, entry["reason"]
    )


def _texts(value: str | Iterable[str] | None) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value or ())
