"""All leases of a project: what a sweep would delete, what it leaves, and where a lease could be had."""

import math
from typing import Any

import pytest

from bezel.leases.availability import PROBE_STACK, probe
from bezel.leases.clock import PlatformClock
from bezel.leases.controller import LeaseError
from bezel.leases.inventory import LeaseInventory, back_end_of, new_client, sweep_plan
from bezel.leases.names import BY_HAND
from bezel.leases.requests import LeaseSpec, ZoneChoice
from bezel.leases.state.observation import Goal, Observation, State
from tests.support.leases.fake_lease_api import Zone, answers, error
from tests.support.leases.harness import NAME, STACK, ZONES, LeaseHarness, body_of
from tests.support.rest.fake_google import Answer, serving

pytestmark = pytest.mark.slow

FIRST, SECOND = ZONES


def fleet_of(trial: LeaseHarness, client: Any) -> LeaseInventory:
    return LeaseInventory(client, trial.world.clock, "acme", ZONES)


def seen_lease(state: State = State.ACTIVE, **more: Any) -> Observation:
    labels = {"managed-by": "bezel", "stack": more.pop("stack", STACK), "bezel-lease": NAME}
    return Observation(FIRST, NAME, state, "WORD", labels=labels, **more)


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (seen_lease(), ""),
        (seen_lease(State.WAITING), ""),
        (seen_lease(State.FAILED, reason="no capacity"), "no capacity; it uses quota until it is deleted"),
        (seen_lease(State.ENDED), "ended (WORD); it uses quota until it is deleted"),
        (seen_lease(ends_at=99.0), "its run duration is over"),
        (seen_lease(ends_at=101.0), ""),
        (seen_lease(State.ENDED, kind="node"), "a node whose request is gone"),
        (seen_lease(stack="old"), "its stack old does not exist"),
        (seen_lease(stack="doomed"), "of the stack doomed"),
        (seen_lease(stack=BY_HAND), ""),
        (seen_lease(State.ENDED, stack=BY_HAND), "ended (WORD); it uses quota until it is deleted"),
        (Observation(FIRST, NAME, State.FAILED, labels={"team": "research"}), ""),
    ],
)
def test_a_sweep_plans_what_is_over_or_left_over_and_nothing_else(one: Observation, why: str) -> None:
    plan = sweep_plan([one], now=100.0, of_stacks={"doomed"}, known_stacks={STACK, "doomed"})
    assert [leftover.why for leftover in plan] == ([why] if why else [])


def test_without_a_list_of_stacks_no_stack_is_taken_for_gone() -> None:
    assert sweep_plan([seen_lease(stack="old")], now=100.0) == []


def test_a_sweep_does_what_its_plan_says(trial: LeaseHarness) -> None:
    trial.run()
    with new_client(trial.world.clock) as client:
        fleet = fleet_of(trial, client)
        (lease,) = fleet.list()
        assert (lease.zone, lease.name, lease.state, lease.stack) == (FIRST, NAME, State.ACTIVE, STACK)
        assert sweep_plan(fleet.list(), now=trial.world.now) == []
        assert fleet.sweep(sweep_plan(fleet.list(), now=trial.world.now, of_stacks={STACK})) == {}
    assert trial.remaining() == []


def test_what_is_not_ours_is_not_listed_and_not_deleted(trial: LeaseHarness) -> None:
    trial.run()
    body = trial.world.leases[0].body
    (body["tpu"]["nodeSpec"][0]["node"] if "tpu" in body else body)["labels"] = {"team": "research"}
    with new_client(trial.world.clock) as client:
        fleet = fleet_of(trial, client)
        assert fleet.list() == []
        with pytest.raises(LeaseError, match="no lease of this name has these labels"):
            fleet.delete(back_end_of(trial.kind, client, "acme").observe(FIRST, NAME))
    assert len(trial.remaining()) == 1


def test_what_is_no_lease_of_ours_any_more_stays(trial: LeaseHarness) -> None:
    """What is no lease of ours any more stays and is not said to be gone."""
    trial.run()
    body = trial.world.leases[0].body
    with new_client(trial.world.clock) as client:
        fleet = fleet_of(trial, client)
        (lease,) = fleet.list()
        (body["tpu"]["nodeSpec"][0]["node"] if "tpu" in body else body)["labels"] = {"team": "research"}
        with pytest.raises(LeaseError, match=r"= .* after its deletion"):
            fleet.delete(lease)
    assert len(trial.remaining()) == 1


def test_a_node_whose_request_is_gone_is_found_and_deleted(trial: LeaseHarness) -> None:
    node = {
        "name": f"projects/acme/locations/{SECOND}/nodes/{NAME}",
        "state": "READY",
        "acceleratorType": "v6e-4",
        "labels": {"managed-by": "bezel", "stack": STACK, "bezel-lease": NAME},
    }
    trial.world.lone_nodes[SECOND, NAME] = node
    with new_client(trial.world.clock) as client:
        fleet = fleet_of(trial, client)
        plan = sweep_plan(fleet.list(), now=trial.world.now)
        assert [leftover.why for leftover in plan] == ["a node whose request is gone"]
        assert fleet.sweep(plan) == {}
    assert trial.world.lone_nodes == {}


def test_a_description_tells_the_boot_and_where_there_is_one_the_console(trial: LeaseHarness) -> None:
    trial.run()
    with new_client(trial.world.clock) as client:
        fleet = fleet_of(trial, client)
        (lease,) = fleet.list()
        phases, console = fleet.boot(lease)
    assert lease.state == "active"
    assert phases["healthy"].state == "done"
    assert console == (["bezel: starting"] if trial.kind == "flex_start_vm" else [])


@pytest.mark.parametrize(
    ("script", "granted", "text"),
    [
        (Zone(), True, "granted after"),
        (Zone(queue_seconds=math.inf), False, "not granted within"),
        (Zone(queue_error="no capacity", queue_seconds=20), False, ""),
        (Zone(refusal=(400, "FLEX_START provisioning model is not supported")), None, "is not supported"),
    ],
    ids=["granted", "waits", "stock-out", "refused"],
)
def test_a_probe_says_whether_there_is_capacity_and_leaves_nothing(
    trial: LeaseHarness, script: Zone, granted: bool | None, text: str
) -> None:
    trial.world.zones[FIRST] = Zone(**vars(script))
    body = body_of(trial.kind, name="bezel-probe", stack=PROBE_STACK)
    spec = LeaseSpec("acme", "bezel-probe", PROBE_STACK, trial.kind, (ZoneChoice(FIRST, 90.0),), {}, body)
    with new_client(trial.world.clock) as client:
        back_end = back_end_of(trial.kind, client, "acme")
        answer = probe(back_end, spec, trial.world.clock, 60.0)
        assert back_end.has_hardware(FIRST, "v6e-4" if trial.kind == "queued_resource" else "ct6e-standard-4t")
        assert not back_end.has_hardware(FIRST, "v9z")
    assert answer.granted is granted
    assert text in answer.result
    assert trial.remaining() == []


def test_a_probe_that_cannot_be_made_names_the_reason(
    trial: LeaseHarness,
) -> None:
    """A probe that cannot be made names the reason and leaves the lease of another stack."""

    def spec(stack: str) -> LeaseSpec:
        body = body_of(trial.kind, name="bezel-probe", stack=stack)
        return LeaseSpec("acme", "bezel-probe", stack, trial.kind, (ZoneChoice(FIRST, 90.0),), {}, body)

    trial.run(Goal.STORED, spec("research"))
    with new_client(trial.world.clock) as client:
        result = probe(back_end_of(trial.kind, client, "acme"), spec(PROBE_STACK), trial.world.clock, 60.0)
    assert result.granted is None
    assert "stack=research" in result.result
    assert "did not request this lease" in result.result
    assert len(trial.remaining()) == 1


@pytest.mark.parametrize(
    ("message", "state"),
    [
        ("Resource 'projects/acme/locations/us-nowhere1-a' not found or access is unauthorized.", State.REFUSED),
        ("Resource 'projects/acme/locations/us-nowhere1-a/queuedResources/l' was not found.", State.ABSENT),
    ],
)
def test_a_zone_that_the_api_does_not_know_refuses(trial: LeaseHarness, message: str, state: State) -> None:
    """A zone that the API does not know refuses and one without the lease does not."""
    trial.world.faults.append(answers(10**9, error(404, message, "NOT_FOUND")))
    with new_client(trial.world.clock) as client:
        observation = back_end_of(trial.kind, client, "acme").observe("us-nowhere1-a", NAME)
    assert observation.state is state


def test_a_list_that_would_be_incomplete_is_an_error(trial: LeaseHarness) -> None:
    trial.world.faults.append(answers(10**9, error(403, "the API is disabled"), method="GET", path=SECOND))
    trial.run(Goal.STORED, trial.spec(zones=(FIRST,)))
    with new_client(trial.world.clock) as client, pytest.raises(Exception, match="the API is disabled"):
        fleet_of(trial, client).list()


def test_quickened_time_leaves_an_answer_the_time_that_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_OAUTH_ACCESS_TOKEN", "t")
    with serving() as server:
        server.routes.append(lambda _: Answer(chunks=[0.4, b"{}"]))
        # A minute of the platform is over in 60 microseconds.
        with new_client(PlatformClock(speed=1_000_000)) as client:
            assert client.get(f"{server.url}/x") == {}
