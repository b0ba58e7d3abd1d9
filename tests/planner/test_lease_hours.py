"""Hours of leases: what is inside, what a month costs and saves, and what is refused before anything is bought."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bezel.planner import LeasePlan, make_plan, plan_summary
from bezel.planner.base.hours import Window, is_within, next_start, retries, share_of_time, spans
from bezel.planner.base.money import Priced
from bezel_base.cron import parse_cron
from tests.support.planner.v6e_stack import L4X8, V6E4_MOE, lease_plan, lease_problems, with_lease_changes

ZONES = [{"zone": "us-east5-a"}]
WORK = {"start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "time_zone": "Europe/Berlin"}
WEEKDAYS = Window("0 8 * * 1-5", "0 18 * * 1-5", "Europe/Berlin")


@pytest.mark.parametrize(
    ("start", "end", "patience", "cleared", "requested"),
    [
        ("0 8 * * 1-5", "0 18 * * 1-5", 7200, "0 11,14,17 * * 1-5", "10 11,14,17 * * 1-5"),
        ("0 8 * * 1-5", "0 12 * * 1-5", 90, "0 9,10,11 * * 1-5", "10 9,10,11 * * 1-5"),
        ("30 8,14 * * *", "30 12,18 * * *", 1800, "30 9,10,11,15,16,17 * * *", "40 9,10,11,15,16,17 * * *"),
        ("55 22 * * *", "0 6 * * *", 7200, "55 1,4 * * *", "5 2,5 * * *"),  # over midnight, each day
        ("0 20 * * 1-5", "0 6 * * 2-6", 7200, "0 23 * * 1-5", "10 23 * * 1-5"),  # not on the next day
        ("55 21 * * 1", "0 6 * * 2", 1800, "55 22 * * 1", "5 23 * * 1"),
        ("55 22 * * 1", "0 6 * * 2", 1800, "", ""),
        ("0 8 * * *", "30 9 * * *", 1800, "", ""),  # too short
        ("0 8 * * *", "0 18 * * *", 36_000, "", ""),
        ("0,30 8 * * *", "15,45 8 * * *", 60, "", ""),
    ],
)
def test_a_start_is_tried_again_after_its_patience_until_the_hours_end(
    start: str, end: str, patience: float, cleared: str, requested: str
) -> None:
    retry = retries(Window(start, end, "Europe/Berlin"), patience)
    assert retry == ((cleared, requested) if cleared else None)


@given(
    st.integers(0, 58), st.lists(st.integers(0, 23), min_size=1, max_size=2, unique=True), st.floats(0, 1),
    st.sampled_from(["* * *", "* * 1-5", "1,15 * *"]), st.integers(0, 8 * 3600),
)  # fmt: skip
@pytest.mark.slow
@settings(max_examples=25)  # each walks through a month of minutes
def test_each_try_is_within_the_hours_and_leaves_some_of_them(
    minute: int, hours: list[int], share: float, dates: str, patience: int
) -> None:
    # All hours end on the day that they begin on.
    length = 1 + int(share * (1439 - minute - max(hours) * 60 - 1))
    ends = [divmod(hour * 60 + minute + length, 60) for hour in hours]
    start = f"{minute} {','.join(map(str, sorted(hours)))} {dates}"
    window = Window(start, f"{ends[0][1]} {','.join(str(hour) for hour, _ in sorted(ends))} {dates}", "UTC")
    times = spans([window])
    assume(times.in_turn and all(times.between))  # the plan refuses hours that touch
    retry = retries(window, patience)
    assume(retry is not None)
    assert retry is not None
    begin, until = datetime(2026, 11, 2, tzinfo=UTC), datetime(2026, 11, 30, tzinfo=UTC)
    tries = list(parse_cron(retry.start).between(begin, until, ZoneInfo("UTC")))
    cleared = list(parse_cron(retry.clear).between(begin, until, ZoneInfo("UTC")))
    starts = list(parse_cron(start).between(begin - timedelta(days=1), until, ZoneInfo("UTC")))
    assert [later - earlier for earlier, later in zip(cleared, tries, strict=True)] == [timedelta(minutes=10)] * len(
        tries
    )
    for at in tries:
        assert is_within([window], at)
        assert is_within([window], at + timedelta(minutes=44))
        last = max(began for began in starts if began < at)
        assert at - last > timedelta(seconds=patience)


def with_hours(*hours: dict[str, Any], **lease: Any) -> dict[str, Any]:
    terms = {"zones": ZONES, "duration": "10h", "hours": list(hours), **lease}
    return with_lease_changes(V6E4_MOE, lease=terms, cost={"max_lease_usd": 1000})


@pytest.mark.parametrize(
    ("instant", "inside"),
    [
        ("2026-11-24T06:59:00", False),  # Tuesday, 7:59 in Berlin
        ("2026-11-24T07:00:00", True),
        ("2026-11-24T16:59:59", True),
        ("2026-11-24T17:00:00", False),
        ("2026-11-28T12:00:00", False),  # Saturday
        ("2026-07-07T06:00:00", True),  # 8:00 in summer
        ("2026-07-07T05:59:00", False),
    ],
)
def test_an_instant_is_inside_from_a_start_until_the_next_end(instant: str, inside: bool) -> None:
    assert is_within([WEEKDAYS], datetime.fromisoformat(instant).replace(tzinfo=UTC)) is inside


def test_without_hours_no_instant_is_inside() -> None:
    assert not is_within([], datetime(2026, 11, 24, 12, tzinfo=UTC))


def test_the_next_start_is_that_of_the_first_window_to_come() -> None:
    saturday = Window("0 10 * * 6", "0 14 * * 6", "UTC")
    friday = datetime(2026, 11, 27, 18, tzinfo=UTC)
    assert next_start([WEEKDAYS, saturday], friday) == datetime(2026, 11, 28, 10, tzinfo=UTC)
    assert next_start([WEEKDAYS], friday) == datetime(2026, 11, 30, 7, tzinfo=UTC)
    assert next_start([], friday) is None


@pytest.mark.parametrize(
    ("windows", "share"),
    [
        ([WEEKDAYS], Decimal(50) / 168),
        ([Window("0 20 * * *", "0 8 * * *", "UTC")], Decimal("0.5")),  # over midnight
        ([Window("0 8 * * 1", "0 8 * * 5", "UTC")], Decimal(4) / 7),  # over days
        ([Window("0 0 1 2 *", "0 0 3 2 *", "UTC")], Decimal(2) / 366),  # once a year
    ],
)
def test_the_share_of_time_is_that_of_the_windows(windows: list[Window], share: Decimal) -> None:
    assert abs(share_of_time(windows) - share) < Decimal("0.000001")


@pytest.mark.slow
@given(st.integers(0, 23), st.integers(0, 23), st.sampled_from(["UTC", "Asia/Kolkata", "America/New_York"]))
def test_inside_and_outside_are_the_whole_of_time(start: int, end: int, zone: str) -> None:
    if start == end:
        return
    one, other = (
        Window(f"0 {start} * * *", f"0 {end} * * *", zone),
        Window(f"0 {end} * * *", f"0 {start} * * *", zone),
    )
    assert abs(share_of_time([one]) + share_of_time([other]) - 1) < Decimal("0.000001")
    assert spans([one]).in_turn
    assert set(spans([one]).inside) == {timedelta(hours=(end - start) % 24)}
    assert set(spans([one]).between) == {timedelta(hours=(start - end) % 24)}


def test_the_plan_says_what_the_hours_of_a_month_cost_and_save() -> None:
    plan = lease_plan(with_hours(WORK))
    assert plan.terms.hours == (WEEKDAYS,)
    cost, hourly = plan.cost, plan.cost.machines_hourly
    assert isinstance(hourly, Priced)
    assert isinstance(cost.machines_monthly, Priced)
    assert isinstance(cost.monthly_saved, Priced)
    assert abs(cost.machines_monthly.usd - hourly.usd * 730 * 50 / 168) < Decimal("0.01")
    assert abs(cost.machines_monthly.usd + cost.monthly_saved.usd - hourly.usd * 730) < Decimal("0.01")
    text = plan_summary(plan)
    assert "leased from" in text
    assert "0 8 * * 1-5 until 0 18 * * 1-5 (Europe/Berlin)" in text
    assert "saved by the hours" in text
    output = cost.as_output()
    assert output["usd_per_month"] == 1173.21
    assert output["usd_per_month_saved_by_hours"] == 2768.79


def test_without_hours_a_plan_says_nothing_of_a_month() -> None:
    plan = lease_plan(with_lease_changes(V6E4_MOE))
    assert (plan.terms.hours, plan.cost.machines_monthly, plan.cost.monthly_saved) == ((), None, None)
    assert "usd_per_month" not in plan.cost.as_output()
    assert "the hours" not in plan_summary(plan)
    assert "cloudscheduler.googleapis.com" not in plan.apis
    assert "cloudscheduler.googleapis.com" in lease_plan(with_hours(WORK)).apis


def test_a_month_of_an_unpriced_machine_is_unknown() -> None:
    row = {"item": "g2-standard-96", "region": "us-central1", "usd_per_unit": 0.001, "as_of": "2026-11", "source": "x"}
    terms = {"zones": [{"zone": "us-central1-a"}], "duration": "10h", "hours": [WORK]}
    made = make_plan(
        with_lease_changes(L4X8, lease=terms, cost={"prices": [row], "max_lease_usd": 999}), project="p", stack="s"
    )
    assert isinstance(made, LeasePlan)
    assert isinstance(made.cost.machines_monthly, Priced)
    problems = lease_problems(with_lease_changes(L4X8, lease=terms, cost={"prices": []}))
    assert any("the price there is unknown" in problem.consequence for problem in problems)


REFUSED: list[tuple[str, dict[str, Any], str, str, str]] = [
    ("no schedule", with_hours(WORK | {"start": "8 Uhr"}), "lease.hours.0.start", "fields", "0 8 * * 1-5"),
    ("no hour", with_hours(WORK | {"end": "0 25 * * *"}), "lease.hours.0.end", "hour", "0 8 * * 1-5"),
    ("no zone", with_hours(WORK | {"time_zone": "Mars"}), "lease.hours.0.time_zone", "Mars", "Europe/Berlin"),
    ("never", with_hours(WORK | {"start": "0 8 30 2 *"}), "lease.hours.0.start", "never occurs", "correct day"),
    ("overlapping", with_hours(WORK, WORK | {"start": "0 12 * * 1"}), "lease.hours", "do not follow", "not overlap"),
    ("the same twice", with_hours(WORK, WORK), "lease.hours", "do not follow", "do not overlap"),
    ("no end between", with_hours(WORK | {"end": "0 18 * * 5"}), "lease.hours", "do not follow", "an end after each"),
    ("short", with_hours(WORK | {"end": "30 8 * * 1-5"}), "lease.hours", "after the end", "45m or longer"),
    ("short nights", with_hours({"start": "0 9 * * *", "end": "30 8 * * *"}, duration="24h"), "lease.hours",
     "return the next lease", "45m or longer"),
    ("longer than a lease", with_hours(WORK, duration="8h"), "lease.duration", "last up to 10h", "set it to 10h"),
    ("two zones", with_hours(WORK, zones=[*ZONES, {"zone": "us-east5-b"}]), "lease.zones", "lease twice", "one zone"),
    ("renewed", with_hours(WORK, renew=True), "lease.renew", "already says", "remove renew"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "key", "consequence", "repair"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_hours_that_cannot_be_kept_are_refused_by_their_key(
    config: dict[str, Any], key: str, consequence: str, repair: str
) -> None:
    problems = {problem.key: problem for problem in lease_problems(config)}
    assert f"bezel:{key}" in problems, problems
    assert consequence in problems[f"bezel:{key}"].consequence
    assert repair in problems[f"bezel:{key}"].repair


def test_all_that_is_wrong_is_reported_at_once() -> None:
    keys = {problem.key for problem in lease_problems(with_hours(WORK | {"start": "x", "time_zone": "y"}, renew=True))}
    assert keys == {"bezel:lease.hours.0.start", "bezel:lease.hours.0.time_zone", "bezel:lease.renew"}


def test_hours_of_a_service_are_refused() -> None:
    service = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}
    keys = {problem.key for problem in lease_problems(service | {"lease": {"hours": [WORK]}})}
    assert "bezel:lease" in keys
