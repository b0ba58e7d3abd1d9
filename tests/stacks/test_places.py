"""Previews name what is to be known of the places: weights far from the servers, and a region on invitation."""

from typing import Any

import pytest

from bezel.planner import make_plan
from bezel_stacks.dispatch import deploy
from tests.support.components.fake_cloud_run import FakeRun
from tests.support.components.fake_engine import declare
from tests.support.planner.v6e_stack import V6E4_MOE, with_lease_changes

pytestmark = pytest.mark.slow
SETTINGS: dict[str, Any] = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}


def preview(**settings: Any) -> None:
    made = make_plan({**SETTINGS, **settings}, project="acme-llm", stack="l4-qat")
    declare(lambda: deploy(made), preview=True)


@pytest.mark.parametrize("loading", ["fuse", "fuse-prefetch", "runai-streamer"])
def test_a_preview_warns_of_a_bucket_in_another_region(
    run: FakeRun, caplog: pytest.LogCaptureFixture, loading: str
) -> None:
    run.place = {"location": "EUROPE-WEST4"}
    preview(weights={"loading": loading})
    assert "gs://acme-llm-models is in europe-west4, and servers run in us-east4" in caplog.text
    assert "costs an unknown amount" in caplog.text


def test_a_preview_warns_of_a_bucket_far_from_a_leases_zones(run: FakeRun, caplog: pytest.LogCaptureFixture) -> None:
    run.place = {"location": "ASIA1"}
    made = make_plan(with_lease_changes(V6E4_MOE), project="acme-llm", stack="moe")
    declare(lambda: deploy(made), preview=True)
    assert "is in asia1, and servers run in" in caplog.text


def test_a_preview_says_that_a_place_is_not_known(run: FakeRun, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    run.place = None
    preview()
    assert "the location of gs://acme-llm-models is not known" in caplog.text


@pytest.mark.parametrize(
    "settings",
    [{}, {"weights": {"create": True}}, {"weights": {"loading": "hub"}}],
    ids=["near", "made by the stack", "from the hub"],
)
def test_a_preview_says_nothing_of_weights_that_are_near(
    run: FakeRun, caplog: pytest.LogCaptureFixture, settings: dict[str, Any]
) -> None:
    run.place = {"location": "US"} if not settings else {"location": "EU"}
    preview(**settings)
    assert "across regions" not in caplog.text


@pytest.mark.parametrize(("region", "is_warned"), [("us-central1", True), ("us-east4", False)])
def test_a_preview_warns_of_a_region_on_invitation(
    caplog: pytest.LogCaptureFixture, region: str, is_warned: bool
) -> None:
    preview(region=region)
    assert ("on invitation only" in caplog.text) is is_warned
