"""Documents from elsewhere: damaged in any place, they end in a line, never in a traceback."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from logscan.cli import commands

ODD: list[Any] = [None, True, -1, 0, "", "x", "\x1b[2J\u202e", [], {}, [[]], [None], {"a": 1}, 1e308]
runner = CliRunner()


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    from logscan import desk

    demo = Path(__file__).parents[2] / "logscan" / "demo"
    doc: Any = desk.triage(demo / "a100-0.24.log", ckpt=str(demo / "config.json"), gpu="A100")
    return dict(doc)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_document_that_is_damaged_anywhere(document: dict[str, Any], tmp_path: Path, data: st.DataObject) -> None:
    damaged = copy.deepcopy(document)
    place = data.draw(st.sampled_from([p for p in places(document) if len(p) > 1]))
    node: Any = damaged
    for key in place[:-1]:
        node = node[key]
    if data.draw(st.booleans()) or isinstance(node, list):
        node[place[-1]] = data.draw(st.sampled_from(ODD))
    else:
        del node[place[-1]]
    for name, doc in (("old", document), ("new", damaged)):
        (tmp_path / f"{name}.json").write_text(json.dumps(doc))
    for format in ("table", "json", "markdown"):
        arguments = ["diff", str(tmp_path / "old.json"), str(tmp_path / "new.json"), "--format", format]
        result = runner.invoke(commands.app, arguments)
        assert result.exception is None or isinstance(result.exception, SystemExit), (place, result.exception)
        assert "\x1b" not in result.output and "\u202e" not in result.output
