"""Texts of a C++ source by its logging macros, and a TensorRT-LLM tree of both languages."""

from __future__ import annotations

from pathlib import Path

import pytest

from logscan.packs.cpp import templates
from logscan.packs.schema import Pack, Pattern, Patterns, Site
from logscan.packs.source import read_source
from logscan.packs.verify import Release, Verifier

SOURCE = r"""
// TLLM_LOG_WARNING("commented out entirely");
namespace tensorrt_llm::common
{
int AttentionOp::initialize() noexcept
{
    TLLM_LOG_WARNING("Fall back to unfused MHA for data_type = %s, head_size = %zu, "
                     "layout = %" PRIu64 " in sm_%d.", name(a, "x").c_str(), size, layout, mSM);
    TLLM_LOG_WARNING(fmtstr("Unsupported head %d", size));
    TLLM_LOG_INFO("Type " + std::to_string(type) + " is on");
    TLLM_CHECK_WITH_INFO(isOk(a, b), "KV cache data type %s is not \"%s\"", a, b);
    TLLM_THROW("no kernel for sm_%d", mSM);
    std::string note = "a bare string of the source";
    char c = '"'; /* "a comment of some length" */
    return 0;
}
}
"""


def found(source: str = SOURCE) -> list[tuple[str, str]]:
    return [(t.level, t.text.replace("\0", "{}")) for t in templates(source.encode())]


def test_each_macro_says_its_text_at_its_level() -> None:
    assert found() == [
        ("WARNING", "Fall back to unfused MHA for data_type = {}, head_size = {}, layout = {} in sm_{}."),
        ("WARNING", "Unsupported head {}"),
        ("INFO", "Type {} is on"),
        ("assert", 'KV cache data type {} is not "{}"'),
        ("assert", '{}Assertion failed: KV cache data type {} is not "{}"{}'),
        ("raise", "no kernel for sm_{}"),
        ("text", "a bare string of the source"),
    ]


def test_the_method_and_the_line_are_told() -> None:
    first = templates(SOURCE.encode())[0]
    assert (first.function, first.line) == ("AttentionOp::initialize", 7)


@pytest.mark.parametrize(
    "source", ["", "TLLM_LOG_WARNING(", 'TLLM_LOG_WARNING("', '"' * 999, "TLLM_LOG_INFO(((((" * 99]
)
def test_a_damaged_file_says_nothing(source: str) -> None:
    assert found(source) == []


CPP = Pattern(
    id="trtllm.fmha.toy",
    regex=r"^Fall back to unfused MHA because of (?P<reason>\w{1,80}) in sm_(?P<sm>\d{2,3})\.$",
    literals=("Fall back to unfused MHA because of ",),
    emits="attention.unfused",
    match=("Fall back to unfused MHA because of alibi in sm_75.",),
    sites=(Site("warned", ">=1.0", "cpp/tensorrt_llm/common/attentionOp.cpp:AttentionOp::initialize", "WARNING"),),
    where="trtllm/toy.toml:1",
)
PYTHON = CPP._replace(
    id="trtllm.kv.toy",
    regex=r"^Disabling block reuse for (?P<backend>\w{1,40}) backend$",
    literals=("Disabling block reuse for ",),
    match=("Disabling block reuse for FLASHINFER backend",),
    sites=(Site("warned", ">=1.0", "tensorrt_llm/_torch/creator.py:create", "WARNING"),),
)
IN_CPP = """int AttentionOp::initialize()
{
    TLLM_LOG_WARNING("Fall back to unfused MHA because of %s in sm_%d.", r, s);
}
"""
IN_PYTHON = 'def create(name):\n    logger.warning(f"Disabling block reuse for {name} backend")\n'


def verify(root: Path, files: dict[str, str]) -> Release:
    """The findings of both patterns against a tree of these files, release 1.1.0."""
    for name, text in {
        "tensorrt_llm/__init__.py": "",
        "tensorrt_llm/version.py": '__version__ = "1.1.0"\n',
        **files,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    pack = Pack("trtllm", "trtllm", "2026.1.0", "sha256:0", ("1.0.0", "1.1.0"), Patterns.of([CPP, PYTHON]))
    return Verifier(pack).release(read_source(str(root), "trtllm"))


def kinds(release: Release) -> list[tuple[str, str]]:
    return [(f.kind, f.pattern) for f in release.findings]


def test_a_tree_of_both_languages_is_proven(tmp_path: Path) -> None:
    release = verify(
        tmp_path,
        {"cpp/tensorrt_llm/common/attentionOp.cpp": IN_CPP, "tensorrt_llm/_torch/creator.py": IN_PYTHON},
    )
    assert release.version == "1.1.0"
    assert kinds(release) == [("proven", "trtllm.fmha.toy"), ("proven", "trtllm.kv.toy")]


def test_what_the_cpp_no_longer_says_is_stale(tmp_path: Path) -> None:
    files = {"cpp/tensorrt_llm/common/attentionOp.cpp": IN_CPP.replace("because of", "since")}
    assert kinds(verify(tmp_path, {**files, "tensorrt_llm/_torch/creator.py": IN_PYTHON}))[0] == (
        "stale",
        "trtllm.fmha.toy",
    )


def test_what_moved_or_changed_its_level_is_told(tmp_path: Path) -> None:
    files = {"cpp/tensorrt_llm/kernels/other.cu": IN_CPP.replace("LOG_WARNING", "LOG_INFO")}
    release = verify(tmp_path, {**files, "tensorrt_llm/_torch/creator.py": IN_PYTHON})
    assert ("moved", "trtllm.fmha.toy") in kinds(release)


def test_without_cpp_in_the_source_its_patterns_are_not_missed(tmp_path: Path) -> None:
    assert kinds(verify(tmp_path, {"tensorrt_llm/_torch/creator.py": IN_PYTHON})) == [("proven", "trtllm.kv.toy")]
