"""The shell's completion: commands, options, their values, and the codes of rules."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def complete(line: str) -> list[str]:
    environment = {
        **os.environ,
        "_LOGSCAN_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split()) - 1),
    }
    code = "from logscan.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("logscan tri", ["triage"]),
        ("logscan pa", ["packs"]),
        ("logscan packs ve", ["verify"]),
        ("logscan triage --wai", ["--waivers"]),
        ("logscan triage --format j", ["json", "jsonl", "junit"]),
        ("logscan diff --gpu", ["--gpu", "--gpu-old", "--gpu-new"]),
        ("logscan triage --gpu rtx-409", ["rtx-4090", "rtx-4090-D", "rtx-4090D"]),
        ("logscan expect --gpu gb3", ["gb300"]),
        ("logscan diff --gpu-old cp", ["cpu"]),
        ("logscan explain LS80", ["LS801", "LS802", "LS803"]),
        ("logscan explain linear-w", ["linear-weight-only"]),
    ],
)
def test_what_is_offered(line: str, words: list[str]) -> None:
    assert complete(line) == words
