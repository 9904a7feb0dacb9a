"""Boots of TensorRT-LLM and SGLang from their lines, up to the facts that the packs read."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest
from beside import SHARED

from logscan.boots import Boots
from logscan.intake import open_source
from logscan.model import Boot
from logscan.packs.load import load
from logscan.packs.schema import Pack
from logscan.recognise import Recogniser

Read = Callable[[str], tuple[Boot, ...]]


@lru_cache(maxsize=1)
def packs() -> tuple[Pack, ...]:
    return load()


@lru_cache(maxsize=1)
def recogniser() -> Recogniser:
    return Recogniser(packs())


@pytest.fixture(scope="session")
def read_file() -> Callable[[Path], tuple[Boot, ...]]:
    """The boots in a log."""

    def of(path: Path) -> tuple[Boot, ...]:
        boots = Boots(packs(), recogniser())
        for record in open_source(str(path)).records():
            boots.feed(record)
        return boots.snapshot()

    return of


@pytest.fixture
def read(tmp_path: Path, read_file: Callable[[Path], tuple[Boot, ...]]) -> Read:
    """The boots in a log that is given as text."""

    def of(text: str) -> tuple[Boot, ...]:
        path = tmp_path / "boot.log"
        path.write_text(text)
        return read_file(path)

    return of


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real logs and catalogues beside the checkout; the test is skipped where there is none."""
    if not (SHARED / "corpus").is_dir():
        pytest.skip("no folder of real logs beside the checkout")
    return SHARED
