from collections.abc import Iterator

import pytest
from lease_trial import Trial, lead_to
from lease_world import World, world_serving


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
