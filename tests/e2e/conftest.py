"""A rehearsal for a test, with its cloud stopped afterwards, whatever happened."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.e2e.fault_harness import FaultHarness
from tests.support.e2e.kill_points import KillHarness
from tests.support.e2e.rehearsal import BOTH_PACKS, Rehearsal, Run
from tests.support.run_folder import run_folder
from tests.support.tools.fresh_environment import wheels

__all__ = ["wheels"]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Everything here runs the engine, or many processes."""
    item.add_marker(pytest.mark.slow)


@pytest.fixture
def rehearsal(tmp_path: Path) -> Iterator[Rehearsal]:
    """A checkout, and a cloud that does not run yet."""
    made = Rehearsal.new(tmp_path / "checkout", tmp_path / "cloud")
    yield made
    made.stop_cloud()


@pytest.fixture(scope="session")
def shared_rehearsal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """A checkout and a cloud for all tests in which nothing is ever made, with a short benchmark."""
    folder = tmp_path_factory.mktemp("shared")
    made = Rehearsal.new(folder / "checkout", folder / "cloud")
    made.set("smoke", {"requests": 1, "concurrency": 1, "prompt_tokens": 32, "output_tokens": 2})
    yield made
    made.stop_cloud()


@pytest.fixture(scope="session")
def first_preview(shared_rehearsal: Rehearsal) -> Run:
    """The preview, judged by both packs, of a stack that was never seen before; it is known afterwards."""
    return shared_rehearsal.local("preview", "l4-qat", "--", *BOTH_PACKS)


@pytest.fixture(scope="session")
def deployed_stage(grounds: KillHarness, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultHarness]:
    """A stack in service for all tests that may change it."""
    with FaultHarness.set_up(grounds, tmp_path_factory.mktemp("stage")) as made:
        yield made


@pytest.fixture
def stage(deployed_stage: FaultHarness) -> Iterator[FaultHarness]:
    """The stack in service, with no fault left on it afterwards."""
    yield deployed_stage
    deployed_stage.reset()


@pytest.fixture(scope="session")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> KillHarness:
    """Where rehearsals begin, made once for all workers."""
    return KillHarness(run_folder(tmp_path_factory) / "grounds")
