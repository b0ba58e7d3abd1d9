"""The way of a request for a machine: a function of time, however seldom it is looked up."""

import pytest

from bezel_localcloud.machines.capacity import Held, exceeded_quotas, free_machines, goods, quota_values, waits, zones
from bezel_localcloud.machines.lifecycle import GONE, Conditions, Life, advance, move, new_life

WAITS = {"creating": 10, "accepted": 20, "provisioning": 90, "stock_out": 600, "suspending": 40, "deleting": 60}
FULL, EMPTY = Conditions(WAITS, in_stock=True), Conditions(WAITS, in_stock=False)


def way(life: Life, until: float, conditions: Conditions = FULL) -> list[tuple[str, float]]:
    """(state, when it began) of everything that a request goes through up to a time."""
    states = [(life.state, life.since)]
    while (after := advance(life, until, conditions)) is not None:
        life = after
        states.append((life.state, life.since))
    return states


def test_a_granted_request_runs_for_its_time_however_often_it_is_read():
    """A request that is granted runs for its time and is over then, however often it is read."""
    whole = [
        ("CREATING", 0),
        ("ACCEPTED", 10),
        ("PROVISIONING", 30),
        ("ACTIVE", 120),
        ("SUSPENDING", 1120),
        ("SUSPENDED", 1160),
    ]
    assert way(new_life(0, 7200, 1000), 1e9) == whole
    for steps, (_, at) in enumerate(whole):
        assert way(new_life(0, 7200, 1000), at) == whole[: steps + 1]
    assert way(new_life(0, 7200, None), 1e9) == whole[:4]


def test_a_request_without_capacity_waits_while_it_is_valid_and_no_longer():
    waiting = [("CREATING", 0), ("WAITING_FOR_RESOURCES", 10)]
    assert way(new_life(0, 7200, 1000), 7199, EMPTY) == waiting
    assert way(new_life(0, 7200, 1000), 1e9, EMPTY) == [*waiting, ("FAILED", 7200)]
    assert way(new_life(0, None, 1000), 1e9, EMPTY) == waiting
    assert way(new_life(0, 0, 1000), 10, EMPTY) == [*waiting, ("FAILED", 10)]


def test_a_request_that_waits_is_granted_when_capacity_comes():
    life = move(new_life(0, 7200, 1000), "WAITING_FOR_RESOURCES", 10)
    assert way(life, 500)[1] == ("PROVISIONING", 500)
    assert way(life, 7200)[1] == ("FAILED", 7200)


def test_a_zone_gives_up_before_the_request_is_over_if_earlier():
    """A zone that gives up does so before the request is over if that is earlier."""
    gives_up = Conditions(WAITS, in_stock=False, gives_up=True)
    life = advance(move(new_life(0, 7200, 1000), "WAITING_FOR_RESOURCES", 10), 1e9, gives_up)
    assert (life.state, life.since, life.failure) == ("FAILED", 610, "stock-out")
    life = advance(move(new_life(0, 300, 1000), "WAITING_FOR_RESOURCES", 10), 1e9, gives_up)
    assert (life.since, life.failure) == (300, "not valid any more")


def test_a_machine_that_is_never_ready_fails():
    """A machine that is never ready fails and one that is deleted is gone."""
    never = Conditions(WAITS, in_stock=True, never_ready=3600)
    assert way(move(new_life(0, None, 1000), "PROVISIONING", 30), 3629, never) == [("PROVISIONING", 30)]
    assert way(move(new_life(0, None, 1000), "PROVISIONING", 30), 3630, never)[1:] == [("FAILED", 3630)]
    assert way(move(new_life(0, None, 1000), "DELETING", 50), 110)[1:] == [(GONE, 110)]


def machine(state, zone="us-east5-a", kind="v6e-4", model="FLEX_START", api="tpu"):
    return Held(api, zone, kind, model, state)


@pytest.mark.parametrize(
    ("state", "taken"), [("CREATING", 0), ("ACCEPTED", 1), ("ACTIVE", 1), ("SUSPENDED", 0), ("FAILED", 0)]
)
def test_what_holds_a_machine_takes_it_from_the_zones_stock_for_both_apis(state, taken):
    before = free_machines("us-east5-a", "v6e-4", [])
    assert before > 0
    assert free_machines("us-east5-a", "v6e-4", [machine(state, api="compute")]) == before - taken
    assert free_machines("us-east5-b", "v6e-4", [machine(state)]) == free_machines("us-east5-b", "v6e-4", [])
    assert free_machines("nowhere", "v6e-4", []) == 0


def test_a_quota_counts_all_requests_that_are_not_deleted():
    """A quota counts what is not deleted in any state by zone or region and by model."""
    allowed = dict.fromkeys(quota_values(), 8)
    both = [machine("SUSPENDED"), machine("FAILED")]
    assert list(exceeded_quotas(machine(""), both, allowed)) == [("TPUV6EPreemptiblePerProjectPerZoneForTPUAPI", 8, 8)]
    assert not list(exceeded_quotas(machine(""), both[:1], allowed))
    assert not list(exceeded_quotas(machine("", model="STANDARD"), both, allowed))
    assert not list(exceeded_quotas(machine("", zone="us-east5-b"), both, allowed))
    machines = [machine("ACTIVE", api="compute", zone="us-east5-b")] * 2
    assert [quota for quota, _, _ in exceeded_quotas(machine("", api="compute"), machines, allowed)] == [
        "PREEMPTIBLE-TPU-V6E-per-project-region",
        "TPUS-PER-TPU-FAMILY-per-project-region",
    ]


def test_the_table_of_zones_shows_a_move_and_names_known_kinds_only():
    assert zones()["europe-west4-a"].stock["v6e-4"] == 0
    assert zones()["europe-west4-a"].stock_out
    assert all(zones()["us-east5-a"].stock[kind] > 0 for kind in ("v6e-1", "v6e-4", "v6e-8"))
    assert {kind for zone in zones().values() for kind in zone.stock} == goods().keys()
    assert waits().keys() == WAITS.keys()
