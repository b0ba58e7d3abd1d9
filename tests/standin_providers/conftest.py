from collections.abc import Iterator

import pytest

from bezel_pulumi_offline.fidelity.replay import Replay, StandIn
from pulumi_offline_support.fixtures import gcp, google
from tests.support.standin_providers.balancer_recordings import PLACE

__all__ = ["gcp", "google"]


@pytest.fixture(scope="module")
def replay() -> Iterator[Replay]:
    """A server that answers as it is recorded."""
    server = Replay()
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def stand_in(replay: Replay) -> Iterator[StandIn]:
    """A provider of our own whose requests go to `replay`."""
    provider = StandIn(replay.base, PLACE)
    yield provider
    provider.stop()
