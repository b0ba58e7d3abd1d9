from collections.abc import Iterator

import pytest

from tests.support.leases.fake_lease_api import World, world_serving
from tests.support.leases.harness import Trial, lead_to


@pytest.fixture(scope="module")
def served() -> Iterator[World]:
    with world_serving() as world:
        yield world


@pytest.fixture
def world(served: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """A fresh world on the module's server."""
    served.__init__(served.server)  # type: ignore[misc]
    lead_to(served, monkeypatch)
    return served


@pytest.fixture(params=["queued_resource", "flex_start_vm"])
def trial(request: pytest.FixtureRequest, world: World) -> Trial:
    """Every test of behaviour runs over both back ends."""
    return Trial(world, request.param)
