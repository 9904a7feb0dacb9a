"""What a boot itself says about its machine, under what the user gave.

A dense model on one healthy box prints its GPU nowhere; a few lines leak it (a tuned-config path, `arch=sm89`, a
refusal). The toolkit is in the version string or nowhere. What was given wins; a contradiction is for the findings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from logscan import hardware, versions
from logscan.model import Authority, Boot, Fact, InputError, Machine, replace

_SM = re.compile(r"(?:sm_?)?(\d{2,3})[af]?|(\d{1,2})\.(\d)", re.A)
# In the path of a tuned config, and in FlashInfer's line: `device_name=NVIDIA_H100_80GB_HBM3`, `arch=sm89`.
_LEAKS = (
    ("gpu.name", re.compile(r"\bdevice_name=([\w.+-]{2,80}?)(?=,|\.json|$)", re.A)),
    ("gpu.sm", re.compile(r"\barch=(sm\d{2,3})\b", re.A)),
)
_PLATFORMS = ("cuda", "rocm", "xpu", "cpu", "tpu")


def observe(given: Machine, boot: Boot) -> Machine:
    """The machine of one boot: what was given, completed by what the boot logged."""
    logged = logged_machine(boot)
    authority: dict[str, Authority] = {**logged.authority, **given.authority}
    known_gpu = given.platform is not None
    if known_gpu and logged.sm is not None and given.sm is None:
        authority.pop("gpu", None)
    return replace(
        given,
        platform=given.platform or logged.platform,
        gpu=given.gpu or (None if known_gpu else logged.gpu),
        sm=given.sm if known_gpu else logged.sm,
        gfx=given.gfx if known_gpu else logged.gfx,
        cuda=given.cuda or (logged.cuda if (given.platform or logged.platform or "cuda") == "cuda" else None),
        authority=authority,
    )


def logged_machine(boot: Boot) -> Machine:
    """What the boot's own lines say: GPU name, capability, platform, toolkit."""
    found = Machine(platform=_platform(boot))
    authority: dict[str, Authority] = {}
    for name, value in _stated(boot):
        if name == "gpu.name" and found.gpu is None and (card := hardware.lookup(value)):
            found = replace(found, gpu=value, platform=card.platform, sm=found.sm or card.sm, gfx=card.gfx)
            authority["gpu"] = "logged"
            authority.setdefault("sm", "derived")
        elif name == "gpu.sm" and authority.get("sm") != "logged" and (sm := capability(value)):
            found = replace(found, sm=sm, platform=found.platform or "cuda")
            authority["sm"] = "logged"
    toolkit = _toolkit(boot)
    if toolkit is not None:
        authority["cuda"] = "logged"
    return replace(found, cuda=toolkit, authority=authority)


def _stated(boot: Boot) -> Iterator[tuple[str, str]]:
    """(gpu.name or gpu.sm, value) of every line that names or leaks one."""
    for fact in boot.facts:
        if fact.name in ("gpu.name", "gpu.sm"):
            yield fact.name, fact.value
        elif "=" in fact.text:
            for name, leak in _LEAKS:
                m = leak.search(fact.text)
                if m is not None:
                    yield name, m[1]


def capability(text: str) -> int | None:
    """89 of `sm89`, `sm_89`, `8.9` or `89`."""
    m = _SM.fullmatch(text.strip())
    if m is None:
        return None
    return int(m[1]) if m[1] else int(m[2]) * 10 + int(m[3])


def _platform(boot: Boot) -> str | None:
    """The platform that the boot names. `device_config=cuda` is printed on ROCm too, so it settles nothing."""
    local = _local(boot)
    for word in ("cpu", "xpu", "rocm", "tpu"):
        if local.startswith(word):
            return word
    for name in ("engine.platform", "config.device_config", "request.device"):
        value = next((f.value.lower().rstrip(".") for f in boot.facts if f.name == name), "")
        if value in _PLATFORMS and (name == "engine.platform" or value != "cuda"):
            return value
    return "cuda" if local.startswith("cu1") else None


def _local(boot: Boot) -> str:
    version = versions.parse(boot.engine.version) if boot.engine.version else None
    return version.local if version is not None else ""


def _toolkit(boot: Boot) -> tuple[int, int] | None:
    printed = [f.value for f in boot.facts if f.name == "cuda.version"]
    for text in printed + [p for p in _local(boot).split(".") if p.startswith("cu1")]:
        try:
            return hardware.cuda(text)
        except InputError:
            continue
    return None


def conflicts(given: Machine, boot: Boot) -> tuple[str, tuple[Fact, ...]] | None:
    """How the boot contradicts what was given, and the lines that do; None where it does not."""
    logged = logged_machine(boot)
    if given.sm is not None and logged.sm is not None and given.sm != logged.sm:
        leaks = [leak for _, leak in _LEAKS]
        facts = tuple(f for f in boot.facts if f.name.startswith("gpu.") or any(x.search(f.text) for x in leaks))
        return f"{given.gpu} (sm_{given.sm}) was given, the log shows sm_{logged.sm}", facts
    if given.platform is not None and logged.platform is not None and given.platform != logged.platform:
        return f"platform {given.platform} was given, the log shows {logged.platform}", ()
    return None
