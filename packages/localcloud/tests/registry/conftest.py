import pytest

from localcloud_support.registry_harness import Registry


@pytest.fixture
def registry(tmp_path):
    """A registry of this test alone."""
    new_registry = Registry(tmp_path)
    yield new_registry
    new_registry.close()
