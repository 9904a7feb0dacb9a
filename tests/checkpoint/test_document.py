"""`logscan promise`: the JSON document and the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from logscan.checkpoint import CheckpointError, promise_from_dict
from logscan.cli.promise import FINDINGS, document, render_text, run

SEEDS: dict[str, Any] = json.loads(Path(__file__).with_name("seeds.json").read_text(encoding="utf-8"))
KEYS = {
    "schema", "source", "method", "raw_method", "algo", "label", "model", "producer", "status", "groups", "kv_cache",
    "ignore", "open", "sparsity", "transforms", "engines", "tensors", "notes", "findings",
}  # fmt: skip


def doc(name: str) -> dict[str, Any]:
    return document(promise_from_dict(SEEDS[name]["config"], source="config.json"))


@pytest.mark.parametrize("name", SEEDS)
def test_every_document_has_the_same_keys_and_is_json(name: str) -> None:
    found = doc(name)
    assert set(found) == KEYS
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert [n["code"] for n in found["notes"]] == SEEDS[name]["notes"]
    assert len(found["findings"]) == sum(code in FINDINGS for code in SEEDS[name]["notes"])
    assert found["label"] in render_text(found, 200)


def test_the_words_of_the_contract() -> None:
    found = doc("ct-kv-heads")
    assert found["schema"] == "logscan.promise/1"
    (group,) = found["groups"]
    assert {k: group[k] for k in ("name", "label", "targets", "scope", "activation")} == {
        "name": "g",
        "label": "W8A8-FP8 per-channel/per-token-dynamic",
        "targets": [{"kind": "class", "value": "Linear"}],
        "scope": "linear",
        "activation": "quantized",
    }
    assert group["weights"]["strategy"] == "channel" and group["input"]["dynamic"] is True
    assert found["kv_cache"]["label"] == "FP8 per-head-static"
    assert found["ignore"] == [{"kind": "name", "value": "lm_head"}]
    assert doc("plain-bf16")["kv_cache"] is None
    assert [doc(n)["groups"][0]["activation"] for n in ("gptq", "gpt-oss")] == ["none", "unspecified"]


def test_what_is_left_open() -> None:
    assert doc("fp8-dynamic")["open"] == [
        "linear: the granularity of the activation scales",
        "KV cache: its type is the engine's choice",
    ]
    assert doc("gpt-oss")["open"][0] == "experts: whether, and how, activations are quantized"
    assert doc("modelopt-sidecar-fp8")["open"] == []
    assert doc("plain-bf16")["open"][0].startswith("linear layers and experts: any quantization is the operator's")


def test_findings_carry_the_catalogue() -> None:
    (finding,) = doc("ct-clash")["findings"]
    assert (finding["code"], finding["slug"], finding["severity"]) == ("LS703", "config-problem", "low")
    assert "'Linear' is a target of 'a' and of 'b'" in finding["message"] and finding["fix"]


@pytest.mark.parametrize("name", ["ct-four-groups", "ct-kv-heads", "gpt-oss", "plain-bf16", "ct-clash", "deepseek-v4"])
def test_page(name: str, snapshot: SnapshotAssertion) -> None:
    assert render_text(doc(name), 100) == snapshot


def test_page_of_a_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    inline = {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": "NVFP4", "ignore": []}
    root = {"model_type": "llama", "torch_dtype": "bfloat16", "quantization_config": inline}
    (tmp_path / "config.json").write_text(json.dumps(root))
    sidecar = {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16}}
    (tmp_path / "hf_quant_config.json").write_text(json.dumps(sidecar))
    header = b'{"a.weight":{"dtype":"U8"},"a.weight_scale":{"dtype":"F8_E4M3"},"a.input_scale":{"dtype":"F32"}}'
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    assert run(str(tmp_path)) == 0
    text = capsys.readouterr().out
    assert text == render_text(document_of(tmp_path))
    assert render_text(document_of(tmp_path), 100) == snapshot
    assert run(str(tmp_path), "json") == 0
    assert [f["code"] for f in json.loads(capsys.readouterr().out)["findings"]] == ["LS702"]


def document_of(path: Path) -> dict[str, Any]:
    from logscan.checkpoint.reader import read_checkpoint

    return document(read_checkpoint(path, tensors=True))


def test_tensors_in_the_document(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type":"llama","torch_dtype":"bfloat16"}')
    header = b'{"a.weight":{"dtype":"F8_E4M3"}}'
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)
    found = document_of(tmp_path)
    assert found["tensors"]["dtypes"] == {"F8_E4M3": 1}
    assert [f["code"] for f in found["findings"]] == ["LS703"]


def test_output_goes_to_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text('{"model_type":"llama"}')
    assert run(str(tmp_path), "json", tmp_path / "out.json") == 0
    assert capsys.readouterr().out == ""
    assert json.loads((tmp_path / "out.json").read_text())["label"] == "UNQUANTIZED"


def test_bad_input_is_raised_for_the_command_line_to_report(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="E_OPEN"):
        run(str(tmp_path / "none"))


def test_long_promises_are_cut_on_the_page_and_whole_in_the_document() -> None:
    scheme = {"num_bits": 4, "group_size": 32}
    targets = [f"model.layers.{n}.mlp.up_proj" for n in range(9)]
    groups = {f"g{n}": {"targets": targets, "weights": {**scheme, "group_size": n + 1}} for n in range(50)}
    block = {"quant_method": "compressed-tensors", "config_groups": groups, "ignore": [f"skip{n}" for n in range(20)]}
    found = document(promise_from_dict({"model_type": "m", "quantization_config": block}, source="config.json"))
    text = render_text(found, 120)
    assert len(found["groups"]) == 50 and len(found["ignore"]) == 20
    assert "\n  g39 " in text and "\n  g40 " not in text and "\n  and 10 more" in text
    assert "up_proj, and 5 more" in text
    assert "skip11" in text and "skip12" not in text and "and 8 more" in text


def test_hostile_names_do_not_reach_the_terminal() -> None:
    name = "re:\x1b]0;owned\x07.*\u202e"
    scheme = {"num_bits": 8, "type": "float"}
    groups = {"\x1b[31mg\n": {"targets": [name], "weights": scheme}}
    block = {
        "quant_method": "compressed-tensors",
        "config_groups": groups,
        "ignore": ["a\nb"],
        "quantization_status": "x",
    }
    found = document(promise_from_dict({"model_type": "\x1b[2J", "quantization_config": block}, source="config.json"))
    text = render_text(found, 80)
    assert all(line.isprintable() for line in text.split("\n"))
    assert found["groups"][0]["targets"] == [{"kind": "regex", "value": name[3:]}]
