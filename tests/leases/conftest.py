from collections.abc import Iterator

import pytest

from tests.support.leases.fake_lease_api import FakeLeaseApi, lease_api_serving
from tests.support.leases.harness import LeaseHarness, point_at


@pytest.fixture(scope="module")
def lease_api() -> Iterator[FakeLeaseApi]:
    with lease_api_serving() as world:
        yield world


@pytest.fixture
def world(lease_api: FakeLeaseApi, monkeypatch: pytest.MonkeyPatch) -> FakeLeaseApi:
    """A fresh world on the module's server."""
    lease_api.__init__(lease_api.server)  # type: ignore[misc]
    point_at(lease_api, monkeypatch)
    return lease_api


@pytest.fixture(params=["queued_resource", "flex_start_vm"])
def trial(request: pytest.FixtureRequest, world: FakeLeaseApi) -> LeaseHarness:
    """Every test of behaviour runs over both back ends."""
    return LeaseHarness(world, request.param)
