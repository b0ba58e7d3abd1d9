"""One set of behaviours, over both back ends: moved on, found late, given back, told when it does not end."""

import math

import pytest

from bezel.leases.controller import LeaseError
from bezel.leases.state.observation import Goal
from bezel.rest import RestError
from tests.support.leases.fake_lease_api import Zone, answers, error
from tests.support.leases.harness import ZONES, LeaseHarness
from tests.support.rest.fake_google import Answer

pytestmark = pytest.mark.slow  # simulated hours are thousands of calls
FIRST, SECOND = ZONES


def test_each_state_is_shown_with_elapsed_and_remaining_time(trial: LeaseHarness) -> None:
    trial.world.zones[FIRST] = Zone(queue_seconds=100, provision_seconds=60, boot_seconds=120)
    trial.run()
    shown = "\n".join(trial.lines)
    waiting = "WAITING_FOR_RESOURCES" if trial.kind == "queued_resource" else "PENDING"
    assert f"{FIRST}: {waiting} for 45 s, 4 min left, then {SECOND}" in shown
    assert f"{FIRST}: PROVISIONING for 45 s, 29 min left" in shown
    assert "boot 40 s, 59 min left; network done, image running" in shown
    assert "network done, image done, weights done, compile done, healthy running" in shown


STOCK_OUTS = (
    Zone(operation_error='There is no more capacity in the zone "us-east5-a"'),
    Zone(operation_error="ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: try another zone"),
    Zone(queue_error="ZONE_RESOURCE_POOL_EXHAUSTED", queue_seconds=100),
    Zone(refusal=(400, "FLEX_START provisioning model is not supported")),
    Zone(refusal=(404, "accelerator type v6e-4 not found in zone")),
    Zone(refusal=(403, "zone not supported for this project")),
    Zone(refusal=(429, "Quota limit 'TPUV6EPreemptiblePerProjectPerZoneForTPUAPI' has been exceeded")),
    Zone(queue_seconds=math.inf),
)


@pytest.mark.parametrize(
    "script", STOCK_OUTS, ids=lambda zone: zone.operation_error or zone.queue_error or str(zone.refusal)
)
def test_a_zone_that_gives_nothing_is_left_clean_and_the_next_is_asked(trial: LeaseHarness, script: Zone) -> None:
    trial.world.zones[FIRST] = Zone(**vars(script))
    got = trial.run()
    assert got is not None
    assert got.zone == SECOND
    assert [one.zone for one in trial.remaining()] == [SECOND]


def test_a_zone_that_gives_something_is_not_left(trial: LeaseHarness) -> None:
    trial.world.zone(FIRST).queue_seconds = 290
    got = trial.run()
    assert got is not None
    assert got.zone == FIRST
    assert len(trial.world.leases) == 1


def test_each_zone_is_reported_with_its_reason_when_none_has_capacity(trial: LeaseHarness) -> None:
    """When no zone gives anything each is reported with its reason and nothing is left."""
    trial.world.zones[FIRST] = Zone(refusal=(400, "FLEX_START provisioning model is not supported"))
    trial.world.zones[SECOND] = Zone(queue_seconds=math.inf)
    with pytest.raises(LeaseError) as caught:
        trial.run()
    text = str(caught.value)
    assert f"{FIRST}: 400 TEST: FLEX_START provisioning model is not supported" in text
    assert f"{SECOND}: " in text
    assert "Repair: " in text
    assert trial.remaining() == []


def test_a_lease_that_ended_is_bought_again_only_where_that_may_be(trial: LeaseHarness) -> None:
    trial.run()
    trial.world.advance(15000)
    assert trial.run(may_request=False) is None
    assert len(trial.world.leases) == 1
    got = trial.run(may_request=True)
    assert got is not None
    assert [one.number for one in trial.remaining()] == [2]


def test_a_late_fill_is_found_and_one_lease_is_left(trial: LeaseHarness) -> None:
    """The create timed out at the client; the next zone gave a lease; then the first request was stored after all."""
    trial.world.zone(FIRST).late_seconds = 400
    trial.world.faults.append(_late_then_refused())
    got = trial.run()
    assert got is not None
    assert got.zone == SECOND
    assert len(trial.remaining()) == 2
    trial.world.advance(500)
    again = trial.run(may_request=False, current=got.id)
    assert again is not None
    assert again.id == got.id
    assert [one.zone for one in trial.remaining()] == [SECOND]


def test_a_late_fill_during_the_wait_is_deleted_too(trial: LeaseHarness) -> None:
    trial.world.zone(SECOND).queue_seconds = 280
    trial.world.zone(FIRST).late_seconds = 200
    trial.world.faults.append(_late_then_refused())
    got = trial.run()
    assert got is not None
    assert [one.zone for one in trial.remaining()] == [got.zone]


def test_a_deletion_that_is_refused_during_provisioning_is_repeated(trial: LeaseHarness) -> None:
    """A deletion that is refused while it is provisioned is asked for again."""
    trial.world.zone(FIRST).provision_seconds = 300
    trial.run(Goal.STORED)
    trial.world.advance(60)
    begun = trial.world.now
    trial.run(Goal.GONE)
    assert trial.remaining() == []
    assert 240 < trial.world.now - begun < 500


def test_a_slow_deletion_is_waited_for(trial: LeaseHarness) -> None:
    trial.world.zone(FIRST).delete_seconds = 300
    trial.run()
    trial.run(Goal.GONE)
    assert trial.remaining() == []
    assert any("waiting for the deletion" in line for line in trial.lines)


def test_a_deletion_that_does_not_end_is_reported_in_bounded_time(trial: LeaseHarness) -> None:
    trial.world.zone(FIRST).delete_seconds = math.inf
    trial.run(Goal.STORED)
    begun = trial.world.now
    with pytest.raises(LeaseError, match="after its deletion began") as caught:
        trial.run(Goal.GONE, delete_seconds=300)
    assert "Repair: " in str(caught.value)
    assert trial.world.now - begun < 400


def test_the_next_zone_is_asked_only_after_the_first_was_seen_empty(trial: LeaseHarness) -> None:
    trial.world.zones[FIRST] = Zone(queue_seconds=math.inf, delete_seconds=200)
    trial.world.zone(SECOND)
    trial.run()
    first, second = trial.world.leases
    if trial.kind == "queued_resource":
        assert first.deleted is not None
        assert second.created >= first.deleted + 200
    assert len(trial.remaining()) == 1


def test_an_endless_operation_is_reported_in_bounded_time(
    trial: LeaseHarness,
) -> None:
    """An endless operation is reported in bounded time and its request is found later."""
    trial.world.zone(FIRST).store_seconds = 5000
    with pytest.raises(LeaseError, match="neither stored nor refused") as caught:
        trial.run()
    assert "may still be stored" in str(caught.value)
    trial.world.advance(6000)
    trial.world.zone(FIRST).queue_seconds = trial.world.now - trial.world.leases[0].created + 60
    trial.world.leases[0].patience = math.inf
    trial.run(Goal.GONE)
    assert trial.remaining() == []


def test_a_refusal_that_is_the_callers_own_is_reported_as_it_is(trial: LeaseHarness) -> None:
    trial.world.faults.append(answers(10**9, error(403, "Permission tpu.queuedResources.get denied"), method="GET"))
    with pytest.raises(RestError, match="Permission"):
        trial.run()
    assert trial.remaining() == []


def test_a_lease_that_is_never_provisioned_is_reported_and_stays(trial: LeaseHarness) -> None:
    trial.world.zone(FIRST).provision_seconds = math.inf
    with pytest.raises(LeaseError, match=r"still PROVISIONING after 6\d s") as caught:
        trial.run(provisioning_seconds=60)
    assert "5.40 USD/h" in str(caught.value)
    assert len(trial.remaining()) == 1


def test_a_phase_that_failed_ends_the_wait_with_its_text(trial: LeaseHarness) -> None:
    trial.world.zone(FIRST).broken_phase = "weights"
    with pytest.raises(LeaseError, match=r"failed in the phase weights\n   it broke") as caught:
        trial.run()
    assert "the lease continues at 5.40 USD/h" in str(caught.value)


def test_a_node_that_never_gets_healthy_is_reported_with_its_phase(trial: LeaseHarness) -> None:
    """A node that never gets healthy is reported with its last phase and what goes on."""
    trial.world.zone(FIRST).boot_seconds = 36000
    with pytest.raises(LeaseError, match=r"not healthy\n   network running") as caught:
        trial.run(hourly_usd={}, boot_seconds=60)
    assert "at an unknown price" in str(caught.value)
    assert len(trial.remaining()) == 1


def test_a_node_that_goes_while_it_boots_is_requested_in_the_next_zone(trial: LeaseHarness) -> None:
    """A node that is taken away while it boots is asked for in the next zone."""
    trial.world.zone(FIRST).preempted_seconds = 12
    got = trial.run()
    assert got is not None
    assert got.zone == SECOND
    assert len(trial.remaining()) == 1


def test_a_lease_in_a_zone_that_is_no_longer_listed_is_kept(trial: LeaseHarness) -> None:
    """A lease in a zone that is not listed any more is kept while it lives."""
    trial.run()
    got = trial.run(spec=trial.spec(zones=(SECOND,), former_zones=(FIRST,)))
    assert got is not None
    assert got.zone == FIRST
    trial.run(Goal.GONE, trial.spec(zones=(SECOND,), former_zones=(FIRST,)))
    assert trial.remaining() == []


def test_a_zone_that_does_not_exist_is_no_reason_not_to_give_back(trial: LeaseHarness) -> None:
    trial.run()
    spec = trial.spec(zones=(FIRST, "us-nowhere1-a"))
    gone = error(403, "Permission denied on 'locations/us-nowhere1-a' (or it may not exist).", "PERMISSION_DENIED")
    trial.world.faults.append(answers(10**9, gone, path="us-nowhere1-a"))
    assert trial.run(Goal.GONE, spec) is None
    assert trial.remaining() == []


@pytest.mark.parametrize(("slack", "zone"), [(0.0, SECOND), (100.0, FIRST)])
def test_a_name_in_use_is_waited_for_with_the_slack_of_the_clock(trial: LeaseHarness, slack: float, zone: str) -> None:
    taken = error(409, "The resource already exists", "ALREADY_EXISTS")
    trial.world.faults.append(answers(15, taken, method="POST", path=FIRST))  # 10 s apart
    got = trial.run(slack=slack, delete_seconds=100.0)
    assert got is not None
    assert got.zone == zone


def _late_then_refused():
    """After the request that is stored late, its repeats are refused: the zone looks shut."""
    seen = []

    def fault(call: object) -> Answer | None:
        if call.method == "POST" and FIRST in call.path and "Attributes" not in call.path:  # type: ignore[attr-defined]
            seen.append(call)
            if len(seen) > 1:
                return error(400, "FLEX_START provisioning model is not supported")
        return None

    return fault
