"""Which checkpoint, hardware and environment belong to a log: a table of globs, or a directory of checkpoints."""

from __future__ import annotations

import csv
import fnmatch
import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from logscan import hardware
from logscan.checkpoint.errors import CheckpointError
from logscan.checkpoint.locate import CONFIG, PARAMS, SIDECAR, locate
from logscan.desk import Given
from logscan.model import InputError

COLUMNS = ("glob", "ckpt", "gpu", "cuda", "engine", "env")
NOTHING = Given()
_HF_CACHE = re.compile(r"models--(.+?)--(.+)\Z")
_DEPTH = 6  # directories below the root in which a checkpoint may lie


class Joined(NamedTuple):
    """A checkpoint for a boot and how it was found, or why it was not."""

    ckpt: str | None
    how: str | None
    why: str | None = None


class Rule(NamedTuple):
    """One line of `--inputs`."""

    where: str  # inputs.csv:3
    glob: str
    given: Given


class Joins(NamedTuple):
    """What the user said about the fleet. Picklable; asked in every worker."""

    fleet: Given = Given()  # holds for each log, where its rule says nothing else
    rules: tuple[Rule, ...] = ()
    exact: Mapping[str, int] = {}  # globs without a wildcard → the first rule that has it
    wild: tuple[tuple[int, str], ...] = ()  # the other rules: number, regex
    base: str = ""  # the directory that relative names of logs are relative to
    root: str | None = None
    checkpoints: Mapping[str, tuple[str, ...]] = {}  # last part of a name, lower case → directories under the root

    def of_log(self, name: str) -> tuple[Given, str | None]:
        """What was given for a log, and the rule that did; the first rule whose glob fits wins."""
        names = (name,) if "://" in name or name.startswith("/") else (name, f"{self.base}/{name}")
        exact = [self.exact[tail] for whole in names for tail in _tails(whole) if tail in self.exact]
        first = min(exact, default=len(self.rules))
        fits = (n for n, regex in self.wild if n < first and any(_compiled(regex).match(whole) for whole in names))
        number = next(fits, first)
        if number == len(self.rules):
            return self.fleet, None
        rule, fleet = self.rules[number], self.fleet
        given = rule.given
        return given._replace(
            gpu=given.gpu or fleet.gpu,
            cuda=given.cuda or fleet.cuda,
            engine=given.engine or fleet.engine,
            env={**fleet.env, **given.env},
        ), rule.where

    def of_boot(self, given: Given, rule: str | None, model: str | None) -> Joined:
        """The checkpoint of a boot: what its rule says, or the one under the root that has the model's name."""
        if given.ckpt is not None:
            return Joined(given.ckpt, "inputs" if rule else "given")
        if self.root is None:
            if not self.rules:
                return Joined(None, None)
            return Joined(None, None, "its rule names no checkpoint" if rule else "no glob of --inputs fits its path")
        if model is None:
            return Joined(None, None, "the log names no model")
        return self._under_root(model)

    def _under_root(self, model: str) -> Joined:
        parts = _parts(model)
        hub = bool(re.fullmatch(r"[^/]+/[^/]+", model)) or model.find("models--") >= 0
        found = []
        for directory in self.checkpoints.get(parts[-1].lower(), ()) if parts else ():
            mine = _parts(os.path.relpath(directory, self.root))
            shared = _shared(parts, mine)
            # `meta/llama` is not `other/llama`; a directory right under the root has no owner to compare.
            if hub and len(mine) > 1 and shared < 2:
                continue
            found.append((shared, directory))
        best = sorted(directory for shared, directory in found if shared == max(found)[0])
        if not best:
            return Joined(None, None, f"no checkpoint under {self.root} is named like its model")
        if len(best) > 1:
            return Joined(None, None, f"{len(best)} checkpoints under {self.root} are named like its model")
        same = os.path.realpath(model) == os.path.realpath(best[0])
        return Joined(best[0], "path" if same else "name")

    def digest_of_log(self, given: Given, rule: str | None) -> str:
        """Changes with anything that was given for a log, the contents of its checkpoint included."""
        parts: list[Any] = [given.gpu, given.cuda, given.engine, sorted(given.env.items())]
        if given.ckpt is not None:
            parts.append(content(given.ckpt))
        elif self.root is not None:
            parts += [content(directory) for found in self.checkpoints.values() for directory in found]
        return sha256(json.dumps([*parts, bool(rule)]).encode()).hexdigest()


@cache
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex)


def _tails(name: str) -> Iterator[str]:
    """The name, and what follows each `/` (and `!`, behind which a member of an archive stands) in it."""
    yield name
    for i, char in enumerate(name):
        if char in "/!":
            yield name[i + 1 :]


def content(ckpt: str) -> str:
    """Digest of the files of a checkpoint that hold its promise; of its path where they cannot be read."""
    digest = sha256(ckpt.encode("utf-8", "surrogateescape"))
    try:
        files = locate(Path(ckpt))
        for file in (files.main, files.sidecar):
            if file is not None:
                digest.update(file.read_bytes())
    except (OSError, CheckpointError) as error:
        digest.update(str(error).encode("utf-8", "replace"))
    return digest.hexdigest()


def read_inputs(file: Path, fleet: Given = NOTHING) -> Joins:
    """The rules of a CSV file (with a header) or of JSON lines; paths in it are relative to its directory.

    `env` is `K=V;K=V` in CSV, an object or such a text in JSON. Raises InputError with file and line.
    """
    rules = tuple(_rule(where, row, file.parent) for where, row in _rows(file))
    if not rules:
        raise InputError(f"{file}: no rules; give a header ({','.join(COLUMNS)}) and a line for each glob")
    exact: dict[str, int] = {}
    wild = []
    for number, rule in enumerate(rules):
        if any(c in rule.glob for c in "*?["):
            wild.append((number, _regex(rule.glob)))
        else:
            exact.setdefault(rule.glob, number)
    return Joins(fleet, rules, exact, tuple(wild), os.getcwd())


def _rows(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from None
    if text.lstrip().startswith("{"):
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise InputError(f"{file}:{number}: is not JSON: {error}") from None
                if not isinstance(row, dict):
                    raise InputError(f'{file}:{number}: is no object; write {{"glob": …, "ckpt": …}}')
                yield f"{file}:{number}", row
        return
    reader = csv.DictReader(text.split("\n"), skipinitialspace=True)
    try:
        for row in reader:
            yield f"{file}:{reader.line_num}", row
    except csv.Error as error:
        raise InputError(f"{file}:{reader.line_num}: is not CSV: {error}") from None


def _rule(where: str, row: Mapping[str, Any], base: Path) -> Rule:
    unknown = [str(name) for name in row if name not in COLUMNS]
    if unknown:
        raise InputError(f"{where}: unknown column {unknown[0]!r}; known: {', '.join(COLUMNS)}")
    text = {name: str(row[name]).strip() for name in COLUMNS[:-1] if row.get(name) not in (None, "")}
    if not text.get("glob"):
        raise InputError(f"{where}: no glob; give the logs that the line is about, such as prod/*.log")
    ckpt = text.get("ckpt")
    if ckpt is not None:
        ckpt = str(base / ckpt)
        if not os.path.exists(ckpt):
            raise InputError(f"{where}: ckpt {ckpt}: no such file or directory")
    given = Given(ckpt, text.get("gpu"), text.get("cuda"), text.get("engine"), _env(where, row.get("env")))
    try:
        hardware.machine(given.gpu, given.cuda, given.env)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return Rule(where, text["glob"], given)


def _env(where: str, value: Any) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {str(k): str(v) for k, v in value.items()}
    found = {}
    for pair in str(value or "").split(";"):
        name, equals, text = pair.partition("=")
        if pair.strip() and not equals:
            raise InputError(f"{where}: env {pair!r} is not K=V; write VLLM_USE_DEEP_GEMM=0;CUDA_VISIBLE_DEVICES=0")
        if equals:
            found[name.strip()] = text.strip()
    return found


def _regex(glob: str) -> str:
    """A glob fits a whole path, or its end from a `/` on; `*` also crosses `/`."""
    inner = fnmatch.translate(glob)
    return inner if glob.startswith(("/", "*")) or "://" in glob else rf"(?s:.*[/!])?{inner}"


def read_root(root: Path, fleet: Given = NOTHING) -> Joins:
    """The checkpoints under a directory, by name: model directories and those of a Hugging Face cache.

    Raises InputError where there is none.
    """
    found: dict[str, list[str]] = {}
    for directory in _walk(str(root), _DEPTH):
        name = _parts(os.path.relpath(directory, root) if Path(directory) != root else os.path.abspath(root))
        if name:
            found.setdefault(name[-1].lower(), []).append(directory)
    if not found:
        raise InputError(f"{root}: no checkpoint in it; give a directory of model directories ({CONFIG} in each)")
    return Joins(
        fleet, root=str(root), checkpoints={name: tuple(sorted(paths)) for name, paths in sorted(found.items())}
    )


def _walk(directory: str, depth: int) -> Iterator[str]:
    try:
        entries = sorted(os.scandir(directory), key=lambda entry: entry.name)
    except OSError as error:
        if depth == _DEPTH:
            raise InputError(f"{directory}: cannot be read: {error.strerror}") from None
        return
    names = {entry.name for entry in entries}
    cached = bool(_HF_CACHE.match(os.path.basename(directory))) and "snapshots" in names
    if cached or names & {CONFIG, PARAMS, SIDECAR}:
        yield directory
    elif depth:
        for entry in entries:
            if entry.is_dir() and not entry.name.startswith("."):
                yield from _walk(entry.path, depth - 1)


def _parts(name: str) -> list[str]:
    """Parts of a model's name or path; those of a Hugging Face cache directory are read as owner and name."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    for i, part in enumerate(parts):
        cached = _HF_CACHE.match(part)
        if cached:
            return [*parts[:i], *cached.groups()]
    return parts


def _shared(a: list[str], b: list[str]) -> int:
    """How many parts agree, from the end."""
    count = 0
    for x, y in zip(reversed(a), reversed(b), strict=False):
        if x.lower() != y.lower():
            break
        count += 1
    return count
