"""Fixtures of localcloud as a process: a conftest imports those that its tests need."""

import pytest

from bezel_localcloud import control
from localcloud_support.client import Client, start_daemon
from localcloud_support.daemon_forks import DaemonForks
from localcloud_support.in_process import Project
from localcloud_support.served_port import ServedPort


@pytest.fixture(scope="session")
def daemon_forks():
    """Starts daemons as forks."""
    with DaemonForks() as forks:
        yield forks


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory, daemon_forks):
    """One daemon with fake containers for all tests that leave its resources as they found them."""
    directory = tmp_path_factory.mktemp("cloud")
    yield daemon_forks.start(directory)
    control.stop(directory)


@pytest.fixture(scope="session")
def cloud(endpoint):
    """The deployer's client, with everything that a service needs in place."""
    client = Client(endpoint)
    client.prepare()
    return client


@pytest.fixture
def own_daemon(tmp_path, daemon_forks):
    """A function that forks daemons of this test's own directory; the last one is stopped afterwards."""
    directory = tmp_path / "cloud"
    yield lambda **options: daemon_forks.start(directory, **options)
    control.stop(directory)


@pytest.fixture
def started_daemon(tmp_path):
    """As `own_daemon`, with daemons that are started as a user's are, by this process."""
    directory = tmp_path / "cloud"
    yield lambda **options: start_daemon(directory, **options)
    control.stop(directory)


@pytest.fixture
def project(tmp_path):
    """A localcloud in this process, of this test alone."""
    new_project = Project(tmp_path)
    yield new_project
    new_project.close()


@pytest.fixture(scope="module")
def served_port():
    """A port that is served as the daemon's is."""
    port = ServedPort()
    yield port
    port.close()
