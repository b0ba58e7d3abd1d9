import sys
from pathlib import Path

import pytest

from bezel.localcloud import control

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory):
    """One localcloud for all copies."""
    directory = tmp_path_factory.mktemp("cloud")
    yield control.start(directory, speed=10_000)
    control.stop(directory)
