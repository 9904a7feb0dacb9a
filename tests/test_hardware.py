"""GPU, toolkit and package names, in the spellings people have at hand."""

import pytest

from logscan import hardware
from logscan.model import InputError


@pytest.mark.parametrize(
    ("text", "platform", "sm", "gfx"),
    [
        ("A100", "cuda", 80, None),
        ("NVIDIA-A100-SXM4-80GB", "cuda", 80, None),
        ("NVIDIA_H100_80GB_HBM3", "cuda", 90, None),
        ("NVIDIA H100 NVL", "cuda", 90, None),
        ("H20", "cuda", 90, None),
        ("H200", "cuda", 90, None),
        ("H800", "cuda", 90, None),
        ("NVIDIA GH200 480GB", "cuda", 90, None),
        ("L40S", "cuda", 89, None),
        ("L4", "cuda", 89, None),
        ("NVIDIA L20", "cuda", 89, None),
        ("rtx4090", "cuda", 89, None),
        ("RTX 4090", "cuda", 89, None),
        ("NVIDIA GeForce RTX 4090 D", "cuda", 89, None),
        ("NVIDIA RTX 6000 Ada Generation", "cuda", 89, None),
        ("NVIDIA RTX A6000", "cuda", 86, None),
        ("A10G", "cuda", 86, None),
        ("NVIDIA GeForce RTX 3090", "cuda", 86, None),
        ("Tesla T4", "cuda", 75, None),
        ("Quadro RTX 6000", "cuda", 75, None),
        ("Tesla V100-SXM2-32GB", "cuda", 70, None),
        ("NVIDIA GB10", "cuda", 121, None),
        ("DGX Spark", "cuda", 121, None),
        ("NVIDIA B200", "cuda", 100, None),
        ("GB200", "cuda", 100, None),
        ("B300", "cuda", 103, None),
        ("NVIDIA GB300", "cuda", 103, None),
        ("NVIDIA GeForce RTX 5090", "cuda", 120, None),
        ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "cuda", 120, None),
        ("NVIDIA Thor", "cuda", 110, None),
        ("sm_89", "cuda", 89, None),
        ("sm89", "cuda", 89, None),
        ("SM 121", "cuda", 121, None),
        ("sm_100a", "cuda", 100, None),
        ("8.9", "cuda", 89, None),
        ("10.3", "cuda", 103, None),
        ("gfx942", "rocm", None, "gfx942"),
        ("gfx942:sramecc+:xnack-", "rocm", None, "gfx942"),
        ("MI300X", "rocm", None, "gfx942"),
        ("AMD Instinct MI355X", "rocm", None, "gfx950"),
        ("MI325", "rocm", None, "gfx942"),
        ("cpu", "cpu", None, None),
        ("xpu", "xpu", None, None),
        ("tpu", "tpu", None, None),
    ],
)
def test_a_gpu_in_any_spelling(text: str, platform: str, sm: int | None, gfx: str | None) -> None:
    found = hardware.gpu(text)
    assert (found.platform, found.sm, found.gfx) == (platform, sm, gfx)


def test_an_unknown_gpu_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown GPU 'H1000'; nearest known: .*H100"):
        hardware.gpu("H1000")
    assert hardware.lookup("H1000") is None


def test_a_number_that_is_no_capability_is_unknown() -> None:
    with pytest.raises(InputError):
        hardware.gpu("sm_99")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12.4", (12, 4)),
        ("12.4.1", (12, 4)),
        ("cu124", (12, 4)),
        ("cu130", (13, 0)),
        ("0.19.0+cu129", (12, 9)),
        ("CUDA 13.0", (13, 0)),
        ("11.8", (11, 8)),
    ],
)
def test_a_toolkit(text: str, expected: tuple[int, int]) -> None:
    assert hardware.cuda(text) == expected


@pytest.mark.parametrize("text", ["", "twelve", "124", "cu", "1.2.x"])
def test_what_is_no_toolkit(text: str) -> None:
    with pytest.raises(InputError, match="CUDA"):
        hardware.cuda(text)


def test_have_is_exact_none_is_none_and_left_out_is_unknown() -> None:
    some = hardware.packages("humming,flashinfer-python")
    assert some["humming"] and some["flashinfer"] and not some["deep_gemm"]
    assert not any(hardware.packages("none").values()) and hardware.packages("none")
    assert hardware.packages(None) == {}
    with pytest.raises(InputError, match="hummingbird"):
        hardware.packages("hummingbird")


def test_a_machine_says_what_was_given_and_what_follows() -> None:
    m = hardware.machine("A100", "12.4", {"VLLM_X": "1"}, ["humming"])
    assert (m.platform, m.sm, m.cuda) == ("cuda", 80, (12, 4))
    assert m.authority == {"gpu": "given", "sm": "derived", "cuda": "given"}
    assert m.packages["humming"] and not m.packages["flashinfer"]
    assert hardware.machine("sm_80").authority["sm"] == "given"


def test_a_machine_of_which_nothing_is_known() -> None:
    m = hardware.machine()
    assert (m.platform, m.sm, m.cuda, dict(m.packages), dict(m.authority)) == (None, None, None, {}, {})
    assert hardware.machine(cuda_version="12.4").platform == "cuda"
    assert hardware.machine("cpu").cuda is None


def test_every_name_can_be_given_in_one_word():
    assert {"A100", "RTX-4090", "MI300X", "cpu"} <= set(hardware.names())
    for name in hardware.names():
        assert " " not in name
        assert hardware.gpu(name) == hardware.gpu(name.replace("-", " ")), name
