"""Policies of any shape: read, or refused in one line that begins with the file; nothing else is raised."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from logscan.model import InputError
from logscan.policy import baseline, config, waivers

VALUES = [
    "1", "-0.5", "true", "nan", '""', '"x"', '"LS101"', '"high"', '"a.b~=c"', '"a.b~=("', "2027-01-01", "07:32:00",
    "2027-01-01T00:00:00Z", "[]", "[1]", '["a.b~=c"]', '[["a.b~=c"]]', "{}", "{ a = 1 }", '"\\u0000"', '"../x"',
]  # fmt: skip
KEYS = ["required", "forbidden", "waivers", "baseline", "fail-on", "waiver", "code", "fingerprint", "path", "group"]
KEYS += ["model", "reason", "expires", "default", "LS1", '"LS101"', "'x y'", "a.b"]
LINES = st.one_of(
    st.sampled_from(["[[waiver]]", "[fail-on]", "[waiver]", "[[fail-on]]", "[a.b]", "# x", ""]),
    st.builds("{} = {}".format, st.sampled_from(KEYS), st.sampled_from(VALUES)),
    st.text(max_size=20),
)
SETTINGS = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(reader: Callable[[Path], Any], file: Path, data: bytes) -> None:
    file.write_bytes(data)
    try:
        reader(file)
    except InputError as error:
        assert str(error).startswith(str(file)) and "\n" not in str(error)


@SETTINGS
@given(lines=st.lists(LINES, max_size=8))
def test_files_of_toml(tmp_path: Path, lines: list[str]) -> None:
    data = "\n".join(lines).encode("utf-8", "surrogatepass")
    for reader in (config.read, waivers.read):
        read(reader, tmp_path / "policy.toml", data)


@SETTINGS
@given(data=st.one_of(st.binary(max_size=60), st.sampled_from([b"[" * 100_000, b'{"schema": {"a": 1}, "logs": 3}'])))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    for reader in (config.read, waivers.read, baseline.read):
        read(reader, tmp_path / "policy", data)
