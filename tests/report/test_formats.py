"""Formats for programs, each read back by its own kind of parser."""

import json
import xml.etree.ElementTree as ET

import pytest
from prometheus_client.parser import text_string_to_metric_families

from logscan.report import FORMATS, render
from logscan.report.github import MOST


@pytest.mark.parametrize("name", ["downgraded", "kept", "unproven", "empty"])
@pytest.mark.parametrize("format", ["markdown", "junit", "github", "prom"])
def test_snapshots(name, format, document, snapshot):
    assert render(document(name), format) == snapshot


def test_an_unknown_format_is_named():
    with pytest.raises(ValueError, match="no format 'yaml'; one of table, json"):
        render({}, "yaml")


@pytest.mark.parametrize("format", FORMATS)
def test_every_report_ends_its_last_line(each_document, format):
    text = render(each_document, format)
    assert text.endswith("\n") or text == ""
    assert not text.endswith("\n\n")


def test_json_is_the_document(each_document):
    text = render(each_document, "json")
    assert json.loads(text) == each_document
    assert text.isascii()


def test_jsonl_has_a_line_for_each_boot(document):
    lines = render(document("kept"), "jsonl").splitlines()
    boots = document("kept")["logs"][0]["boots"]
    assert [json.loads(line) for line in lines] == [
        {"schema": "logscan.boot/1", "log": "h100.log.zst", **b} for b in boots
    ]
    assert render(document("empty"), "jsonl") == ""


def cases(text):
    return {case.get("name"): (case[0].tag if len(case) else "passed") for case in ET.fromstring(text).iter("testcase")}


def test_junit_fails_where_the_exit_code_does(document):
    doc = document("downgraded")
    high = cases(render(doc, "junit"))
    assert high == {
        "boot": "passed",
        "attention": "skipped",
        "linear group_0": "failure",
        "moe group_0": "failure",
        "kv_cache": "system-out",
        "linear drafter": "skipped",
    }
    assert cases(render(doc, "junit", fail_on="medium"))["kv_cache"] == "failure"
    assert "failure" not in cases(render(doc, "junit", fail_on="never")).values()


def test_junit_waived_findings_do_not_fail(document):
    doc = document("downgraded")
    for finding in doc["logs"][0]["boots"][0]["findings"]:
        finding["waived"] = "known"
    assert "failure" not in cases(render(doc, "junit", fail_on="info")).values()


def test_junit_counts_what_it_holds(each_document):
    root = ET.fromstring(render(each_document, "junit"))
    for suite in (root, *root):
        assert int(suite.get("tests")) == len(list(suite.iter("testcase")))
        for word, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(word)) == len(list(suite.iter(tag)))


def test_junit_never_passes_what_was_not_shown(document):
    ended = cases(render(document("unproven"), "junit"))
    assert ended["linear"] == ended["kv_cache"] == ended["boot"] == "skipped"


@pytest.mark.parametrize(("status", "ended"), [("ready", "passed"), ("failed", "error"), ("died", "error")])
def test_junit_boot_status(document, status, ended):
    doc = document("kept")
    doc["logs"][0]["boots"][1]["status"] = status
    case = next(c for c in ET.fromstring(render(doc, "junit")).iter("testcase") if c.get("name") == "boot")
    assert (case[0].tag if len(case) else "passed") == ended


def test_github_shows_the_worst_ten(document):
    doc = document("downgraded")
    found = doc["logs"][0]["boots"][0]["findings"]
    low = found[2] | {"severity": "low"}
    found[:] = [low | {"message": f"low {n}"} for n in range(20)] + [found[0] | {"severity": "critical"}]
    lines = render(doc, "github").splitlines()
    assert len(lines) == MOST
    assert lines[0].startswith("::error file=vllm.log,line=35,title=LS101 linear-weight-only (critical)::")
    assert all(line.startswith("::notice ") for line in lines[1:])


def test_github_leaves_waived_findings_out(document):
    assert "LS601" not in render(document("downgraded"), "github")


def test_github_says_so_when_there_is_nothing(document):
    assert render(document("empty"), "github") == "::notice title=logscan::nothing recognised\n"
    assert render(document("kept"), "github") == "::notice title=logscan::kept · ready\n"


def test_prometheus_reads_it(each_document):
    families = {f.name: f for f in text_string_to_metric_families(render(each_document, "prom"))}
    assert all(f.type == "gauge" and f.documentation for f in families.values())
    for family in families.values():
        keys = [tuple(sorted(s.labels.items())) for s in family.samples]
        assert len(keys) == len(set(keys)), "a sample may stand only once"


def test_prometheus_counts_findings_by_model_and_rule(document):
    doc = document("downgraded")
    doc["logs"].append(doc["logs"][0])
    families = {f.name: f for f in text_string_to_metric_families(render(doc, "prom"))}
    counted = {s.labels["code"]: s.value for s in families["logscan_findings"].samples}
    assert counted == {"LS101": 2, "LS201": 2, "LS409": 2, "LS411": 2}
    verdicts = families["logscan_boot_verdict"].samples
    assert [(s.labels["verdict"], s.value) for s in verdicts] == [("downgraded", 1)]


def test_markdown_names_the_kernel_that_the_table_names(document):
    """Where a path's numbers are unknown its backend may be known."""
    doc = document("downgraded")
    rows = {row["path"]: row for row in doc["logs"][0]["boots"][0]["paths"]}
    rows["linear"] |= {"kernels": [{"name": "Marlin", "authority": "logged"}, {"name": "Humming", "authority": None}]}
    rows["attention"] |= {"ran": None, "kernels": [{"name": "FLASH_ATTN", "authority": "logged"}]}
    rows["attention"]["verdict"] = "unproven"
    text = render(doc, "markdown")
    assert f"| `{rows['linear']['ran']} by Marlin or Humming` |" in text
    assert "| `unknown: FLASH_ATTN` |" in text
