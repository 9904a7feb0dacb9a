"""What may leave the program: secrets masked, nothing that steers a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

MASK = "[redacted]"
# Case-folded: where none of these stands, nothing below matches. Most texts hold none, and need no regex.
_HINTS = (
    "hf_", "api_org_", "nvapi-", "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "xox", "akia", "asia",
    "aiza", "glpat-", "eyj", "key", "auth", "secret", "passw", "passphrase", "bearer", "basic", "signature", "?sig=",
    "&sig=", "private",
)  # fmt: skip
_BARE = (
    r"\b(?:hf|api_org)_[A-Za-z0-9]{16,}",
    r"\bnvapi-[A-Za-z0-9_-]{16,}",
    r"\bsk-[A-Za-z0-9_-]{16,}",
    r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_\w{20,}",
    r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{30,}",
    r"\bglpat-[A-Za-z0-9_-]{16,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]+)?",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s\\]*(?:-----END [A-Z ]*-----)?",
)
_SECRETS = "|".join(_BARE)
_BEARER = r"(?i)\b(bearer|basic)\s+(?!redacted)[A-Za-z0-9._~+/=-]{8,}"
_URL = r"(?i)\b([a-z][a-z0-9+.-]{1,20}://)[^\s/@'\"<>]{1,200}@"
_QUERY = r"(?i)([?&](?:[\w-]{0,30}(?:token|key|secret|signature|password)|sig)=)[^\s&'\"<>]+"
# `api_key='…'`, `"api_key": "…"`, `--api-key …`, `HF_TOKEN=…`; lists of keys too
_NAMED = (
    r"(?i)(?P<name>(?:--|\b)[\w-]{0,40}?(?:api[_-]?keys?|access[_-]?keys?(?:[_-]id)?|secret[_-]?(?:access[_-]?)?keys?|auth[_-]?tokens?|"
    r"hf[_-]?token|access[_-]?token|client[_-]?secret|passw(?:or)?d|passphrase|(?<![a-z])secret|"
    r"hub[_-]?token|ngc[_-]?token|(?<![a-z])token)['\"]?(?P<sep>\s*[=:]\s*|\s+(?=[^\s\-=:]{8})))"
    r"(?P<value>\[[^\]]{1,2000}\]|\([^)]{1,2000}\)|'[^']{1,2000}'|\"[^\"]{1,2000}\"|[^\s,;)\]}'\"]{1,2000})"
)
_HARMLESS = r"(?i)['\"\[(]*\s*(?:none|null|true|false|auto|\*+|\[?redacted\]?|<[^>]*>|\d{1,9}|x{3,})?\s*['\"\])]*$"
_ESCAPES = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])?"
# C0 (but tab), DEL, C1, zero-width and bidi controls, line separators, tag characters, lone surrogates
_UNPRINTABLE = (
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)


_compiled = cache(re.compile)  # when first needed: most texts need one of them


def redact(text: str) -> str:
    """`text` with API keys, tokens, passwords and credentials in URLs replaced by a mask. Linear in the text."""
    return masked(text) if _suspect(text.casefold().replace("ı", "i").replace("\u0307", "")) else text


def _suspect(folded: str) -> bool:
    if any(hint in folded for hint in _HINTS) or ("://" in folded and "@" in folded):
        return True
    words = folded.split("token")[1:]  # `…_token_budgets` and `tokenizer` name no token
    return any(not (word[:1].isascii() and word[:1].isalpha() or word[:1] == "_") for word in words)


def masked(text: str) -> str:
    """What `redact` makes of a text that may hold a secret."""
    text = _compiled(_SECRETS).sub(MASK, text)
    text = _compiled(_BEARER).sub(rf"\1 {MASK}", text)
    if "://" in text:
        text = _compiled(_URL).sub(rf"\1{MASK}@", text)
    if "=" in text:
        text = _compiled(_QUERY).sub(rf"\1{MASK}", text)
    return _compiled(_NAMED).sub(_mask, text)


def _mask(m: re.Match[str]) -> str:
    value = m["value"]
    if MASK in value or _compiled(_HARMLESS).match(value):
        return m[0]
    if not m["sep"].strip() and not m["name"].startswith("-"):
        return m[0]  # prose: "the token budget"
    quote = value[0] if value[0] in "'\"" else ""
    inside = f"{quote}{MASK}{quote}" if value[0] not in "[(" else f"{value[0]}{MASK}{value[-1]}"
    return m["name"] + inside


def printable(text: str) -> str:
    """`text` on one line, without escapes, control, invisible or direction-changing characters."""
    if text.isascii() and text.isprintable():
        return text
    if "\x1b" in text:
        text = _compiled(_ESCAPES).sub("", text)
    return _compiled(_UNPRINTABLE).sub(_spaced, text)


def _spaced(m: re.Match[str]) -> str:
    return " " if m[0] in "\n\r\x0b\x0c\u2028\u2029" else ""


def cleaner(redacted: bool = True) -> Callable[[str], str]:
    """What every text of a log goes through before it leaves: no control characters, no secrets unless asked for."""
    return _clean if redacted else printable


def _clean(text: str) -> str:
    return redact(printable(text))
