"""The site: it builds without a warning, so that no link is broken, and its generated pages say what `explain` says."""

from __future__ import annotations

import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from logscan import catalogue

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATE = generator()
RULES = list(catalogue.rules().values())


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning of mkdocs (a link, an anchor, a page that the navigation forgets) is an error."""
    pytest.importorskip("material")
    import warnings

    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    out = tmp_path_factory.mktemp("site")
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        warnings.simplefilter("ignore")
        config: Any = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(out))
        config.plugins.on_startup(command="build", dirty=False)
        build(config)
    return out


def test_only_pages_are_in_it(site: Path) -> None:
    """`docs/generate.py` is a hook; that it was imported leaves compiled files beside the pages."""
    assert not [*site.rglob("__pycache__"), *site.rglob("*.py"), *site.rglob("*.pyc")]


class Page(HTMLParser):
    """The links and anchors of a page, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors |= {str(found[key]) for key in ("id", "name") if found.get(key)}
        if tag == "a" and found.get("href"):
            self.links.append(str(found["href"]))
        if tag in ("script", "img", "link") and (found.get("src") or found.get("href")):
            self.loaded.append(str(found.get("src") or found.get("href")))


def test_every_link_of_every_page_leads_somewhere(site: Path) -> None:
    pages = {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > len(RULES)
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchors = pages[target].anchors if target in pages and parts.fragment else None
            if not target.is_file() or anchors is not None and unquote(parts.fragment) not in anchors:
                broken.append((path.relative_to(site), link))
    assert broken == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = {item for path in site.rglob("*.html") for item in Page(path.read_text()).loaded}
    assert {item for item in loaded if urlsplit(item).netloc} == set()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_s_page_says_what_explain_says(rule: catalogue.Rule) -> None:
    page = GENERATE.rule_page(rule)
    plain = re.sub(r"\\([<>&*_\[\]|\\])", r"\1", page)
    for text in (rule.code, rule.slug, rule.title, rule.what, rule.why, *rule.fix.values(), *rule.sources):
        assert text in plain
    assert f"severity **{rule.severity}**" in page


def test_the_index_has_every_rule_once() -> None:
    codes = re.findall(r"\[(LS\d{3})\]\(\1\.md\)", GENERATE.rules_index())
    assert codes == [rule.code for rule in RULES]


def test_every_kind_reason_and_caveat_has_an_anchor() -> None:
    anchors = re.findall(r"\{ #([\w-]+) \}", GENERATE.words())
    assert anchors == [*catalogue.kinds(), *catalogue.reasons(), *catalogue.caveats()]


def test_markup_in_the_catalogue_is_text() -> None:
    assert GENERATE.text("a <b> & `<c>` *d* [e](f) \\") == r"a \<b\> \& `<c>` \*d\* \[e\](f) \\"


def test_commands_are_all_there() -> None:
    headings = re.findall(r"^## (.+) \{", GENERATE.commands(), re.M)
    for command in ("logscan triage", "logscan diff", "logscan expect", "logscan demo", "logscan packs new"):
        assert command in headings
