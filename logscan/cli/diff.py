"""`logscan diff OLD NEW`: two boots, or two audits, and an exit code that says whether it got worse."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from logscan import document
from logscan.cli.output import wants_color, write
from logscan.desk import Desk, Given, read_log
from logscan.diff import Side, audit_result, compare
from logscan.model import InputError
from logscan.redact import cleaner, printable
from logscan.report.view import log_name

WORSE, NOTHING = 1, 3
_LARGEST_DOCUMENT = 256 << 20


class Input(NamedTuple):
    """OLD or NEW as the user gave it."""

    path: str
    given: Given
    boot: int | None = None  # which boot of the log, from 1; None is the last


def run(
    *,
    old: Input,
    new: Input,
    format: str,
    output: Path | None,
    fail_on: str,
    packs: Sequence[str],
    redact: bool,
    quiet: bool,
    verbose: bool,
    color: str,
) -> int:
    """Write the difference, and return the exit code: 1 where it got worse, 3 where a log holds no boot.

    Raises InputError for what cannot be read, and for a file beside a directory.
    """
    audits = [Path(side.path).is_dir() for side in (old, new)]
    if any(audits) and not all(audits):
        raise InputError("diff compares two logs, or two directories that `logscan audit -o` wrote; not one of each")
    if all(audits):
        doc = _audits(old.path, new.path, fail_on)
    else:
        found = _sides(old, new, packs, redact)
        if found is None:
            return NOTHING
        doc = compare(*found, fail_on)
        _remarks(*found, quiet=quiet)
    write(_render(doc, format, verbose, wants_color(color, output)), output)
    return WORSE if doc["result"] == "worse" and fail_on != "never" else 0


def _audits(old: str, new: str, fail_on: str) -> dict[str, Any]:
    """Two audits, boot by boot. polars is needed for their tables, and for nothing else here."""
    from logscan.fleet.diff import compare as compare_audits

    doc = compare_audits(old, new)
    return {**doc, "result": audit_result(doc, fail_on)}


def _sides(old: Input, new: Input, packs: Sequence[str], redact: bool) -> tuple[Side, Side] | None:
    """Both boots; None, and a word on stderr, where one of the logs holds none."""
    if old.path == new.path == "-":
        raise InputError("only one of OLD and NEW can be stdin; write the other to a file")
    desks = _Desks(packs)
    before, after = (_side(side, desks, redact) for side in (old, new))
    if before is None or after is None:
        names = " and ".join(log_name(i.path) for i, side in ((old, before), (new, after)) if side is None)
        _say(f"{names}: no boot was recognised; give the boot log of vLLM, TensorRT-LLM or SGLang", False)
        return None
    return before, after


class _Desks:
    """A desk for each side: packs and tables are loaded once, and not at all for two documents."""

    def __init__(self, packs: Sequence[str]) -> None:
        self._packs = packs
        self._first: Desk | None = None

    def of(self, given: Given) -> Desk:
        if self._first is None:
            self._first = Desk.of(given, self._packs)
            return self._first
        return self._first if given == self._first.given else self._first.for_another(given)


def _side(side: Input, desks: _Desks, redact: bool) -> Side | None:
    """The boot that is meant; None where nothing was recognised."""
    doc = _document(side.path)
    texts: Mapping[int, str] = {}
    if doc is None:
        desk = desks.of(side.given)
        from logscan.intake import open_source

        clean = cleaner(redact)
        report = read_log(open_source(side.path), desk)
        doc = document.document([report], desk.packs, desk.given.document(), "all", clean)
        boots = {judged.boot.number: judged.boot for judged in report.boots}
    else:
        boots = {}
    listed = [(log["name"], boot) for log in doc["logs"] for boot in log["boots"]]
    if not listed:
        return None
    name, boot = _pick(listed, side)
    if boot["index"] in boots:
        texts = {fact.line: clean(fact.text) for fact in boots[boot["index"]].facts}
    return Side(name, boot, doc["given"], texts)


def _pick(listed: Sequence[tuple[str, dict[str, Any]]], side: Input) -> tuple[str, dict[str, Any]]:
    if side.boot is None:
        return listed[-1]
    for name, boot in listed:
        if boot["index"] == side.boot:
            return name, boot
    raise InputError(
        f"{log_name(side.path)}: has no boot {side.boot}; it holds boots 1 to {max(b['index'] for _, b in listed)}"
    )


def _document(path: str) -> dict[str, Any] | None:
    """A `logscan.triage/1` document, where the file is one; a log in JSON lines is not."""
    if path == "-":
        return None
    try:
        file = Path(path)
        with file.open("rb") as opened:
            start = opened.read(4096)
        if not start.lstrip().startswith(b"{") or b'"logscan.triage/1"' not in start:
            return None
        if file.stat().st_size > _LARGEST_DOCUMENT:
            raise InputError(f"{path}: too large for a triage document; give the logs themselves")
        doc = json.loads(file.read_bytes())
    except OSError:
        return None  # opening it as a log says what is wrong
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: a damaged triage document: {error}; write it again with --format json") from error
    if not _whole(doc):
        raise InputError(f"{path}: not a whole logscan.triage/1 document; write it again with `triage --format json`")
    return dict(_printable(doc))


def _printable(value: Any) -> Any:
    """The document as it would have been written: text from elsewhere must not steer a terminal."""
    if isinstance(value, dict):
        return {key: _printable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_printable(item) for item in value]
    return printable(value) if isinstance(value, str) else value


def _whole(doc: Any) -> bool:
    """Whether a document has every boot as the schema has it, so far as a difference reads it."""
    try:
        boots = [boot for log in doc["logs"] if isinstance(log["name"], str) for boot in log["boots"]]
        return isinstance(doc["given"], dict) and all(_whole_boot(boot) for boot in boots)
    except (TypeError, KeyError, AttributeError, ValueError):
        return False


def _whole_boot(boot: dict[str, Any]) -> bool:
    """By telling it from itself and from an empty one: whatever would fail later fails here."""
    from logscan.report import difference

    nothing = dict.fromkeys(("name", "version", "range", "line", "gpu", "sm", "cuda"))
    unknown = {"engine": nothing, "hardware": nothing, "model": None, "promise": None}
    side, empty = Side("", boot, {}), Side("", {**boot, **unknown, "facts": [], "paths": [], "findings": []}, {})
    for one, other in ((side, side), (side, empty), (empty, side)):
        doc = compare(one, other)
        difference.render(doc, verbose=True, width=80)
        difference.markdown(doc)
    return isinstance(boot["index"], int)


def _remarks(old: Side, new: Side, *, quiet: bool) -> None:
    """What makes a comparison doubtful."""
    for side in (old, new):
        if side.boot["status"] == "incomplete":
            which = f"{log_name(side.log)}: boot {side.boot['index']}"
            _say(f"{which} is incomplete; what it lacks may only not have been printed", quiet)
    if old.boot["engine"]["name"] != new.boot["engine"]["name"]:
        _say("the two boots are of different engines: facts are named alike, lines are not", quiet)
    if (old.boot["promise"] is None) != (new.boot["promise"] is None):
        _say("only one of the two has a checkpoint; give --ckpt for both", quiet)


def _say(text: str, quiet: bool) -> None:
    if not quiet:
        print(f"logscan: {text}", file=sys.stderr)


def _render(doc: dict[str, Any], format: str, verbose: bool, color: bool) -> str:
    if format == "json":
        return json.dumps(doc, indent=2) + "\n"
    from logscan.report import audit_difference, difference

    page: Any = audit_difference if doc["of"] == "audit" else difference
    text: str = page.markdown(doc) if format == "markdown" else page.render(doc, verbose=verbose, color=color)
    return text
