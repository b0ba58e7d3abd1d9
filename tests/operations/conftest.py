"""What tests of operations share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel_localcloud import control
from bezel_localcloud.control import Endpoint
from tests.leases.conftest import lease_api, trial, world  # noqa: F401 - the fixtures of leases
from tests.support.e2e import warm_localcloud
from tests.support.operations.deployed import Deployed, deployed_stack


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Deployed]:
    with deployed_stack(tmp_path) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """One localcloud for all copies of weights."""
    directory = tmp_path_factory.mktemp("cloud")
    yield warm_localcloud.start(directory, "--speed", "10000")
    control.stop(directory)
