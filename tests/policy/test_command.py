"""The policy through the command: exit codes, discovery, waivers, a baseline; errors at their file and line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

Run = Callable[..., tuple[int, dict[str, Any], str]]
Codes = Callable[[dict[str, Any]], dict[str, str | None]]
SCHEMA = json.loads((Path(__file__).parents[2] / "logscan" / "schemas" / "triage.json").read_text())
WAIVER = '[[waiver]]\ncode = "LS101"\nreason = "old cards"\nexpires = 2999-12-31\n'
EXPIRED = WAIVER.replace("2999", "2020")


def test_without_a_policy(run: Run, codes_of: Codes) -> None:
    code, doc, _ = run()
    assert (code, doc["worst"], codes_of(doc)) == (1, "high", {"LS101": None})


class TestRequire:
    def test_what_holds_changes_nothing(self, run: Run, codes_of: Codes) -> None:
        code, doc, _ = run("--require", "attention.backend~=FLASH", "--fail-on", "critical")
        assert (code, codes_of(doc)) == (0, {"LS101": None})

    @pytest.mark.parametrize(("fail_on", "expected"), [("info", 1), ("high", 1), ("critical", 1), ("never", 0)])
    def test_what_does_not_fails_at_every_threshold_but_never(self, run: Run, fail_on: str, expected: int) -> None:
        code, doc, _ = run("--require", "linear.kernel~=Cutlass", "--fail-on", fail_on, "--ignore", "LS101")
        assert code == expected
        Draft202012Validator(SCHEMA).validate(doc)

    def test_several(self, run: Run) -> None:
        _, doc, _ = run("--require", "linear.kernel~=A", "--require", "moe.backend~=B")
        assert [f["code"] for f in doc["logs"][0]["boots"][0]["findings"]] == ["LS101", "LS801", "LS801"]

    def test_select_does_not_lose_it(self, run: Run, codes_of: Codes) -> None:
        code, doc, _ = run("--require", "linear.kernel~=A", "--select", "LS3")
        assert (code, set(codes_of(doc))) == (1, {"LS801"})

    def test_only_boots_that_count(self, run: Run, here: Path) -> None:
        log = (here / "boot.log").read_text()
        later = (
            log.replace("pid=7)", "pid=9)")
            .replace("pid=142)", "pid=999)")
            .replace("FLASH_ATTN attention", "TRITON_ATTN attention")
        )
        (here / "boot.log").write_text(log + later)
        for boots, found in (("last", [0, 1]), ("all", [0, 1])):
            _, doc, _ = run("--require", "attention.backend~=FLASH", "--boots", boots)
            counted = [[f["code"] for f in b["findings"]].count("LS801") for b in doc["logs"][0]["boots"]]
            assert counted == found
        _, doc, _ = run("--require", "attention.backend~=TRITON")
        assert [[f["code"] for f in b["findings"]].count("LS801") for b in doc["logs"][0]["boots"]] == [0, 0]
        _, doc, _ = run("--require", "attention.backend~=TRITON", "--boots", "all")
        assert [[f["code"] for f in b["findings"]].count("LS801") for b in doc["logs"][0]["boots"]] == [1, 0]

    def test_a_bad_one_is_exit_2(self, run: Run) -> None:
        code, doc, err = run("--require", "Cutlass")
        assert (code, doc) == (2, {})
        assert err == "logscan: --require: 'Cutlass' is not FACT~=REGEX; write for example 'linear.kernel~=Cutlass'\n"


class TestWaivers:
    def test_a_waiver_holds_until_its_day(self, run: Run, here: Path, codes_of: Codes) -> None:
        (here / "w.toml").write_text(WAIVER)
        code, doc, _ = run("--waivers", "w.toml")
        assert (code, doc["worst"], doc["verdict"]) == (0, None, "downgraded")
        assert codes_of(doc) == {"LS101": "old cards (until 2999-12-31)"}
        Draft202012Validator(SCHEMA).validate(doc)

    def test_an_expired_one_fails(self, run: Run, here: Path, codes_of: Codes) -> None:
        (here / "w.toml").write_text(EXPIRED)
        for threshold in ("high", "critical"):
            code, doc, _ = run("--waivers", "w.toml", "--fail-on", threshold)
            assert (code, codes_of(doc)) == (1, {"LS101": None, "LS803": None})
        message = doc["logs"][0]["boots"][0]["findings"][1]["message"]
        assert message == "w.toml:1: the waiver of LS101 expired on 2020-12-31: old cards"

    def test_a_valid_one_beside_an_expired_one_counts(self, run: Run, here: Path, codes_of: Codes) -> None:
        (here / "w.toml").write_text(EXPIRED + WAIVER)
        code, doc, _ = run("--waivers", "w.toml")
        assert (code, set(codes_of(doc))) == (0, {"LS101"})

    def test_an_expired_one_that_fits_nothing_is_none_of_this_boot(self, run: Run, here: Path, codes_of: Codes) -> None:
        (here / "w.toml").write_text(EXPIRED.replace("LS101", "LS201") + WAIVER)
        code, doc, err = run("--waivers", "w.toml")
        assert (code, set(codes_of(doc))) == (0, {"LS101"})
        assert err == "logscan: w.toml:1: this waiver expired on 2020-12-31 and waives nothing here; remove it\n"
        assert run("--waivers", "w.toml", "--quiet")[2] == ""

    @pytest.mark.parametrize(
        ("line", "fits"),
        [
            ('path = "linear"', True),
            ('path = "moe"', False),
            ('group = "group_0"', True),
            ('group = "group_1"', False),
            ('model = "*/llama-3.1-*"', True),
            ('model = "org/*"', False),
        ],
    )
    def test_it_fits_by_all_that_it_names(self, run: Run, here: Path, line: str, fits: bool) -> None:
        (here / "w.toml").write_text(WAIVER + line + "\n")
        assert run("--waivers", "w.toml")[0] == (0 if fits else 1)

    def test_by_slug_and_by_fingerprint(self, run: Run, here: Path) -> None:
        (here / "w.toml").write_text(WAIVER.replace("LS101", "linear-weight-only"))
        assert run("--waivers", "w.toml")[0] == 0
        mark = run()[1]["logs"][0]["boots"][0]["findings"][0]["fingerprint"]
        (here / "w.toml").write_text(WAIVER.replace('code = "LS101"', f'fingerprint = "{mark}"'))
        assert run("--waivers", "w.toml")[0] == 0
        (here / "w.toml").write_text(WAIVER.replace('code = "LS101"', 'fingerprint = "0123456789abcdef"'))
        assert run("--waivers", "w.toml")[0] == 1

    def test_a_requirement_can_be_waived_too(self, run: Run, here: Path) -> None:
        (here / "w.toml").write_text(WAIVER + WAIVER.replace("LS101", "LS801"))
        assert run("--waivers", "w.toml", "--require", "linear.kernel~=A")[0] == 0

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (WAIVER.replace("LS101", "LS199"), "w.toml:2: no rule 'LS199'; did you mean"),
            (WAIVER + 'severity = "low"\n', "w.toml:5: unknown key 'severity'; known: code"),
            (WAIVER + 'paths = "linear"\n', "w.toml:5: unknown key 'paths'; did you mean 'path'?"),
            (WAIVER + 'path = "kv"\n', "w.toml:5: path must be one of linear, moe"),
            (WAIVER.replace("2999-12-31", '"soon"'), "w.toml:4: expires must be a day such as 2027-03-31, not 'soon'"),
            (WAIVER.replace('"old cards"', '" "'), "w.toml:3: reason must be a text that is not empty"),
            (WAIVER.replace('reason = "old cards"\n', ""), "w.toml:1: reason is missing"),
            ("\n" + WAIVER.replace("expires = 2999-12-31\n", ""), "w.toml:2: expires is missing"),
            (WAIVER + WAIVER.replace('code = "LS101"\n', ""), "w.toml:5: a waiver names a code"),
            (WAIVER.replace("LS101", "LS803"), "w.toml:2: an expired waiver cannot be waived"),
            ('[[waivers]]\ncode = "LS101"\n', "w.toml:1: unknown key 'waivers'; did you mean 'waiver'?"),
            ('[waiver]\ncode = "LS101"\n', "w.toml:1: write [[waiver]]"),
            ('[[waiver]]\ncode = "LS101\n', "w.toml:2: not TOML: Illegal character"),
            (WAIVER.replace('code = "LS101"', 'fingerprint = "all"'), "w.toml:2: copy the fingerprint"),
        ],
    )
    def test_errors_have_file_and_line(self, run: Run, here: Path, text: str, message: str) -> None:
        (here / "w.toml").write_text(text)
        code, doc, err = run("--waivers", "w.toml")
        assert (code, doc) == (2, {})
        assert err.startswith(f"logscan: {message}") and err.count("\n") == 1

    def test_no_such_file_and_no_text(self, run: Run, here: Path) -> None:
        assert run("--waivers", "none.toml")[2] == "logscan: none.toml: cannot be read: No such file or directory\n"
        (here / "w.toml").write_bytes(b"# \n\xff\n")
        assert run("--waivers", "w.toml")[2] == "logscan: w.toml:2: not UTF-8 text\n"


class TestBaseline:
    def test_known_findings_do_not_fail(self, run: Run, here: Path, codes_of: Codes) -> None:
        (here / "b.json").write_text(json.dumps(run()[1]))
        code, doc, _ = run("--baseline", "b.json")
        assert (code, doc["worst"], codes_of(doc)) == (0, None, {"LS101": "known: baseline b.json"})

    def test_new_ones_do(self, run: Run, here: Path) -> None:
        known = run()[1]
        known["logs"][0]["boots"][0]["findings"][0]["fingerprint"] = "another"
        (here / "b.json").write_text(json.dumps(known))
        assert run("--baseline", "b.json")[0] == 1

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{\n,", "b.json:2: not JSON"),
            ("[]", "b.json: not a document of triage"),
            ('{"schema": "logscan.rules/1", "logs": []}', "b.json: not a document of triage"),
            ('{"schema": "logscan.triage/1", "logs": [{}]}', "b.json: not a document of triage"),
        ],
    )
    def test_errors(self, run: Run, here: Path, text: str, message: str) -> None:
        (here / "b.json").write_text(text)
        code, _, err = run("--baseline", "b.json")
        assert code == 2 and err.startswith(f"logscan: {message}") and "-o baseline.json" in err
        assert run("--baseline", "none.json")[0] == 2


class TestFile:
    def test_it_is_found_upward_and_the_nearest_counts(self, run: Run, here: Path, monkeypatch: Any) -> None:
        log, config = str(here / "boot.log"), str(here / "config.json")
        below = here / "a" / "b"
        below.mkdir(parents=True)
        (here / "logscan.toml").write_text('required = ["linear.kernel~=A"]\n')
        monkeypatch.chdir(below)
        from typer.testing import CliRunner

        from logscan.cli import commands

        def code(*more: str) -> int:
            command = ["triage", log, "--ckpt", config, "--gpu", "A100", "--fail-on", "critical", *more]
            return CliRunner().invoke(commands.app, command).exit_code

        assert (code(), code("--isolated")) == (1, 0)
        (here / "a" / "logscan.toml").write_text("")
        assert code() == 0
        assert code("--config", str(here / "logscan.toml")) == 1

    def test_forbidden(self, run: Run, here: Path, codes_of: Codes) -> None:
        (here / "logscan.toml").write_text('forbidden = ["attention.backend~=FLASH"]\n')
        assert set(codes_of(run()[1])) == {"LS101", "LS802"}

    @pytest.mark.parametrize(
        ("table", "arguments", "code"),
        [
            ('default = "critical"', (), 0),
            ('default = "critical"', ("--fail-on", "high"), 1),
            ('LS101 = "never"', (), 0),
            ('linear-weight-only = "never"', (), 0),
            ('LS1 = "never"', (), 0),
            ('LS1 = "never"\nLS101 = "high"', (), 1),
            ('default = "critical"\nLS101 = "info"', (), 1),
            ('LS101 = "info"', ("--fail-on", "never"), 0),
            ('LS2 = "never"', (), 1),
        ],
    )
    def test_thresholds_by_rule(self, run: Run, here: Path, table: str, arguments: tuple[str, ...], code: int) -> None:
        (here / "logscan.toml").write_text(f"[fail-on]\n{table}\n")
        assert run(*arguments)[0] == code

    def test_junit_fails_where_the_exit_code_does(self, run: Run, here: Path) -> None:
        from typer.testing import CliRunner

        from logscan.cli import commands

        command = ["triage", "boot.log", "--ckpt", "config.json", "--gpu", "A100", "--format", "junit"]
        assert 'failures="1"' in CliRunner().invoke(commands.app, command).stdout
        (here / "logscan.toml").write_text('[fail-on]\nLS101 = "never"\n')
        assert 'failures="0"' in CliRunner().invoke(commands.app, command).stdout

    def test_waivers_and_baseline_lie_beside_it(self, run: Run, here: Path, codes_of: Codes, monkeypatch: Any) -> None:
        known = run("--isolated")[1]
        (here / "policy").mkdir()
        (here / "policy" / "w.toml").write_text(WAIVER)
        (here / "policy" / "logscan.toml").write_text('waivers = "w.toml"\n')
        assert run("--config", "policy/logscan.toml")[0] == 0
        (here / "policy" / "b.json").write_text(json.dumps(known))
        (here / "policy" / "logscan.toml").write_text('baseline = "b.json"\n' + WAIVER.replace("LS101", "LS201"))
        code, doc, _ = run("--config", "policy/logscan.toml")
        assert (code, codes_of(doc)) == (0, {"LS101": "known: baseline policy/b.json"})

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('require = ["a.b~=c"]\n', "logscan.toml:1: unknown key 'require'; did you mean 'required'?"),
            ("\n[failon]\n", "logscan.toml:2: unknown key 'failon'; did you mean 'fail-on'?"),
            ('required = "a.b~=c"\n', "logscan.toml:1: required must be a list of texts"),
            ('required = [\n  "a.b~=c",\n  "nonsense",\n]\n', "logscan.toml:3: 'nonsense' is not FACT~=REGEX"),
            ('forbidden = ["a.b~=("]\n', "logscan.toml:1: '(' is not a regular expression"),
            ('[fail-on]\ndefault = "severe"\n', "logscan.toml:2: 'severe' is no severity"),
            ('[fail-on]\nLS1 = "low"\nLS888 = "low"\n', "logscan.toml:3: no rule 'LS888'"),
            ('fail-on = "high"\n', "logscan.toml:1: write a table: [fail-on]"),
            ('waivers = "none.toml"\n', "logscan.toml:1: "),
            ("waivers = 3\n", "logscan.toml:1: waivers must be a file's name"),
            ("x = ", "logscan.toml:1: not TOML"),
        ],
    )
    def test_errors_have_file_and_line(self, run: Run, here: Path, text: str, message: str) -> None:
        (here / "logscan.toml").write_text(text)
        code, doc, err = run("--config", "logscan.toml")
        assert (code, doc) == (2, {})
        assert err.startswith(f"logscan: {message}") and err.count("\n") == 1


def test_no_policy_costs_nothing(here: Path) -> None:
    import subprocess
    import sys

    loaded = "import sys, logscan.policy as p; p.apply(p.gather(), [], []); print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout.split()
    assert {"tomllib", "datetime", "logscan.policy.require", "logscan.catalogue"}.isdisjoint(modules)
