"""Every operation on a resource of Google's has a limit, since the provider may try a request again until then."""

import pytest

from bezel.planner import make_plan
from stacks.dispatch import deploy
from stacks.limits import CHANGE_SECONDS, DELETE_SECONDS
from tests.stacks.test_every_stack import PROJECT, STACKS
from tests.support.components.fake_engine import Declared, declare

SERVICE = "gcp:cloudrunv2/service:Service"
FULL = (f"{CHANGE_SECONDS:g}s", f"{CHANGE_SECONDS:g}s", f"{DELETE_SECONDS:g}s")


def resources(stack: str) -> list[Declared]:
    plan = make_plan(PROJECT.configuration(stack), project="acme-llm", stack=stack)
    return [one for one in declare(lambda: deploy(plan), preview=True).all if not one.type.startswith("pulumi:")]


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_every_resource_of_google_has_limits_and_no_other_has(stack: str) -> None:
    found = resources(stack)
    limits = {one.name: one.timeouts for one in found if one.type.startswith("gcp:") and one.type != SERVICE}
    assert limits
    assert set(limits.values()) == {FULL}
    assert {one.timeouts for one in found if not one.type.startswith("gcp:")} <= {("", "", "")}


@pytest.mark.slow
def test_a_service_keeps_its_own_longer_limit_and_gets_one_for_its_deletion() -> None:
    (service,) = [one for one in resources("l4-qat") if one.type == SERVICE]
    assert service.timeouts == ("2400s", "2400s", FULL[2])


@pytest.mark.slow
def test_a_deadline_lowers_every_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEZEL_DEADLINE_SECONDS", "60")
    limits = {one.timeouts for one in resources("l4-qat") if one.type.startswith("gcp:")}
    assert limits == {("60s", "60s", "60s")}
