"""The catalogue: every rule is whole, and severities and verdicts follow their kind."""

import re
import tomllib

import pytest

from logscan import catalogue, tomlcache
from logscan.model import PATHS, SEVERITIES, InputError
from logscan.packs import patterns_dir

RULES = list(catalogue.rules().values())
KINDS = list(catalogue.kinds().values())
CONSEQUENCES = {"compute", "numerics", "memory", "correctness", "feature", "availability", "trust"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_is_whole(rule):
    assert re.fullmatch(r"LS[1-9]\d\d", rule.code)
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", rule.slug)
    assert rule.title and rule.what.endswith((".", ")")) and rule.why.endswith(".")
    assert not rule.title.endswith(".")
    assert rule.severity in SEVERITIES
    assert rule.consequence and set(rule.consequence) <= CONSEQUENCES
    assert set(rule.fix) <= set(catalogue.CAUSES) and "unknown" in rule.fix
    assert all(text.endswith((".", ")")) for text in rule.fix.values())
    assert rule.sources and all(
        re.match(r"(vllm|trtllm|sglang|logscan) \S+\.(py|cpp|cu)(:\S+)?( [<>=!]\S+)?$", s) for s in rule.sources
    )


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.path], ids=lambda rule: rule.code)
def test_code_and_slug_follow_path_and_kind(rule):
    digits = catalogue.kinds()[rule.kind].code if rule.kind else "00"
    assert rule.code == f"LS{PATHS.index(rule.path) + 1}{digits}"
    assert rule.slug == f"{rule.path.replace('_', '-')}-{rule.kind or 'not-served'}"
    assert catalogue.rule_for(rule.path, rule.kind) is rule


def test_codes_and_slugs_are_unique_and_written_in_order():
    with (patterns_dir() / "knowledge" / "rules.toml").open("rb") as file:
        entries = tomllib.load(file)["rule"]
    codes = [entry["code"] for entry in entries]
    assert codes == sorted(set(codes))
    assert len({entry["slug"] for entry in entries}) == len(codes)


def test_every_path_can_be_refused():
    assert [catalogue.rule_for(path).code for path in PATHS] == ["LS100", "LS200", "LS300", "LS400"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", [kind.id for kind in KINDS])
def test_a_pair_without_a_rule_is_an_error(path, kind):
    senseless = {("linear", "unfused"), ("moe", "unfused"), ("kv_cache", "unfused"), ("kv_cache", "weight-only")}
    senseless |= {("linear", "storage-only"), ("moe", "storage-only")}
    if (path, kind) in senseless:
        with pytest.raises(KeyError):
            catalogue.rule_for(path, kind)
    else:
        assert catalogue.rule_for(path, kind).kind == kind


@pytest.mark.parametrize(
    ("kind", "path", "given", "severity"),
    [
        ("weight-only", "linear", {"against": "promise"}, "high"),
        ("weight-only", "linear", {"against": "promise", "cause": "request"}, "info"),
        ("coarser-scales", "linear", {"against": "promise"}, "high"),
        ("coarser-scales", "linear", {"against": "default"}, "medium"),
        ("ignored", "linear", {}, "high"),
        ("ignored", "kv_cache", {}, "medium"),
        ("unfused", "attention", {"against": "default", "reuse": "off"}, "medium"),
        ("unfused", "attention", {"against": "default", "reuse": "unknown"}, "high"),
        ("unfused", "attention", {"against": "default", "reuse": "on"}, "critical"),
        ("unfused", "attention", {"against": "default", "reuse": "on", "cause": "request"}, "info"),
        ("not-honoured", "moe", {"against": "request"}, "medium"),
        ("uncalibrated", "kv_cache", {}, "medium"),
        ("rescaled", "linear", {}, "info"),
        ("storage-only", "kv_cache", {}, "info"),
        ("untuned", "moe", {}, "low"),
    ],
)
def test_severity(kind, path, given, severity):
    assert catalogue.kinds()[kind].severity_for(path, **given) == severity


@pytest.mark.parametrize(
    ("kind", "against", "static", "moves"),
    [
        ("weight-only", "promise", False, True),
        ("emulated", "request", False, True),
        ("fewer-bits", "promise", False, True),
        ("type-changed", "promise", False, True),
        ("coarser-scales", "default", False, True),
        ("ignored", "promise", False, True),
        ("unfused", "default", False, True),
        ("unfused", "promise", False, False),
        ("not-honoured", "request", False, True),
        ("not-honoured", "promise", False, False),
        ("uncalibrated", "promise", True, True),
        ("uncalibrated", "promise", False, False),
        ("rescaled", "promise", False, False),
        ("storage-only", "promise", False, False),
        ("untuned", "promise", False, False),
    ],
)
def test_what_moves_a_verdict(kind, against, static, moves):
    assert catalogue.kinds()[kind].moves_verdict(against, static_scale=static) is moves


def test_boot_failures_are_high_and_other_rules_as_promised():
    for rule in RULES:
        if rule.code.startswith("LS5") or rule.code.endswith("00"):
            assert rule.severity == "high"
    assert catalogue.rule("LS701").severity == "medium"
    assert catalogue.rule("LS602").severity == "low"
    assert catalogue.rule("LS903").severity == "medium"


def test_fix_by_cause():
    rule = catalogue.rule("LS101")
    assert rule.fix_for("hardware") != rule.fix_for("version")
    assert rule.fix_for(None) == rule.fix_for("unknown")
    assert catalogue.rule("LS504").fix_for("hardware") == catalogue.rule("LS504").fix_for("unknown")
    assert catalogue.rule("LS406").fix_for("request").startswith("Drop `--kv-cache-dtype`"), "a rule overrides its kind"


@pytest.mark.parametrize("name", ["LS101", "ls101", "linear-weight-only", "Linear-Weight-Only"])
def test_found_by_code_or_slug(name):
    assert catalogue.rule(name).code == "LS101"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("LS99", "LS902"),
        ("weight-only", "moe-weight-only"),
        ("zzzzzz", "`logscan rules` lists them"),
        ("", "lists them"),
    ],
)
def test_an_unknown_rule_names_the_nearest(name, hint):
    with pytest.raises(InputError, match="no rule ") as error:
        catalogue.rule(name)
    assert hint in str(error.value)
    assert "\n" not in str(error.value)


def test_reasons_and_caveats_are_those_of_the_schema():
    import json
    from importlib.resources import files

    row = json.loads(files("logscan").joinpath("schemas/triage.json").read_text())["$defs"]["row"]["properties"]
    assert list(catalogue.reasons()) == row["reasons"]["items"]["enum"]
    assert list(catalogue.caveats()) == row["caveats"]["items"]["enum"]
    assert all(reason.advice for reason in catalogue.reasons().values())


class TestCache:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path, monkeypatch):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        self.source = tmp_path / "a.toml"
        self.cached = tmp_path / "cache" / "logscan"

    def read(self, text):
        self.source.write_text(text)
        return tomlcache.read(self.source)

    def test_reads_again_what_changed(self):
        assert self.read("x = 1") == {"x": 1}
        assert self.read("x = 1") == {"x": 1}
        assert self.read("x = 2") == {"x": 2}

    def test_is_used(self, monkeypatch):
        self.read("x = 1")
        monkeypatch.setattr(tomllib, "loads", lambda _: pytest.fail("parsed again"))
        assert tomlcache.read(self.source) == {"x": 1}

    @pytest.mark.parametrize("cut", [0, 10, 60, -1])
    def test_damage_is_noticed(self, cut):
        self.read("x = [1, 2, 3]")
        (file,) = self.cached.iterdir()
        file.write_bytes(file.read_bytes()[:cut])
        assert tomlcache.read(self.source) == {"x": [1, 2, 3]}

    def test_a_flipped_byte_is_noticed(self):
        self.read("x = [1, 2, 3]")
        (file,) = self.cached.iterdir()
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(bytes(data))
        assert tomlcache.read(self.source) == {"x": [1, 2, 3]}

    def test_a_home_that_cannot_be_written_costs_time_only(self, tmp_path):
        (tmp_path / "cache").write_text("not a directory")
        assert self.read("x = 1") == {"x": 1}
