"""The data files hold together: every row is dated, sourced, within plausible bounds, and no look-up falls back."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from bezel.catalog import (
    NotInCatalogueError,
    Price,
    Unpriced,
    accelerator,
    accelerators,
    closest,
    model,
    models,
    price,
    prices,
    removed_options,
    unservable_form,
    vllm_options,
    vllm_versions,
)

DATED = re.compile(r"20\d\d-(0[1-9]|1[0-2])")


def test_every_record_is_dated_and_sourced():
    records = [*accelerators().values(), *models().values(), *prices().values()]
    records += [found.architecture for found in models().values()]
    for record in records:
        assert DATED.fullmatch(record.as_of), record
        assert record.source, record


@pytest.mark.parametrize("found", accelerators().values(), ids=lambda found: found.id)
def test_accelerators_are_plausible(found):
    assert 10**10 < found.memory_bytes < 10**12
    assert found.memory_bytes < found.bandwidth_bytes_per_s < found.bf16_flops < found.fp8_flops
    assert found.min_memory_gib >= found.min_cpu >= 1
    assert not set(found.regions) & set(found.regions_on_invitation)
    assert list(found.regions) == sorted(found.regions)
    assert found.quota.endswith("NoZonalRedundancyPerProjectRegion")


@pytest.mark.parametrize("found", models().values(), ids=lambda found: found.id)
def test_models_weigh_what_their_encoding_says(found):
    shape = found.architecture
    body = shape.parameters - shape.embedding_parameters
    bits = 8 * (found.weight_bytes - 2 * shape.embedding_parameters) / body
    low, high = {"bf16": (15.5, 17.0), "w4a16": (4.0, 8.5), "fp8": (7.9, 10.0)}[found.encoding]
    assert low < bits < high


@pytest.mark.parametrize("found", models().values(), ids=lambda found: found.id)
def test_architectures_are_plausible(found):
    shape = found.architecture
    assert shape.sliding_layers in (4 * shape.full_layers, 5 * shape.full_layers)
    assert shape.context in (131_072, 262_144)
    assert bool(shape.experts or shape.per_layer_embedding) == (shape.active_parameters < shape.parameters)
    assert found.folder is None or found.folder in found.hub_id


def test_no_price_is_zero_and_both_parts_of_a_gpu_instance_are_priced_where_the_gpu_is():
    for found in prices().values():
        assert Decimal("0.0000001") < found.usd_per_unit < 20, found
        if found.item.startswith("gpu "):
            for item in ("vcpu", "memory"):
                assert isinstance(price("cloud-run", item, found.region, "instance-based"), Price)


def test_a_gpu_is_priced_only_where_it_is_offered():
    priced = [found for found in prices().values() if found.item.startswith("gpu ")]
    assert priced
    for found in priced:
        gpu = accelerator(found.item.split()[1])
        assert found.region in (*gpu.regions, *gpu.regions_on_invitation), found


def test_an_unknown_price_is_named_and_never_another_regions():
    missing = price("cloud-run", "gpu nvidia-l4 no zonal redundancy", "asia-southeast1", "instance-based")
    assert isinstance(missing, Unpriced)
    assert str(missing) == "cloud-run, gpu nvidia-l4 no zonal redundancy, asia-southeast1, instance-based"
    assert isinstance(price("cloud-run", "vcpu", "asia-southeast1", "instance-based"), Price)


def test_a_derived_price_says_so():
    rows = {
        region: price("cloud-run", "gpu nvidia-l4 no zonal redundancy", region, "instance-based")
        for region in ("us-central1", "us-east4")
    }
    assert not rows["us-central1"].derived
    assert rows["us-east4"].derived


@pytest.mark.parametrize(
    ("look_up", "wrong", "near"),
    [
        (accelerator, "nvidia-l5", "nvidia-l4"),
        (model, "gemma-4-12b-it-qat-w4a6", "gemma-4-12b-it-qat-w4a16"),
        (vllm_options, "0.32.1", "0.32.0"),
    ],
)
def test_a_look_up_of_what_is_not_there_names_the_nearest_and_returns_nothing(look_up, wrong, near):
    with pytest.raises(NotInCatalogueError) as caught:
        look_up(wrong)
    assert caught.value.closest == near
    assert near in str(caught.value)


def test_nothing_is_near_a_name_that_resembles_none():
    assert closest("zzz", ["nvidia-l4"]) is None


def test_forms_that_are_not_for_vllm_are_refused_with_the_reason():
    assert "llama.cpp" in unservable_form("google/gemma-4-12B-it-GGUF")
    assert unservable_form("google/gemma-4-12B-it-qat-w4a16-ct") is None


@pytest.mark.parametrize(("version", "count"), [("0.32.0", 316), ("0.33.0", 320)])
def test_option_lists_are_whole(version, count):
    assert version in vllm_versions()
    options = vllm_options(version)
    assert len(options.options) == count
    assert len(set(options.names())) == count
    for name in ("tool-call-parser", "reasoning-parser"):
        assert "gemma4" in options.registered[name]


@pytest.mark.parametrize("version", vllm_versions())
@pytest.mark.parametrize(
    ("flag", "name", "negated"),
    [
        ("--max-model-len", "max-model-len", False),
        ("--max_model_len", "max-model-len", False),
        ("--device-memory-utilization", "gpu-memory-utilization", False),
        ("-tp", "tensor-parallel-size", False),
        ("--no-enable-prefix-caching", "enable-prefix-caching", True),
        ("--no_enable_prefix_caching", "enable-prefix-caching", True),
    ],
)
def test_an_option_is_found_by_each_of_its_spellings(version, flag, name, negated):
    option, found_negated = vllm_options(version).find(flag)
    assert (option.name, found_negated) == (name, negated)


@pytest.mark.parametrize("version", vllm_versions())
def test_an_unknown_flag_is_not_found(version):
    assert vllm_options(version).find("--num-speculative-tokens") is None
    assert vllm_options(version).find("--max-model") is None


def test_removed_options_are_in_no_recorded_list_but_where_they_came_back():
    for name in removed_options():
        assert vllm_options("0.32.0").find(f"--{name}") is None
    assert vllm_options("0.33.0").find("--disable-log-requests") is not None
