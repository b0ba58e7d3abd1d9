"""Faults of the wire while a lease is asked for, waited for and given back: what passes changes nothing."""

import pytest

from bezel.leases.controller import LeaseError
from bezel.leases.state.observation import Goal
from tests.support.leases.fake_lease_api import answers
from tests.support.leases.harness import LeaseHarness
from tests.support.rest.fake_google import Answer

pytestmark = pytest.mark.slow  # many whole runs


@pytest.mark.wide_cases("*-1")  # three faults begin with one
@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize(
    "fault",
    [
        Answer(reset=True),
        Answer(503, {"error": {"code": 503, "message": "unavailable", "status": "UNAVAILABLE"}}),
        Answer(429, {"error": {"code": 429, "message": "Requests per minute", "status": "RESOURCE_EXHAUSTED"}}),
        Answer(200, text="<html>"),
    ],
    ids=["reset", "503", "429", "malformed"],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_fault_that_passes_changes_nothing(trial: LeaseHarness, method: str, fault: Answer, times: int) -> None:
    trial.world.faults.append(answers(times, fault, method=method))
    assert trial.run() is not None
    assert len(trial.remaining()) == 1
    trial.world.faults.append(answers(times, fault, method=method))
    trial.run(Goal.GONE)
    assert trial.remaining() == []


@pytest.mark.parametrize(
    "fault", [Answer(reset=True), Answer(503, {"error": {"message": "no"}}), Answer(200, text="<")]
)
def test_a_lasting_fault_is_reported_in_bounded_time_and_nothing_is_lost(trial: LeaseHarness, fault: Answer) -> None:
    trial.run(Goal.STORED)
    trial.world.faults.append(answers(10**9, fault))
    begun = trial.world.now
    with pytest.raises(LeaseError, match="Google's API failed repeatedly") as caught:
        trial.run()
    assert "Repair: run the same command again" in str(caught.value)
    assert trial.world.now - begun < 1800
    trial.world.faults.clear()
    assert trial.run() is not None
    assert len(trial.remaining()) == 1
