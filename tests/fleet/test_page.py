"""The page: looked at in a browser, clicked, filtered, printed, and with hostile names in it."""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path

import pytest

from logscan.fleet.page import render

HOSTILE = "</script><script>window.owned=1</script><img src=x onerror=window.owned=1>\"'&amp;{{7*7}}\u2028@js@"
AXE = (
    Path(os.environ.get("AXE_CORE", "")),
    Path(__file__).parents[2] / ".venv" / "node_modules" / "axe-core" / "axe.min.js",
)


@pytest.fixture
def page(fleet, audit, tmp_path):
    """The page of the mixed fleet."""
    fleet.mixed()
    target = tmp_path / "report.html"
    code, _, err = audit(fleet.logs, "--inputs", fleet.inputs, "--html", target)
    assert code == 2 and err == ""
    return target


def boots(count=1, **cells):
    """Rows as the store gives them."""
    from logscan.fleet.columns import blank

    record = {
        "path": "linear",
        "group": "g",
        "component": "target",
        "requested": None,
        "promised": "W8A8-FP8",
        "default": None,
    }
    record |= {
        "ran": "W8A8-FP8",
        "verdict": "kept",
        "kinds": [],
        "cause": None,
        "visibility": None,
        "authority": "logged",
    }
    record |= {
        "kernels": [{"name": "Kernel", "authority": "logged"}],
        "reasons": [],
        "caveats": [],
        "refusal": None,
        "against": "promise",
        "extent": None,
    }
    rows = []
    for i in range(count):
        line = {"line": i + 1, "role": "supports", "means": "selected", "pattern": "p", "text": "Selected Kernel"}
        row = blank(f"k{i}", f"logs/pod-{i:05}.log", "boot") | {"boot": 1, "verdict": "kept", "status": "ready"}
        row |= {
            "model": f"org/model-{i % 7}",
            "gpu": "H100",
            "engine": "vllm",
            "version": "0.24.0",
            "first": 1,
            "last": 9,
        }
        rows.append(row | {"paths": [record | {"evidence": [line]}]} | cells)
    return rows


def document(rows, **more):
    """The summary that goes with them."""
    verdicts = {"kept": len(rows)}
    matrix = [{"model": "org/model", "gpu": "H100", "engine": "vllm", "version": "1", "boots": 1, "verdicts": verdicts}]
    totals = {"logs": len(rows), "boots": len(rows), "counted": len(rows), "errors": 0, "nothing": 0}
    totals |= {"verdicts": verdicts, "statuses": {}}
    return {
        "schema": "logscan.audit/1", "tool": {"version": "1", "packs": []}, "verdict": "kept", "worst": None,
        "audit": {"id": "a", "finished": "2026-11-29T12:00:00Z"}, "totals": totals,
        "matrix": matrix, "findings": [], "outliers": [], "unjoined": [], "errors": [], "nothing": [], "trend": [],
    } | more  # fmt: skip


def text_of(browser, selector):
    return browser.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent)")


def test_nothing_is_loaded_from_anywhere(page):
    html = page.read_text()
    assert not re.search(r"""(?:src|href)=["'](?!#)""", html)
    assert "url(" not in html and "@import" not in html and 'http-equiv="Content-Security-Policy"' in html


def test_the_policy_names_the_hashes_of_what_stands_in_the_page(page):
    from hashlib import sha256

    html = page.read_text()
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.S)
    (style,) = re.findall(r"<style>(.*?)</style>", html, re.S)
    for text in (script, style):
        assert base64.b64encode(sha256(text.encode()).digest()).decode() in html


def test_ten_thousand_boots_of_one_deployment_are_a_few_megabytes():
    rows = boots(10_000)
    html = render(document(rows), rows)
    assert len(html) < 2_000_000
    data = json.loads(re.search(r'id="data">(.*?)</script>', html, re.S)[1])
    assert len(data["boots"]) == 10_000 and len(data["records"]) == 1


def test_it_tells_what_the_audit_found(browser, page):
    browser.open(page)
    assert "1 downgraded" in text_of(browser, "#headline")[0] and "1 not readable" in text_of(browser, "#headline")[0]
    assert text_of(browser, "#matrix thead th") == ["Model", "A100", "H100"]
    assert any(rule.startswith("LS101") for rule in text_of(browser, "#findings .link"))
    assert any("FlashInfer" in row for row in text_of(browser, "#outliers tbody tr"))
    assert text_of(browser, "#count") == ["12 of 12 boots"]
    verdicts = text_of(browser, "#table .boot td:nth-child(2)")
    assert verdicts[:3] == ["error", "nothing", "✗ downgraded"] and verdicts[-1] == "✓ kept"


def test_click_filter_sort_and_drill_down(browser, page):
    browser.open(page)
    browser.run("document.querySelector('[data-verdict=downgraded]').click()")
    assert text_of(browser, "#count") == ["1 of 12 boots"]
    assert browser.run("document.querySelector('[data-verdict=downgraded]').getAttribute('aria-pressed')") == "true"
    browser.run("document.querySelector('#table .open').click()")
    (detail,) = text_of(browser, "#table .detail")
    assert "W8A16-FP8" in detail and "line 3" in detail and "Your GPU does not have native support" in detail
    browser.run("document.querySelector('#table .open').click()")
    assert text_of(browser, "#table .detail") == []
    browser.run("document.getElementById('clear').click()")
    browser.run("new Promise(done => setTimeout(done, 20))")
    assert text_of(browser, "#count") == ["12 of 12 boots"]
    browser.run("document.querySelector('#table [data-sort=log] button').click()")
    logs = text_of(browser, "#table .mono")
    assert logs == sorted(logs)
    browser.run("document.querySelector('#table [data-sort=log] button').click()")
    assert text_of(browser, "#table .mono") == logs[::-1]
    assert browser.run("document.querySelector('#table [data-sort=log]').getAttribute('aria-sort')") == "descending"


def test_the_matrix_and_the_rules_filter(browser, page):
    browser.open(page)
    browser.run("document.querySelector('#matrix .cell').click()")
    assert text_of(browser, "#count") == ["1 of 12 boots"]
    browser.run(
        "[...document.querySelectorAll('#findings .link')].find(e => e.textContent.startsWith('LS101')).click()"
    )
    assert text_of(browser, "#count") == ["1 of 12 boots"]


def test_by_keyboard_alone(browser, page):
    browser.open(page)
    browser.press("/")
    assert browser.run("document.activeElement.id") == "q"
    for key in "slow":
        browser.press(key)
    assert text_of(browser, "#count") == ["1 of 12 boots"]
    browser.run("document.querySelector('#table .open').focus()")
    browser.press("Enter")
    assert len(text_of(browser, "#table .detail")) == 1


def test_hostile_names_are_only_text(browser, tmp_path):
    cells = {"log": HOSTILE, "model": HOSTILE, "gpu": HOSTILE, "error": HOSTILE, "source": HOSTILE}
    rows = boots(3, **cells)
    errors = len(browser.errors)
    target = tmp_path / "hostile.html"
    matrix = [
        {"model": HOSTILE, "gpu": HOSTILE, "engine": HOSTILE, "version": HOSTILE, "boots": 1, "verdicts": {"kept": 1}}
    ]
    target.write_text(
        render(document(rows, matrix=matrix, unjoined=[{"model": HOSTILE, "why": HOSTILE, "boots": 1}]), rows)
    )
    browser.open(target)
    browser.run("document.querySelector('#table .open').click()")
    assert browser.run("window.owned") is None
    assert browser.run("document.querySelectorAll('img, script:not([type])').length") == 1
    assert text_of(browser, "#matrix tbody th") == [HOSTILE]
    assert browser.errors[errors:] == []


def test_ten_thousand_boots_stay_usable(browser, tmp_path):
    rows = boots(10_000)
    target = tmp_path / "large.html"
    target.write_text(render(document(rows), rows))
    browser.open(target)
    assert len(text_of(browser, "#table .boot")) == 100
    took = browser.run(
        "(() => { const start = performance.now(); const q = document.getElementById('q'); q.value = 'pod-0999';"
        "q.dispatchEvent(new Event('input', {bubbles: true})); return performance.now() - start; })()"
    )
    assert text_of(browser, "#count") == ["10 of 10,000 boots"]
    assert took < 1000
    browser.run("document.getElementById('clear').click()")
    browser.run("new Promise(done => setTimeout(done, 50))")
    browser.run("document.getElementById('next').click()")
    assert text_of(browser, "#where") == ["Page 2 of 100"]
    assert text_of(browser, "#table .mono")[0] == "logs/pod-00100.log"


def test_paper_has_no_pages_to_turn(browser, tmp_path):
    rows = boots(150)
    target = tmp_path / "print.html"
    target.write_text(render(document(rows), rows))
    browser.open(target)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert len(text_of(browser, "#table .boot")) == 150
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert len(text_of(browser, "#table .boot")) == 100
    assert len(base64.b64decode(browser.send("Page.printToPDF")["data"])) > 10_000


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_it_is_drawn_without_an_error_and_nothing_sticks_out(browser, page, width, dark):
    browser.requests.clear()
    browser.errors.clear()
    browser.open(page, width, dark=dark)
    browser.run("document.querySelectorAll('#table .open')[2].click()")
    shot = base64.b64decode(browser.send("Page.captureScreenshot", captureBeyondViewport=True)["data"])
    assert shot.startswith(b"\x89PNG") and len(shot) > 20_000
    if folder := os.environ.get("SCREENSHOTS"):
        Path(folder, f"audit-{width}-{'dark' if dark else 'light'}.png").write_bytes(shot)
    assert browser.run("document.documentElement.scrollWidth") <= width
    ground = browser.run("getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 28)" if dark else "rgb(255, 255, 255)")
    assert browser.errors == []
    assert [url for url in browser.requests if not url.startswith("file:")] == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_axe_finds_nothing(browser, page, width, dark):
    script = next((path for path in AXE if path.is_file()), None)
    if script is None:
        pytest.skip("axe-core is not installed (npm install --prefix .venv axe-core)")
    browser.send("Page.setBypassCSP", enabled=True)
    browser.open(page, width, dark=dark)
    browser.run("document.querySelectorAll('#table .open')[2].click()")
    browser.run(script.read_text() + ";1")
    found = browser.run("axe.run().then(r => r.violations.map(v => [v.id, v.nodes.map(n => n.html.slice(0, 200))]))")
    browser.send("Page.setBypassCSP", enabled=False)
    assert found == []
