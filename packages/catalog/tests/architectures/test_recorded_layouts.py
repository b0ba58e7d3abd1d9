"""Architectures as planned, beside what a real vLLM laid out for the same config.json.

`layouts.json` is written by `PYTHON tools/vllm/architectures/record.py FILE` with the Python of a vLLM 0.32.0 for CPUs.
"""

import json
import re
from pathlib import Path

import pytest

from bezel_catalog.architectures import read_architecture, weigh
from bezel_catalog.sizing.cache_layout import CacheSettings, UnknownLayoutError, lay_out

RECORDED = json.loads(Path(__file__).with_name("layouts.json").read_text(encoding="utf-8"))
ROWS = RECORDED["models"]
LAID_OUT = {name: row for name, row in ROWS.items() if "groups" in row}
CPU_BLOCK, LATENT_BLOCK = 128, 16
# Ends of a start that come from this machine (a kernel, a package), or from a model made up of defaults.
OF_THE_MACHINE = re.compile(
    r"on CPU|not supported on|triton|timm|image processor|no attribute|meta tensor|NoneType|Model Runner V1|"
    r"backend is available|only for CUDA|positional argument|mamba-block-size|unsupported operand|StrictDataclass|"
    r"valid integer|exist,please|requires a vision|^AssertionError: $|output_gate_type|is_act_and_mul|cpuinfo"
)
REFUSED = {
    name: row
    for name, row in ROWS.items()
    if "error" in row and "config" in row and not OF_THE_MACHINE.search(row["error"])
}
KINDS = {
    "FullAttentionSpec": "full",
    "SlidingWindowSpec": "sliding",
    "ChunkedLocalAttentionSpec": "chunked",
    "CrossAttentionSpec": "cross",
    "MLAAttentionSpec": "latent",
    "MambaSpec": "state",
}


def settings(row):
    """The settings that the recorded engine had. Compressed vectors have blocks of their own on a CPU."""
    arguments = row.get("arguments", {})
    latent = any(group["spec"] == "MLAAttentionSpec" for group in row["groups"])
    return CacheSettings(
        max_model_len=row["max_model_len"],
        in_flight=row["in_flight"],
        block_tokens=arguments.get("block_size", LATENT_BLOCK if latent else CPU_BLOCK),
        prefix_caching=row["prefix_caching"],
        encoder_tokens=row["encoder_tokens"],
        hybrid=not row["hybrid_off"],
    )


def planned(row):
    """The layout that is planned for the recorded configuration."""
    return lay_out(read_architecture(row["config"]), settings(row))


@pytest.mark.parametrize("name", sorted(LAID_OUT))
def test_planned_tokens_are_those_of_a_real_vllm(name):
    row = LAID_OUT[name]
    architecture = read_architecture(row["config"])
    if architecture.unknown:
        pytest.skip(architecture.unknown[0])
    layout = lay_out(architecture, settings(row))
    assert layout.tokens(row["memory"]) == row.get("tokens", 0)
    assert layout.concurrency(row["memory"]) == pytest.approx(row.get("concurrency", 0.0))


@pytest.mark.parametrize(
    "name", sorted(name for name, row in LAID_OUT.items() if "max_model_len" not in row["arguments"])
)
def test_planned_context_is_that_of_a_real_vllm(name):
    assert read_architecture(LAID_OUT[name]["config"]).context == LAID_OUT[name]["max_model_len"]


def test_planned_groups_are_those_of_a_real_vllm():
    for name in ("gemma3", "gpt-oss", "jamba", "whisper", "llama4", "gemma3-nearly-even", "nemotron-h", "deepseek-v2"):
        row = LAID_OUT[name]
        groups = [(group.kind, group.block_tokens, group.page_bytes) for group in planned(row).groups]
        real = [(KINDS[group["spec"]], group["block"], sum(group["pages"])) for group in row["groups"]]
        assert sorted(groups) == sorted(real), name


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_model_that_vllm_refuses_is_never_planned(name):
    architecture = read_architecture(REFUSED[name]["config"])
    with pytest.raises(UnknownLayoutError):
        lay_out(architecture, CacheSettings(max_model_len=8192, in_flight=4096))


def test_few_architectures_are_unknown():
    unknown = [name for name, row in LAID_OUT.items() if read_architecture(row["config"]).unknown]
    assert len(LAID_OUT) > 250
    assert len(unknown) <= 3, unknown


@pytest.mark.parametrize("name", sorted(name for name, row in ROWS.items() if "tensors" in row))
def test_weights_are_the_bytes_of_the_saved_tensors(name):
    row = ROWS[name]
    weights = weigh(row["config"], row["tensors"])
    total = sum(BYTES[kind] * math.prod(shape) for kind, shape in row["tensors"].values())
    assert weights.bytes + weights.draft_bytes + weights.skipped_bytes == total
    assert weights.encoding == "bf16"
    assert weights.parameters <= total // 2
