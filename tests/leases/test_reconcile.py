"""The rules by themselves: which of several leases is kept, what an answer means, what time and money come to."""

from dataclasses import replace
from typing import Any

import pytest

from bezel.leases.backends.interface import is_transient, no_such_zone, refusal
from bezel.leases.clock import PlatformClock, clock_of, format_duration, rfc3339, unix
from bezel.leases.cost import cost_of
from bezel.leases.messages import phase_line
from bezel.leases.names import SPEC, labels
from bezel.leases.reconcile import Delete, Done, Failed, Memory, Request, Step, Wait, next_step
from bezel.leases.requests import LeaseSpec, ZoneChoice
from bezel.leases.state.observation import DesiredState, Goal, Observation, Phase, State, phases_of
from bezel.rest import ApiError, CredentialsError, UnreachableError
from tests.support.leases.harness import NAME, STACK, ZONES, body_of

FIRST, SECOND = ZONES
LEASE = LeaseSpec(
    "acme", NAME, STACK, "queued_resource", tuple(ZoneChoice(zone, 600.0) for zone in ZONES), {},
    body_of("queued_resource"),
)  # fmt: skip
NOW = 10_000.0


def observation(zone: str, state: State, *, since: float = NOW, spec: str = LEASE.hash, **more: Any) -> Observation:
    marked = {**labels(NAME, STACK), SPEC: spec}
    there = state not in {State.ABSENT, State.REFUSED}
    return Observation(
        zone, NAME, state, str(state).upper(), labels=marked if there else {}, id=f"{zone}@{since}", created_at=since,
        **more,
    )  # fmt: skip


def step(*existing: Observation, memory: Memory | None = None, phases: Any = None, **wanted: Any) -> Step:
    zones = {zone: Observation(zone, NAME, State.ABSENT) for zone in ZONES} | {one.zone: one for one in existing}
    goal = wanted.pop("goal", Goal.HEALTHY)
    return next_step(
        zones, DesiredState(LEASE, goal, **wanted), memory or Memory(), PlatformClock(now=lambda: NOW), phases or {}
    )


def test_where_nothing_is_the_best_zone_is_asked() -> None:
    asked = step()
    assert isinstance(asked, Request)
    assert asked.choice.zone == FIRST
    next_one = step(memory=Memory(tried={FIRST: "refused"}))
    assert isinstance(next_one, Request)
    assert next_one.choice.zone == SECOND
    assert step(may_request=False) == Done(None)
    assert isinstance(step(memory=Memory(tried={FIRST: "a", SECOND: "b"})), Failed)


@pytest.mark.parametrize(
    ("first", "second", "current", "deleted"),
    [
        (State.WAITING, State.ACTIVE, "", FIRST),
        (State.ACTIVE, State.WAITING, "", SECOND),
        (State.PROVISIONING, State.WAITING, "", SECOND),
        (State.ACTIVE, State.ACTIVE, f"{SECOND}@{NOW}", FIRST),
        (State.ACTIVE, State.ACTIVE, f"{FIRST}@{NOW}", SECOND),
        (State.FAILED, State.ACTIVE, "", FIRST),
        (State.ENDED, State.WAITING, "", FIRST),
    ],
)
def test_of_two_the_one_that_serves_or_is_further_is_kept(
    first: State, second: State, current: str, deleted: str
) -> None:
    done = step(observation(FIRST, first), observation(SECOND, second), current=current)
    assert isinstance(done, Delete)
    assert done.zone == deleted


def test_of_two_that_are_as_far_the_older_is_kept() -> None:
    done = step(observation(FIRST, State.ACTIVE), observation(SECOND, State.ACTIVE, since=NOW - 1))
    assert isinstance(done, Delete)
    assert done.zone == FIRST


def test_a_request_waits_for_its_patience_and_a_little_more_and_not_longer() -> None:
    assert isinstance(step(observation(FIRST, State.WAITING, since=NOW - 719)), Wait)
    late = step(observation(FIRST, State.WAITING, since=NOW - 721))
    assert isinstance(late, Delete)
    assert late.zone == FIRST


def test_another_spec_is_deleted_and_not_waited_for() -> None:
    assert isinstance(step(observation(FIRST, State.ACTIVE, spec="0" * 12)), Delete)


def test_what_is_on_its_way_out_is_waited_for_and_not_deleted_again() -> None:
    memory = Memory(clearing={FIRST: NOW - 10}, deleted={FIRST: NOW - 10})
    assert isinstance(step(observation(FIRST, State.DELETING), memory=memory), Wait)
    memory = Memory(clearing={FIRST: NOW - 99}, deleted={FIRST: NOW - 99})
    assert isinstance(step(observation(FIRST, State.PROVISIONING), memory=memory, goal=Goal.GONE), Delete)


def test_a_request_that_is_stored_is_enough_only_where_no_more_is_wanted() -> None:
    assert isinstance(step(observation(FIRST, State.WAITING), goal=Goal.STORED), Done)
    assert isinstance(step(observation(FIRST, State.WAITING)), Wait)
    assert isinstance(step(observation(FIRST, State.WAITING), goal=Goal.GONE), Delete)


def test_a_lease_that_ended_stays_where_none_may_be_bought() -> None:
    assert step(observation(FIRST, State.ENDED), may_request=False) == Done(None)
    assert isinstance(step(observation(FIRST, State.ENDED)), Delete)


def test_what_is_not_ours_stops_everything_but_giving_back() -> None:
    theirs = replace(observation(FIRST, State.ACTIVE), labels={"team": "research"})
    assert isinstance(step(theirs), Failed)
    assert step(theirs, goal=Goal.GONE) == Done(None)


@pytest.mark.parametrize(
    ("status", "message", "refused", "later", "nowhere"),
    [
        (400, "FLEX_START provisioning model is not supported", True, False, False),
        (403, "Permission 'tpu.queuedResources.get' denied on resource (or it may not exist).", False, False, False),
        (403, "Cloud TPU API has not been used in project 1 before or it is disabled.", False, False, False),
        (403, "Permission denied on 'locations/us-nowhere1-a' (or it may not exist).", True, False, True),
        (400, "Invalid value for field 'zone': 'us-nowhere1-a'. Unknown zone.", True, False, True),
        (404, "Resource 'projects/p/locations/z/queuedResources/l' was not found", True, False, False),
        (429, "Quota limit 'TPUV6EPerProjectPerZoneForTPUAPI' has been exceeded", True, True, False),
        (429, "Quota exceeded for 'Requests' and limit 'Requests per minute'", False, True, False),
        (503, "unavailable", False, True, False),
        (200, "the answer is no JSON", False, True, False),
    ],
)
def test_what_an_answer_means(status: int, message: str, refused: bool, later: bool, nowhere: bool) -> None:
    error = ApiError(status, "REASON", message)
    assert (refusal(error) is not None, is_transient(error), no_such_zone(error)) == (refused, later, nowhere)


def test_no_answer_may_come_later_and_no_credentials_will_not() -> None:
    assert is_transient(UnreachableError("no answer"))
    assert not is_transient(CredentialsError("none"))


def test_a_phase_that_cannot_be_read_is_none() -> None:
    good = {"namespace": "bezel", "key": "image", "value": '{"state": "done", "at": 1, "detail": "d"}'}
    phases = phases_of(
        [
            good,
            good | {"namespace": "other", "key": "network"},
            good | {"key": "weights", "value": "no JSON"},
            good | {"key": "compile", "value": "[]"},
            good | {"key": "strange"},
        ]
    )
    assert list(phases) == ["image"]
    assert (phases["image"].state, phases["image"].at, phases["image"].detail) == ("done", 1.0, "d")


def test_a_waiting_deploy_reports_what_is_not_done_and_an_error_all() -> None:
    """A waiting deploy is reported details of what is not done and an error has them all."""
    phases = [
        Phase("image", "done", 2, "r/i@sha256:1"),
        Phase("network", "done", 1, "it answers"),
        Phase("weights", "running", 3, "copying gs://b/m"),
    ]
    assert phase_line(phases) == "network done, image done, weights running (copying gs://b/m)"
    whole = "network done (it answers), image done (r/i@sha256:1), weights running (copying gs://b/m)"
    assert phase_line(phases, whole=True) == whole
    assert phase_line([Phase("weights", "failed", 3, "no such bucket")]) == "weights failed (no such bucket)"
    assert phase_line([]) == "the node reports nothing yet"


def test_the_platforms_seconds_pass_as_fast_as_the_environment_says() -> None:
    slept: list[float] = []
    fast = replace(clock_of({"BEZEL_SPEED": "60"}), now=lambda: 100.0, pause=slept.append)
    fast.sleep(120)
    assert (slept, fast.since(90.0), fast.slack) == ([2.0], 600.0, 3600.0)
    assert clock_of({}).slack == 0
    assert clock_of({}).speed == clock_of({"BEZEL_SPEED": "fast"}).speed == clock_of({"BEZEL_SPEED": "-1"}).speed == 1


def test_times_are_parsed_and_formatted() -> None:
    assert unix("2026-11-21T10:00:00.123456789Z") == pytest.approx(1795255200.123456)
    assert unix("") is None
    assert unix("soon") is None
    assert rfc3339(unix("2026-11-21T10:00:00Z")) == "2026-11-21T10:00:00Z"
    assert [format_duration(seconds) for seconds in (0, 90, 150, 7200, 7500)] == [
        "0 s",
        "90 s",
        "2 min",
        "2 h",
        "2 h 5 min",
    ]


def test_a_lease_costs_what_has_passed_of_it_and_no_more_than_its_end() -> None:
    def cost(now: float, hourly: float | None = 5.4, end: float | None = 14400.0, run: float | None = 14400.0) -> Any:
        spent = cost_of(hourly, active_at=0.0, ends_at=end, run_seconds=run, now=now)
        return spent["so_far_usd"], spent["at_end_usd"]

    assert cost(3600.0) == (5.4, 21.6)
    assert cost(99999.0) == (21.6, 21.6)
    assert cost(3600.0, end=None, run=None) == (5.4, "unknown")
    assert cost(3600.0, hourly=None) == ("unknown", "unknown")
