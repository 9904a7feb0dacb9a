"""The recipes for other engines, run as they stand on the page but for where the logs are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "recipes" / "fleet.md"


def recipe(title, fleet):
    """The code below a heading, reading the fleet's logs and writing below its root."""
    (code,) = re.findall(rf"### {title}\n\n```python\n(.*?)```", PAGE.read_text(), re.S)
    code = re.sub(r"s3a?://audits", f"file://{fleet.root}/audits", code)
    return re.sub(r"s3a?://logs/prod", f"file://{fleet.logs}", code)


@pytest.fixture
def logs(fleet):
    for i in range(3):
        fleet.add(f"{i}.log", [fleet.marlin, fleet.cutlass, fleet.cutlass][i], core_pid=10 + i)
    return fleet


@pytest.mark.filterwarnings("ignore")
def test_dask(logs):
    pytest.importorskip("dask")
    names: dict = {}
    exec(recipe("Dask", logs), names)
    assert [Path(log).name for log in names["boots"].column("log").to_pylist()] == ["0.log", "1.log", "2.log"]
    assert names["boots"].column("outcome").to_pylist() == ["boot"] * 3


@pytest.mark.filterwarnings("ignore")
def test_daft(logs, capfd):
    pytest.importorskip("daft")
    names: dict = {}
    exec(recipe("Daft", logs), names)
    rows = [row["boot"] for row in names["boots"].to_pylist()]
    assert sorted(Path(row["log"]).name for row in rows) == ["0.log", "1.log", "2.log"]
    assert {row["engine"] for row in rows} == {"vllm"}


@pytest.mark.filterwarnings("ignore")
def test_spark(logs, monkeypatch):
    sql = pytest.importorskip("pyspark.sql")
    import sys

    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
    builder = sql.SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        exec(recipe("Spark", logs), {"spark": spark, "__name__": "recipe"})
        import polars as pl

        frame = pl.read_parquet(f"{logs.root}/audits/boots/*.parquet").sort("log")
    finally:
        spark.stop()
    assert [Path(log).name for log in frame["log"]] == ["0.log", "1.log", "2.log"]
    assert frame["code"].to_list()[0] is not None
