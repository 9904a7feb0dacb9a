"""Regexes that take forever on a text made for them: the lint names them, and the time limit ends the rest.

Every regex of EVIL was seen to take more than linear time with `re` on `before + again * n + after`; nothing here
measures that anew, because times differ between machines.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import ownpack
import pytest
import regex

from logscan import recognise
from logscan.desk import triage
from logscan.packs.lint import lint
from logscan.packs.schema import Pack, Pattern, Patterns


class Evil(NamedTuple):
    """A regex, and a text that it cannot match and takes long to find so."""

    regex: str
    before: str
    again: str
    after: str = "!"

    def text(self, n: int) -> str:
        return self.before + self.again * n + self.after


NESTED = [
    Evil(r"(?:, \w+)+\.", "", ", a"),
    Evil(r"^(a+)+$", "", "a"),
    Evil(r"^(\d+)*$", "", "1"),
    Evil(r"^(?:x+x+)+y", "", "x"),
    Evil(r"^(.*)*failed", "", "a"),
    Evil(r"^(?:.+)+ failed", "", "a"),
    Evil(r"^(\w+\s?)+ failed:", "", "a"),
    Evil(r"^(?P<words>(?:\w+[ -]?)+): error", "", "a"),
    Evil(r"^(\S+\s*)+:", "", "a", ""),
    Evil(r"^([a-z]+[0-9]*)+$", "", "a"),
    Evil(r"^Loading (?:[\w.]+/?)+\.safetensors$", "Loading ", "a"),
    Evil(r"^ *(?:[\w-]+=?)+;", "", "a", ""),
    Evil(r"^(?:(?:\w+)?,?)+ tokens", "", "a"),
    Evil(r"^kernels: (?:(?P<name>\w+)(?:, )?)+\.$", "kernels: ", "a"),
    Evil(r"^(?:\w{1,90} ?){1,90} for NVFP4", "", "a"),
    Evil(r"^(?:a{0,100}){0,100}b", "", "a"),
    Evil(r"^(?:\s*\w*\s*)*=", "", "a"),
    Evil(r"^(?:\w+?\s*?)+?: done", "", "a"),
    Evil(r"^(?=(?:\w+ ?)+\.)Using", "Using", "a"),
    Evil(r"^(?!(?:\w+ ?)+\.$)\w+\.$", "", "a"),
    Evil(r"^(?>(?:\w+ ?)+:) ready", "", "a"),
    Evil(r"^(?:Using|Selected (?:\w+ ?)+\.|Found)", "Selected ", "a"),
    Evil(r"(?i)^ERROR: (?:[a-z]+[A-Z]*)+\.", "error: ", "a"),
    Evil(r"^((?:[^\s,]+,?)+) out of potential backends", "", "a"),
    Evil(r"^<(?:\w+(?:\.\w+)*)+>$", "<", "a"),
    Evil(r'^"(?:[^"\\]+|\\.)*"$', '"', "a"),
    Evil(r"^(?:.*?,){1,99}end", "", ","),
]
"""A long repeat inside a long repeat."""

AMBIGUOUS = [
    Evil(r"^(a|a)*$", "", "a"),
    Evil(r"^(a|aa)+$", "", "a"),
    Evil(r"^(?:\w|\d\w)*:", "", "1", ""),
    Evil(r"^(?:GPU|GPU GPU|[ 0-9])+ ready", "", "GPU GPU"),
    Evil(r"^(?:\d{1,3},?)+ tokens$", "", "1"),
    Evil(r"^(\w{1,20}\s?)+ failed:", "", "a"),
    Evil(r"^(?:[\w.]{1,60}\.)*(?:Error|Exception)$", "", "a."),
    Evil(r"^rank (?:[0-9a-f]{1,4}:?)+ joined", "rank ", "0"),
    Evil(r"^(?:\w\w?)+$", "", "a"),
    Evil(r"^(?:[^\n]|\t)*\|$", "", "\t"),
    Evil(r"^(?:--?[\w-]{1,30}[ =]?){1,30}$", "", "-a"),
    Evil(r"^(?:a?b?c?){0,99}$", "", "abc"),
    Evil(r"^shapes=(?:\(?\d{1,6}[,)]? ?)*\]", "shapes=", "1"),
    Evil(r"^(?:\w{1,20} ?){1,20}for NVFP4 GEMM", "", "a"),
    Evil(r"^(?:(?:INFO|WARN|\w{4}) ?)*\.$", "", "INFO"),
    Evil(r"(?i)^(?:kernel|KERNEL)+\.$", "", "kernel"),
    Evil(r"^(?=(?:a|b|ab)*c)", "", "ab"),
    Evil(r"^(?P<path>(?:/?[\w-]{1,40})+)\.py$", "", "a"),
    Evil(r"^(?:(?:[A-Z]?[a-z]{0,12}))+Kernel$", "", "a"),
    Evil(r"^(?:a{0,60}){0,60}b", "", "a"),
]
"""A repeat whose body can take the same text in several ways."""

IN_A_ROW = [
    Evil(r"^[ \t]*\s*#", "", " ", ""),
    Evil(r"^.*.*x$", "", "a"),
    Evil(r"^.*.*failed", "", "a"),
    Evil(r"^\d*\d*\d*x", "", "1"),
    Evil(r"^\w+\d+: ready", "", "1"),
    Evil(r"^\w+.*foo", "", "a"),
    Evil(r"^(\w+)(\w+)=", "", "a"),
    Evil(r"^\w+(?:-\w*)?\w*=", "", "a"),
    Evil(r"^[^\n]*(?: for)?[^\n]*GEMM", "", "a"),
    Evil(r"^.*, .*: done", "", ", "),
    Evil(r"^.*?=.*?;$", "", "="),
    Evil(r"^.* .*foo", "", " "),
    Evil(r"^args: .*\{.*\}$", "args: ", "{", ""),
    Evil(r"^Using (?P<backend>.+) for (?P<layer>.+)\.$", "Using a", " for a"),
    Evil(r"^\[.*\] .*took", "[", "] "),
    Evil(r"^[\w.]+\.[\w.]+Error: ", "", "a."),
    Evil(r"^\S+/\S+\.json$", "", "/"),
    Evil(r"^(?:Selected|Using .*,.*|Found) kernel", "Using ", ","),
    Evil(r"^(?:.*,)?(?P<last>[^\n]*);", "", ","),
    Evil(r"^(?=.*,.*;)\w", "", ","),
    Evil(r"^(.*)\1;", "", "a"),
    Evil(r"^\d{0,1000}\d{0,1000}\d{0,1000}x", "", "1"),
    Evil(r"^.{0,200},.{0,200},.{0,200},.{0,200};", "", ","),
    Evil(r"^Using (?P<kernel>.{1,300}) for .{1,300} in .{1,300} at (?P<layer>.{1,300})\.$", "Using ", " for in at "),
    Evil(r"^[\w.]{0,200}\w{0,200}\w{0,200}Error: ", "", "a"),
    Evil(r"^(?i:[a-z]+)[A-Z]+:", "", "A"),
    Evil(r"^.*\b.*\bfailed", "", "a "),
    Evil(r"^\w+\d*+\w*:", "", "1"),
]
"""Two repeats that share what stands between them."""

ANYWHERE = [
    Evil(r"^(?s:.)*x[\s\S]*y", "", "x"),
    Evil(r"^ \s*\s*x", " ", " "),
    Evil(r"\s+$", "", " "),
    Evil(r"\s*x", "", " "),
    Evil(r"\d+ tokens", "", "1"),
    Evil(r"[\w.]+Error: ", "", "a"),
    Evil(r"(?P<name>\w+)=None", "", "a"),
    Evil(r"\w+?: failed", "", "a"),
    Evil(r".*failed", "", "a"),
    Evil(r"Using .* for NVFP4 GEMM", "", "Using "),
    Evil(r"at .*: done", "", "at "),
    Evil(r"\(.*\) took", "", "("),
    Evil(r"=\S+;", "", "="),
    Evil(r"(?:Using|Selected) (?P<kernel>.+) kernel$", "", "Using "),
    Evil(r"GPU(?=.*ready):", "", "GPU", "ready"),
    Evil(r"GPU(?!.*;)x", "", "GPU"),
    Evil(r"\w++=", "", "a"),
    Evil(r"[0-9]{1,65535} bytes", "", "1"),
    Evil(r"^\s*Using", "", "\n"),
    Evil(r"^[^:]*: failed", "", "a\n"),
    Evil(r"^\[[^\]]*\] ready", "", "[\n"),
    Evil(r"\b[\w-]+:", "", "a-"),
    Evil(r"(?s)^Traceback.*Error", "", "Traceback\n"),
]
"""A repeat over texts with which the regex may begin anew; with ^, lines."""

EVIL = {
    "a long repeat inside a long repeat": NESTED,
    "a repeat that can take the same text in several ways": AMBIGUOUS,
    "two unbounded repeats, or several long ones, of the same characters in a row": IN_A_ROW,
    "a repeat over what the regex may begin with anew": ANYWHERE,
}

LEFT_TO_THE_TIMEOUT = [
    # Few in few is let through, although 20 ** 9 ways are many.
    Evil(r"^Using (?:\w{1,20} ?){1,9}for NVFP4 GEMM", "Using ", "a", " for NVFP4 GEMN"),
    # A text of 16 characters and more between two repeats is taken for one that stands once in a line.
    Evil(r"^.*\} \(previous value: .*\)$", "", "} (previous value: )"),
    # Exact counts are no loops. With `re` these are 2 ** 40 ways; the engine of user packs has no trouble with it.
    Evil(r"^(?:\d?){40}\d{40};", "", "1", " ;"),
]
"""Regexes that take too long and that the lint says nothing of."""

FINE = [
    # As the packs have them.
    r"^Using (?P<kernel>\w{3,80}) for NVFP4 GEMM$",
    r"^Attention backend not specified\. Use (?P<backend>\w{2,40}) backend by default\.$",
    r"^server_args=(?P<args>ServerArgs\([^\n]*)$",
    r"^args: (?P<args>Namespace\([^\n]*)$",
    r"^Initializing an? (?:V[01] )?LLM engine \(v(?P<version>[0-9][\w.+-]{0,80})\) with config: (?P<args>[^\n]*)$",
    r"^(?:\w{1,60}\.){0,6}(?P<exception>[A-Z]\w{0,60}(?:Error|Exception))(?:: (?P<message>[^\n]{0,500}))?$",
    r"^(?:[\w.]{1,80}: ){0,3}(?:[\w.]{1,60}\.)?(?:OutOfMemoryError: |RuntimeError: [^\n]{0,120}?)CUDA out of memory\.",
    r"^Some backends are not valid for (?P<device>[^\n]{1,300}) with (?P<why>[^\n]{1,300})\. Reasons: [^\n]{0,4000}$",
    r"^[^\n]{0,600}?/flashinfer/[^/\s]{1,80}/(?P<sm>\d{2,3})[af]?/cached_ops/",
    r"^[^\n]{0,8000}?\bkv_cache_config=KvCacheConfig\([^\n]{0,2000}?\bdtype='(?P<dtype>\w{1,20})'",
    r"^server_args=\{[^\n]{0,40000}?'attention_backend': '(?P<backend>\w{2,40})'",
    r"^Load weight end\. elapsed=(?P<s>[\d.]{1,16}) s, (?:quant[^\n]{0,400}?, )?avail mem=(?P<gb>[\d.]{1,16}) GB",
    r"^ {0,12}[\x80-\xff][ \x80-\xff]{8,160}  version (?P<version>[0-9][\w.+-]{0,80})\s{0,8}$",
    r"^[ |]{0,12}(?:[\w.]{1,80}: |Value error, )?No (?P<format>FP8|NvFp4) MoE backend supports the deployment",
    r"^\[[\w.-]{1,80}:\d{1,10} *:\d{1,10}(?::\d{1,10})?\] Caught signal (?P<signal>\d{1,2}) \([^\n]{1,200}\)$",
    r"^GPU memory: \[(?P<memory>\d{1,9})[\d, ]{0,400}\]",
    r"^`[^\n]{1,300}?` all2all manager is not supported on (?:CPU|XPU)\.",
    r"^(?:\[get_backend\] )?Using (?P<backend>Marlin|Triton) backend(?: for mxfp4 lora)?$",
    # One open repeat, or several that do not reach into each other.
    r"^Using .* for NVFP4 GEMM",
    r"^Using \w+ +for NVFP4 GEMM",
    r"^Using [^ ]* for NVFP4 GEMM",
    r"^(?P<key>\w+)=(?P<value>[^,\n]*), ",
    r"^\w+: \d+/\d+ tokens, [\d.]+%$",
    r"^\d+-\d+-\d+ \d+:\d+:\d+,\d+ ",
    r"^[^:\n]*:[^:\n]*: ready$",
    r'^"[^"\n]*" took \d+ ms$',
    r"^\[[^\]\n]*\] \([^)\n]*\) \S+$",
    r"^Loaded \S+ \S+ in \d+\.\d+ s$",
    r"^key='(?:[^'\\\n]|\\.)*'$",
    r"^(?:[^\W\d]|\d)*;",
    r"^.*:\w*+;",
    r"^.*foo\s*$",
    # What follows cannot fail.
    r"^Using .* for .*",
    r"^args: .*=(?P<rest>.*)$",
    r"^(?P<name>\w+) .*took .*$",
    r"Reasons: .*",
    r"\d+",
    # Bounded.
    r"error: .{0,200} at .{0,200}$",
    r"[\w.]{1,60}Error: ",
    r"\s{1,40}$",
    r"^[\w.]{0,200}\.[\w.]{0,200}Error: ",
    r"^(?:[0-9a-f]{2}:){5}[0-9a-f]{2}$",
    r"^(?:\w{4})+-end$",
    r"^(?:, \w{1,20})*\.$",
    r"^shape=\((?:\d{1,6}, ){0,20}\d{1,6}\)$",
    r"^(?:\w{1,20}/)+\w{1,20}\.json$",
    r"^(?:ready|failed|loaded)*$",
    # It begins at few places.
    r"\b\w+: failed",
    r"(?:^|\s)\S+@",
    r"\Afoo\s+bar",
    r"took \d+ ms",
    r"(?i)^error: [a-z]+\d+$",
    # Not entered again.
    r"^\w++\s*+\w++:",
    r"^(?>\w+ ?)+: failed",
    r"^(?:\w++ ?)+: failed",
    r"^(?>[a-z]+|\d+)*;",
    r"^(?>.*foo)x",
    r"^(?=\w+ for)Using \w+",
    r"^(['\"])[^'\"\n]*\1 \w+$",
]


def complaints(text: str) -> list[str]:
    """What the lint says of a regex itself."""
    pattern = Pattern("toy.linear.x", text, ("toy",), "linear.kernel", match=("toy",), nomatch=("x",))
    found = lint([Pack("toy", "toy", "1", "", (), Patterns.of([pattern]))])
    return [p.message for p in found if p.severity == "error" and " repeat" in p.message]


@pytest.mark.parametrize(("fault", "evil"), [(fault, e) for fault, evils in EVIL.items() for e in evils])
def test_an_evil_regex_is_an_error(fault: str, evil: Evil):
    (message,) = complaints(evil.regex)
    assert message.startswith(fault)


@pytest.mark.parametrize("text", FINE)
def test_a_harmless_regex_is_none(text: str):
    assert complaints(text) == []


def test_the_corpora_are_large_and_have_no_entry_twice():
    evil = [e.regex for evils in EVIL.values() for e in evils]
    assert len(set(evil)) == len(evil) >= 90
    assert len(set(FINE)) == len(FINE) >= 50
    assert not {*evil, *(e.regex for e in LEFT_TO_THE_TIMEOUT)} & set(FINE)


@pytest.mark.parametrize("evil", LEFT_TO_THE_TIMEOUT)
def test_the_lint_does_not_see_all(evil: Evil):
    assert complaints(evil.regex) == []


def one(of: list[Evil], text: str) -> Evil:
    (found,) = [e for e in of if e.regex == text]
    return found


SLOW = [
    (one(NESTED, r"^(a+)+$"), 100_000),
    (one(NESTED, r"^Loading (?:[\w.]+/?)+\.safetensors$"), 60_000),
    (one(AMBIGUOUS, r"^(a|aa)+$"), 60),
    (one(IN_A_ROW, r"^Using (?P<backend>.+) for (?P<layer>.+)\.$"), 30_000),
    (one(ANYWHERE, r"\s+$"), 100_000),
    (LEFT_TO_THE_TIMEOUT[0], 180),
    (LEFT_TO_THE_TIMEOUT[1], 13_000),
]
"""Regexes on which the engine of user packs takes seconds, too, and how long a text each gets."""


@pytest.mark.parametrize(("evil", "n"), SLOW)
def test_the_time_limit_holds(evil: Evil, n: int):
    with pytest.raises(TimeoutError):
        regex.compile(evil.regex.encode(), regex.MULTILINE).search(evil.text(n).encode(), timeout=0.05)


@pytest.mark.parametrize(("evil", "n"), [*SLOW, (LEFT_TO_THE_TIMEOUT[2], 40)])
def test_a_triage_with_an_evil_pack_ends_and_reports(
    evil: Evil, n: int, tmp_path: Path, boot_text: Callable[..., str], monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "pack.toml").write_text(ownpack.PACK)
    quoted = '"' + evil.regex.replace("\\", "\\\\").replace('"', '\\"') + '"'
    (tmp_path / "evil.toml").write_text(ownpack.ENTRY.format(regex=quoted))
    log = tmp_path / "boot.log"
    log.write_text(boot_text("0.33.0", [("INFO", "core.py", evil.text(n) + " EVIL")]))
    monkeypatch.setattr(recognise, "USER_TIMEOUT", 0.1)  # as good as the real one, and the tests stay fast
    monkeypatch.setattr(recognise, "CLIP", 1 << 18)  # so that all of the text is seen
    began = time.process_time()
    document = triage(log, packs=[tmp_path])
    took = time.process_time() - began
    assert took < 2
    assert took > 0.1 or (evil, n) not in SLOW  # it did reach the regex, and waited for it
    (boot,) = document["logs"][0]["boots"]
    assert boot["engine"]["version"] == "0.33.0"


def test_what_only_the_regex_module_reads_is_told():
    pattern = Pattern("toy.linear.x", r"^\p{Lu}\w+", ("Abcd",), "linear.kernel", match=("Abcd",), nomatch=("abcd",))
    problems = lint([Pack("toy", "toy", "1", "", (), Patterns.of([pattern]))])
    assert [p.severity for p in problems if "standard library cannot read it" in p.message] == ["warning"]


def test_an_example_cannot_hang_the_lint():
    pattern = Pattern("toy.linear.x", "^(a|aa)+$", ("aaaa",), "linear.kernel", match=("a" * 60 + "!",), nomatch=("x",))
    problems = lint([Pack("toy", "toy", "1", "", (), Patterns.of([pattern]))])
    assert any("takes more than 0.5 s" in p.message for p in problems)


def test_a_regex_that_multiplies_is_not_read_for_ever():
    (found,) = complaints("^" + "(?:" * 9 + "a" + "{3,9})" * 9)
    assert found.startswith("too large to be judged")
