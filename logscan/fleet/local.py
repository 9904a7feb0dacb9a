"""The local engine: processes that scan chunks of logs and commit them themselves."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

from logscan.fleet.columns import UNCHANGED, Row
from logscan.fleet.listing import Item
from logscan.fleet.scan import Scanner, Settings
from logscan.fleet.store import Store

CHUNK = 128  # logs a part; what a killed process loses
_INLINE = 2 * CHUNK  # fewer logs are scanned faster than processes start
_Known = Mapping[str, Collection[str]]


class Done(NamedTuple):
    """What came of a chunk: name → key of each of its logs."""

    keys: dict[str, str]
    scanned: int


class _Chunk(NamedTuple):
    number: int
    items: Sequence[Item]
    known: _Known


class _Worker:
    """One process' scanner and the store that it writes to."""

    def __init__(self, root: Path, audit: str, settings: Settings) -> None:
        self._store, self._audit, self._scanner = Store(root), audit, Scanner(settings)

    def run(self, chunk: _Chunk) -> Done:
        logs = [(item.name, self._scanner.scan(item, chunk.known.get(item.name, ()))) for item in chunk.items]
        return commit(self._store, self._audit, chunk.number, logs)


def commit(store: Store, audit: str, number: int, logs: Sequence[tuple[str, list[Row]]]) -> Done:
    """Keep the rows of a chunk of logs, but for those of logs that stand in the store already."""
    fresh = [(name, rows) for name, rows in logs if rows[0]["outcome"] != UNCHANGED]
    if fresh:
        keys = {name: rows[0]["key"] for name, rows in fresh}
        store.append(audit, number, keys, [row for _, rows in fresh for row in rows])
    return Done({name: rows[0]["key"] for name, rows in logs}, len(fresh))


def chunks(items: Sequence[Item], known: _Known) -> Iterator[_Chunk]:
    """The logs in order, CHUNK at a time, with the keys that the store has of them."""
    for number, start in enumerate(range(0, len(items), CHUNK), 1):
        part = items[start : start + CHUNK]
        yield _Chunk(number, part, {item.name: known[item.name] for item in part if item.name in known})


def run(
    items: Sequence[Item],
    store: Store,
    audit: str,
    settings: Settings,
    jobs: int,
    tick: Callable[[int], None] = lambda _: None,
) -> Done:
    """Scan what the store does not have. `tick` is told how many logs are done.

    Ctrl-C lets the chunks that are being scanned end, keeps them, and goes on as KeyboardInterrupt.
    """
    known = store.known()
    total: dict[str, str] = {}
    scanned = 0
    for done in _results(list(chunks(items, known)), store, audit, settings, jobs):
        total |= done.keys
        scanned += done.scanned
        tick(len(total))
    return Done(total, scanned)


def _results(todo: list[_Chunk], store: Store, audit: str, settings: Settings, jobs: int) -> Iterator[Done]:
    if jobs == 1 or sum(len(chunk.items) for chunk in todo) <= _INLINE:
        worker = _Worker(store.root, audit, settings)
        for chunk in todo:
            yield worker.run(chunk)
        return
    import multiprocessing

    # Not forked: polars and Ctrl-C both dislike a copy of a process with threads.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(min(jobs, len(todo)), context, _start, (store.root, audit, settings))
    waiting: set[Future[Done]] = set()
    try:
        for chunk in todo:
            waiting.add(pool.submit(_run, chunk))
            if len(waiting) >= 2 * jobs:
                done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        yield from (future.result() for future in waiting)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_worker: _Worker | None = None  # of this process, set once when it starts


def _start(root: Path, audit: str, settings: Settings) -> None:
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C, and waits for us
    os.environ["POLARS_MAX_THREADS"] = "1"
    _die_with_parent()
    _worker = _Worker(root, audit, settings)


def _run(chunk: _Chunk) -> Done:
    assert _worker is not None
    return _worker.run(chunk)


def _die_with_parent() -> None:
    """A pool's process outlives a parent that is killed; ours must not go on writing beside the next audit."""
    import multiprocessing
    import threading
    from multiprocessing.connection import wait as wait_for

    parent = multiprocessing.parent_process()
    if parent is not None:
        sentinel = parent.sentinel

        def watch() -> None:
            wait_for([sentinel])
            os._exit(1)

        threading.Thread(target=watch, daemon=True).start()


class Progress:
    """A line on stderr, where that is a terminal: how many, of how many, how fast."""

    def __init__(self, total: int, quiet: bool) -> None:
        self._total, self._start, self._shown = total, time.monotonic(), 0.0
        self._on = not quiet and sys.stderr.isatty()

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if self._on and (now - self._shown > 0.1 or done == self._total):
            self._shown = now
            rate = done / max(now - self._start, 1e-6)
            width = 24
            bar = "█" * (width * done // max(self._total, 1))
            print(
                f"\r{bar:░<{width}} {done:,} of {self._total:,} logs · {rate:,.0f}/s ",
                end="",
                file=sys.stderr,
                flush=True,
            )

    def end(self) -> None:
        """Take the line away."""
        if self._on:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
