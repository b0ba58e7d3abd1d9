"""A look-up gives the row that was asked for or says what is missing; it never falls back."""

from __future__ import annotations

import subprocess
import sys

import pytest

from bezel_catalog import (
    NotInCatalogueError,
    Price,
    Unpriced,
    accelerator,
    closest,
    compared_machines,
    model,
    price,
    removed_options,
    tpu,
    tpus,
    unservable_form,
    vllm_options,
    vllm_versions,
)


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
    assert not rows["us-central1"].is_derived
    assert rows["us-east4"].is_derived


@pytest.mark.parametrize(
    ("look_up", "wrong", "near"),
    [
        (accelerator, "nvdia-l4", "nvidia-l4"),
        (model, "gemma-4-12b-it-qta-w4a16", "gemma-4-12b-it-qat-w4a16"),
        (tpu, "v6e_4", "v6e-4"),
        (vllm_options, "0.32", "0.32.0"),
    ],
)
def test_a_failed_look_up_names_the_nearest_record(look_up, wrong, near):
    with pytest.raises(NotInCatalogueError) as caught:
        look_up(wrong)
    assert caught.value.closest == near
    assert near in str(caught.value)


def test_nothing_is_near_a_name_that_resembles_none():
    assert closest("zzz", ["nvidia-l4"]) is None


def test_a_slice_has_the_memory_that_was_measured():
    assert {name: each.chips for name, each in tpus().items()} == {"v6e-1": 1, "v6e-4": 4, "v6e-8": 8}
    assert tpu("v6e-4").chips * tpu("v6e-4").memory_bytes / 1024**3 == pytest.approx(124.98, abs=0.05)


@pytest.mark.parametrize(
    ("name", "per_token"),
    [
        ("gemma-4-e2b-it", 18 * 1024),
        ("gemma-4-e4b-it", 56 * 1024),
        # On four chips, where the one full KV head is on each of them, the server reported 393,216 B.
        ("gemma-4-12b-it", 393_216 - 3 * 8 * 512 * 2 * 2),
    ],
)
def test_the_cache_of_a_token_is_the_measured_one(name, per_token):
    shape = model(name).architecture
    sliding = shape.sliding_layers * shape.sliding_kv_heads * shape.sliding_head_dim
    full = shape.full_layers * shape.full_kv_heads * shape.full_head_dim
    assert 2 * 2 * (sliding + full) == per_token


@pytest.mark.parametrize(
    ("name", "machine", "refused"),
    [
        ("gemma-4-12b-it-qat-w4a16", "tpu", True),
        ("gemma-4-31b-it-fp8", "tpu", True),
        ("gemma-4-12b-it", "tpu", False),
        ("gemma-4-12b-it-qat-w4a16", "nvidia-l4", False),
    ],
)
def test_a_form_is_refused_only_where_it_does_not_run(name, machine, refused):
    assert bool(model(name).refused_on(machine)) is refused


def test_a_form_that_nobody_publishes_has_no_folder():
    repack = model("gemma-4-26b-a4b-it-w4a16")
    assert (repack.hub_id, repack.folder) == (None, None)
    assert model("gemma-4-26b-a4b-it-fp8").folder == "gemma-4-26B-A4B-it-FP8-Dynamic"


def test_a_machine_without_a_price_says_why():
    machines = compared_machines().values()
    assert {each.platform for each in machines} == {"ec2", "gce", "azure"}
    for each in machines:
        assert (each.usd_per_hour is None) == bool(each.unpriced), each


def test_forms_that_are_not_for_vllm_are_refused_with_the_reason():
    assert "llama.cpp" in unservable_form("google/gemma-4-12B-it-GGUF")
    assert unservable_form("google/gemma-4-12B-it-qat-w4a16-ct") is None


@pytest.mark.parametrize(("version", "count"), [("0.32.0", 316), ("0.33.0", 320)])
def test_option_lists_are_whole(version, count):
    assert version in vllm_versions()
    options = vllm_options(version)
    assert len(options.options) == count
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


@pytest.mark.slow
def test_a_look_up_loads_no_rule_of_the_maintenance():
    # Every preview imports the catalogue: what only `bezel catalog` needs stays out.
    code = "import sys, bezel_catalog; print([name for name in sys.modules if name.startswith('bezel_catalog.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "bezel_catalog.prices" in loaded
    for name in ("integrity", "skus", "refreshing", "price_checks"):
        assert f"bezel_catalog.{name}'" not in loaded
