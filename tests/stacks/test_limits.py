"""Every operation on a resource of Google's has a limit, since the provider may try a request again until then."""

from typing import Any

import pytest

from bezel_pulumi_offline.resources import TYPES
from bezel_services.limits import CHANGE_SECONDS, DELETE_SECONDS, limited_operations
from tests.stacks.test_every_stack import STACKS, declare_as_written, declare_file
from tests.support.components.fake_engine import Declarations, Declared

SERVICE = "gcp:cloudrunv2/service:Service"
OPERATIONS = ("create", "update", "delete")
FULL = (f"{CHANGE_SECONDS:g}s", f"{CHANGE_SECONDS:g}s", f"{DELETE_SECONDS:g}s")


def resources(made: Declarations) -> list[Declared]:
    return [one for one in made.all if not one.type.startswith("pulumi:")]


@pytest.mark.slow
@pytest.mark.parametrize("stack", STACKS)
def test_every_limit_that_the_provider_keeps_is_set(stack: str) -> None:
    declared = resources(declare_as_written(stack)[0])
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
    (service,) = [one for one in resources(declare_as_written("l4-qat")[0]) if one.type == SERVICE]
    assert service.timeouts == ("2400s", "2400s", FULL[2])


@pytest.mark.slow
def test_a_deadline_lowers_every_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEZEL_DEADLINE_SECONDS", "60")
    made, _ = declare_file("l4-qat")
    limits = {limit for one in resources(made) if one.type.startswith("gcp:") for limit in one.timeouts}
    assert limits == {"60s", ""}
