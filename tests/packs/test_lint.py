"""Each check is seen to complain, and to be content."""

from __future__ import annotations

import pytest

from logscan.packs.lint import failures, lint
from logscan.packs.schema import Pack, Pattern, Patterns, Site

GOOD = Pattern(
    id="toy.linear.gemm",
    regex=r"^Using (?P<kernel>\w{3,80}) for NVFP4 GEMM$",
    literals=(" for NVFP4 GEMM",),
    emits="linear.kernel",
    match=("Using MarlinNvFp4LinearKernel for NVFP4 GEMM",),
    nomatch=("Using it for FP4 GEMM",),
    sites=(Site("selected", ">=1.0", "toy/linear.py:choose", "INFO"),),
    where="toy/linear.toml:1",
)


def said(pattern: Pattern) -> list[str]:
    pack = Pack("toy", "toy", "1", "", ("1.0", "1.1", "1.2", "1.3"), Patterns.of([pattern]))
    return [f"{p.severity}: {p.message}" for p in lint([pack])]


def test_literals_that_count_need_one_line():
    regex, match = r"^GPU (?P<kernel>\d{1,2}): for NVFP4 GEMM$", ("GPU 0: for NVFP4 GEMM",)
    counted = GOOD._replace(regex=regex, match=match, literals=("GPU 0: ", "GPU 12: "))
    assert said(counted) == []
    assert said(counted._replace(literals=("GPU 0: ", "CPU 0: ")))[0].startswith("warning: no match line")


def test_a_sound_pattern_is_sound():
    assert said(GOOD) == []
    assert list(failures(GOOD)) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"match": ()}, "error: no match line: give one real line"),
        ({"nomatch": ()}, "error: no nomatch line"),
        ({"match": ("Using x y for NVFP4 GEMM",)}, "error: does not match its match line"),
        ({"nomatch": GOOD.match}, "error: matches its nomatch line"),
        ({"literals": ("for",)}, "error: literal 'for' is shorter than 4 bytes"),
        ({"literals": (" for NVFP5",)}, "error: none of its literals stands in the match line"),
        ({"literals": (" for NVFP4", " for MXFP4")}, "warning: no match line has the literal ' for MXFP4'"),
        ({"value": "{kernle}"}, "error: value: the regex has no group 'kernle' (it has kernel)"),
        ({"parse": "pydict"}, "error: parse = 'pydict' reads the group 'args', and the regex has none"),
        ({"emits": "colour.red"}, "error: emits 'colour.red': no such family of facts"),
        ({"id": "vllm.x"}, "error: id: patterns of this pack begin with toy."),
        ({"sites": (Site("selected", ">=9"),)}, "warning: engine '>=9': no release that pack.toml lists is in it"),
        ({"sites": (*GOOD.sites, *GOOD.sites)}, "error: two sites of toy/linear.py:choose overlap in 1.0 … 1.3"),
        (
            {"sites": (Site("selected", "", "toy/a.py:f", "INFO"), Site("warned", ">=2.0", "toy/a.py:f", "INFO"))},
            "error: two sites of toy/a.py:f overlap in 2.0 … 2.0",
        ),
        ({"sites": (Site("selected", "", "toy:x y"),)}, "error: source 'toy:x y': write it as path/file.py"),
        ({"sites": (Site("selected", "<1.1"), Site("selected", ">=1.3"))}, "warning: gap: no site covers 1.1 … 1.2"),
        ({"regex": GOOD.regex[1:]}, "warning: not anchored with ^"),
        ({"regex": r"^Using (?P<kernel>\w{3,80})(?= for)[\w ]{1,9} GEMM$"}, "warning: lookaround and backreferences"),
    ],
)
def test_a_fault_is_named(change: dict, message: str):
    assert any(s.startswith(message) for s in said(GOOD._replace(**change))), said(GOOD._replace(**change))


@pytest.mark.parametrize(
    ("regex", "bad"),
    [
        (r"^(?:\w+\s?)+ for NVFP4 GEMM", "a long repeat inside a long repeat"),
        (r"^(?:\w{1,90} ?){1,90} for NVFP4 GEMM", "a long repeat inside a long repeat"),
        (r"^.*.* for NVFP4 GEMM", "two unbounded repeats"),
        (r"^[^\n]*\w+ for NVFP4 GEMM", "two unbounded repeats"),
        (r"^\w+\d* for NVFP4 GEMM", "two unbounded repeats"),
        (r"^(?:Using )?(?P<kernel>(?:\w+,)*\w+) for NVFP4 GEMM", "a long repeat inside a long repeat"),
        (r"^Using \w+ +for NVFP4 GEMM", None),
        (r"^Using [^ ]* for NVFP4 GEMM", None),
        (r"^Using (?:\w{1,20} ?){1,9}for NVFP4 GEMM", None),
        (r"^Using .* for NVFP4 GEMM", None),
    ],
)
def test_regexes_that_could_take_forever(regex: str, bad: str | None):
    found = [s for s in said(GOOD._replace(regex=regex)) if "repeat" in s]
    assert bool(found) == bool(bad)
    assert all(bad in s for s in found if bad)


def test_a_gap_with_a_note_about_it_is_accepted():
    sites = (Site("selected", "<1.1"), Site("selected", ">=1.3"))
    assert said(GOOD._replace(sites=sites, note="No release in the gap prints it: 1.1 to 1.2.")) == []
