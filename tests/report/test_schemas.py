"""Every JSON document against its shipped schema."""

import copy
import json
from importlib.resources import files
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from logscan import catalogue
from logscan.cli.explain import document as rules_document
from logscan.report import render

SCHEMAS = {
    path.name.removesuffix(".json"): json.loads(path.read_text())
    for path in files("logscan").joinpath("schemas").iterdir()
    if path.name.endswith(".json")
}
FIXTURES = Path(__file__).parents[2] / "fixtures"
REGISTRY = Registry().with_resources((s["$id"], Resource.from_contents(s)) for s in SCHEMAS.values())


def validator(name):
    return Draft202012Validator(SCHEMAS[name], registry=REGISTRY)


def test_the_schemas_are_schemas():
    assert set(SCHEMAS) >= {"triage", "boot", "expect", "promise", "rules", "diff"}
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)


def test_triage(each_document):
    validator("triage").validate(json.loads(render(each_document, "json")))


@pytest.mark.parametrize("log", sorted(FIXTURES.glob("*/boot.log")), ids=lambda path: path.parent.name)
def test_triage_of_each_fixture(log):
    from logscan.desk import triage

    config = log.with_name("config.json")
    doc = triage(log, ckpt=str(config) if config.exists() else None)
    validator("triage").validate(doc)
    for line in render(doc, "jsonl").splitlines():
        validator("boot").validate(json.loads(line))


def test_each_line_of_jsonl(each_document):
    for line in render(each_document, "jsonl").splitlines():
        validator("boot").validate(json.loads(line))


def test_rules():
    validator("rules").validate(rules_document(list(catalogue.rules().values())))


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("verdict",), "fine"),
        (("worst",), "severe"),
        (("logs", 0, "boots", 0, "paths", 1, "kinds"), ["slower"]),
        (("logs", 0, "boots", 0, "paths", 1, "evidence", 0, "line"), 0),
        (("logs", 0, "boots", 0, "findings", 0, "code"), "LS1"),
        (("logs", 0, "boots", 0, "status"), None),
    ],
)
def test_a_wrong_value_is_refused(document, where, value):
    doc = document("downgraded")
    node = doc
    for key in where[:-1]:
        node = node[key]
    node[where[-1]] = value
    assert not validator("triage").is_valid(doc)


def test_a_missing_key_is_refused_and_an_added_one_is_not(document):
    doc = document("downgraded")
    row = doc["logs"][0]["boots"][0]["paths"][0]
    row["added"] = True
    assert validator("triage").is_valid(doc)
    del row["reasons"]
    assert not validator("triage").is_valid(doc)


def expect_document(document):
    boot = document("downgraded")["logs"][0]["boots"][0]
    rows = [row | {"layer": "CompressedTensorsW8A16Fp8", "prints": [], "refusal": None} for row in boot["paths"]]
    rows[0]["prints"] = [{"level": "WARNING", "text": "Your GPU does not …", "pattern": "vllm.marlin.fp8"}]
    given = {"ckpt": "config.json", "gpu": "A100", "engine": "vllm==0.24.0"}
    return {
        "schema": "logscan.expect/1",
        "given": given,
        "verdict": "downgraded",
        "paths": rows,
        "findings": boot["findings"],
    }


def test_expect(document):
    doc = expect_document(document)
    validator("expect").validate(doc)
    over_a_range = {
        "schema": doc["schema"],
        "given": doc["given"],
        "releases": [{"engine": "vllm==0.28.0", "verdict": "kept", "paths": doc["paths"]}],
    }
    validator("expect").validate(over_a_range)
    broken = copy.deepcopy(doc)
    del broken["paths"][0]["prints"]
    assert not validator("expect").is_valid(broken)


@pytest.mark.parametrize("engine", ["vllm==0.24.0", "vllm>=0.28,<0.31"])
@pytest.mark.parametrize("config", sorted(FIXTURES.glob("vllm-*/config.json")), ids=lambda path: path.parent.name)
def test_expect_for_a_checkpoint(config, engine):
    from logscan.forecast import expect

    validator("expect").validate(expect(str(config), "H100", engine))


def test_promise_of_a_checkpoint():
    from logscan.checkpoint.reader import read_checkpoint
    from logscan.cli.promise import document as promise_document

    for config in sorted(FIXTURES.glob("*/config.json")):
        validator("promise").validate(promise_document(read_checkpoint(str(config))))


def test_promise():
    doc = {
        "schema": "logscan.promise/1",
        "source": "config.json#quantization_config",
        "method": "compressed-tensors",
        "label": "W8A8-FP8 per-channel/per-token-dynamic",
        "groups": [
            {
                "name": "group_0",
                "label": "W8A8-FP8 per-channel/per-token-dynamic",
                "targets": [{"kind": "class", "value": "Linear"}],
                "scope": "linear",
                "activation": "quantized",
                "weights": {"dtype": "fp8_e4m3"},
                "input": {"dtype": "fp8_e4m3"},
            }
        ],
        "kv_cache": {"label": "FP8 per-tensor-static"},
        "ignore": [{"kind": "name", "value": "lm_head"}],
        "notes": [{"code": "N_BOM", "message": "a byte-order mark was skipped"}],
    }
    validator("promise").validate(doc)
    doc["groups"][0]["activation"] = "maybe"
    assert not validator("promise").is_valid(doc)
