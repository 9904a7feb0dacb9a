"""`scan_batch`, and the same rows from Ray as from the processes here."""

from __future__ import annotations

import gzip
import pickle

import pytest

import logscan
from logscan.model import InputError

pa = pytest.importorskip("pyarrow")


def batch(fleet, **columns):
    log = fleet.text().encode()
    slow = fleet.text(fleet.marlin).encode()
    made = {
        "path": ["ok", "slow", "packed", "binary", "empty", "none", "gpu", "ckpt"],
        "content": [log, slow, gzip.compress(log), bytes(range(256)) * 20, b"", None, log, log],
        "ckpt": [str(fleet.ckpt)] * 7 + ["/gone"],
        "gpu": ["H100", "A100", "H100", None, None, None, "H9000", "H100"],
        "cuda": ["12.8"] * 8,
    } | columns
    return pa.RecordBatch.from_pydict({name: values for name, values in made.items() if values is not None})


def test_a_batch_of_logs_is_a_batch_of_boots(fleet):
    out = logscan.scan_batch(batch(fleet))
    assert isinstance(out, pa.RecordBatch)
    rows = {row["log"]: row for row in out.to_pylist()}
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "ok": "kept", "slow": "downgraded", "packed": "kept", "binary": None, "empty": None, "none": None, "gpu": None,
        "ckpt": rows["ckpt"]["verdict"],
    }  # fmt: skip
    assert rows["ckpt"]["verdict"] != "kept" and "/gone" in rows["ckpt"]["unjoined"]
    assert {name for name, row in rows.items() if row["outcome"] == "error"} == {"binary", "none", "gpu"}
    assert "unknown GPU 'H9000'" in rows["gpu"]["error"] and rows["binary"]["error"].startswith("binary: is binary")
    assert rows["empty"]["outcome"] == "nothing"
    (finding,) = rows["slow"]["findings"]
    assert finding["code"] == "LS101" and finding["evidence"][0]["line"] == 3
    (linear,) = [path for path in rows["ok"]["paths"] if path["path"] == "linear"]
    assert linear["kernels"] == [{"name": "CutlassFP8ScaledMMLinearKernel", "authority": "logged"}]


def test_path_and_content_are_enough_and_text_is_read_too(fleet):
    out = logscan.scan_batch(pa.RecordBatch.from_pydict({"path": ["a"], "content": [fleet.text()]}))
    assert out.column("outcome").to_pylist() == ["boot"]
    with pytest.raises(InputError, match="no column 'content'"):
        logscan.scan_batch(pa.RecordBatch.from_pydict({"path": ["a"]}))


def test_it_is_pure_and_picklable(fleet):
    scan = pickle.loads(pickle.dumps(logscan.scan_batch))
    given = batch(fleet)
    first = scan(given)
    assert first.equals(scan(given)) and first.schema.equals(scan(given.slice(0, 0)).schema)


def test_rows_do_not_depend_on_what_was_scanned_before(fleet):
    given = batch(fleet)
    whole = logscan.scan_batch(given).to_pylist()
    backwards = [logscan.scan_batch(given.slice(i, 1)).to_pylist()[0] for i in reversed(range(given.num_rows))]
    assert backwards[::-1] == whole


@pytest.fixture
def tables(fleet, audit, tmp_path):
    """`tables(name, *arguments)`: the bytes of each part that an audit into a new store wrote."""

    def run(name, *arguments):
        store = tmp_path / name
        audit(fleet.logs, "--inputs", fleet.inputs, "-o", store, "--format", "json", *arguments)
        parts = sorted(store.glob("*/audit=*/*.parquet"))
        return {(part.parent.parent.name, part.name): part.read_bytes() for part in parts}

    return run


def big(fleet, count):
    fleet.mixed()
    for i in range(count - 12):
        lines = [fleet.marlin, fleet.flashinfer][i % 2] if i % 50 == 0 else fleet.cutlass
        fleet.add(f"node-{i % 10}/pod-{i:03}.log", lines, core_pid=1000 + i)


def test_processes_write_what_one_process_writes(fleet, tables):
    big(fleet, 300)
    assert tables("one", "-j1") == tables("two", "-j2")


@pytest.mark.filterwarnings("ignore")  # of Ray's own about its own
def test_ray_writes_what_the_processes_here_write(fleet, tables):
    ray = pytest.importorskip("ray")
    big(fleet, 500)
    here = tables("here", "-j2")
    assert len(here) == 3 * 4
    try:
        assert tables("ray", "--runner", "ray") == here
    finally:
        ray.shutdown()
