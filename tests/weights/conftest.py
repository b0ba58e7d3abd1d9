import pytest

from bezel_localcloud import control
from tests.support.e2e import warm_localcloud


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory):
    """One localcloud for all copies."""
    directory = tmp_path_factory.mktemp("cloud")
    yield warm_localcloud.start(directory, "--speed", "10000")
    control.stop(directory)
