from __future__ import annotations

import pytest

from logscan import versions

RELEASES = ("0.9.2", "0.10.0", "0.10.1", "0.10.1.1", "0.10.2", "0.11.0", "0.22.0", "0.22.1", "0.23.0")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("0.32.0", "release"),
        ("0.8.5.post1", "release"),
        ("0.11.0+cu129", "release"),
        ("0.11.0+cpu", "release"),
        ("0.10.2rc1", "dev"),
        ("0.15.2.dev12+gabc12345", "dev"),
        ("0.22.1rc1.dev368+g0afcebd46", "dev"),
        ("0.1.dev123+g1234567", "unknown"),
        ("0.10.1.1+381074ae.nv25.09", "vendor"),
        ("nightly", "unknown"),
    ],
)
def test_kind(text: str, kind: str) -> None:
    assert versions.kind(versions.parse(text)) == kind


@pytest.mark.parametrize(
    ("span", "release", "inside"),
    [
        (">=0.8.5,<0.9", "0.8.5.post1", True),
        ("<0.8.5", "0.8.5rc1", True),
        (">=0.15,<0.17", "0.15.0", True),
        (">=0.15,<0.17", "0.17.0", False),
        (">0.8.5", "0.8.5.post1", True),
        ("==0.11.0", "0.11", True),
        ("", "0.1.0", True),
        ("<=0.11.0", "0.11.0+cu129", True),
    ],
)
def test_ranges_compare_release_numbers(span: str, release: str, inside: bool) -> None:
    assert versions.contains(span, release) is inside


def test_a_bad_range_is_named() -> None:
    with pytest.raises(ValueError, match="0.x"):
        versions.clauses(">=0.x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.10.1", ("0.10.1",)),
        ("0.10.1+cu128", ("0.10.1",)),
        ("0.10.2rc1", ("0.10.1.1", "0.10.2", "0.11.0")),
        # numbered after the last patch release, built from a main branch that becomes the next minor one
        ("0.22.1rc1.dev368+g0afcebd46", ("0.22.0", "0.22.1", "0.23.0")),
        ("0.40.0", ("0.23.0",)),
        ("0.1.0", ("0.9.2",)),
    ],
)
def test_a_build_is_evaluated_at_the_releases_around_it(text: str, expected: tuple[str, ...]) -> None:
    version = versions.parse(text)
    assert version is not None
    found = versions.around(version, RELEASES)
    assert found == expected


def test_covered() -> None:
    inside, outside = versions.parse("0.10.1.dev3"), versions.parse("0.40.0")
    assert inside and outside
    assert versions.covered(inside, RELEASES)
    assert not versions.covered(outside, RELEASES)


def test_an_endless_number_is_no_version() -> None:
    """Python refuses to read more than 4,300 digits."""
    assert versions.parse("1" * 5000) is None
