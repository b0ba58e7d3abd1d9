"""Every operation on a resource of Google's has a limit, since the provider may try a request again until then."""

from typing import Any

import pytest

from bezel.planner import make_plan
from bezel_pulumi_offline.resources import TYPES
from bezel_services.limits import CHANGE_SECONDS, DELETE_SECONDS, limited_operations
from bezel_stacks.dispatch import deploy
from tests.stacks.test_every_stack import PROJECT, STACKS
from tests.support.components.fake_engine import Declared, declare

SERVICE = "gcp:cloudrunv2/service:Service"
OPERATIONS = ("create", "update", "delete")
FULL = (f"{CHANGE_SECONDS:g}s", f"{CHANGE_SECONDS:g}s", f"{DELETE_SECONDS:g}s")


def resources(stack: str) -> list[Declared]:
    plan = make_plan(PROJECT.configuration(stack), project="acme-llm", stack=stack)
    return [one for one in declare(lambda: deploy(plan), preview=True).all if not one.type.startswith("pulumi:")]


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_every_limit_that_the_provider_keeps_is_set(stack: str) -> None:
    declared = resources(stack)
    limits = {one.name: (one.type, one.timeouts) for one in declared if one.type != SERVICE}
    assert limits
    for kind, timeouts in limits.values():
        kept = limited_operations(kind)
        assert timeouts == tuple(limit if name in kept else "" for name, limit in zip(OPERATIONS, FULL, strict=True))


@pytest.mark.parametrize("kind", TYPES.values(), ids=lambda kind: kind.pulumi_type)
def test_no_limit_is_set_that_the_provider_ignores(kind: Any) -> None:
    never = {"gcp:kms/keyRing:KeyRing": {"update"}}  # a ring has nothing to update, so that no limit is ignored
    assert set(limited_operations(kind.pulumi_type)) - never.get(kind.pulumi_type, set()) == kind.timeouts


def test_a_resource_of_another_provider_has_no_limit() -> None:
    assert limited_operations("docker:index/image:Image") == ()


@pytest.mark.slow
def test_a_service_keeps_its_longer_limit_and_gets_one_for_its_deletion() -> None:
    (service,) = [one for one in resources("l4-qat") if one.type == SERVICE]
    assert service.timeouts == ("2400s", "2400s", FULL[2])


@pytest.mark.slow
def test_a_deadline_lowers_every_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEZEL_DEADLINE_SECONDS", "60")
    limits = {limit for one in resources("l4-qat") if one.type.startswith("gcp:") for limit in one.timeouts}
    assert limits == {"60s", ""}
