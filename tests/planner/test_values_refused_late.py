"""Values that pass a parser and fail where they are paid for are refused by the plan; their neighbours are planned."""

from __future__ import annotations

import json

import pytest

from bezel.planner import PlanError, make_plan
from bezel.planner.base.settings import Settings
from bezel.planner.vllm.late_values import CONNECTORS
from tests.support.planner.l4_stack import problems_of, with_changes
from tests.support.planner.v6e_stack import L4X8, lease_problems, with_lease_changes

NOT_SWITCHES = ("yes", "no", "on", "off", "y", "n", "t", "f", "1", "0", "True", "TRUE", "", 1, 0, 1.0)
SWITCHES = [
    (section, name)
    for section, field in Settings.model_fields.items()
    for name, inner in getattr(field.annotation, "model_fields", {}).items()
    if inner.annotation is bool
]
BUCKETS = (
    "goog-models", "google-models", "my-google", "my-g00gle", "g00gle1", "192.168.5.4", "a..b", "a." + "b" * 64,
    "b" * 64, "ab", "-ab", "ab-", "Ab1", "a b", ".ab", "ab.",
    "my-g00gl3", "my-googie",
)  # fmt: skip
# Connectors whose package no image of vLLM has, and those that turn the hybrid cache manager off.
UNFIT = {
    *("FlexKVConnectorV1", "HF3FSKVConnector", "MoRIIOConnector"),
    *("ExampleConnector", "LMCacheConnectorV1", "LMCacheMPConnector"),
}
# Of another kind of model, or in need of a list or of a size (tests/fixtures/start_relations).
NEEDING = {"HiSparseConnector", "ExampleHiddenStatesConnector", "MultiConnector", "OffloadingConnector"}
FIT = sorted({*CONNECTORS} - UNFIT)
REFUSED = [
    ({"prefix-match-unit": 64}, "prefix-match-unit"),
    ({"prefix-match-unit": 3}, "prefix-match-unit"),
    ({"prefix-match-unit": 64, "block-size": 32}, "prefix-match-unit"),
    ({"kv-transfer-config": {"kv_connector": "NoSuch", "kv_role": "kv_both"}}, "kv-transfer-config.kv_connector"),
    ({"limit-mm-per-prompt": {"image": -1}}, "limit-mm-per-prompt.image"),
    ({"limit-mm-per-prompt": {"video": {"count": -1}}}, "limit-mm-per-prompt.video.count"),
    ({"limit-mm-per-prompt": {"video": {"num_frames": 0}}}, "limit-mm-per-prompt.video.num_frames"),
    ({"limit-mm-per-prompt": {"audio": {"width": 4}}}, "limit-mm-per-prompt.audio.width"),
    ({"limit-mm-per-prompt": {"image": {"width": None}}}, "limit-mm-per-prompt.image.width"),
    ({"limit-mm-per-prompt": {"image": None}}, "limit-mm-per-prompt.image"),
    ({"limit-mm-per-prompt": {"other": -1}}, "limit-mm-per-prompt.other"),
    *(
        ({"kv-transfer-config": {"kv_connector": name, "kv_role": "kv_both"}}, "kv-transfer-config.kv_connector")
        for name in sorted(UNFIT)
    ),
    ({"served-model-name": "a\0b"}, "served-model-name"),
    ({"served-model-name": "a\nb"}, "served-model-name"),
    ({"served-model-name": ["good", "a\rb"]}, "served-model-name"),
]


@pytest.mark.parametrize(("options", "key"), REFUSED, ids=repr)
def test_an_option_that_ends_the_start_is_refused(options, key):
    assert [problem.key for problem in problems_of({"vllm": options})] == [f"bezel:vllm.{key}"]


@pytest.mark.parametrize(
    "options",
    [
        {"prefix-match-unit": 8},
        {"prefix-match-unit": 64, "enable-prefix-caching": False},
        {"limit-mm-per-prompt": {"image": 0, "video": {"count": 1, "num_frames": 8}}},
        {"served-model-name": ["gemma", "größe/1.0"]},
        {"limit-mm-per-prompt": {"other": {"width": 0}, "image": {"count": "2"}}},
        *(
            {"kv-transfer-config": {"kv_connector": name, "kv_role": "kv_both"}}
            for name in sorted({*CONNECTORS} - UNFIT - NEEDING)
        ),
    ],
    ids=json.dumps,
)
def test_an_option_that_the_start_takes_is_planned(options):
    assert make_plan(with_changes({"vllm": options}), project="p", stack="s")


@pytest.mark.slow
@pytest.mark.parametrize("value", NOT_SWITCHES, ids=repr)
def test_no_switch_is_read_from_another_word(value):
    assert len(SWITCHES) > 10
    for section, name in SWITCHES:
        problems = problems_of({section: {name: value}})
        assert f"bezel:{section}.{name}" in [problem.key for problem in problems]


@pytest.mark.parametrize("value", [True, False, "true", "false"], ids=repr)
def test_a_switch_is_true_or_false_or_the_same_as_text(value):
    plan = make_plan(with_changes({"weights": {"create": value}}), project="p", stack="s")
    assert plan


@pytest.mark.parametrize("bucket", BUCKETS)
def test_a_bucket_that_google_refuses_is_refused(bucket):
    assert [problem.key for problem in problems_of({"weights": {"bucket": bucket}})] == ["bezel:weights.bucket"]


@pytest.mark.parametrize("bucket", ["abc", "a_b-c", "goo-models", "models.example.com", "1.2.3", "b" * 63])
def test_a_bucket_that_google_takes_is_planned(bucket):
    assert make_plan(with_changes({"weights": {"bucket": bucket}}), project="p", stack="s")


@pytest.mark.parametrize("name", ["PATH", "VIRTUAL_ENV"])
def test_a_variable_by_which_the_image_finds_vllm_is_refused(name):
    assert [problem.key for problem in problems_of({"variables": {name: "/x"}})] == [f"bezel:variables.{name}"]


def test_devices_that_replicas_use_are_not_called_idle():
    problems = lease_problems(with_lease_changes(L4X8, vllm={"tensor-parallel-size": 4, "data-parallel-size": 2}))
    assert not [problem for problem in problems if "idle" in problem.consequence]
    problems = lease_problems(with_lease_changes(L4X8, vllm={"tensor-parallel-size": 4}))
    assert [problem for problem in problems if "4 of the 8" in problem.consequence]


@pytest.mark.parametrize(("option", "value", "phrase"), [("port", 8080, "at another one"), ("host", "::", "it may")])
def test_a_reason_holds_for_the_value_that_it_is_given_for(option, value, phrase):
    (problem,) = problems_of({"vllm": {option: value}})
    assert phrase in problem.consequence


@pytest.mark.parametrize(
    ("name", "package"), [("NixlConnector", "nixl"), ("MooncakeConnector", "mooncake"), ("DecodeBenchConnector", "")]
)
def test_a_package_that_the_image_may_lack_is_said_to_be_unchecked(name, package):
    transfer = {"kv-transfer-config": {"kv_connector": name, "kv_role": "kv_both"}}
    made = make_plan(with_changes({"vllm": transfer}), project="p", stack="s")
    assert bool(made.warnings) is bool(package)
    assert all(f"needs the package {package}" in warning and "not checked" in warning for warning in made.warnings)


def test_an_own_image_may_have_what_a_connector_needs():
    changes = {
        "image": {"registry": "ghcr.io", "repository": "acme/vllm", "tag": "v0.32.0"},
        "vllm": {"kv-transfer-config": {"kv_connector": "MoRIIOConnector", "kv_role": "kv_both"}},
    }
    (warning,) = make_plan(with_changes(changes), project="p", stack="s").warnings
    assert "needs the package mori: not checked" in warning


def test_a_connector_within_another_is_judged_too():
    for name, reason in (
        ("NoSuch", "no such connector"),
        ("LMCacheConnectorV1", "hybrid cache manager"),
        (FIT[0], None),
    ):
        inner = {"connectors": [{"kv_connector": name, "kv_role": "kv_both"}]}
        outer = {"kv_connector": "MultiConnector", "kv_role": "kv_both", "kv_connector_extra_config": inner}
        problems = [each for each in problems_of({"vllm": {"kv-transfer-config": outer}}) if each.value == name]
        assert [reason in each.consequence for each in problems] == ([True] if reason else [])


@pytest.mark.parametrize("name", ["PATH", "VIRTUAL_ENV", "PORT", "K_SERVICE", "1A", "A-B", "A.B"])
def test_a_secret_under_a_variable_of_image_or_platform_is_refused(name):
    (problem,) = problems_of({"secrets": {name: "token"}})
    assert problem.key == f"bezel:secrets.{name}"


@pytest.mark.parametrize("project", ["example.com:acme-llm", "googly-eyes", "my-g00gle"])
def test_a_default_bucket_that_google_refuses_is_refused(project):
    with pytest.raises(PlanError) as refused:
        make_plan(with_changes({}), project=project, stack="s")
    assert ("bezel:weights.bucket", f"its default, {project}-models") in [
        (problem.key, problem.consequence.partition(", is not")[0]) for problem in refused.value.problems
    ]
    for other in ({"bucket": "acme-models"}, {"loading": "hub"}):
        assert make_plan(with_changes({"weights": other}), project=project, stack="s")
