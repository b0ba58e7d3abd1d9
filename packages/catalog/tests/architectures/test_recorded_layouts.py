"""Architectures as planned, beside what a real vLLM laid out for the same config.json.

`layouts.json` is written by `PYTHON tools/vllm/architectures/record.py FILE` with the Python of a vLLM 0.32.0 for CPUs,
`layouts-0.33.0.json` by `later_release.py` of that folder: what 0.33.0 lays out otherwise.
"""

import json
import math
import re
from pathlib import Path

import pytest

from bezel_catalog.architectures import read_architecture, weigh
from bezel_catalog.architectures.configuration import recorded_configurations
from bezel_catalog.sizing.cache_layout import CacheSettings, UnknownLayoutError, lay_out

ROWS = json.loads(Path(__file__).with_name("layouts.json").read_text(encoding="utf-8"))["models"]
LAID_OUT = {name: row for name, row in ROWS.items() if "groups" in row}
DIFFERENCES = json.loads(Path(__file__).with_name("layouts-0.33.0.json").read_text(encoding="utf-8"))["models"]
LATER = {
    name: row
    for name, change in DIFFERENCES.items()
    if (row := {**ROWS.get(name, {}), **change}).get("groups") is not None
}
# Windows with key/value heads of their own: 0.33.0 takes the model's, and a plan reserves those of 0.32.0.
OTHER_HEADS = {"step3.5"}
DEFAULT_LENGTH = sorted(name for name, row in LAID_OUT.items() if "max_model_len" not in row["arguments"])
CPU_BLOCK = 128
# Ends of a start that say something about the model, not about the machine or the packages on it.
REFUSAL = re.compile(
    r"not supported for now|was supported in vLLM until|install the plugin|does not dispatch through|"
    r"position_ids not found|for some but all layers is not supported"
)
REFUSED = {name: row for name, row in ROWS.items() if "config" in row and REFUSAL.search(row.get("error", ""))}
KINDS = {
    "FullAttentionSpec": "full",
    "SlidingWindowSpec": "sliding",
    "ChunkedLocalAttentionSpec": "chunked",
    "CrossAttentionSpec": "cross",
    "MLAAttentionSpec": "latent",
    "MambaSpec": "state",
}
PARTS = ("text_config", "thinker_config", "llm_config", "language_config")
BYTES = {"BF16": 2, "F32": 4}


def settings(row):
    """The settings that the recorded engine had. Compressed vectors alone have blocks of their own on a CPU."""
    latent = all(group["spec"] == "MLAAttentionSpec" for group in row["groups"])
    return CacheSettings(
        max_model_len=row["max_model_len"],
        in_flight=row["in_flight"],
        block_tokens=row["block"] if latent else row["arguments"].get("block_size", CPU_BLOCK),
        prefix_caching=row["prefix_caching"],
        encoder_tokens=row["encoder_tokens"],
        hybrid=not row["hybrid_off"],
    )


def planned_layout(row):
    """The layout that is planned for the recorded configuration; None where it is said to be unknown."""
    architecture = read_architecture(row["config"])
    return None if architecture.unknown else lay_out(architecture, settings(row))


def test_planned_tokens_are_those_of_a_real_vllm():
    layouts = {name: planned_layout(row) for name, row in LAID_OUT.items()}
    planned = {name: layout.tokens(LAID_OUT[name]["memory"]) for name, layout in layouts.items() if layout}
    assert planned == {name: LAID_OUT[name].get("tokens", 0) for name in planned}
    assert len(planned) > 250


def test_planned_tokens_are_those_of_the_later_release():
    layouts = {name: planned_layout(row) for name, row in LATER.items()}
    planned = {name: layout.tokens(LATER[name]["memory"]) for name, layout in layouts.items() if layout}
    same = planned.keys() - OTHER_HEADS
    assert {name: planned[name] for name in same} == {name: LATER[name].get("tokens") or 0 for name in same}
    assert all(planned[name] < LATER[name]["tokens"] for name in OTHER_HEADS)
    assert len(planned) > 250


def test_later_release_lays_out_what_the_first_does():
    assert not [name for name in LAID_OUT if name in DIFFERENCES and name not in LATER]
    assert len(DIFFERENCES) > 380


def test_planned_concurrency_is_that_of_a_real_vllm():
    for name, row in LAID_OUT.items():
        layout = planned_layout(row)
        if layout:
            assert layout.concurrency(row["memory"]) == pytest.approx(row.get("concurrency", 0.0)), name


@pytest.mark.parametrize("name", DEFAULT_LENGTH)
def test_planned_context_is_that_of_a_real_vllm(name):
    assert read_architecture(LAID_OUT[name]["config"]).context == LAID_OUT[name]["max_model_len"]


@pytest.mark.parametrize(
    "name",
    ["gemma3", "gpt-oss", "jamba", "whisper", "llama4", "gemma3-nearly-even", "nemotron-h", "deepseek-v2", "zamba2"],
)
def test_planned_groups_are_those_of_a_real_vllm(name):
    row = LAID_OUT[name]
    groups = [(group.kind, group.block_tokens, group.page_bytes) for group in planned_layout(row).groups]
    real = [(KINDS[group["spec"]], group["block"], sum(group["pages"])) for group in row["groups"]]
    assert sorted(groups) == sorted(real)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_model_that_vllm_refuses_is_never_planned(name):
    architecture = read_architecture(REFUSED[name]["config"])
    with pytest.raises(UnknownLayoutError):
        lay_out(architecture, CacheSettings(max_model_len=8192, in_flight=4096))


def without_defaults(config):
    """A configuration without the kinds of its layers and without what its class sets by itself."""
    defaults = recorded_configurations().get(config.get("model_type"), {}).get("defaults", {})
    return {
        key: without_defaults(value) if key in PARTS and isinstance(value, dict) else value
        for key, value in config.items()
        if key != "layer_types" and (key not in defaults or defaults[key] != value)
    }


@pytest.mark.parametrize("name", sorted(name for name in LAID_OUT if name.startswith("default ")))
def test_file_without_what_its_class_sets_is_read_the_same(name):
    config = LAID_OUT[name]["config"]
    assert read_architecture(without_defaults(config)).cache == read_architecture(config).cache


def test_few_layouts_are_unknown():
    unknown = [name for name, row in LAID_OUT.items() if planned_layout(row) is None]
    assert len(unknown) <= 2, unknown


@pytest.mark.parametrize("name", sorted(name for name, row in ROWS.items() if "tensors" in row))
def test_weights_are_the_bytes_of_the_saved_tensors(name):
    row = ROWS[name]
    weights = weigh(row["config"], row["tensors"])
    total = sum(BYTES[kind] * math.prod(shape) for kind, shape in row["tensors"].values())
    assert weights.bytes + weights.draft_bytes + weights.skipped_bytes == total
    assert weights.encoding == "bf16"
    assert weights.parameters == sum(math.prod(shape) for _, shape in row["tensors"].values())
