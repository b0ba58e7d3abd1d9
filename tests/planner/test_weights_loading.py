"""The four ways of loading weights: what each asks of the rest of the stack, and what contradicts it."""

from __future__ import annotations

import pytest

from bezel.planner import make_plan, plan_summary
from bezel.planner.base.settings import Weights
from bezel.planner.vllm.loading import LOADINGS, STREAMER_BUFFER_BYTES
from bezel_catalog import vllm_options
from bezel_catalog.sizing.memory import GIB, HOST_BASE_BYTES
from tests.support.planner.l4_stack import RTX_COST, problems_of, with_changes

FOLDER = "gemma-4-12B-it-qat-w4a16-ct"
HUB_ID = f"google/{FOLDER}"
DRAFT = "gemma-4-12B-it-assistant"
ASSISTANT = f"google/{DRAFT}"
DRAFTS = {"spec-method": "mtp", "spec-tokens": 3}
WAYS = tuple(LOADINGS)


def plan_with_loading(loading, **changes):
    weights = {} if loading is None else {"loading": loading}
    return make_plan(with_changes({"weights": weights} | changes), project="acme", stack="l4-qat")


def flags(plan):
    return dict(word.removeprefix("--").partition("=")[::2] for word in plan.service.arguments[1:])


def test_the_setting_names_the_ways_and_each_option_of_theirs_exists():
    (annotation,) = [part for part in Weights.model_fields["loading"].annotation.__args__ if part is not type(None)]
    assert annotation.__args__ == WAYS
    for loading in LOADINGS.values():
        assert all(vllm_options("0.32.0").find(f"--{name}") for name in loading.options)


@pytest.mark.parametrize(
    ("loading", "model", "mounted", "offline", "bucket"),
    [
        ("fuse", f"/mnt/models/{FOLDER}", True, True, "acme-models"),
        ("fuse-prefetch", f"/mnt/models/{FOLDER}", True, True, "acme-models"),
        ("runai-streamer", f"gs://acme-models/{FOLDER}", False, True, "acme-models"),
        ("hub", HUB_ID, False, False, None),
    ],
)
def test_each_way_says_what_is_loaded_from_where(loading, model, mounted, offline, bucket):
    plan = plan_with_loading(loading)
    weights = plan.service.weights
    assert (plan.service.arguments[0], weights.loading, weights.bucket) == (model, loading, bucket)
    assert (weights.mount_path is not None, bool(weights.mount_options)) == (mounted, mounted)
    assert ("HF_HUB_OFFLINE" in plan.service.environment) is offline
    assert plan.as_output()["weights"] == {
        "loading": loading,
        "model": model,
        "mounted_at": "/mnt/models" if mounted else None,
    }
    shown = [line.split() for line in plan_summary(plan).splitlines()]
    assert any(line[:3] == ["loaded", "by", loading] for line in shown)


def test_by_default_a_host_reads_ahead_only_if_it_can_hold_the_files():
    assert plan_with_loading(None).service.weights.loading == "fuse-prefetch"
    assert plan_with_loading(None).service == plan_with_loading("fuse-prefetch").service
    large = {"model": "gemma-4-12b-it-fp8", "vllm": {"max-model-len": 8192}}
    assert plan_with_loading(None, **large).service.weights.loading == "fuse"
    assert plan_with_loading(None, **large).service == plan_with_loading("fuse", **large).service


def test_a_strategy_of_the_stack_file_still_decides_where_no_way_is_chosen():
    plan = plan_with_loading(None, vllm={"safetensors-load-strategy": "lazy"})
    assert (plan.service.weights.loading, flags(plan)["safetensors-load-strategy"]) == ("fuse", "lazy")


def test_the_streamer_gets_a_buffer_that_the_host_can_hold():
    options = flags(plan_with_loading("runai-streamer"))
    assert options["load-format"] == "runai_streamer"
    assert options["model-loader-extra-config"] == f'{{"memory_limit":{STREAMER_BUFFER_BYTES}}}'
    assert "safetensors-load-strategy" not in options


def test_a_larger_buffer_of_the_stack_file_counts_against_the_host():
    rtx = {
        "model": "gemma-4-31b-it",
        "accelerator": "nvidia-rtx-pro-6000",
        "region": "us-central1",
        **RTX_COST,
    }
    small = plan_with_loading("runai-streamer", **rtx).fit
    large = plan_with_loading(
        "runai-streamer", vllm={"model-loader-extra-config": {"memory_limit": 40 * GIB}}, **rtx
    ).fit
    assert small.host_needed_bytes < large.host_needed_bytes <= HOST_BASE_BYTES + large.weight_bytes


def test_a_download_needs_memory_for_model_and_draft_model():
    alone = plan_with_loading("hub").fit
    assert alone.host_needed_bytes == HOST_BASE_BYTES + alone.weight_bytes
    both = plan_with_loading("hub", vllm={**DRAFTS, "spec-model": ASSISTANT}).fit
    assert both.host_needed_bytes == HOST_BASE_BYTES + both.weight_bytes + both.draft_bytes
    assert both.draft_bytes > 0


def test_a_download_that_the_instance_cannot_hold_is_refused():
    large = {"model": "gemma-4-12b-it-fp8", "vllm": {"max-model-len": 8192}}
    (problem,) = problems_of({"weights": {"loading": "hub"}, **large})
    assert problem.key == "bezel:resources.memory"
    assert "download" in problem.consequence
    assert "weights.loading: fuse" in problem.repair


def test_a_plan_says_how_long_a_start_would_take_otherwise():
    plan = plan_with_loading("hub")
    (line,) = [line for line in plan_summary(plan).splitlines() if "other loadings" in line]
    for way in ("fuse", "fuse-prefetch", "runai-streamer"):
        low, high = plan_with_loading(way).start.seconds
        assert f"{way} {low:.0f} to {high:.0f} s" in line
    assert "hub" not in line


def test_a_start_takes_as_long_as_the_way_of_loading_lets_it():
    seconds = {way: plan_with_loading(way).start.seconds for way in WAYS}
    assert seconds["hub"][0] > seconds["fuse"][0] > seconds["fuse-prefetch"][0]
    assert seconds["hub"][1] > seconds["fuse"][1] > seconds["runai-streamer"][1]


@pytest.mark.parametrize(
    ("loading", "draft", "folders"),
    [
        ("fuse", f"/mnt/models/{DRAFT}", {DRAFT: ASSISTANT}),
        ("runai-streamer", f"gs://acme-models/{DRAFT}", {DRAFT: ASSISTANT}),
        ("hub", ASSISTANT, {}),
    ],
)
def test_a_draft_model_comes_the_same_way_as_the_model(loading, draft, folders):
    plan = plan_with_loading(loading, vllm={**DRAFTS, "spec-model": draft})
    assert plan.service.weights.drafts == folders
    assert flags(plan)["spec-model"] == draft


@pytest.mark.parametrize(
    ("loading", "place"),
    [("fuse", "/mnt/models/"), ("runai-streamer", "gs://acme-models/"), ("hub", "google/")],
)
def test_the_repair_of_a_missing_draft_model_names_its_place(loading, place):
    (problem,) = problems_of({"weights": {"loading": loading}, "vllm": DRAFTS}, project="acme")
    assert f"spec-model: {place}gemma-4-12B-it-assistant" in problem.repair


EXTRA = "model-loader-extra-config"
CONTRADICTIONS = {
    "another format": ("fuse", {"vllm": {"load-format": "runai_streamer"}}, "vllm.load-format", "runai-streamer."),
    "a format of none": ("runai-streamer", {"vllm": {"load-format": "dummy"}}, "vllm.load-format", "remove it."),
    "a plain format for the streamer": (
        "runai-streamer", {"vllm": {"load-format": "auto"}}, "vllm.load-format", "weights.loading: fuse."),
    "another strategy": (
        "fuse", {"vllm": {"safetensors-load-strategy": "prefetch"}}, "vllm.safetensors-load-strategy", "fuse-prefetch"),
    "a strategy for the streamer": (
        "runai-streamer", {"vllm": {"safetensors-load-strategy": "lazy"}}, "vllm.safetensors-load-strategy", "remove"),
    "a download read twice": (
        "hub", {"vllm": {"safetensors-load-strategy": "prefetch"}}, "vllm.safetensors-load-strategy", "remove it."),
    "a key that the streamer has not": (
        "runai-streamer", {"vllm": {EXTRA: {"threads": 4}}}, f"vllm.{EXTRA}.threads", "concurrency"),
    "a bucket for a download": ("hub", {"weights": {"bucket": "mine", "loading": "hub"}}, "weights.bucket", "remove"),
    "a folder for a download": ("hub", {"weights": {"path": "mine", "loading": "hub"}}, "weights.path", "remove"),
    "a made bucket": ("hub", {"weights": {"create": True, "loading": "hub"}}, "weights.create", "remove"),
    "an offline download": ("hub", {"secrets": {"HF_HUB_OFFLINE": "off"}}, "secrets.HF_HUB_OFFLINE", "remove"),
    "a mounted draft without a mount": (
        "runai-streamer", {"vllm": {**DRAFTS, "spec-model": f"/mnt/models/{DRAFT}"}}, "vllm.spec-model", f"gs://acme-models/{DRAFT}"),
    "a mounted tokenizer": ("hub", {"vllm": {"tokenizer": "/mnt/models/t"}}, "vllm.tokenizer", "OWNER/t"),
    "a draft by its address beside a mount": (
        "fuse",
        {"vllm": {**DRAFTS, "spec-model": f"gs://acme-models/{DRAFT}"}},
        "vllm.spec-model",
        f"/mnt/models/{DRAFT}",
    ),
    "a draft in a bucket that may not be read": (
        "runai-streamer",
        {"vllm": {**DRAFTS, "spec-model": f"gs://other/{DRAFT}"}},
        "vllm.spec-model",
        f"gs://acme-models/{DRAFT}",
    ),
    "a draft on the hub for an offline service": (
        "runai-streamer", {"vllm": {**DRAFTS, "spec-model": ASSISTANT}}, "vllm.spec-model", "write gs://acme-models/"),
    "a draft in the nested options": (
        "hub",
        {"vllm": {"speculative-config": {"method": "mtp", "model": f"gs://b/{DRAFT}", "num_speculative_tokens": 3}}},
        "vllm.speculative-config.model",
        "its id on the hub",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_what_contradicts_the_chosen_way_is_refused_with_its_repair(case):
    loading, changes, key, repair = CONTRADICTIONS[case]
    (problem,) = problems_of({"weights": {"loading": loading}} | changes, project="acme")
    assert problem.key == f"bezel:{key}"
    assert repair in problem.repair


@pytest.mark.parametrize(
    ("loading", "options"),
    [
        ("fuse", {"load-format": "safetensors", "safetensors-load-strategy": "lazy"}),
        ("runai-streamer", {"load-format": "runai_streamer", EXTRA: {"concurrency": 32, "memory_limit": 0}}),
        ("hub", {"load-format": "auto", "tokenizer": HUB_ID}),
        (None, {"load-format": "runai_streamer"}),
    ],
)
def test_what_says_the_same_as_the_chosen_way_is_taken(loading, options):
    assert plan_with_loading(loading, vllm=options)


def test_what_nobody_publishes_cannot_be_downloaded():
    keys = {
        problem.key for problem in problems_of({"weights": {"loading": "hub"}, "model": "gemma-4-26b-a4b-it-w4a16"})
    }
    assert "bezel:weights.loading" in keys
    assert "bezel:weights.path" not in keys


def test_a_way_that_nobody_knows_is_refused_with_those_that_exist():
    (problem,) = problems_of({"weights": {"loading": "nfs"}})
    assert problem.key == "bezel:weights.loading"
    assert all(way in problem.repair for way in WAYS)


@pytest.mark.parametrize("loading", [*WAYS, None])
def test_an_option_that_the_loading_brings_is_no_default_of_the_catalogue(loading):
    plan = plan_with_loading(loading)
    brought = LOADINGS[plan.service.weights.loading].options
    assert {plan.origins[f"vllm.{name}"] for name in brought} == {"computed"}
    assert plan.origins["vllm.dtype"] == "catalogue default"
