"""The report that a person reads."""

import copy

import pytest

from logscan.report import render
from logscan.report.text import Span, cells, line, wrap

HONEST = ("downgraded", "kept", "unproven", "empty")


@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("name", HONEST)
def test_reads_well(name, width, document, snapshot):
    assert render(document(name), "table", width=width) == snapshot


def test_verbose_tells_every_fact_and_all_evidence(document, snapshot):
    assert render(document("downgraded"), "table", width=80, verbose=True) == snapshot


def test_all_boots(document):
    text = render(document("kept"), "table", width=80, boots="all")
    assert "boot 1 of 2" in text and "boot 2 of 2" in text
    assert text.index("NOT-SERVED") < text.index("boot 2 of 2"), "the worst boot comes first"
    assert "boot 1 of 2" not in render(document("kept"), "table", width=80, boots="last")


@pytest.mark.parametrize("width", [40, 53, 80, 100, 160])
@pytest.mark.parametrize("verbose", [False, True])
def test_never_wider_than_asked(each_document, width, verbose):
    text = render(each_document, "table", width=width, verbose=verbose)
    assert max(cells(row) for row in text.split("\n")) <= width


def test_facts_stand_only_in_the_verbose_report(document):
    doc = document("downgraded")
    assert "Facts" in render(doc, "table", verbose=True)
    assert "Facts" not in render(doc, "table")


def test_colour_changes_nothing_but_colour(each_document):
    import re

    coloured = render(each_document, "table", width=80, color=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render(each_document, "table", width=80)


def test_what_is_wrong_comes_first(document):
    text = render(document("downgraded"), "table", width=80)
    assert text.startswith("DOWNGRADED")
    assert text.index("✗ linear") < text.index("– attention"), "rows are ordered by verdict, not by the document"


def test_a_boot_failure_stands_before_the_rows(document):
    doc = document("downgraded")
    boot = doc["logs"][0]["boots"][0]
    failure = copy.deepcopy(boot["findings"][0]) | {"code": "LS501", "slug": "boot-failed", "path": None, "kind": None}
    boot["findings"].append(failure | {"message": "the engine did not get ready"})
    text = render(doc, "table", width=80)
    assert text.index("LS501") < text.index("✗ linear")


def test_each_finding_is_told_once(document):
    boot = document("downgraded")["logs"][0]["boots"][0]
    text = render(document("downgraded"), "table", width=80)
    for finding in boot["findings"]:
        assert text.count(finding["code"] + " ") == 1, finding["code"]


def test_a_finding_stands_under_the_row_of_its_group(document):
    doc = document("downgraded")
    boot = doc["logs"][0]["boots"][0]
    linear = next(row for row in boot["paths"] if row["path"] == "linear")
    boot["paths"].append(copy.deepcopy(linear) | {"group": "group_1"})
    first = next(f for f in boot["findings"] if f["code"] == "LS101")
    boot["findings"].append(first | {"group": "group_1", "message": "of the second group"})
    first["group"] = "group_0"
    text = render(doc, "table", width=160)
    told = [text.index(part) for part in ("linear group_0 D", "LS101 high", "linear group_1 D", "of the second group")]
    assert told == sorted(told)
    assert text.count("LS101 high") == 2


def test_a_reason_is_explained_once(document):
    doc = document("unproven")
    for row in doc["logs"][0]["boots"][0]["paths"]:
        row["reasons"] = ["no-gpu"]
    text = render(doc, "table", width=160)
    assert text.count("no-gpu") == 2 and text.count("Give --gpu;") == 1


def test_lines_that_ranks_repeat_stand_once(document):
    doc = document("downgraded")
    boot = doc["logs"][0]["boots"][0]
    row = next(row for row in boot["paths"] if row["path"] == "linear")
    row["evidence"] += [row["evidence"][1] | {"line": 100 + rank} for rank in range(7)]
    boot["unrecognised"] *= 3
    text = render(doc, "table", width=160)
    assert "vllm.log:35 [selected]" in text and "(8 times)" in text and "vllm.log:100" not in text
    assert "vllm.log:77 Using FooBar kernel for the shared experts (3 times)" in text


def test_reasons_come_with_what_to_do(document):
    from logscan import catalogue

    text = " ".join(render(document("unproven"), "table", width=80).split())
    for reason in ("no-gpu", "version-ambiguous", "tail-missing"):
        assert reason in text and catalogue.reasons()[reason].advice in text


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("a bb ccc", 20, ["a bb ccc"]),
        ("abcdefghijklmnopqrstuvwxyz", 16, ["abcdefghijklmnop", "qrstuvwxyz"]),
        ("模型模型模型模型模型 x", 16, ["模型模型模型模型", "模型 x"]),
        ("", 16, [""]),
    ],
)
def test_wrap(text, width, expected):
    assert ["".join(span.text for span in spans) for spans in wrap(line(Span(text)), width)] == expected


def test_plain_text_needs_no_rich():
    import subprocess
    import sys

    code = (
        "import sys, logscan.report.table as t; t.render({'verdict': None, 'logs': []}); print('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_a_label_never_touches_what_it_labels(document):
    """Measured against the release's own default, whose word is the longest."""
    doc = document("downgraded")
    row = next(row for row in doc["logs"][0]["boots"][0]["paths"] if row["path"] == "linear")
    row |= {"against": "default", "default": "W8A8-FP8 block", "promised": None}
    assert "\n    default   W8A8-FP8 block\n" in render(doc, "table", width=100)


@pytest.mark.parametrize("format", ["table", "markdown"])
def test_waived_findings_are_no_absence_of_findings(document, format):
    doc = document("downgraded")
    doc["worst"] = None
    for finding in doc["logs"][0]["boots"][0]["findings"]:
        finding["waived"] = "known"
    head = render(doc, format).split("\n")[0]
    assert head.endswith(f" · {len(doc['logs'][0]['boots'][0]['findings'])} waived")


@pytest.mark.parametrize("format", ["table", "markdown", "junit", "github"])
@pytest.mark.parametrize("name", ["downgraded", "empty"])
def test_stdin_is_called_so(document, name, format):
    doc = document(name)
    doc["logs"][0]["name"] = "-"
    text = render(doc, format)
    assert format == "github" or "stdin" in text or (name, format) == ("empty", "junit")
    for dash in ("-:", "`-`", "- ·", '"- boot', "file=-", "in -"):
        assert dash not in text


def test_one_line_is_no_lines(document):
    doc = document("empty")
    doc["logs"][0]["lines"] = 1
    assert " · 1 line\n" in render(doc, "table")
