"""What changed, exactly: nothing that only differs by the moment, everything that differs by the order."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from logscan.diff import SECTIONS, Side, compare


def named(doc: dict[str, Any]) -> dict[str, tuple[list[str], list[str]]]:
    return {c["name"]: ([v["value"] for v in c["before"]], [v["value"] for v in c["after"]]) for c in doc["changes"]}


def change_of(doc: dict[str, Any], path: str) -> str:
    (row,) = [row for row in doc["rows"] if row["path"] == path]
    return str(row["change"])


def test_a_boot_beside_itself_is_the_same(side: Any) -> None:
    doc = compare(side("native"), side("native"))
    assert (doc["result"], doc["changes"]) == ("same", [])
    assert {row["change"] for row in doc["rows"]} == {"same"}
    assert {f["change"] for f in doc["findings"]} <= {"same"}


def test_another_backend_is_worse_and_everything_that_changed_is_named(side: Any, schema_of_diff: Any) -> None:
    doc = compare(side("native"), side("marlin"))
    schema_of_diff.validate(doc)
    assert doc["result"] == "worse"
    assert named(doc) == {
        "request.linear_backend": ([], ["marlin"]),
        "linear.kernel": (["FlashInferCutlassNvFp4LinearKernel"], ["MarlinNvFp4LinearKernel"]),
        "linear.weight_only": ([], ["fp4"]),
    }
    assert [c["section"] for c in doc["changes"]] == ["request", "kernels", "kernels"]
    kernel = next(c for c in doc["changes"] if c["name"] == "linear.kernel")
    assert (kernel["before"][0]["line"], kernel["after"][0]["line"]) == (3, 3)
    assert kernel["after"][0]["text"] == "Using MarlinNvFp4LinearKernel for NVFP4 GEMM"
    assert change_of(doc, "linear") == "worse"
    (row,) = [row for row in doc["rows"] if row["path"] == "linear"]
    assert {"verdict", "ran", "kinds", "kernels"} <= set(row["moved"])
    assert [(f["change"], f["after"]["code"]) for f in doc["findings"] if f["change"] != "same"] == [("new", "LS101")]


def test_the_way_back_is_better(side: Any) -> None:
    doc = compare(side("marlin"), side("native"))
    assert (doc["result"], change_of(doc, "linear")) == ("better", "better")
    assert [(f["change"], f["after"]) for f in doc["findings"] if f["change"] != "same"] == [("gone", None)]


def test_a_boot_that_no_longer_starts_is_worse(side: Any) -> None:
    doc = compare(side("native"), side("failed"))
    assert doc["result"] == "worse"
    assert (doc["before"]["status"], doc["after"]["status"]) == ("ready", "failed")


def test_another_release_is_changed_and_its_new_settings_are_one_sided(side: Any) -> None:
    doc = compare(side("native"), side("newer"))
    assert doc["result"] == "changed"
    assert named(doc) == {"engine.version": (["0.26.0"], ["0.28.0"]), "config.brand_new": ([], ["1"])}


def test_capacity_counts_when_it_moves_by_more_than_a_boot_does(side: Any) -> None:
    old, new = side("native"), side("native")
    boot = copy.deepcopy(new.boot)
    for fact in boot["facts"]:
        if fact["name"] == "kv.tokens":
            fact["value"] = "90,000"
    assert named(compare(old, new._replace(boot=boot))) == {"kv.tokens": (["136,560"], ["90,000"])}


def test_a_group_is_paired_by_its_path_where_only_one_side_has_a_checkpoint(side: Any) -> None:
    doc = compare(side("native", ckpt=False), side("native"))
    rows = [row for row in doc["rows"] if row["path"] == "linear"]
    assert len(rows) == 1 and rows[0]["before"] is not None and rows[0]["after"] is not None
    assert rows[0]["group"] == "group_0"


def altered(side: Side, **changes: Any) -> Side:
    boot = copy.deepcopy(side.boot)
    (row,) = [row for row in boot["paths"] if row["path"] == "linear"]
    row.update(changes)
    return side._replace(boot=boot)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ({"verdict": "kept"}, {"verdict": "unproven"}, "worse"),
        ({"verdict": "unproven"}, {"verdict": "downgraded"}, "worse"),
        ({"verdict": "downgraded"}, {"verdict": "not-served"}, "worse"),
        ({"verdict": "no-promise"}, {"verdict": "downgraded"}, "worse"),
        ({"verdict": "no-promise"}, {"verdict": "kept"}, "changed"),
        ({"verdict": "kept"}, {"verdict": "no-promise"}, "changed"),
        ({"verdict": "not-served"}, {"verdict": "kept"}, "better"),
        ({"verdict": "downgraded", "extent": "some"}, {"verdict": "downgraded", "extent": "all"}, "worse"),
        ({"verdict": "downgraded", "extent": "unknown"}, {"verdict": "downgraded", "extent": "some"}, "changed"),
    ],
)
def test_how_a_row_moves(side: Any, before: dict[str, Any], after: dict[str, Any], change: str) -> None:
    boot = side("native")
    assert change_of(compare(altered(boot, **before), altered(boot, **after)), "linear") == change


def test_rows_that_do_not_count_do_not_make_it_worse(side: Any) -> None:
    boot = side("native")
    old = altered(boot, component="drafter")
    assert compare(old, altered(boot, component="drafter", verdict="downgraded"))["result"] == "changed"


def with_finding(side: Side, severity: str, waived: str | None = None) -> Side:
    boot = copy.deepcopy(side.boot)
    boot["findings"] = [
        {"code": "LS602", "path": None, "severity": severity, "waived": waived, "fingerprint": "f", "evidence": []}
    ]
    return side._replace(boot=boot)


@pytest.mark.parametrize(
    ("before", "after", "fail_on", "result"),
    [
        ("low", "high", "high", "worse"),
        ("high", "high", "high", "same"),
        ("high", "low", "high", "better"),
        ("low", "medium", "high", "changed"),
        ("low", "medium", "medium", "worse"),
        ("low", "critical", "never", "changed"),
    ],
)
def test_severity_against_the_threshold(side: Any, before: str, after: str, fail_on: str, result: str) -> None:
    boot = side("native")
    doc = compare(with_finding(boot, before), with_finding(boot, after), fail_on)
    assert doc["result"] == result


def test_a_waived_finding_is_no_alarm(side: Any) -> None:
    boot = side("native")
    assert compare(with_finding(boot, "low"), with_finding(boot, "high", "accepted"))["result"] == "changed"


def test_findings_of_one_pattern_are_one_finding_in_other_words(side: Any) -> None:
    old, new = with_finding(side("native"), "low"), with_finding(side("native"), "low")
    evidence = {"line": 4, "role": "supports", "means": "warned", "pattern": "vllm.feature.x", "text": "x"}
    for boot, words in ((old.boot, "a"), (new.boot, "b")):
        boot["findings"][0]["fingerprint"] = words
    assert [f["change"] for f in compare(old, new)["findings"]] == ["new", "gone"]
    for boot in (old.boot, new.boot):
        boot["findings"][0]["evidence"] = [evidence]
    assert [f["change"] for f in compare(old, new)["findings"]] == ["same"]


def test_nested_settings_are_named_field_by_field(side: Any) -> None:
    def configured(backend: str) -> Side:
        boot = copy.deepcopy(side("native").boot)
        fact = dict(boot["facts"][0], name="config.kernel_config", line=2)
        fact["value"] = f"KernelConfig(autotune=True, linear_backend='{backend}', priority=Priority(norm=['native']))"
        boot["facts"].append(fact)
        return Side("x.log", boot, {})

    assert named(compare(configured("auto"), configured("marlin"))) == {
        "config.kernel_config.linear_backend": (["auto"], ["marlin"])
    }


def test_sections_are_those_of_the_schema(schema_of_diff: Any) -> None:
    schema = schema_of_diff.schema["$defs"]["change"]["properties"]["section"]
    assert set(SECTIONS) == set(schema["enum"])
