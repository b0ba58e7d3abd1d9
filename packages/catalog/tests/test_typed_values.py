"""Values of options are parsed once, by the recorded kind: what vLLM's parser reads, or None where it refuses."""

import pytest

from bezel_catalog import vllm_options, vllm_versions
from bezel_catalog.vllm.typed_values import AUTO_LENGTH, integer, real_number, typed_value


def read(name: str, written: object, version: str = vllm_versions()[-1]) -> object:
    match = vllm_options(version).find(f"--{name}")
    assert match
    return typed_value(match[0], written)


@pytest.mark.parametrize("version", vllm_versions())
@pytest.mark.parametrize(
    ("name", "written", "value"),
    [
        ("max-model-len", 32768, 32768),
        ("max-model-len", "16k", 16000),
        ("max-model-len", "16K", 16384),
        ("max-model-len", "auto", AUTO_LENGTH),
        ("max-model-len", "much", None),
        ("max-num-seqs", "8", 8),
        ("max-num-seqs", "8k", None),
        ("max-num-seqs", True, None),
        ("gpu-memory-utilization", "0.9", 0.9),
        ("gpu-memory-utilization", "most", None),
        ("cpu-offload-gb", "2", 2),
        ("enable-lora", True, True),
        ("enable-lora", "maybe", None),
        ("kv-transfer-config", {"kv_role": "kv_both"}, {"kv_role": "kv_both"}),
        ("kv-transfer-config", "kv_both", None),
        ("cudagraph-capture-sizes", ["1", 2], [1, 2]),
        ("cudagraph-capture-sizes", [1, "x"], None),
        ("served-model-name", ["a", "b"], ["a", "b"]),
        ("kv-cache-dtype", "fp8", "fp8"),
    ],
)
def test_typed_value_is_what_vllm_reads(name, written, value, version):
    typed = read(name, written, version)
    assert (typed, type(typed)) == (value, type(value))


@pytest.mark.parametrize(
    ("values", "whole", "real"),
    [({}, 7, 7.5), ({"n": 3}, 3, 3.0), ({"n": 0.5}, None, 0.5), ({"n": None}, None, None), ({"n": True}, None, None)],
)
def test_refused_value_is_no_default(values, whole, real):
    assert integer(values, "n", 7) == whole
    assert real_number(values, "n", 7.5) == real
