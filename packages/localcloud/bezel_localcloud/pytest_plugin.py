"""pytest plugin: the fixture `localcloud`, Google Cloud's APIs for the tests of a session.

One for a session, with pytest-xdist one for each worker: started when a test first asks for it, in a temporary folder,
and ended with the session, or with the process of pytest however that ends. The ini options below say what it has.

Every run of pytest in the environment loads this module, so it imports the rest late. What the fixture is, is in
`bezel_localcloud.session`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel_localcloud.session import Localcloud, Settings

_ENABLE, _SEED, _SPEED = "localcloud_enable", "localcloud_seed", "localcloud_speed"
_SERVER, _MODEL, _PROJECT = "localcloud_server", "localcloud_model", "localcloud_project"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini options."""
    parser.addini(_ENABLE, "APIs that localcloud's project has enabled, e.g. run secretmanager, or all", type="args")
    parser.addini(_SEED, "folder whose folders become buckets of localcloud, and their files objects", type="paths")
    parser.addini(_SPEED, "factor by which localcloud shortens the platform's waits (default: 1000)", default="1000")
    parser.addini(_SERVER, "server behind each service of localcloud: sim, or vllm (default: sim)", default="sim")
    parser.addini(_MODEL, "folder of the model that localcloud_server = vllm serves", type="paths")
    parser.addini(_PROJECT, "id of localcloud's project (default: bezel-local)", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Check the ini options, if there are any."""
    defaults = {_SPEED: "1000", _SERVER: "sim"}
    names = (_ENABLE, _SEED, _SPEED, _SERVER, _MODEL, _PROJECT)
    if all((config.getini(name) or None) == defaults.get(name) for name in names):
        return
    from bezel_base.errors import UserError

    try:
        _settings(config)
    except UserError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.fixture(scope="session")
def localcloud(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Localcloud]:
    """Google Cloud's APIs on this machine: address, project, credentials, variables for clients, faults, reset."""
    from bezel_base.errors import UserError
    from bezel_localcloud.session import serve_session

    with contextlib.ExitStack() as stack:
        try:
            served = serve_session(tmp_path_factory.mktemp("localcloud"), _settings(request.config))
            cloud = stack.enter_context(served)
        except UserError as error:
            pytest.fail(f"localcloud: {error}", pytrace=False)
        yield cloud


def _settings(config: pytest.Config) -> Settings:
    from bezel_localcloud.session import Settings

    return Settings.read(
        enable=config.getini(_ENABLE),
        seed=config.getini(_SEED),
        speed=config.getini(_SPEED),
        server=config.getini(_SERVER),
        model=config.getini(_MODEL),
        project=config.getini(_PROJECT),
    )
