import os

import pytest

from bezel_localcloud import control
from localcloud_support.client import Client
from tests.support.e2e import warm_localcloud


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    """A localcloud with fake containers, of one module's own."""
    directory = tmp_path_factory.mktemp("cloud")
    yield warm_localcloud.start_fake(directory)
    control.stop(directory)


@pytest.fixture(scope="module")
def cloud(endpoint):
    """The deployer's client, with everything that a service needs in place."""
    client = Client(endpoint)
    client.prepare()
    return client


@pytest.fixture(scope="module")
def variables(endpoint, tmp_path_factory):
    """The variables of an outside program: those of `bezel local env`, a PATH, and a home of its own."""
    own_variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path_factory.mktemp("home"))}
    return own_variables | control.environment(endpoint)
