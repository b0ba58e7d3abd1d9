"""A rehearsal for a test, with its cloud stopped afterwards, whatever happened."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_stage import Stage
from rehearsal import Rehearsal
from strikes import Grounds

HERE = Path(__file__).parent


# Tests of these modules share a stack or a cloud: so many groups make one each, and run beside each other.
SHARES = {
    "test_faults": 3,
    "test_lease_stacks": 2,
    "test_faults_of_leases": 2,
    "test_rollout": 1,
    "test_faults_of_requests": 1,
    "test_policies": 1,
    "test_wrong_inputs": 1,
}
# The longest begin first, so that nobody waits for them in the end.
FIRST = ("test_lease_kill_points", "test_faults", "test_lease_stacks", "test_dynamic_kills", "test_kill_points",
         "test_life_of_a_stack", "test_faults_of_leases", "test_rollout", "test_faults_of_requests", "test_all_stacks",
         "test_policies")  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here runs the engine, or many processes: it is marked, put in groups, and begins first."""
    count: Counter[str] = Counter()
    for item in items:
        module = item.path.stem
        if HERE not in item.path.parents:
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
            continue
        item.add_marker(pytest.mark.slow)
        if shares := SHARES.get(module):
            item.add_marker(pytest.mark.xdist_group(f"{module}-{count[module] % shares}"))
            count[module] += 1
    items.sort(key=_turn)


def _turn(item: pytest.Item) -> int:
    if HERE not in item.path.parents:
        return len(FIRST) + 1
    return FIRST.index(item.path.stem) if item.path.stem in FIRST else len(FIRST)


@pytest.fixture
def rehearsal(tmp_path: Path) -> Iterator[Rehearsal]:
    """A checkout, and a cloud that does not run yet."""
    made = Rehearsal.new(tmp_path / "checkout", tmp_path / "cloud")
    yield made
    made.local("stop")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rehearsal]:
    """A checkout and a cloud for all tests of a module; none of them deploys anything."""
    folder = tmp_path_factory.mktemp("shared")
    made = Rehearsal.new(folder / "checkout", folder / "cloud")
    yield made
    made.local("stop")


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stack in service for all tests of a module."""
    made = Stage.set_up(tmp_path_factory.mktemp("stage"))
    yield made
    made.rehearsal.local("stop")


@pytest.fixture
def stage(deployed: Stage) -> Iterator[Stage]:
    """The stack in service, with no fault left on it afterwards."""
    yield deployed
    deployed.reset()


@pytest.fixture(scope="session")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Grounds:
    """Where kills begin, made once for all workers."""
    folder = tmp_path_factory.getbasetemp()
    # Each worker of xdist has a folder of its own in that of the whole run.
    return Grounds((folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "grounds")
