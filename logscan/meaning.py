"""Events → facts: what a text means in the release at hand, and which releases an unknown version may be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from logscan import reprs, versions
from logscan.model import Boot, Component, Engine, Event, Fact, Record, replace
from logscan.packs.schema import Pack, Pattern, Site
from logscan.recognise import basename, file_of, value_of

_PREFIX = {"pydict": "request", "namespace": "request", "engine-config": "config"}
_SELECTIONS = frozenset({"linear.kernel", "moe.backend", "attention.backend", "linear.weight_only", "moe.weight_only"})
_CHOSEN = ("linear.", "moe.", "attention.", "kv.")
# print for a caller elsewhere (`warning_once`), or for a platform that comes as a plugin (tpu_inference)
_ANYBODYS = frozenset(("_logger.py", "logger.py", "platform.py", "tpu_platform.py"))
_QUOTES = re.compile(  # files of vLLM's and SGLang's that log what users and model repositories write
    r"(?:api_\w+|\w*router|\w*serving\w*|\w*server\w*|entry|launcher|startup|\w*chat\w*|\w*template\w*|\w*parser\w*|"
    r"\w*render\w*|protocol|preprocess|\w*tokenizer\w*|\w*grammar\w*|\w*guidance\w*|outlines\w*|async_llm\w*)\.py"
)
_SERVER = re.compile(r"(?:API ?Server|ApiServer)\w*(?: pid=|$)", re.I)
_NAME = re.compile(r"[a-z0-9_]+(?:\.[a-z0-9_]+)*")
MAX_KEYS = 400


def engine_of(name: str | None, printed: tuple[str, int] | None, events: Iterable[Event], pack: Pack | None) -> Engine:
    """The engine and the releases at which its boot is evaluated.

    `printed`: the version as printed, and its line. Without one (or with `0.1.dev…`) every release whose texts fit the
    events is a candidate, and the version is derived as a range.
    """
    if name is None or pack is None or not pack.releases:
        return Engine(name, printed[0] if printed else None, line=printed[1] if printed else None)
    version = versions.parse(printed[0]) if printed else None
    kind = versions.kind(version)
    if printed and version is not None and kind != "unknown":
        return Engine(name, printed[0], kind, "logged", printed[1], None, versions.around(version, pack.releases))
    fits = fitting_releases(events, pack)
    span = (f"=={fits[0]}" if len(fits) == 1 else f">={fits[0]},<={fits[-1]}") if fits else None
    text, line = printed or (None, None)
    return Engine(name, text, "unknown", "derived", line, span, fits)


def fitting_releases(events: Iterable[Event], pack: Pack) -> tuple[str, ...]:
    """The known releases in which the most of the seen texts are printed (by the file that the record names)."""
    by_id = {p.id: p for p in pack.patterns}
    seen = {(e.pattern, basename(e.record.file)): by_id[e.pattern] for e in events if e.pattern in by_id}
    counts = {
        release: sum(1 for (_, file), p in seen.items() if any(_fits(s, release, file) for s in p.sites))
        for release in pack.releases
    }
    best = max(counts.values(), default=0)
    return tuple(r for r in pack.releases if counts[r] == best)


def _fits(site: Site, release: str, file: str) -> bool:
    return versions.contains(site.engine, release) and (not file or not site.source or file_of(site) == file)


def sites_at(pattern: Pattern, releases: Sequence[str], record: Record) -> tuple[Site, ...]:
    """The sites that may have printed this record, by release and by the file that the record names."""
    pool = [s for s in pattern.sites if not releases or any(versions.contains(s.engine, r) for r in releases)]
    pool = pool or list(pattern.sites)
    file = basename(record.file)
    if file and record.origin == "engine":
        same = [s for s in pool if file_of(s) == file] or [s for s in pattern.sites if file_of(s) == file]
        pool = same or pool
    return tuple([s for s in pool if record.level and s.level == record.level] or pool)


def quoted(pattern: Pattern, record: Record, kind: str) -> bool:
    """Whether the file that a record names cannot be who chooses a path: it quotes a text of somebody else's.

    Files move between releases: a build that is no release is believed, but for what its API server prints.
    """
    if record.origin != "engine" or not record.file or not pattern.emits.startswith(_CHOSEN):
        return False
    name = basename(record.file)
    if "traceback" in pattern.origin or name in _ANYBODYS or (name == "utils.py" and record.level == "WARNING"):
        return False  # utils.py printed the early `print_warning_once`
    homes = {file_of(s) for s in pattern.sites}
    if name in homes:
        return False
    elsewhere = kind != "release" or not all(home.endswith(".py") for home in homes)
    return not elsewhere or bool(_QUOTES.fullmatch(name) or _SERVER.match(record.speaker))


def facts_of(event: Event, pattern: Pattern, engine: Engine, component: Component) -> list[Fact]:
    """The facts that an event states in its boot's release; structured text gives one a key."""
    if quoted(pattern, event.record, engine.kind):
        return []
    sites = sites_at(pattern, engine.releases, event.record)
    site = sites[0] if sites else Site(means="available")
    if pattern.component in ("drafter", "encoder", "target"):
        component = pattern.component  # type: ignore[assignment]
    elif pattern.emits not in _SELECTIONS:
        component = "target"
    paths = {p for s in sites for p in s.paths}
    path = next(iter(paths)) if len(paths) == 1 else None
    fact = Fact(
        pattern.emits,
        value_of(pattern, event.fields, event.text),
        event.line,
        site.means,
        pattern.id,
        event.text,
        component,
        path,
        event.record.level or site.level,
        event.fields,
    )
    return [fact, *_identity(fact, pattern), *_exploded(fact, pattern, event.fields)]


def _identity(fact: Fact, pattern: Pattern) -> list[Fact]:
    """The start markers state who speaks: version and model are facts of their own."""
    if pattern.emits not in ("boot.start", "boot.engine"):
        return []
    stated = [key for key in ("version", "model") if key in fact.fields]
    return [replace(fact, name=f"engine.{key}", value=fact.fields[key]) for key in stated]


def _exploded(fact: Fact, pattern: Pattern, fields: Mapping[str, str]) -> list[Fact]:
    if not pattern.parse:
        return []
    style: reprs.Style = pattern.parse  # type: ignore[assignment]
    text = fields.get("config") or fields.get("args") or fact.text
    found = {k: v for k, v in reprs.pairs(text, style).items() if _NAME.fullmatch(k)}  # as the engines name theirs
    prefix = _PREFIX[pattern.parse]
    facts = [
        Fact(f"{prefix}.{key}", value, fact.line, "requested", fact.pattern, f"{key}={value}"[:200], fact.component)
        for key, value in list(found.items())[:MAX_KEYS]
    ]
    if "model" in found:
        facts.append(replace(facts[0], name="engine.model", value=found["model"]))
    return facts


def distinct_kernels(facts: Sequence[Fact]) -> list[Fact]:
    """A kernel is stated once: what names it again for another layer class states that layer (`linear.layer`)."""
    texts: dict[tuple[str, str], str] = {}
    out = []
    for fact in facts:
        if fact.name == "linear.kernel":
            first = texts.setdefault((fact.value, fact.component), fact.text)
            if fact.text != first:
                fact = replace(fact, name="linear.layer", value=fact.fields.get("layer", fact.value))
        out.append(fact)
    return out


def same_image(boots: Sequence[Boot]) -> list[Boot]:
    """Boots that died before they printed a version take that of another start of the same source: it is one image."""
    known = {b.source: b.engine for b in reversed(boots) if b.engine.version is not None}
    return [
        replace(b, engine=replace(known[b.source], authority="derived", line=None))
        if b.engine.version is None and b.source in known and b.status == "failed"
        else b
        for b in boots
    ]
