"""The Ray engine: the same scan on the machines where the files are, the same store on the machine that asked."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any

from logscan.fleet.batch import record_batch
from logscan.fleet.columns import Row
from logscan.fleet.listing import Item
from logscan.fleet.local import CHUNK, Done, chunks, commit
from logscan.fleet.scan import Scanner, Settings
from logscan.fleet.store import Store
from logscan.model import InputError


class ScanLogs:
    """What Ray Data calls for a batch of listed logs: made once in each worker, then called with many batches."""

    def __init__(self, settings: Settings, audit: str) -> None:
        self._settings, self._audit = pickle.dumps(settings), audit

    def __call__(self, batch: Any) -> Any:
        """A table of listed logs → a table of the rows of their boots."""
        import pyarrow as pa

        scanner = _scanner(self._settings, self._audit)
        listed = batch.to_pylist()
        rows = [
            row
            for log in listed
            for row in scanner.scan(Item(log["name"], log["location"], log["modified"], log["error"]), log["known"])
        ]
        return pa.Table.from_batches([record_batch(rows)])


@lru_cache(maxsize=2)
def _scanner(settings: bytes, audit: str) -> Scanner:
    """One a worker and audit: a checkpoint may be another one by the next."""
    return Scanner(pickle.loads(settings))


def run(
    items: Sequence[Item],
    store: Store,
    audit: str,
    settings: Settings,
    tick: Callable[[int], None] = lambda _: None,
) -> Done:
    """As `local.run`, on the Ray cluster that is reachable (`RAY_ADDRESS`), else on one started here.

    Workers open the files by the paths that were listed: they must be shared, or in an object store. Raises InputError
    where Ray is not installed.
    """
    try:
        import pyarrow as pa
        import ray
    except ImportError as error:
        raise InputError(f"--runner ray needs {error.name}; pip install 'llm-logscan[ray]'") from None
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False, configure_logging=False, include_dashboard=False)
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True  # rows come back in the order of the logs
    context.enable_progress_bars = False
    known = store.known()
    listed = pa.Table.from_pylist(
        [{**item._asdict(), "known": sorted(known.get(item.name, ()))} for item in items],
        schema=pa.schema(
            [pa.field(name, pa.string()) for name in Item._fields] + [pa.field("known", pa.list_(pa.string()))]
        ),
    )
    data: Any = ray.data.from_arrow([listed.slice(start, CHUNK) for start in range(0, len(items), CHUNK)])
    data = data.map_batches(ScanLogs(settings, audit), batch_size=CHUNK, batch_format="pyarrow", zero_copy_batch=True)
    total: dict[str, str] = {}
    scanned = 0
    logs = _logs(data, items)
    for chunk in chunks(items, {}):
        done = commit(store, audit, chunk.number, [next(logs) for _ in chunk.items])
        total |= done.keys
        scanned += done.scanned
        tick(len(total))
    if started:
        ray.shutdown()
    return Done(total, scanned)


def _logs(data: Any, items: Sequence[Item]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each log, in the order of the logs. The key tells one log's rows from the next one's."""
    rows = (_plain(row) for batch in data.iter_batches(batch_format="pyarrow") for row in batch.to_pylist())
    for item, (_, group) in zip(items, groupby(rows, key=lambda row: row["key"]), strict=True):
        yield item.name, list(group)


def _plain(row: Mapping[str, Any]) -> Row:
    return dict(row)
