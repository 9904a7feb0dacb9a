"""`logscan.toml`: what a repository asks of its boots. Found upward from the working directory; the nearest counts.

required = ["linear.kernel~=Cutlass|FlashInfer"]
forbidden = ["attention.backend~=XFORMERS"]
waivers = "waivers.toml"          # beside this file; or [[waiver]] tables in it
baseline = "baseline.json"

[fail-on]
default = "high"
LS602 = "never"                   # a code, its beginning (LS4), or a slug
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from logscan import catalogue
from logscan.model import SEVERITIES, InputError
from logscan.policy import Policy
from logscan.policy.located import Located, unknown_key
from logscan.policy.located import read as read_toml
from logscan.policy.require import Requirement, parse

_KEYS = ("required", "forbidden", "waivers", "baseline", "fail-on", "waiver")
_PREFIX = re.compile(r"LS\d{0,3}", re.I)
_LEVELS = (*SEVERITIES, "never")


def read(path: Path) -> Policy:
    """The policy that a file states. Raises InputError, with file and line, for anything that is not known."""
    located = read_toml(path)
    for key in located.tree:
        if key not in _KEYS:
            at = located.where(key) if isinstance(located.tree[key], dict) else located.where(key=key)
            raise unknown_key(key, _KEYS, at)
    default, rules = _fail_on(located)
    policy = Policy(
        fail_on=default,
        fail_on_rules=rules,
        requirements=(*_requirements(located, "required"), *_requirements(located, "forbidden")),
        source=str(path),
    )
    return _with_files(policy, located, path.parent)


def _with_files(policy: Policy, located: Located, folder: Path) -> Policy:
    from logscan.policy import baseline, waivers

    policy = policy._replace(waivers=waivers.entries(located) if "waiver" in located.tree else ())
    for key in ("waivers", "baseline"):
        name = located.tree.get(key)
        if name is None:
            continue
        if not isinstance(name, str) or not name:
            raise InputError(f"{located.where(key=key)}: {key} must be a file's name, not {name!r}")
        try:
            if key == "waivers":
                policy = policy._replace(waivers=(*policy.waivers, *waivers.read(folder / name)))
            else:
                policy = policy._replace(baseline=baseline.read(folder / name))
        except InputError as error:
            if (folder / name).is_file():
                raise
            raise InputError(f"{located.where(key=key)}: {error}") from error
    return policy


def _requirements(located: Located, key: str) -> list[Requirement]:
    texts = located.tree.get(key, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"{located.where(key=key)}: {key} must be a list of texts such as 'linear.kernel~=Cutlass'")
    return [parse(text, located.containing(text, "", 0, key), key == "forbidden") for text in texts]


def _fail_on(located: Located) -> tuple[str, dict[str, str]]:
    table: Any = located.tree.get("fail-on", {})
    if not isinstance(table, dict):
        raise InputError(f'{located.where(key="fail-on")}: write a table: [fail-on] with default = "high"')
    rules: dict[str, str] = {}
    for key, value in table.items():
        at = located.where("fail-on", 0, key)
        if value not in _LEVELS:
            raise InputError(f"{at}: {value!r} is no severity; one of {', '.join(_LEVELS)}")
        if key != "default":
            rules[_rule(key, at)] = value
    default = table.get("default", Policy().fail_on)
    return str(default), rules


def _rule(key: str, where: str) -> str:
    """A code, the beginning of one, or the code of a slug."""
    if _PREFIX.fullmatch(key):
        code = key.upper()
        if any(known.startswith(code) for known in catalogue.rules()):
            return code
    try:
        return catalogue.rule(key).code
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
