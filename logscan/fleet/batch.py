"""One function for the cluster where the logs already are: a batch of logs in, a batch of boots out.

`scan_batch` is pure and picklable: Spark's `mapInArrow`, Ray Data's `map_batches`, Daft and Dask call it as it is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from logscan.desk import Given
from logscan.fleet.columns import BOOTS, FINDINGS, PATHS, STRUCTS, Columns, Row
from logscan.fleet.joins import Joins
from logscan.fleet.listing import Item
from logscan.fleet.scan import Scanner, Settings
from logscan.model import InputError

if TYPE_CHECKING:
    import pyarrow as pa

_NEEDED = ("path", "content")
_GIVEN = ("ckpt", "gpu", "cuda", "engine")


def scan_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The boots of a batch of logs, one row a boot, its paths and findings nested in it (see `batch_schema`).

    `batch`: `path` (string, the log's name), `content` (binary, the log as it lies there, also .gz or .zst), and, each
    optional and nullable, `ckpt` (a path that the worker can read), `gpu`, `cuda`, `engine` (strings).
    What cannot be read is a row with `outcome = "error"`; a log without a boot is one with `outcome = "nothing"`.
    Raises InputError only for a batch without the needed columns.
    """
    columns = batch.schema.names
    for name in _NEEDED:
        if name not in columns:
            raise InputError(f"scan_batch: no column {name!r}; give path, content, and ckpt, gpu where they are known")
    rows: list[Row] = []
    given = {name: batch.column(name).to_pylist() for name in _GIVEN if name in columns}
    contents = batch.column("content")
    for i, path in enumerate(batch.column("path").to_pylist()):
        content = contents[i].as_py()
        ckpt, gpu, cuda, engine = (given[name][i] or None if name in given else None for name in _GIVEN)
        rows += _scan(str(path), content, Given(ckpt, gpu, cuda, engine))
    return record_batch(rows)


def _scan(path: str, content: bytes | str | None, given: Given) -> list[Row]:
    scanner = _scanner()
    if content is None:
        return scanner.scan(Item(path, path, None, f"{path}: no content"))
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    with tempfile.NamedTemporaryFile(prefix="logscan-") as file:
        file.write(data)
        file.flush()
        return scanner.given(Joins(given)).scan(Item(path, file.name))


@lru_cache(maxsize=1)
def _scanner() -> Scanner:
    """Packs and tables are read once a process."""
    return Scanner(Settings())


def record_batch(rows: Iterable[Row]) -> pa.RecordBatch:
    """Rows as one Arrow batch."""
    import pyarrow as pa

    return pa.RecordBatch.from_pylist(list(rows), schema=batch_schema())


def batch_schema() -> pa.Schema:
    """What `scan_batch` returns: the columns of `boots`, then `paths` and `findings` as lists of structs."""
    import pyarrow as pa

    nested = {"paths": pa.list_(pa.struct(_fields(PATHS))), "findings": pa.list_(pa.struct(_fields(FINDINGS)))}
    return pa.schema([*_fields(BOOTS), *(pa.field(name, kind) for name, kind in nested.items())])


def _fields(columns: Columns) -> list[Any]:
    import pyarrow as pa

    types: dict[str, Any] = {"str": pa.string(), "int": pa.int64(), "bool": pa.bool_(), "strs": pa.list_(pa.string())}
    for name, struct in STRUCTS.items():
        types[name] = pa.list_(pa.struct([pa.field(field, types[kind]) for field, kind in struct.items()]))
    return [pa.field(name, types[kind]) for name, kind in columns.items()]
