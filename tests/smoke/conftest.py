from collections.abc import Iterator

import pytest

from tests.support.rest.fake_google import Server, serving
from tests.support.smoke.fake_service import Project
from tests.support.smoke.plugin import Plugin, plugin_running


@pytest.fixture(scope="session")
def servers() -> Iterator[tuple[Server, Server]]:
    with serving() as google, serving() as vllm:
        yield google, vllm


@pytest.fixture
def project(servers: tuple[Server, Server]) -> Project:
    """A healthy service, anew for each test, behind the same two addresses."""
    return Project(*servers)


@pytest.fixture(scope="session")
def shared_plugin(servers: tuple[Server, Server], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plugin]:
    """One process for all tests, as the engine has one for all resources."""
    environment = Project(*servers).environment(tmp_path_factory.mktemp("plugin"))
    with plugin_running(environment) as running:
        yield running


@pytest.fixture
def plugin(shared_plugin: Plugin) -> Plugin:
    shared_plugin.engine.logged.clear()
    return shared_plugin
