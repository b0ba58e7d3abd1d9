"""Fixtures of localcloud as a process: a conftest imports those that its tests need."""

import pytest

from bezel_localcloud import control
from localcloud_support.client import Client, start_daemon


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory):
    """One daemon with fake containers for all tests that leave its resources as they found them."""
    directory = tmp_path_factory.mktemp("cloud")
    yield start_daemon(directory)
    control.stop(directory)


@pytest.fixture(scope="session")
def cloud(endpoint):
    """The deployer's client, with everything that a service needs in place."""
    client = Client(endpoint)
    client.prepare()
    return client


@pytest.fixture
def own_daemon(tmp_path):
    """A function that starts daemons of this test's own directory; the last one is stopped afterwards."""
    directory = tmp_path / "cloud"
    yield lambda **options: start_daemon(directory, **options)
    control.stop(directory)
