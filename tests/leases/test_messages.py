"""What a lease does on its straight way, over both back ends: asked for, waited for, adopted, given back."""

import pytest

from bezel.leases.controller import LeaseError
from bezel.leases.state.observation import Goal, State
from tests.support.leases.harness import NAME, ZONES, LeaseHarness

FIRST, SECOND = ZONES


def test_a_lease_is_requested_in_the_best_zone_and_awaited(trial: LeaseHarness) -> None:
    """A lease is asked for in the best zone and waited for until it serves."""
    got = trial.run()
    assert got is not None
    assert (got.zone, got.state, got.address) == (FIRST, State.ACTIVE, "10.64.0.1")
    assert got.ends_at == pytest.approx((got.active_at or 0) + 14400)
    assert [one.zone for one in trial.remaining()] == [FIRST]
    assert trial.world.now - trial.world.leases[0].created >= 10 + 10 + 20


def test_the_request_alone_is_not_waited_for(trial: LeaseHarness) -> None:
    trial.world.zone(FIRST).queue_seconds = 250
    got = trial.run(Goal.STORED)
    assert got is not None
    assert got.state is State.WAITING
    assert trial.world.now == trial.world.leases[0].created


def test_what_an_interrupted_run_asked_for_is_adopted(trial: LeaseHarness) -> None:
    trial.run(Goal.STORED)
    trial.world.advance(30)
    got = trial.run()
    assert got is not None
    assert len(trial.world.leases) == 1


@pytest.mark.slow
def test_what_was_asked_for_otherwise_is_deleted_and_asked_for_anew(trial: LeaseHarness) -> None:
    trial.run()
    got = trial.run(spec=trial.spec(image="vllm@sha256:2"))
    assert got is not None
    assert [one.number for one in trial.remaining()] == [2]


def test_what_is_not_ours_is_left_alone(trial: LeaseHarness) -> None:
    trial.run(Goal.STORED)
    _relabel(trial, {"team": "research"})
    before = trial.calls("DELETE")
    for goal in (Goal.STORED, Goal.HEALTHY):
        with pytest.raises(LeaseError, match="team=research") as caught:
            trial.run(goal)
        assert "so it is not changed" in str(caught.value)
    assert trial.run(Goal.GONE) is None
    assert trial.calls("DELETE") == before
    assert len(trial.remaining()) == 1


def test_an_owner_with_many_labels_is_named_by_all_of_them(trial: LeaseHarness) -> None:
    labels = {f"label-{number}": "research-department" for number in range(16)}
    trial.run(Goal.STORED)
    _relabel(trial, labels)
    with pytest.raises(LeaseError) as error:
        trial.run(Goal.STORED)
    assert all(f"{key}={value}" in str(error.value) for key, value in labels.items())


def test_a_lease_of_another_stack_is_left_alone(trial: LeaseHarness) -> None:
    trial.run(Goal.STORED)
    with pytest.raises(LeaseError, match="the stack other did not request"):
        trial.run(Goal.STORED, trial.spec(stack="other"))
    trial.run(Goal.GONE, trial.spec(stack="other"))
    assert len(trial.remaining()) == 1


@pytest.mark.slow
def test_a_404_during_the_deletion_is_as_good_as_gone(trial: LeaseHarness) -> None:
    trial.run(Goal.STORED)
    trial.world.leases[0].deleted = trial.world.now - 4.9
    trial.run(Goal.GONE)
    assert trial.remaining() == []


def test_a_repeated_ask_is_the_same_request(trial: LeaseHarness) -> None:
    """The answer to the first POST is lost; its repeat carries the same id and makes no second lease."""
    trial.world.zone(FIRST).late_seconds = 0.0001
    assert trial.run() is not None
    assert [one.name for one in trial.world.leases] == [NAME]


def _relabel(trial: LeaseHarness, labels: dict[str, str]) -> None:
    body = trial.world.leases[0].body
    holder = body["tpu"]["nodeSpec"][0]["node"] if "tpu" in body else body
    holder["labels"] = labels
