"""Secrets stay in the log; nothing that steers a terminal leaves it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logscan.redact import masked, printable, redact

KEY = "AbCdEfGhIjKlMnOpQrStUvWx0123456789"


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (f"token hf_{KEY} used", "token [redacted] used"),
        (f"-e NGC_API_KEY=nvapi-{KEY}_-x -v /a", "-e NGC_API_KEY=[redacted] -v /a"),
        (f"sk-proj-{KEY}", "[redacted]"),
        (f"ghp_{KEY} github_pat_{KEY} glpat-{KEY}", "[redacted] [redacted] [redacted]"),
        ("AKIAIOSFODNN7EXAMPLE", "[redacted]"),
        (f"Authorization: Bearer {KEY}", "Authorization: Bearer [redacted]"),
        ("https://user:pa55@host/x and http://tok@host", "https://[redacted]@host/x and http://[redacted]@host"),
        ("GET /x?token=abc&y=1 HTTP/1.1", "GET /x?token=[redacted]&y=1 HTTP/1.1"),
        ("https://b.s3/k?X-Amz-Signature=abc123&X=1", "https://b.s3/k?X-Amz-Signature=[redacted]&X=1"),
        (
            "non-default args: {'api_key': 'hunter22', 'port': 1}",
            "non-default args: {'api_key': '[redacted]', 'port': 1}",
        ),
        ("args: Namespace(api_key='hunter22', port=1)", "args: Namespace(api_key='[redacted]', port=1)"),
        ("{'api_key': ['one-secret', 'two'], 'port': 1}", "{'api_key': [[redacted]], 'port': 1}"),
        ("--api-key hunter22secret --port 1", "--api-key [redacted] --port 1"),
        ("VLLM_API_KEY=hunter22secret x", "VLLM_API_KEY=[redacted] x"),
        ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = [redacted]"),
        ('"password": "pa55 word"', '"password": "[redacted]"'),
        (f"-----BEGIN RSA PRIVATE KEY-----{KEY}", "[redacted]"),
        (f"eyJhbGciOiJIUzI1NiJ9.{KEY}.{KEY}", "[redacted]"),
    ],
)
def test_secrets_are_masked(text: str, want: str) -> None:
    assert redact(text) == want
    assert redact(want) == want


@pytest.mark.parametrize(
    "text",
    [
        "api_key=None, hf_token=None, token: null",
        "GPU KV cache size: 110,400 tokens",
        "Avg generation throughput: 3.1 tokens/s, max_num_batched_tokens=8192",
        "num_speculative_tokens=2, eos_token_id=151645, bos_token='<s>', pad_token_id: 5",
        "tokenizer='org/model', tokenizer_mode=auto, tokenizer_revision=None, skip_tokenizer_init=False",
        "model='org/model', dtype=torch.bfloat16, quantization=fp8, kv_cache_dtype=auto",
        "Selected MarlinFP8ScaledMMLinearKernel for Fp8LinearMethod",
        "keys: k_scale, v_scale; key=value",
        "token budget exceeded",
        "hf_config=x, hf_overrides={}, task-sk-learn",
        "http://0.0.0.0:8000/docs",
        "tcp://127.0.0.1:49575 backend=nccl",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("plain text\twith tab", "plain text\twith tab"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07x \x1b]8;;http://e\x1b\\y", "x y"),
        ("a\nb\rc\x0bd\u2028e", "a b c d e"),
        ("a\x00\x08\x7f\x9b31mb", "a31mb"),
        ("user\u202egpj.exe \u2066x\u2069 \u200bz\ufeff", "usergpj.exe x z"),
        ("▄█ version é 中", "▄█ version é 中"),
        ("lone \ud800 surrogate", "lone  surrogate"),
        ("\U000e0041tag", "tag"),
        ("", ""),
    ],
)
def test_printable(text: str, want: str) -> None:
    assert printable(text) == want


@given(st.text(st.characters() | st.sampled_from("\x1b[]0m;\x07\u202e\x9b"), max_size=60))
def test_nothing_unprintable_is_left(text: str) -> None:
    out = printable(text)
    assert "\x1b" not in out
    assert not [c for c in out if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c != "\t"]
    assert printable(out) == out


@given(st.text(max_size=200))
def test_redacting_twice_changes_nothing(text: str) -> None:
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "text", ["key" * 100_000, "token=" * 50_000, "a:/" * 100_000 + "@", "sk-" * 100_000, "x_" * 99_999 + "key=1"]
)
def test_redacting_is_linear(text: str) -> None:
    import time

    start = time.process_time()
    redact(text)
    printable(text)
    assert time.process_time() - start < 2


PIECES = """
    hf_ api_org_ nvapi- sk- ghp_ github_pat_ xoxb- AKIA AIza glpat- eyJ .eyJ key keys _id api access auth token tokens
    izer _ - secret password passwd passphrase bearer basic signature sig ? & = : :// @ ' " [ ] ſ ı İ K x/ HF hub ngc
    client ( ) ,
""".split()  # noqa: SIM905
PIECES += [" ", "  ", "\n", "A" * 20, "a1" * 12, "-----BEGIN PRIVATE KEY-----"]


@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join), st.booleans())
@settings(max_examples=2000, deadline=None)
def test_a_text_that_is_passed_over_holds_no_secret(text, upper):
    text = text.upper() if upper else text
    assert redact(text) == masked(text)
