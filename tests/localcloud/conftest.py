"""localcloud as a process, as the tests of its package have it, but forked."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bezel_localcloud import control
from bezel_localcloud.core.paths import Endpoint
from localcloud_support.fixtures import cloud
from tests.support.e2e import warm_localcloud

__all__ = ["cloud"]


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """One daemon with fake containers for all tests that leave its resources as they found them."""
    directory = tmp_path_factory.mktemp("cloud")
    yield warm_localcloud.start_fake(directory)
    control.stop(directory)


@pytest.fixture
def own_daemon(tmp_path: Path) -> Iterator[Callable[[], Endpoint]]:
    """A function that starts a daemon of this test's own directory, which is stopped afterwards."""
    directory = tmp_path / "cloud"
    yield lambda: warm_localcloud.start_fake(directory)
    control.stop(directory)
