"""Logs in an object store: a local S3 of moto's."""

from __future__ import annotations

import gzip
import json
from urllib.request import Request, urlopen

import pytest

pytest.importorskip("s3fs")
moto = pytest.importorskip("moto.server")


@pytest.fixture
def bucket(monkeypatch):
    """A bucket on a server of this machine; `put(key, bytes)`."""
    import boto3

    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    urlopen(Request(f"http://{host}:{port}/moto-api/reset", method="POST")).close()  # buckets outlive their server
    client = boto3.client("s3")
    client.create_bucket(Bucket="logs")
    import s3fs

    s3fs.S3FileSystem.clear_instance_cache()
    yield lambda key, data: client.put_object(Bucket="logs", Key=key, Body=data)
    s3fs.S3FileSystem.clear_instance_cache()
    server.stop()


def test_a_prefix_a_glob_and_an_object(fleet, audit, bucket):
    bucket("prod/a.log", fleet.text().encode())
    bucket("prod/b.log.gz", gzip.compress(fleet.text(fleet.marlin).encode()))
    bucket("prod/config.json", b"{}")
    bucket("test/c.log", fleet.text().encode())
    fleet.give(f"s3://logs/prod/b*,{fleet.ckpt},A100,12.8,,")
    for url, logs in [
        ("s3://logs/prod", {"s3://logs/prod/a.log": "kept", "s3://logs/prod/b.log.gz": "downgraded"}),
        ("s3://logs/*/*.log", {"s3://logs/prod/a.log": "kept", "s3://logs/test/c.log": "kept"}),
        ("s3://logs/test/c.log", {"s3://logs/test/c.log": "kept"}),
    ]:
        _, out, err = audit(url, "--inputs", fleet.inputs, "--format", "json", "-q")
        boots = json.loads(out)["boots"]
        assert {boot["log"]: boot["verdict"] for boot in boots} == logs and err == ""
        assert all(boot["modified"].startswith("20") for boot in boots)


def test_an_audit_of_a_bucket_goes_on(fleet, audit, bucket, tmp_path):
    bucket("a.log", fleet.text().encode())
    arguments = ("s3://logs", "--inputs", fleet.give(), "-o", tmp_path / "store", "--format", "json")
    assert [json.loads(audit(*arguments)[1])["audit"]["scanned"] for _ in range(2)] == [1, 0]


@pytest.mark.parametrize("url", ["s3://nowhere/x", "s3://logs/gone/*.log", "nonsense://x"])
def test_what_is_not_there_is_one_line(audit, bucket, url):
    code, out, err = audit(url)
    assert (code, out, err.count("\n")) == (2, "", 1) and url in err, err


def test_a_missing_credential_is_one_clear_line(audit, bucket, monkeypatch, tmp_path):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    code, out, err = audit("s3://logs/prod")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("logscan: s3://logs/prod: no credentials") and "AWS_ACCESS_KEY_ID" in err


def test_a_driver_that_is_not_installed_is_named(audit, monkeypatch):
    import sys

    registry = sys.modules["fsspec.registry"]._registry  # type: ignore[attr-defined]
    monkeypatch.delitem(registry, "s3", raising=False)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    code, _, err = audit("s3://logs/prod")
    assert code == 2 and "pip install" in err and "s3fs" in err
