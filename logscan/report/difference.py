"""A difference for a person: what became worse first, each change with the line of either side."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

from logscan.report import view
from logscan.report.text import BLANK, Line, Span, cells, colored, line, plain, wrap
from logscan.report.view import Json, clean

_RESULTS = {"worse": "bad", "better": "good", "changed": "warn", "same": "good"}
_MARKS = {"worse": ("✗", "bad"), "better": ("✓", "good"), "same": ("=", "dim")}
_LOOKS = {"not-served": "bad", "downgraded": "bad", "unproven": "warn", "kept": "good", "no-promise": "dim"}
_TITLES = {
    "engine": "Engine",
    "hardware": "Hardware",
    "promise": "Promise",
    "request": "Requests",
    "config": "Settings",
    "kernels": "Kernels and backends",
    "kv_cache": "KV cache",
    "features": "Features",
    "boot": "Start-up",
    "capacity": "Capacity",
    "other": "Other",
}
_WIDEST, _NARROWEST, _SIDE_BY_SIDE = 200, 40, 110
_QUOTED = 160
_NOTHING = "(no line)"
_HARD = "\N{NO-BREAK SPACE}"


def render(doc: Json, *, verbose: bool = False, width: int | None = None, color: bool = False) -> str:
    """The document `logscan.diff/1` as text: below one another at 80 columns, side by side where there is room."""
    columns = min(max(shutil.get_terminal_size().columns if width is None else width, _NARROWEST), _WIDEST)
    write = colored if color else plain
    return write(list(_lines(doc, verbose, columns)), columns).replace(_HARD, " ")


def _lines(doc: Json, verbose: bool, width: int) -> Iterator[Line]:
    yield from _headline(doc)
    shown = [row for row in doc["rows"] if row["change"] != "same"]
    for row in sorted(shown, key=lambda row: row["change"] != "worse"):
        yield BLANK
        yield from _row(row, doc, width)
    yield from _same_rows(doc)
    hidden = 0
    loose = () if verbose else _loose_sections(doc)
    for section, title in _TITLES.items():
        changes = [c for c in doc["changes"] if c["section"] == section and (verbose or not _told(c, doc))]
        if section in loose:
            kept = [c for c in changes if c["before"] and c["after"]]
            hidden, changes = hidden + len(changes) - len(kept), kept
        if changes:
            yield BLANK
            yield line(Span(title, "bold"), first="  ")
        for change in changes:
            yield from _change(change, doc, width)
    yield from _other_findings(doc)
    if hidden:
        yield BLANK
        text = f"{hidden} setting{'s' * (hidden > 1)} named by one of the two releases only (--verbose)"
        yield line(Span(text, "dim"), first="  ")


def _headline(doc: Json) -> Iterator[Line]:
    before, after = doc["before"], doc["after"]
    spans = [Span(doc["result"].upper(), _RESULTS[doc["result"]])]
    for key in ("verdict", "status"):
        spans.append(Span(" · ", "dim"))
        spans += _step(before[key], after[key]) if before[key] != after[key] else [Span(after[key])]
    yield line(*spans)
    yield BLANK
    for name, side in (("before", before), ("after", after)):
        hardware = side["hardware"]
        known = [clean(hardware[key], 60) for key in ("gpu",) if hardware[key]]
        known += [f"{label} {hardware[key]}" for key, label in (("sm", "SM"), ("cuda", "CUDA")) if hardware[key]]
        parts = [view.engine_name(side["engine"]), *known, clean(side["model"], 120) if side["model"] else ""]
        where = Span(f"{view.log_name(side['log'])} boot {side['index']}", "bold")
        yield line(where, Span(" · " + " · ".join(p for p in parts if p), "dim"), first=f"  {name:<8}")


def _step(was: object, now: object) -> list[Span]:
    one, other = clean(was, 60), clean(now, 60)
    return [Span(one, _LOOKS.get(one.lower(), "")), Span(" → ", "dim"), Span(other, _LOOKS.get(other.lower(), ""))]


def _row(row: Json, doc: Json, width: int) -> Iterator[Line]:
    was, now = row["before"], row["after"]
    mark, style = _MARKS.get(row["change"], ("~", "warn"))
    verdicts = [r["verdict"].upper() if r else "no such row" for r in (was, now)]
    step = _step(*verdicts) if verdicts[0] != verdicts[1] else [Span(verdicts[1], _LOOKS.get(verdicts[1].lower(), ""))]
    yield line(Span(f"{mark} ", style), Span(view.title(row), "bold"), " ", *step, first="  ", rest="      ")
    for name, label in (("requested", "asked for"), ("promised", "promised")):
        sides = [r[name] if r else None for r in (was, now)]
        if sides[0] == sides[1] and sides[0]:
            yield line(Span(clean(sides[0], 200)), first=f"    {label:<10}")
        elif any(sides):
            yield from _sides(label, *([clean(s, 200)] if s else [] for s in sides), width=width)
    ran = [_ran(r) for r in (was, now)]
    if ran[0] == ran[1]:
        yield from (line(Span(text), first=f"    {'ran':<10}") for text in ran[0])
    else:
        yield from _sides("ran", *ran, width=width)
    if now and now["kinds"]:
        how = (" + ".join(now["kinds"]), now["cause"] and f"cause: {now['cause']}", now["visibility"])
        yield line(Span(" · ".join(clean(part, 120) for part in how if part)), first=f"    {'how':<10}")
    if now and now["reasons"]:
        yield line(Span(", ".join(now["reasons"]), "warn"), first=f"    {'why':<10}")
    lines = [_quotes(r, doc[side]["log"]) for r, side in ((was, "before"), (now, "after"))]
    if any(lines):
        yield from _sides("lines", *lines, width=width)
    for finding in doc["findings"]:
        found = finding["after"]
        if found and found["path"] == row["path"] and found["group"] == row["group"] and finding["change"] != "same":
            yield from _finding(finding, "    ")


def _ran(row: Json | None) -> list[str]:
    told = view.ran(row) if row is not None else ""
    return [told] if told else []


def _quotes(row: Json | None, log: str) -> list[str]:
    """The lines that carry a row's verdict, as `file:line text`."""
    if row is None:
        return []
    return [
        f"{_place(log, e['line'])} {'(not true here) ' * (e['role'] == 'contradicts')}{clean(e['text'], _QUOTED)}"
        for e in _evidence(row)
    ]


def _evidence(row: Json) -> list[Json]:
    told = [e for e in row["evidence"] if e["role"] != "context"][:4]
    return sorted(told, key=lambda e: int(e["line"]))


def _place(log: str, number: int | None) -> str:
    """`file:line`, without the folder: the heading has all of the path."""
    name = view.log_name(log).rsplit("/", 1)[-1]
    return f"{name}:{number}" if number else name


def _change(change: Json, doc: Json, width: int) -> Iterator[Line]:
    """On one line where that fits; else the name, and both sides with the lines that show them."""
    component = f" ({change['component']})" if change["component"] != "target" else ""
    name = clean(change["name"].removeprefix("request.").removeprefix("config."), 100) + component
    quoting = change["section"] not in ("engine", "request", "config", "capacity")
    sides = [_values(change[side], doc[side]["log"], quoting) for side in ("before", "after")]
    if not any(quote for side in sides for _, quote in side) and all(len(side) < 2 for side in sides):
        was, now = (side[0][0] if side else _NOTHING for side in sides)
        if cells(name) + cells(was) + cells(now) + 9 <= width:
            yield line(Span(name), "  ", was, Span(" → ", "dim"), now, first="    ")
            return
    yield line(Span(name), first="    ")
    yield from _sides("", *([quote or value for value, quote in side] for side in sides), width=width)


def _values(items: Sequence[Json], log: str, quoting: bool) -> list[tuple[str, str]]:
    """Each value with its line number, and the line itself where that says more."""
    out = []
    for item in items:
        value, text = clean(item["value"], _QUOTED), clean(item["text"] or "", _QUOTED)
        where = f" (line {item['line']})" if item["line"] else ""
        quote = f"{_place(log, item['line'])} {text}" if quoting and text and text != value else ""
        out.append((value + where, quote))
    return out


def _sides(label: str, was: list[str], now: list[str], *, width: int) -> Iterator[Line]:
    """Both sides of one thing: two columns where they fit, else the old above the new."""
    was, now = was or [_NOTHING], now or [_NOTHING]
    head = f"    {label:<10}"
    if width < _SIDE_BY_SIDE:
        for sign, style, texts in (("-", "bad", was), ("+", "good", now)):
            for text in texts:
                yield line(Span(f"{sign} ", style), Span(text), first=head, rest=" " * (len(head) + 2))
                head = " " * len(head)
        return
    room = (width - len(head) - 3) // 2
    columns = [[row for text in texts for row in _fold(text, room - 2)] for texts in (was, now)]
    for n in range(max(map(len, columns))):
        left, right = (column[n] if n < len(column) else "" for column in columns)
        signs = [f"{sign} " if n == 0 else "  " for sign in "-+"]
        gap = " " * (room - 2 - cells(left))
        # One unbreakable piece a line: the columns were folded already.
        whole = f"{left}{gap} │ "
        spans = (Span(signs[0], "bad"), Span(whole), Span(signs[1], "good"), Span(right))
        yield Line([Span(_hard(text), style) for text, style in spans], first=head)
        head = " " * len(head)


def _fold(text: str, room: int) -> list[str]:
    return ["".join(span.text for span in spans).rstrip() for spans in wrap(line(Span(text), rest="  "), room)]


def _hard(text: str) -> str:
    """Spaces that the wrapping keeps; `render` makes them plain again."""
    return text.replace(" ", _HARD)


def _finding(finding: Json, indent: str) -> Iterator[Line]:
    found = finding["after"] or finding["before"]
    now = finding["after"]
    words = {"new": "new", "gone": "gone", "changed": "changed", "same": "as before"}
    style = "dim" if now is None else {"critical": "bad", "high": "bad", "medium": "warn"}.get(now["severity"], "")
    head = [Span(f"{found['code']} ", "bold"), Span(f"{words[finding['change']]} ", "dim")]
    head += [Span(found["severity"], style), Span(" · ", "dim"), Span(clean(found["message"]))]
    yield line(*head, first=indent, rest=indent + "  ")
    if now and now["fix"] and not now["waived"] and finding["change"] != "same":
        yield line(Span(clean(now["fix"], 600), "bold"), first=f"{indent}{'do':<10}")


def _other_findings(doc: Json) -> Iterator[Line]:
    changed_rows = {(row["path"], row["group"]) for row in doc["rows"] if row["change"] != "same"}
    rest = [f for f in doc["findings"] if f["change"] != "same"]
    told = [f for f in rest if f["after"] is None or (f["after"]["path"], f["after"]["group"]) not in changed_rows]
    if told:
        yield BLANK
        yield line(Span("Findings", "bold"), first="  ")
    for finding in told:
        yield from _finding(finding, "    ")


def _same_rows(doc: Json) -> Iterator[Line]:
    same = [row for row in doc["rows"] if row["change"] == "same"]
    if same:
        yield BLANK
    for row in same:
        ran = "".join(f": {text}" for text in _ran(row["after"]))
        spans = [Span("= ", "dim"), Span(view.title(row)), Span(f" {row['after']['verdict']}, as before{ran}", "dim")]
        yield line(*spans, first="  ", rest="      ")


def _told(change: Json, doc: Json) -> bool:
    """Whether a row that is drawn quotes every line of a change already."""
    if change["section"] not in ("kernels", "kv_cache"):
        return False
    for side in ("before", "after"):
        drawn = [row[side] for row in doc["rows"] if row["change"] != "same" and row[side]]
        quoted = {e["line"] for row in drawn for e in _evidence(row)}
        if any(item["line"] not in quoted for item in change[side]):
            return False
    return True


def _loose_sections(doc: Json) -> tuple[str, ...]:
    """Sections in which a name on one side only is no change: another release names other settings.

    vLLM prints the arguments that were given, so there a missing one was not given; SGLang prints all that exist.
    """
    one, other = doc["before"]["engine"], doc["after"]["engine"]
    if all(one[key] == other[key] for key in ("name", "version", "range")):
        return ()
    return ("config", "request") if one["name"] != other["name"] or one["name"] == "sglang" else ("config",)


def markdown(doc: Json) -> str:
    """The document for a pull request: rows and settings that changed, with the lines of either side."""
    from logscan.report.markdown import cell, code, prose

    before, after = doc["before"], doc["after"]
    step = before["verdict"] if before["verdict"] == after["verdict"] else f"{before['verdict']} → {after['verdict']}"
    lines = [f"### logscan: **{doc['result']}** · {step} · {after['status']}", ""]
    for name, side in (("before", before), ("after", after)):
        engine, gpu = code(view.engine_name(side["engine"])), side["hardware"]["gpu"]
        log = code(view.log_name(side["log"]))
        lines.append(f"- {name}: {log} boot {side['index']}, {engine}{f', {code(gpu)}' if gpu else ''}")
    lines += ["", "| what | before | after |", "|---|---|---|"]
    for row in doc["rows"]:
        if row["change"] != "same":
            sides = [_cell(row[side], doc[side]["log"]) for side in ("before", "after")]
            lines.append(f"| {cell(view.title(row))} **{row['change']}** | {' | '.join(sides)} |")
    loose = _loose_sections(doc)
    for change in doc["changes"]:
        if change["section"] in loose and not (change["before"] and change["after"]):
            continue
        texts = [", ".join(f"{i['value']}" for i in change[side]) or _NOTHING for side in ("before", "after")]
        lines.append(f"| {cell(change['name'])} | {' | '.join(map(cell, texts))} |")
    for finding in doc["findings"]:
        found = finding["after"] or finding["before"]
        if finding["change"] != "same":
            words = f"{finding['change']} · {found['severity']} — {prose(found['message'])}"
            lines += ["", f"**{found['code']} {found['slug']}** {words}"]
    return "\n".join(lines) + "\n"


def _cell(row: Json | None, log: str) -> str:
    from logscan.report.markdown import cell

    if row is None:
        return ""
    return "<br>".join([row["verdict"], *map(cell, [*_ran(row), *_quotes(row, log)])])
