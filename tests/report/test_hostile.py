"""Text of logs and checkpoints is hostile: none of it may act in any format."""

import json
import re
import unicodedata
import xml.etree.ElementTree as ET

import pytest

from logscan.report import FORMATS, render
from logscan.report.markdown import code, prose
from logscan.report.view import clean

# Written by name, so that this file holds none of them.
INVISIBLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_steers_a_terminal(document, format):
    text = render(document("hostile"), format, verbose=True)
    assert INVISIBLE.findall(text) == []
    text.encode("utf-8")


def test_json_keeps_the_text_as_it_was(document):
    assert json.loads(render(document("hostile"), "json")) == document("hostile")


def test_junit_holds_no_markup_of_the_log(document):
    root = ET.fromstring(render(document("hostile"), "junit"))
    assert {node.tag for node in root.iter()} <= {
        "testsuites", "testsuite", "testcase", "failure", "error", "skipped", "system-out",
    }  # fmt: skip


def test_github_runs_no_command_of_the_log(document):
    text = render(document("hostile"), "github")
    for line in text.split("\n"):
        assert line == "" or re.match(
            r"::(error|warning|notice) (file=[^:,\s][^:,]*,)?(line=\d+,)?title=[^:,]+::", line
        )
    assert "%250A" in text and "%0A" not in text.replace("%250A", ""), "an escaped newline of the log stays text"


def test_markdown_tables_keep_their_columns(document):
    rows = [line for line in render(document("hostile"), "markdown").split("\n") if line.startswith("|")]
    assert rows
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 8


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "`plain`"),
        ("a `b` c", "``a `b` c``"),
        ("`b`", "`` `b` ``"),
        ("``", "``` `` ```"),
        ("", ""),
    ],
)
def test_code_span(text, expected):
    assert code(text) == expected


def test_prose_escapes_what_markdown_reads():
    assert prose("<b> [x](http://y) `z` | #1") == r"\<b\> \[x\](http\://y) \`z\` \| \#1"
    assert "@ev" not in prose("@everyone")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x1b[31mb\x1b[0m", "ab"),
        ("a\nb\r\nc", "a b c"),
        ("\x1b]0;title\x07x", "x"),
        ("x" * 500, "x" * 399 + "…"),
        ("\uffff\ufffe!", "!"),
    ],
)
def test_clean(text, expected):
    assert clean(text) == expected


def test_clean_text_has_no_control_category():
    everything = "".join(map(chr, range(0x3000)))
    assert {unicodedata.category(c) for c in clean(everything, 0x4000)}.isdisjoint({"Cc", "Zl", "Zp", "Cs"})


def test_prometheus_labels_are_read_back(document):
    from prometheus_client.parser import text_string_to_metric_families

    families = list(text_string_to_metric_families(render(document("hostile"), "prom")))
    info = next(f for f in families if f.name == "logscan_boot_info").samples[0].labels
    assert info["model"].endswith("calc'!A0") and '"quoted"' in info["model"] and "\\back" in info["model"]
