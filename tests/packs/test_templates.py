"""Texts that a Python source can print, by its syntax tree."""

from __future__ import annotations

import textwrap

import pytest

from logscan.packs.templates import HOLE, templates


def said(source: str) -> list[tuple[str, str]]:
    """(level, text with `{}` for holes) of everything but bare strings."""
    found = templates(textwrap.dedent(source).encode())
    return [(t.level, t.text.replace(HOLE, "{}")) for t in found if t.level != "text"]


@pytest.mark.parametrize(
    ("source", "level", "text"),
    [
        ('logger.info("Using %s for %d layers", a, b)', "INFO", "Using {} for {} layers"),
        ('logger.info("100% of it")', "INFO", "100% of it"),
        ('logger.warning_once("Took %.2f of 100%%", x)', "WARNING", "Took {} of 100%"),
        ('logger.info_once(f"Using {kernel!r} for {x:.2f}", scope="local")', "INFO", "Using {} for {}"),
        ('self.logger.debug("a" "b" + name)', "DEBUG", "ab{}"),
        ('logger.exception("it died")', "ERROR", "it died"),
        ('logger.log(lvl, "at %s", x)', "INFO", "at {}"),
        ('print_warning_once("old style")', "WARNING", "old style"),
        ('print("Collecting")', "print", "Collecting"),
        ('logger.info("The {} of {{x}}".format(a))', "INFO", "The {} of {x}"),
        ('logger.info("%s of it" % a)', "INFO", "{} of it"),
        ('raise ValueError(f"{q} is not supported.")', "raise", "{} is not supported."),
        ('assert ok, "NVFP4 needs it"', "assert", "NVFP4 needs it"),
        ('logger.info("a" if x else "b")', "INFO", "b"),
    ],
)
def test_what_speaks_is_read_with_its_level(source: str, level: str, text: str):
    assert (level, text) in said(source)


def test_a_variable_is_followed_to_its_constants():
    source = """
    PREFIX = "Module-wide "
    def f(a):
        msg = "one"
        if a:
            msg = f"two {a}"
        msg += " more"
        logger.warning(PREFIX + msg)
    """
    assert {
        ("WARNING", "Module-wide one"),
        ("WARNING", "Module-wide two {}"),
        ("WARNING", "Module-wide one more"),
        ("WARNING", "Module-wide two {} more"),
    } <= set(said(source))


def test_a_function_is_followed_to_what_it_returns():
    source = """
    def choose(b):
        def _log(backend):
            return f"Using {backend} Fp8 MoE backend."
        logger.info_once(_log(b))
    """
    assert said(source) == [("INFO", "Using {} Fp8 MoE backend.")]


def test_several_arguments_of_an_error_are_shown_as_a_tuple():
    found = said('raise RuntimeError("Not supported for ", f"this GPU {x}.")')
    assert ("raise", "('Not supported for ', 'this GPU {}.')") in found


def test_where_it_is_said():
    source = """
    class A:
        def f(self):
            def g():
                log.info('in here now')
            log.info('and here')
    """
    assert {(t.text, t.function, t.line - 1) for t in templates(textwrap.dedent(source).encode())} == {
        ("in here now", "A.f.g", 4),
        ("and here", "A.f", 5),
    }


def test_bare_strings_are_kept_docstrings_and_short_ones_are_not():
    source = '''
    """A docstring of it."""
    def f():
        """Another docstring."""
        return False, "requires %s to be installed"
    x = "short"
    '''
    found = [(t.level, t.text) for t in templates(textwrap.dedent(source).encode())]
    assert found == [("text", f"requires {HOLE} to be installed")]


@pytest.mark.parametrize("source", [b"def (", b"\0", b"\xff\xfe", b"x = " + b"(" * 500 + b")" * 500])
def test_a_file_that_cannot_be_parsed_has_none(source: bytes):
    assert templates(source) == []


def test_alternatives_are_bounded():
    source = "def f():\n" + "".join(f"    m = 'text number {i}'\n" for i in range(99)) + "    logger.info(m + m)\n"
    assert len(said(source)) == 24
