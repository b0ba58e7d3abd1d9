import pytest

from tests.support.gitops import forge as forges
from tests.support.gitops.programs import program
from tests.support.tools.fresh_environment import wheels

__all__ = ["wheels"]


@pytest.fixture(scope="module")
def forge(tmp_path_factory):
    """A forge of the module's own, with an empty repository."""
    with forges.running(program("gitea"), tmp_path_factory.mktemp("forge") / "gitea") as running:
        running.call("POST", "/user/repos", {"name": forges.REPOSITORY, "default_branch": "main", "private": False})
        yield running


@pytest.fixture(scope="session")
def act():
    """The program act."""
    return program("act") / "act"
