"""Documents to report: hand-made, one of each kind of answer, and one whose every text is hostile."""

import json
from pathlib import Path
from typing import Any

import pytest

DOCUMENTS = Path(__file__).parent / "documents"
NAMES = tuple(sorted(path.stem for path in DOCUMENTS.glob("*.json")))


@pytest.fixture
def document():
    """Reads a document by name, anew each time, so that a test may change it."""

    def read(name: str) -> dict[str, Any]:
        return json.loads((DOCUMENTS / f"{name}.json").read_text())

    return read


@pytest.fixture(params=NAMES)
def each_document(request, document):
    return document(request.param)
