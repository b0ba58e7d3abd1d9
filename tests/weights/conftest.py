import pytest

from bezel_localcloud import control


@pytest.fixture(scope="session")
def endpoint(tmp_path_factory):
    """One localcloud for all copies."""
    directory = tmp_path_factory.mktemp("cloud")
    yield control.start(directory, speed=10_000)
    control.stop(directory)
