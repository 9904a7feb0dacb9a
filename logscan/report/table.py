"""The report for a person: what is wrong first, then the lines that show it, then what to do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

from logscan import catalogue
from logscan.report import view
from logscan.report.text import BLANK, Line, Span, colored, line, plain
from logscan.report.view import Json, Shown, clean

_LOOKS = {
    "not-served": ("✗", "bad"),
    "downgraded": ("✗", "bad"),
    "unproven": ("?", "warn"),
    "kept": ("✓", "good"),
    "no-promise": ("–", "dim"),
    "failed": ("", "bad"),
    "died": ("", "bad"),
    "incomplete": ("", "warn"),
    "ready": ("", "good"),
    "critical": ("", "bad"),
    "high": ("", "bad"),
    "medium": ("", "warn"),
    "low": ("", "note"),
    "info": ("", "dim"),
}
_VISIBILITY = {"silent": "silent (no line says so)", "noted": "noted (at INFO)"}
UNOWNED = "LS902"  # told with its lines, at the end
_EVIDENCE_SHOWN = 4
_WIDEST = 160  # longer lines are hard to read, however wide the terminal is
_NARROWEST = 40
_EVIDENCE_CHARACTERS = 160  # two lines of a terminal; --verbose shows all of it


def render(
    doc: Json, *, boots: str = "last", verbose: bool = False, width: int | None = None, color: bool = False, **_: Any
) -> str:
    """The document as annotated text, `width` columns wide: the terminal's by default, 80 where there is none."""
    columns = shutil.get_terminal_size().columns if width is None else width
    drawn = view.worst_first(view.shown(doc, boots))
    lines = list(_headline(doc, drawn, boots))
    for item in drawn:
        lines += [BLANK, *_boot(item, verbose, alone=len(drawn) == 1)]
    lines += _silent_logs(doc)
    write = colored if color else plain
    return write(lines, min(max(columns, _NARROWEST), _WIDEST))


def _look(word: str) -> Span:
    return Span(word, _LOOKS.get(word, ("", ""))[1])


def _headline(doc: Json, drawn: list[Shown], boots: str) -> Iterator[Line]:
    if doc["verdict"] is None:
        yield line(
            Span("NOTHING RECOGNISED", "bad"),
            " in ",
            ", ".join(clean(view.log_name(log["name"]), 80) for log in doc["logs"]),
        )
        return
    yield line(*_verdict(doc["verdict"], doc["status"], doc["worst"], [item.boot for item in drawn]))
    logs, total = len(doc["logs"]), sum(len(log["boots"]) for log in doc["logs"])
    if logs > 1 or total > 1:
        count = f"{view.many(len(drawn), 'boot')} in {view.many(logs, 'log')}"
        hidden = total - len(drawn)
        more = f"; {hidden} earlier not shown (--boots all)" if hidden and boots == "last" else ""
        yield line(Span(f"{'worst of ' * (len(drawn) > 1)}{count}{more}", "dim"))


def _verdict(verdict: str, status: str | None, worst: str | None, boots: list[Json]) -> list[Span]:
    spans = [Span(verdict.upper(), _LOOKS[verdict][1] if verdict != "no-promise" else "bold")]
    for label, word in (("", status), ("severity ", worst)):
        if word:
            spans += [Span(" · ", "dim"), Span(label), _look(word)]
    return spans if worst else [*spans, Span(" · ", "dim"), Span(view.no_findings(boots))]


def _boot(item: Shown, verbose: bool, alone: bool) -> Iterator[Line]:
    log, boot = item.log, item.boot
    yield from _identity(item, alone)
    # A finding may be about several rows (one for each group): it is explained once.
    told: set[int] = set()
    for finding in view.findings(boot):
        if finding["code"].startswith("LS5"):
            yield from _loose_finding(finding, log, verbose)
            told.add(id(finding))
    quiet: list[Json] = []
    fixes: dict[str, str] = {}
    explained: set[str] = set()
    for row in view.rows(boot):
        about = [f for f in view.findings_of(row, boot) if id(f) not in told]
        if row["verdict"] == "no-promise" and not about:
            quiet.append(row)
            continue
        yield BLANK
        yield from _row(row, about, log, verbose, fixes, explained)
        told.update(id(f) for f in about)
    if quiet:
        yield BLANK
        yield from (_quiet_row(row) for row in quiet)
    for finding in view.findings(boot):
        if id(finding) not in told and finding["code"] != UNOWNED:
            yield from _loose_finding(finding, log, verbose)
    yield from _caveats(boot)
    yield from _unrecognised(boot, log, verbose)
    if verbose:
        yield from _facts(boot)


def _loose_finding(finding: Json, log: Json, verbose: bool) -> Iterator[Line]:
    yield BLANK
    yield from _finding(finding, "  ", {}, with_slug=True)
    yield from _evidence(finding["evidence"], log, verbose, "    ")


def _identity(item: Shown, alone: bool) -> Iterator[Line]:
    log, boot = item.log, item.boot
    where = f"boot {boot['index']}" + (f" of {item.of}" if item.of >= boot["index"] else "")
    span = f"lines {boot['lines']['first']}–{boot['lines']['last']}"
    source = f" · {clean(boot['source'], 120)}" if boot["source"] else ""
    mixed = " · interleaved" if boot["lines"]["interleaved"] else ""
    yield line(Span(view.log_name(log["name"]), "bold"), Span(f" · {where} · {span}{source}{mixed}", "dim"))
    if not alone:
        yield line(*_verdict(boot["verdict"], boot["status"], view.worst(boot), [boot]), first="  ")
    engine, hardware, promise = boot["engine"], boot["hardware"], boot["promise"]
    known = f" ({engine['authority']})" if engine["authority"] else ""
    yield _field("engine", Span(view.engine_name(engine)), Span(known, "dim"))
    if boot["model"]:
        yield _field("model", Span(clean(boot["model"], 200)))
    yield _field("hardware", *_hardware(hardware))
    if promise is None or not promise.get("label"):
        yield _field("promise", Span("unknown", "warn"), Span(" (give --ckpt)", "dim"))
    else:
        origin = ", ".join(clean(promise[k], 120) for k in ("method", "source", "authority") if promise.get(k))
        yield _field("promise", Span(clean(promise["label"], 200)), Span(f" ({origin})", "dim"))


def _hardware(hardware: Json) -> list[Span]:
    spans: list[Span] = []
    for key, label in (("gpu", "GPU"), ("sm", "SM"), ("cuda", "CUDA")):
        value, authority = hardware[key], hardware["authority"].get(key)
        spans.append(Span(" · " if spans else "", "dim"))
        if value is None:
            hint = " (give --gpu)" if key == "gpu" and hardware["sm"] is None else ""
            spans.append(Span(f"{label} unknown{hint}", "dim"))
            continue
        named = key == "gpu" or str(value).startswith("gfx")
        spans.append(Span(clean(value, 60) if named else f"{label} {clean(value, 20)}"))
        spans.append(Span(f" ({authority})" if authority else "", "dim"))
    return spans


def _field(name: str, *spans: Span, indent: str = "  ") -> Line:
    return line(*spans, first=f"{indent}{name:<9} ", rest=" " * (len(indent) + 10))


def _row(
    row: Json, findings: list[Json], log: Json, verbose: bool, fixes: dict[str, str], explained: set[str]
) -> Iterator[Line]:
    mark, style = _LOOKS[row["verdict"]]
    head = [Span(mark, style), Span(" "), Span(view.title(row), "bold"), Span(" "), Span(row["verdict"].upper(), style)]
    if row["component"] != "target":
        head.append(Span(" (does not count in the verdict)", "dim"))
    if row["extent"] == "some":
        head.append(Span(" in some layers"))
    yield line(*head, first="  ", rest="      ")
    order, ran = view.yardstick(row), row["ran"]
    if order:
        words = {"request": "asked for", "default": "default"}
        yield _field(words.get(row["against"] or "", "promised"), Span(order), indent="    ")
    known = [Span(clean(ran, 200)), *_kernels(row, " by ")] if ran else [Span("unknown", "warn"), *_kernels(row, ": ")]
    yield _field("ran", *known, indent="    ")
    if row.get("refusal"):
        yield _field("refused", Span(clean(row["refusal"])), indent="    ")
    if row["kinds"]:
        how = [" + ".join(row["kinds"]), row["cause"] and f"cause: {row['cause']}"]
        how.append(_VISIBILITY.get(row["visibility"], row["visibility"]))
        yield _field("how", Span(" · ".join(clean(h, 120) for h in how if h)), indent="    ")
    if row["authority"]:
        basis = {"logged": "the log", "derived": "derived from release, hardware and checkpoint; no line prints it"}
        yield _field("basis", Span(basis.get(row["authority"]) or clean(row["authority"], 80)), indent="    ")
    yield from _reasons(row, explained)
    limit = 1 if row["verdict"] == "kept" else _EVIDENCE_SHOWN
    yield from _evidence(row["evidence"], log, verbose, "    ", limit)
    for finding in findings:
        yield from _finding(finding, "    ", fixes)


def _quiet_row(row: Json) -> Line:
    ran = clean(row["ran"], 200) if row["ran"] else ""
    backends = ", ".join(clean(k["name"], 80) for k in row["kernels"])
    facts = " by ".join(part for part in (ran, backends) if part)
    tail = Span(f": {facts}" if facts else "", "dim")
    return line(Span("– ", "dim"), view.title(row), Span(" no promise", "dim"), tail, first="  ", rest="      ")


def _kernels(row: Json, joint: str) -> list[Span]:
    names = " or ".join(clean(k["name"], 80) for k in row["kernels"])
    return [Span(joint + names, "dim")] if names else []


def _reasons(row: Json, explained: set[str]) -> Iterator[Line]:
    """Why a row is unproven, each with what to do; those that an earlier row of the boot explained, by name only."""
    known = catalogue.reasons()
    for reason in row["reasons"]:
        if reason in known and reason not in explained:
            yield _field("why", Span(reason, "warn"), Span(f": {known[reason].what}"), indent="    ")
            yield _field("do", Span(known[reason].advice), indent="    ")
    again = [reason for reason in row["reasons"] if reason in explained or reason not in known]
    if again:
        yield _field("why", Span(", ".join(clean(r, 80) for r in again), "warn"), indent="    ")
    explained.update(row["reasons"])


def _evidence(
    evidence: list[Json], log: Json, verbose: bool, indent: str, limit: int = _EVIDENCE_SHOWN
) -> Iterator[Line]:
    # Lines that decide come before those that only stand beside them.
    ranked = sorted(view.alike(evidence), key=lambda pair: pair[0]["role"] == "context")
    shown = ranked if verbose else ranked[:limit]
    for item, count in sorted(shown, key=lambda pair: int(pair[0]["line"])):
        contradicts = item["role"] == "contradicts"
        role = Span(" not true here: ", "warn") if contradicts else Span(" ")
        yield line(
            Span(_place(log, item["line"]), "note"),
            Span(f" [{item['means']}]", "dim"),
            role,
            Span(clean(item["text"], 1000 if verbose else _EVIDENCE_CHARACTERS)),
            _times(count),
            first=indent,
            rest=indent + "  ",
        )
    if len(shown) < len(ranked):
        more = len(ranked) - len(shown)
        yield line(Span(f"and {more} more line{'s' * (more > 1)} (--verbose)", "dim"), first=indent)


def _times(count: int) -> Span:
    return Span(f" ({count} times)" if count > 1 else "", "dim")


def _place(log: Json, number: int) -> str:
    """`file:line`; of a long path the file's name, since the heading has all of it."""
    name = view.log_name(log["name"])
    return f"{name if len(name) <= 40 else name.rsplit('/', 1)[-1]}:{number}"


def _finding(finding: Json, indent: str, fixes: dict[str, str], with_slug: bool = False) -> Iterator[Line]:
    """A finding and what to do. `fixes`: advice already given in this boot, and the code that gave it."""
    code = Span(f"{finding['code']} ", "bold")
    message = [Span(" · ", "dim"), Span(clean(finding["message"]))] if finding["message"] else []
    if finding["waived"]:
        waived = Span(f" · waived: {clean(finding['waived'], 120)}", "dim")
        yield line(code, Span(finding["severity"], "dim"), *message, waived, first=indent, rest=indent + "  ")
        return
    slug = [Span(f" {clean(finding['slug'], 60)}")] if with_slug else []
    yield line(code, _look(finding["severity"]), *slug, *message, first=indent, rest=indent + "  ")
    fix = clean(finding["fix"], 600) if finding["fix"] else ""
    if fix:
        earlier = fixes.setdefault(fix, finding["code"])
        again = earlier != finding["code"]
        yield _field("do", Span(f"as for {earlier}" if again else fix, "" if again else "bold"), indent=indent)


def _caveats(boot: Json) -> Iterator[Line]:
    found = {caveat: None for row in boot["paths"] for caveat in row["caveats"]}
    if found:
        yield BLANK
    for caveat in found:
        known = catalogue.caveats().get(caveat)
        text = f"{caveat}: {known.what}" if known else clean(caveat, 80)
        yield line(Span(text, "dim"), first="  note    " if caveat == next(iter(found)) else " " * 10)


def _unrecognised(boot: Json, log: Json, verbose: bool) -> Iterator[Line]:
    lines = boot["unrecognised"]
    if not lines:
        return
    yield BLANK
    code = [Span(f"{f['code']} ", "bold") for f in boot["findings"] if f["code"] == UNOWNED]
    yield line(*code, Span("Lines that look like selections and are not known:", "warn"), first="  ")
    distinct = view.alike(lines)
    shown = distinct if verbose else distinct[:_EVIDENCE_SHOWN]
    for item, count in shown:
        where = Span(_place(log, item["line"]), "note")
        yield line(where, " ", clean(item["text"], _EVIDENCE_CHARACTERS), _times(count), first="    ", rest="      ")
    if len(shown) < len(distinct):
        yield line(Span(f"and {len(distinct) - len(shown)} more (--verbose)", "dim"), first="    ")


def _facts(boot: Json) -> Iterator[Line]:
    if not boot["facts"]:
        return
    yield BLANK
    yield line(Span("Facts, in log order", "bold"), first="  ")
    for fact in boot["facts"]:
        where = Span(f"{fact['line']:>6} ", "note")
        component = f" ({fact['component']})" if fact.get("component", "target") != "target" else ""
        text = f"{clean(fact['name'], 60)} = {clean(fact['value'], 200)}{component}"
        yield line(where, text, Span(f" [{fact['means']}]", "dim"), first="  ", rest=" " * 9)


def _silent_logs(doc: Json) -> Iterator[Line]:
    for log in doc["logs"]:
        if log["boots"]:
            continue
        yield BLANK
        yield line(Span(view.log_name(log["name"]), "bold"), Span(f" · {view.many(log['lines'], 'line')}", "dim"))
        yield _field("why", Span("No line of a vLLM, TensorRT-LLM or SGLang boot was recognised in it."))
        yield _field(
            "do", Span("Give the log of the engine itself, from its start; --engine names it where it is cut.")
        )
