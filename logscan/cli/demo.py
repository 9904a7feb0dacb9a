"""`logscan demo`: three boots of one checkpoint, told by the commands that one would use oneself."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from logscan import diff, document, report
from logscan.cli.output import wants_color, write
from logscan.desk import Desk, Given, read_log
from logscan.intake import open_source
from logscan.redact import cleaner
from logscan.report import difference

HOME = Path(__file__).parents[1] / "demo"


class Scene(NamedTuple):
    """A packaged log, the GPU it ran on, and what to look at."""

    log: str
    gpu: str
    about: str


SCENES = (
    Scene("h100-0.24.log", "H100", "An FP8 checkpoint on a GPU that computes in FP8: the promise is kept."),
    Scene("a100-0.24.log", "A100", "The same on a GPU that does not. One warning among thousands of lines tells it."),
    Scene("a100-0.30.log", "A100", "The same after an upgrade. Now no line tells it: it follows from release and GPU."),
)


def run(color: str) -> int:
    """Write the demonstration. Downgrades are what it shows, so the exit code is 0."""
    write("".join(_pages(wants_color(color))))
    return 0


def _pages(color: bool) -> Iterator[str]:
    ckpt = _short(str(HOME / "config.json"))
    desk = Desk.of(Given())
    sides: list[diff.Side] = []
    for scene in SCENES:
        log = _short(str(HOME / scene.log))
        desk = desk.for_another(Given(ckpt=ckpt, gpu=scene.gpu))
        doc, texts = _triaged(log, desk)
        yield _heading(scene.about, "triage", log, "--ckpt", ckpt, "--gpu", scene.gpu)
        yield report.render(doc, "table", color=color) + "\n"
        sides.append(diff.Side(log, doc["logs"][0]["boots"][0], doc["given"], texts))
    before, after = sides[0], sides[1]
    machines = ("--gpu-old", SCENES[0].gpu, "--gpu-new", SCENES[1].gpu)
    yield _heading("What differs between the first two.", "diff", before.log, after.log, "--ckpt", ckpt, *machines)
    yield difference.render(diff.compare(before, after), color=color)


def _triaged(log: str, desk: Desk) -> tuple[dict[str, Any], dict[int, str]]:
    read = read_log(open_source(log), desk)
    clean = cleaner()
    doc = document.document([read], desk.packs, desk.given.document(), clean=clean)
    return doc, {fact.line: clean(fact.text) for judged in read.boots for fact in judged.boot.facts}


def _heading(about: str, *command: str) -> str:
    shown = shlex.join(["logscan", *command])
    return f"# {about}\n$ {shown}\n\n"


def _short(path: str) -> str:
    """A path as short as it stays usable from here."""
    if not os.path.isabs(path):
        return path
    relative = os.path.relpath(path)
    return min(path, relative, key=len)
