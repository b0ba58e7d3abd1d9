"""Which image is planned, by which recorded options, and where the plan says that it came from."""

from __future__ import annotations

import pytest

from bezel.planner import Plan, PlanError, make_plan, plan_summary
from bezel.planner.base.settings import Settings
from bezel.planner.rules.image_checks import recording_of
from tests.support.planner.l4_stack import with_changes
from tests.support.planner.v6e_stack import V6E4_MOE, lease_plan, with_lease_changes

DIGEST = "sha256:" + "0" * 64


def plan_with_changes(**changes: object) -> Plan:
    plan = make_plan(with_changes(changes), project="bezel-local", stack="l4-qat")
    assert isinstance(plan, Plan)
    return plan


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ({}, "docker.io/vllm/vllm-openai:v0.32.0"),
        ({"tag": "v0.33.0"}, "docker.io/vllm/vllm-openai:v0.33.0"),
        ({"registry": "quay.io", "repository": "a/b"}, "quay.io/a/b:v0.32.0"),
        ({"digest": DIGEST}, f"docker.io/vllm/vllm-openai:v0.32.0@{DIGEST}"),
    ],
)
def test_what_is_not_said_of_an_image_is_the_release_s_own(image: dict[str, str], name: str) -> None:
    plan = plan_with_changes(image=image)
    assert plan.service.image.name == name
    (row,) = [line.split() for line in plan_summary(plan).splitlines() if line.startswith("  image ")]
    assert row[1] == name
    assert " ".join(row[2:]) == ("(stack file)" if image else "(catalogue default)")


@pytest.mark.parametrize(
    ("image", "version", "recording"),
    [
        ({}, "0.32.0", ("vllm_version", "0.32.0")),
        ({"tag": "v0.33.0"}, "0.32.0", ("image.tag", "0.33.0")),
        ({"tag": "0.33.0"}, "0.32.0", ("image.tag", "0.33.0")),
        ({"tag": "v0.33.0-cu129"}, "0.32.0", ("image.tag", "0.33.0")),
        ({"tag": "v0.33.0rc1"}, "0.32.0", ("image.tag", "0.33.0rc1")),
        ({"tag": "v0.33.0.post1"}, "0.32.0", ("image.tag", "0.33.0.post1")),
        ({"tag": "nightly-0123abc"}, "0.32.0", ("image.tag", "nightly-0123abc")),
        ({"tag": "prod-7", "options": "0.33.0"}, "0.32.0", ("image.options", "0.33.0")),
        ({"digest": DIGEST}, "0.33.0", ("vllm_version", "0.33.0")),
    ],
)
def test_the_recorded_options_are_those_that_the_image_names(
    image: dict[str, str], version: str, recording: tuple[str, str]
) -> None:
    settings = {"model": "m", "accelerator": "a", "region": "r", "vllm_version": version, "image": image}
    assert recording_of(Settings.model_validate(settings)) == recording


def test_the_arguments_are_checked_against_the_options_of_the_image() -> None:
    """Releases before 0.33.0 have no such switch."""
    settings = {"vllm": {"disable-log-requests": True}}
    assert plan_with_changes(image={"tag": "v0.33.0"}, **settings)
    with pytest.raises(PlanError, match=r"vLLM 0\.32\.0 no longer has this option"):
        plan_with_changes(image={"tag": "v0.32.0"}, **settings)


def test_graphs_that_one_image_compiled_are_not_another_s() -> None:
    cache = [
        lease_plan(with_lease_changes(V6E4_MOE, image=image)).node.compile_cache for image in ({}, {"tag": "v0.33.0"})
    ]
    assert [place.rpartition("/")[2] for place in cache] == ["0.32.0", "0.33.0"]
