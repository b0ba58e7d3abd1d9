"""`rollout: gated` in a whole plan: checked at an address of its own, then moved; refused where two have no room."""

from typing import Any

import pytest

from bezel.planner import PlanError, make_plan
from bezel_stacks.dispatch import deploy
from tests.support.components.fake_cloud_run import FakeRun
from tests.support.components.fake_engine import CREATED, REVISION, Declarations, declare, has_unknown

SETTINGS: dict[str, Any] = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}
SMOKE = ("HealthCheck", "ShortBenchmark")


def declare_plan(*, rollout: str = "gated", preview: bool = False, **settings: Any) -> Declarations:
    made = make_plan({**SETTINGS, "rollout": rollout, **settings}, project="acme-llm", stack="l4-qat")
    return declare(lambda: deploy(made), preview=preview)


@pytest.mark.slow
def test_the_checks_ask_the_new_revision_with_a_token_for_the_service() -> None:
    declared = declare_plan()
    for token in SMOKE:
        inputs = declared.one(token).inputs
        assert (inputs["url"], inputs["audience"]) == ("https://newest---chat.example", "https://chat.example")


@pytest.mark.slow
def test_the_traffic_moves_after_every_check_to_the_checked_revision() -> None:
    declared = declare_plan()
    switch = declared.one("TrafficSwitch")
    assert switch.inputs["revision"] == CREATED == declared.one("HealthCheck").inputs["revision"]
    assert all(declared.waits_for(switch, declared.one(token)) for token in SMOKE)


@pytest.mark.slow
def test_a_direct_rollout_has_one_address_and_moves_nothing(
    run: FakeRun,
) -> None:
    declared = declare_plan(rollout="direct")
    assert not declared.of("TrafficSwitch")
    assert [declared.one(token).inputs["url"] for token in SMOKE] == ["https://chat.example"] * 2
    assert not any("audience" in declared.one(token).inputs for token in SMOKE)
    of_services = [call for call in run.server.calls if "/services/bezel-" in call.path]
    assert [(call.method, call.path.rpartition("/")[2]) for call in of_services] == [("GET", "bezel-l4-qat")]


@pytest.mark.slow
def test_the_revision_of_the_outputs_is_the_one_that_gets_the_traffic() -> None:
    seen: list[str] = []

    def program(rollout: str) -> None:
        made = make_plan({**SETTINGS, "rollout": rollout}, project="acme-llm", stack="l4-qat")
        deploy(made)["revision"].apply(seen.append)

    declare(lambda: program("gated"))
    declare(lambda: program("direct"))
    assert seen == [CREATED, REVISION]


@pytest.mark.slow
def test_in_a_first_preview_every_value_that_a_policy_judges_is_known() -> None:
    judged = [resource for resource in declare_plan(preview=True).all if resource.type.startswith("gcp:")]
    assert not [resource.name for resource in judged if has_unknown(resource.inputs)]


def test_any_other_rollout_is_refused() -> None:
    with pytest.raises(PlanError, match="write direct or gated"):
        declare_plan(rollout="canary")
