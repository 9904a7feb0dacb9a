"""What an audit tells: the truth about its rows, for people and for programs, and what changed since another one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from beside import SHARED, needs

from logscan.fleet.columns import blank
from logscan.fleet.diff import compare
from logscan.fleet.scan import started
from logscan.fleet.store import Store
from logscan.fleet.summary import summary
from logscan.fleet.terminal import render
from logscan.model import InputError


def boot(log, **cells):
    """A row of `boots` with a linear path."""
    path = {
        "path": "linear",
        "group": "g",
        "component": "target",
        "ran": "W8A8-FP8",
        "kernel": "Cutlass",
        "verdict": "kept",
    }
    path |= cells.pop("linear", {})
    row = blank(f"k-{log}", log, "boot") | {"boot": 1, "verdict": path["verdict"], "status": "ready", "model": "org/m"}
    row |= {
        "gpu": "H100",
        "engine": "vllm",
        "version": "0.24.0",
        "promise": "W8A8-FP8",
        "modified": "2026-11-01T00:00:00Z",
    }
    row |= cells
    of_boot = {name: row[name] for name in ("key", "log", "boot", "source")}
    full = dict.fromkeys(
        ("requested", "promised", "default", "against", "extent", "cause", "visibility", "authority", "refusal")
    )
    full |= {"kinds": [], "reasons": [], "caveats": [], "evidence": []}
    full |= {"kernels": [{"name": path.pop("kernel"), "authority": "logged"}]} | path | of_boot
    finding = of_boot | {
        "slug": "s",
        "path": "linear",
        "group": "g",
        "kind": None,
        "cause": "hardware",
        "consequence": [],
    }
    finding |= {
        "visibility": "warned",
        "authority": "logged",
        "message": "m",
        "fix": "f",
        "waived": None,
        "evidence": [],
    }
    row["findings"] = [
        finding | {"code": code, "severity": severity, "fingerprint": f"{code}-{row['promise']}"}
        for code, severity in cells.get("findings", [])
    ]
    row["worst"] = cells["findings"][0][1] if cells.get("findings") else None
    return row | {"paths": [full]}


@pytest.fixture
def told(tmp_path):
    """`told(rows)`: the summary of an audit of them, in a new store or in `into`."""

    def run(rows, into="store", audit="20261101", **about):
        store = Store(tmp_path / into)
        keys = {row["log"]: row["key"] for row in rows}
        store.append(audit, 1, keys, rows)
        tables = store.tables(keys.values())
        from logscan.fleet.summary import verdicts

        record = store.record(audit, {"paths": ["logs"], "shard": None, "verdicts": verdicts(tables), **about}, keys)
        return summary(store, record, tables, {"version": "1", "packs": []})

    return run


def test_verdicts_by_model_gpu_and_release_the_worst_first(told):
    slow = {"gpu": "A100", "linear": {"verdict": "downgraded"}}
    rows = [
        boot("1"),
        boot("2"),
        boot("3", version="0.25.0"),
        boot("4", **slow),
        boot("5", model="org/n", gpu=None, sm="9.0"),
    ]
    doc = told(rows)
    assert [(r["model"], r["gpu"], r["version"], r["verdicts"]) for r in doc["matrix"]] == [
        ("org/m", "A100", "0.24.0", {"downgraded": 1}),
        ("org/m", "H100", "0.24.0", {"kept": 2}),
        ("org/m", "H100", "0.25.0", {"kept": 1}),
        ("org/n", "SM 9.0", "0.24.0", {"kept": 1}),
    ]
    assert (doc["verdict"], doc["totals"]["verdicts"]) == ("downgraded", {"downgraded": 1, "kept": 4})


def test_only_boots_that_count_are_counted(told):
    doc = told([boot("1", counted=False, linear={"verdict": "not-served"}, findings=[("LS100", "high")]), boot("2")])
    assert (doc["verdict"], doc["worst"], doc["findings"]) == ("kept", None, [])
    assert doc["totals"] | {"verdicts": 0, "statuses": 0} == {
        "logs": 2, "boots": 2, "counted": 1, "errors": 0, "nothing": 0, "verdicts": 0, "statuses": 0,
    }  # fmt: skip


def test_findings_tell_what_their_boots_have_in_common_and_since_when(told):
    odd = {"gpu": "A100", "findings": [("LS101", "high")]}
    rows = [boot(str(i)) for i in range(8)]
    rows += [boot("8", modified="2026-10-01T00:00:00Z", **odd), boot("9", modified="2026-11-20T00:00:00Z", **odd)]
    (found,) = told(rows)["findings"]
    assert (found["boots"], found["causes"], found["first_seen"], found["last_seen"]) == (
        2, {"hardware": 2}, "2026-10-01T00:00:00Z", "2026-11-20T00:00:00Z",
    )  # fmt: skip
    assert found["common"] == [{"column": "gpu", "value": "A100", "boots": 2, "of": 2}]
    assert found["examples"] == ["8", "9"]


def test_a_message_stands_beside_a_log_that_says_it(told):
    """The text of one log is never told of another, nor of all boots with the rule."""
    said = ["b", "a", "a", "c", "d", "e", "f"]
    rows = [boot(str(i), findings=[("LS602", "medium")]) for i in range(len(said))]
    for row, message in zip(rows, said, strict=True):
        row["findings"][0]["message"] = message
    (found,) = told(rows)["findings"]
    assert found["messages"][:2] == [
        {"message": "a", "boots": 2, "examples": ["1", "2"]},
        {"message": "b", "boots": 1, "examples": ["0"]},
    ]
    assert (len(found["messages"]), found["more_messages"]) == (5, 1)
    assert (found["message"], found["examples"], found["boots"]) == ("a", ["1", "2"], 7)
    text = render(told(rows), 100)
    assert "      2 boots: a\n      such as 1\n      1 boot: b\n      such as 0\n" in text
    assert "      and 3 other texts\n" in text


def test_a_message_of_all_boots_needs_no_count(told):
    text = render(told([boot(str(i), findings=[("LS602", "medium")]) for i in range(3)]), 100)
    assert "      m\n      such as 0\n" in text


def test_what_nearly_all_have_in_common_tells_nothing(told):
    rows = [boot(str(i), findings=[("LS101", "high")] if i == 0 else []) for i in range(9)] + [boot("x", gpu="A100")]
    assert told(rows)["findings"][0]["common"] == []


@pytest.mark.parametrize(
    ("rows", "others"),
    [
        ([{}, {}, {}, {"kernel": "Marlin", "ran": "W8A16-FP8"}], ["3"]),
        ([{}, {}, {}, {"kernel": "FlashInfer"}], ["3"]),
        ([{}, {}, {"kernel": "Marlin"}], []),  # two are no rule
        ([{}, {}, {}, {"kernel": "A"}, {"kernel": "A"}, {"kernel": "A"}], []),  # half and half is no outlier
        ([{}, {}, {}, {}], []),
    ],
)
def test_an_outlier_runs_what_the_others_do_not(told, rows, others):
    doc = told([boot(str(i), linear=linear) for i, linear in enumerate(rows)])
    assert [log for way in doc["outliers"] for log in way["logs"]] == others


@pytest.mark.parametrize("apart", [{"version": "0.25.0"}, {"promise": "W4A16"}, {"model": "org/n"}])
def test_another_release_or_checkpoint_is_no_outlier(told, apart):
    rows = [boot(str(i)) for i in range(4)] + [boot("4", linear={"kernel": "Marlin"}, **apart)]
    assert told(rows)["outliers"] == []


def test_the_trend_goes_from_audit_to_audit_without_shards(told):
    told([boot("1"), boot("2")], audit="20261101")
    told([boot("1x")], audit="20261102", shard="1/2")
    doc = told([boot("3", linear={"verdict": "downgraded"})], audit="20261103")
    assert [(step["audit"], step["verdicts"]) for step in doc["trend"]] == [
        ("20261101", {"kept": 2}),
        ("20261103", {"downgraded": 1}),
    ]


def test_seen_is_when_a_log_was_written_not_when_it_was_copied(told):
    odd = {"findings": [("LS101", "high")], "modified": "2026-11-28T00:00:00Z"}
    rows = [boot("1", started="2026-09-14T08:31:04", **odd), boot("2", started="2026-10-02T00:00:00", **odd)]
    (found,) = told(rows)["findings"]
    assert (found["first_seen"], found["last_seen"]) == ("2026-09-14T08:31:04", "2026-10-02T00:00:00")


@pytest.mark.parametrize(
    ("printed", "modified", "told"),
    [
        ("09-14 08:31:04", "2026-11-28T00:00:00Z", "2026-09-14T08:31:04"),  # vLLM
        ("12-31 23:59:59", "2026-01-02T00:00:00Z", "2025-12-31T23:59:59"),
        ("01-01 00:10:00", "2025-12-31T23:50:00Z", "2026-01-01T00:10:00"),  # the host is an hour ahead of UTC
        ("02-29 08:31:04", "2026-11-28T00:00:00Z", "2024-02-29T08:31:04"),
        ("99-99 99:99:99", "2026-11-28T00:00:00Z", None),
        ("09-14 08:31:04", None, None),
        ("2024-09-14 08:31:04", "2026-11-28T00:00:00Z", "2024-09-14T08:31:04"),  # SGLang
        ("09/14/2024-08:31:04", "2026-11-28T00:00:00Z", "2024-09-14T08:31:04"),  # TensorRT-LLM
        ("2024-09-14T08:31:04.123", None, "2024-09-14T08:31:04"),
        ("", "2026-11-28T00:00:00Z", None),
        ("0914 08:31:04", "2026-11-28T00:00:00Z", None),
    ],
)
def test_a_printed_time(printed, modified, told):
    assert started(printed, modified) == told


def test_the_time_of_a_log_is_read_from_it(fleet, audit):
    import os

    log = fleet.add("a.log")
    os.utime(log, (1798000000, 1798000000))  # 2026-12-23
    month_day, clock = re.search(r"INFO (\d\d-\d\d) (\d\d:\d\d:\d\d)", log.read_text()).groups()
    fleet.give()
    (row,) = json.loads(audit(fleet.logs, "--inputs", fleet.inputs, "--format", "json")[1])["boots"]
    assert (row["started"], row["modified"]) == (f"2026-{month_day}T{clock}", "2026-12-23T04:26:40Z")


def test_first_and_last_seen_look_at_earlier_audits_too(told):
    told([boot("1", modified="2026-01-01T00:00:00Z", findings=[("LS101", "high")])], audit="20261101")
    doc = told([boot("2", modified="2026-02-01T00:00:00Z", findings=[("LS101", "high")])], audit="20261102")
    assert doc["findings"][0]["first_seen"] == "2026-01-01T00:00:00Z"


# ---------------------------------------------------------------- for people


def test_the_summary_as_people_read_it(fleet, audit, snapshot, monkeypatch):
    fleet.mixed()
    monkeypatch.chdir(fleet.root)
    out = audit("logs", "--inputs", fleet.inputs, "--color", "never")[1]
    assert re.sub(r"\d{4}-(\d\d-\d\dT[\d:]+)", r"2026-\1", out) == snapshot


def test_it_fits_every_width_and_names_from_logs_steer_nothing(told):
    hostile = "\x1b[31m[bold]evil\n\u202e" + "x" * 300
    rows = [boot(f"{hostile}{i}", model=hostile, gpu=hostile) for i in range(3)]
    doc = told([*rows, boot("x", model=hostile, linear={"kernel": hostile})])
    for width in (40, 80, 140):
        for line in render(doc, width).split("\n"):
            assert len(line) <= width and "\x1b" not in line and "\u202e" not in line
    assert "\x1b[1;31m" not in render(doc, 80, color=True).replace("\x1b[1;31mDOWN", "")


# ---------------------------------------------------------------- two audits


def test_what_changed_between_two_audits(told, tmp_path):
    told([boot("d/a"), boot("d/b"), boot("d/gone")], into="old")
    slow = {"verdict": "downgraded", "ran": "W8A16-FP8", "kernel": "Marlin"}
    told(
        [boot("elsewhere/a"), boot("elsewhere/b", linear=slow, findings=[("LS101", "high")]), boot("elsewhere/new")],
        into="new",
    )
    doc = compare(tmp_path / "old", tmp_path / "new")
    assert [(b["log"], b["change"]) for b in doc["boots"]] == [("b", "changed"), ("gone", "removed"), ("new", "added")]
    changed = doc["boots"][0]
    assert (changed["before"], changed["after"]) == (
        {"verdict": "kept", "worst": None},
        {"verdict": "downgraded", "worst": "high"},
    )
    assert changed["paths"][0]["after"]["ran"] == "W8A16-FP8"
    assert [f["code"] for f in changed["findings"]["added"]] == ["LS101"]
    assert doc["findings"] == [{"code": "LS101", "slug": "s", "before": 0, "after": 1}]
    assert doc["result"] == "worse"
    assert compare(tmp_path / "new", tmp_path / "old")["result"] == "better"


def test_the_last_two_audits_of_one_store(told, tmp_path):
    told([boot("a"), boot("b")], audit="20261101")
    with pytest.raises(InputError, match="one audit only"):
        compare(tmp_path / "store", tmp_path / "store")
    told([boot("a"), boot("b"), boot("c")], audit="20261102")
    doc = compare(tmp_path / "store", tmp_path / "store")
    assert [(b["log"], b["change"]) for b in doc["boots"]] == [("c", "added")] and doc["result"] == "changed"


def test_the_same_audit_twice_is_the_same(told, tmp_path):
    told([boot("a"), boot("b", findings=[("LS101", "high")])], into="old")
    told([boot("a"), boot("b", findings=[("LS101", "high")])], into="new")
    doc = compare(tmp_path / "old", tmp_path / "new")
    assert (doc["result"], doc["boots"], doc["findings"]) == ("same", [], [])


def test_a_directory_without_an_audit(tmp_path):
    with pytest.raises(InputError, match="no store of audits"):
        compare(tmp_path, tmp_path)


# ---------------------------------------------------------------- the corpus as a fleet


@needs("corpus")
def test_the_corpus_as_a_fleet_tells_what_its_labels_tell(audit, tmp_path):
    """Joined by `--inputs`, each boot has the verdict, the rows and the findings that a triage of its log alone has."""
    labels, rows = {}, []
    for folder in sorted((SHARED / "corpus").iterdir()):
        if not (folder / "expect.json").exists() or (folder / "boot.log").stat().st_size > 400_000:
            continue
        label = json.loads((folder / "expect.json").read_text())
        ckpt = label.get("ckpt")
        cells = {"glob": str((folder / "boot.log").resolve()), "gpu": label.get("gpu"), "cuda": label.get("cuda")}
        rows.append(cells | ({"ckpt": str((folder / ckpt).resolve())} if ckpt else {}))
        labels[cells["glob"]] = label
    (tmp_path / "inputs.jsonl").write_text("\n".join(map(json.dumps, rows)))
    stdin = "\n".join(labels)
    import io
    import sys

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(stdin))
        _, out, err = audit("-", "--inputs", tmp_path / "inputs.jsonl", "--format", "json", "--fail-on", "never")
    assert err == ""
    doc = json.loads(out)
    found: dict[str, list[dict]] = {}
    for row in doc["boots"]:
        found.setdefault(row["log"], []).append(row)
    from logscan.desk import triage

    for log, boots in found.items():
        label = labels[log]
        ckpt = str(Path(log).parent / label["ckpt"]) if label.get("ckpt") else None
        alone = triage(log, ckpt=ckpt, gpu=label.get("gpu"), cuda=label.get("cuda"))
        told = [
            (b["verdict"], b["status"], [p["ran"] for p in b["paths"]], [f["code"] for f in b["findings"]])
            for b in boots
        ]
        assert told == [
            (b["verdict"], b["status"], [p["ran"] for p in b["paths"]], [f["code"] for f in b["findings"]])
            for b in alone["logs"][0]["boots"]
        ] or boots[0]["outcome"] == "nothing", log  # fmt: skip
    counted = [boot for boots in found.values() for boot in boots if boot["counted"] and boot["outcome"] == "boot"]
    assert doc["totals"]["verdicts"] == {
        v: n for v in ("not-served", "downgraded", "unproven", "kept", "no-promise")
        if (n := sum(boot["verdict"] == v for boot in counted))
    }  # fmt: skip
