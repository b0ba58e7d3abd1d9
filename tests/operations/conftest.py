"""What tests of operations share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.leases.conftest import lease_api, trial, world  # noqa: F401 - the fixtures of leases
from tests.support.operations.deployed import Deployed, deployed_stack


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Deployed]:
    with deployed_stack(tmp_path) as deployment:
        yield deployment
