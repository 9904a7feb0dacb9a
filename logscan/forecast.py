"""Prediction: what an engine will run for a checkpoint on a machine, before anything is deployed.

The same derivation and the same judge as for a log, with nothing printed yet: every row is derived.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from logscan import hardware, versions
from logscan.document import finding_document, given_document, row_document
from logscan.judge import predict, worst_verdict
from logscan.judge.findings import row_findings
from logscan.judge.knowledge import tables
from logscan.model import InputError, Row
from logscan.packs.load import engines
from logscan.redact import cleaner

if TYPE_CHECKING:
    from logscan.results import Expect

SCHEMA = "logscan.expect/1"
# What SGLang calls the flags that name a backend (its server_args.py).
_ALIASES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "sglang": {
        "moe_backend": ("moe_runner_backend",),
        "linear_backend": ("fp4_gemm_runner_backend", "fp8_gemm_runner_backend"),
    }
}
_ENGINE = re.compile(r"(?P<name>[a-z]+)\s*(?P<span>[<>=!].*)")
_TWO = re.compile(r"==\s*(?P<first>[^,.\s][^,\s]*?)\.\.(?P<last>[^,\s]+)")


def expect(
    ckpt: str,
    gpu: str,
    engine: str,
    *,
    cuda: str | None = None,
    have: Collection[str] | str | None = None,
    flags: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    packs: Sequence[str | Path] = (),
) -> Expect:
    """What will run, as the document `logscan.expect/1`.

    `engine`: one release (`vllm==0.31.0`), or several to compare (`vllm==0.28.0..0.31.0`, `vllm>=0.28,<0.32`).
    `have`: exactly these optional packages are installed (`none`: none of them); None: unknown. `flags`: engine
    arguments by underscore name. Raises InputError for anything that is not known.
    """
    from logscan.checkpoint import read_promise

    all_releases = engines([Path(p) for p in packs])
    name, wanted, single = releases(engine, all_releases)
    promise = read_promise(ckpt, engine=name)
    machine = hardware.machine(gpu, cuda, env, have)
    knowledge = tables([Path(p) for p in packs], name)
    known = all_releases[name]
    given: dict[str, Any] = {"ckpt": ckpt, "gpu": gpu, "cuda": cuda, "engine": engine, "have": _have(have)}
    given |= {"flags": dict(flags or {}), "env": dict(env or {})}
    given = given_document(given, cleaner())
    named = _named(name, flags or {})
    found = [
        (text, predict(promise, named, machine, evaluated, knowledge, known, name, text))
        for text, evaluated in wanted.items()
    ]
    if single:
        return cast("Expect", {"schema": SCHEMA, "given": given, **_outcome(found[0][1])})
    listed = [{"engine": f"{name}=={text}", **_outcome(rows)} for text, rows in found]
    return cast("Expect", {"schema": SCHEMA, "given": given, "releases": listed})


def _named(engine: str, flags: Mapping[str, str]) -> dict[str, str]:
    """The flags by the names that the engine has for them."""
    aliases = _ALIASES.get(engine, {})
    return {own: value for name, value in flags.items() for own in aliases.get(name, (name,))}


def _have(have: Collection[str] | str | None) -> list[str] | None:
    if have is None:
        return None
    return [p for p in (have.split(",") if isinstance(have, str) else have) if p and p != "none"]


def _outcome(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "verdict": worst_verdict(tuple(rows)),
        "paths": [_row(row) for row in rows],
        "findings": [finding_document(f, str) for f in row_findings(rows)],
    }


def _row(row: Row) -> dict[str, Any]:
    prints = [p._asdict() for p in row.prints]
    return {**row_document(row, str), "layer": row.layer, "prints": prints}


def releases(engine: str, engines: Mapping[str, tuple[str, ...]]) -> tuple[str, dict[str, tuple[str, ...]], bool]:
    """The engine's name, the releases asked for with those at which each is evaluated, and whether it is one.

    Raises InputError for an engine or a range that is not known.
    """
    m = _ENGINE.fullmatch(engine.strip())
    known = engines.get(m["name"]) if m else None
    if m is None or known is None:
        raise InputError(
            f"--engine {engine!r}: name an engine and a release, such as vllm==0.31.0 or 'vllm>=0.28,<0.32'"
        )
    span = m["span"].replace(" ", "")
    two = _TWO.fullmatch(span)
    if two:
        span = f">={two['first']},<={two['last']}"
    elif span.startswith("==") and "," not in span:
        version = versions.parse(span[2:])
        if version is None:
            raise InputError(f"--engine {engine!r}: {span[2:]!r} is not a release; the newest known is {known[-1]}")
        return m["name"], {version.text: versions.around(version, known)}, True
    try:
        inside = [r for r in known if versions.contains(span, r)]
    except ValueError as error:
        raise InputError(f"--engine {engine!r}: {error}") from error
    if not inside:
        raise InputError(f"--engine {engine!r}: no known release lies there; known: {known[0]} to {known[-1]}")
    return m["name"], {r: (r,) for r in inside}, False
