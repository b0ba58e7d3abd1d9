"""A schedule of instances: what holds when, what it costs and saves, and what is refused."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.planner import Plan, PlanError, make_plan, plan_summary
from bezel.planner.base.money import Priced
from bezel.planner.base.schedule import Entry, average_minimum, minimum_at, together
from bezel_base.cron import parse_cron, time_zone

SETTINGS: dict[str, Any] = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}
DAY, NIGHT = Entry("0 8 * * 1-5", "Europe/Berlin", 1), Entry("0 18 * * 1-5", "Europe/Berlin", 0)


def with_schedule(*entries: dict[str, Any], **changed: Any) -> dict[str, Any]:
    scaling = {"schedule": list(entries), "max_instances": 2, **changed}
    return {**SETTINGS, "scaling": scaling, "cost": {"max_idle_hourly_usd": 5, "max_hourly_usd": 5}}


def entry(cron: str, minimum: int, zone: str = "UTC") -> dict[str, Any]:
    return {"cron": cron, "time_zone": zone, "min_instances": minimum}


@pytest.mark.parametrize(
    ("instant", "minimum"),
    [
        ("2026-11-24T06:59:00", 0),  # Tuesday 7:59 in Berlin
        ("2026-11-24T07:00:00", 1),
        ("2026-11-24T16:59:59", 1),
        ("2026-11-24T17:00:00", 0),
        ("2026-11-29T12:00:00", 0),  # Sunday
        ("2026-07-07T06:00:00", 1),  # 8:00 in summer
        ("2026-07-07T05:59:00", 0),
    ],
)
def test_the_last_entry_that_occurred_holds(instant: str, minimum: int) -> None:
    assert minimum_at([DAY, NIGHT], datetime.fromisoformat(instant).replace(tzinfo=UTC)) == minimum


def test_an_entry_of_another_month_holds_and_one_that_never_came_does_not() -> None:
    now = datetime(2026, 11, 24, tzinfo=UTC)
    assert minimum_at([Entry("0 0 1 3 *", "UTC", 2)], now) == 2
    assert minimum_at([Entry("0 0 29 2 *", "UTC", 2)], now) == 0
    assert minimum_at([], now) == 0


@pytest.mark.parametrize(
    ("entries", "least", "mean"),
    [
        ([DAY, NIGHT], 0, Decimal(50) / 168),
        ([Entry("0 0 * * *", "UTC", 2), Entry("0 12 * * *", "UTC", 0)], 0, Decimal(1)),
        ([Entry("0 0 * * *", "UTC", 2), Entry("0 12 * * *", "UTC", 0)], 1, Decimal("1.5")),
        ([], 1, Decimal(1)),
    ],
)
def test_the_mean_is_that_of_the_hours(entries: list[Entry], least: int, mean: Decimal) -> None:
    assert abs(average_minimum(entries, least) - mean) < Decimal("0.000001")


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 23), st.integers(0, 4)), min_size=1, max_size=4), st.integers(0, 4))
def test_the_mean_is_between_the_least_and_the_most(hours: list[tuple[int, int]], least: int) -> None:
    entries = [Entry(f"0 {hour} * * *", "America/New_York", minimum) for hour, minimum in hours]
    low, high = min(minimum for _, minimum in hours), max(minimum for _, minimum in hours)
    assert max(low, least) <= average_minimum(entries, least) <= max(high, least)


def test_the_plan_shows_cost_and_saving_and_the_dearest_hour_is_judged() -> None:
    made = make_plan(with_schedule(entry("0 8 * * *", 2), entry("0 20 * * *", 0)), project="acme-llm", stack="l4")
    assert isinstance(made, Plan)
    hourly, cost = made.cost.hourly, made.cost
    assert isinstance(hourly, Priced)
    assert isinstance(cost.hourly_at_min, Priced)
    assert cost.hourly_at_min.usd == hourly.usd * 2
    assert isinstance(cost.monthly_without_traffic, Priced)
    assert isinstance(cost.monthly_saved, Priced)
    assert cost.monthly_without_traffic.usd == pytest.approx(hourly.usd * 730)
    assert cost.monthly_saved.usd == pytest.approx(hourly.usd * 730)
    assert "saved by the schedule" in plan_summary(made)
    assert "cloudscheduler.googleapis.com" in made.apis
    tight = with_schedule(entry("0 8 * * *", 2), entry("0 20 * * *", 0)) | {"cost": {"max_idle_hourly_usd": 1.5}}
    with pytest.raises(PlanError, match="in the dearest hour of its schedule"):
        make_plan(tight, project="acme-llm", stack="l4")


def test_without_a_schedule_nothing_is_said_of_one() -> None:
    made = make_plan(SETTINGS, project="acme-llm", stack="l4")
    assert isinstance(made, Plan)
    assert "cloudscheduler.googleapis.com" not in made.apis
    assert "schedule" not in plan_summary(made)
    assert "usd_per_month_saved_by_schedule" not in made.cost.as_output()


@pytest.mark.parametrize(
    ("settings", "key", "why"),
    [
        (with_schedule(entry("8", 1), entry("0 18 * * *", 0)), "scaling.schedule.0.cron", "5"),
        (
            with_schedule(entry("0 8 30 2 *", 1), entry("0 18 * * *", 0)),
            "scaling.schedule.0.cron",
            "never occurs",
        ),
        (
            with_schedule(entry("* 8 * * *", 1), entry("*/5 * * * *", 0)),
            "scaling.schedule.1.cron",
            "more often",
        ),
        (
            with_schedule(entry("0 8 * * *", 1, "Mars"), entry("0 18 * * *", 0)),
            "scaling.schedule.0.time_zone",
            "tz",
        ),
        (
            with_schedule(entry("0 8 * * *", 1, "localtime"), entry("0 18 * * *", 0)),
            "scaling.schedule.0.time_zone",
            "tz",
        ),
        (
            with_schedule(entry("0 8 * * *", 3), entry("0 18 * * *", 0)),
            "scaling.schedule.0.min_instances",
            "above max",
        ),
        (with_schedule(entry("0 8 * * *", 1)), "scaling.schedule", "no entry lowers"),
        (
            with_schedule(entry("0 8 * * *", 1), entry("0 9 * * *", 0), min_instances=1),
            "scaling.schedule",
            "no effect",
        ),
    ],
)
def test_a_schedule_that_cannot_be_or_has_no_effect_is_refused(settings: dict[str, Any], key: str, why: str) -> None:
    with pytest.raises(PlanError) as refused:
        make_plan(settings, project="acme-llm", stack="l4")
    (problem,) = refused.value.problems
    assert problem.key == f"bezel:{key}"
    assert why in problem.consequence


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "at"),
    [
        (("0 8 * * *", "UTC"), ("0 8 * * 1-5", "UTC"), "2027-01-04T08:00"),
        (("0 8 29 2 *", "UTC"), ("0 8 * * *", "UTC"), "2028-02-29T08:00"),
        (("0 8 * * *", "Europe/Berlin"), ("0 6 * * *", "UTC"), "2027-03-28T06:00"),  # in summer only
        (("30 2 * * *", "Europe/Berlin"), ("30 0 28 3 *", "UTC"), None),  # 2:30 does not occur on that day
        (("30 1 * * *", "Asia/Kolkata"), ("0 20 * * *", "UTC"), "2027-01-03T20:00"),  # the next day, there
        (("0 8 * * 1-5", "UTC"), ("0 8 * * 6,0", "UTC"), None),
        (("0 8 * * *", "Europe/Berlin"), ("0 8 * * *", "UTC"), None),
        (("0 8 * * *", "UTC"), ("1 8 * * *", "UTC"), None),
    ],
)
def test_entries_of_one_time_with_different_minima_are_refused(
    first: tuple[str, str], second: tuple[str, str], at: str | None
) -> None:
    one, other = Entry(*first, 1), Entry(*second, 0)
    occurred, reversed_ = together(one, other), together(other, one)
    assert (occurred and f"{occurred:%Y-%m-%dT%H:%M}") == at
    assert (reversed_ and f"{reversed_:%H:%M}") == (at and at[-5:])
    lowering = entry("7 23 * * *", 0)
    settings = with_schedule(entry(first[0], 1, first[1]), entry(second[0], 2, second[1]), lowering)
    if at is None:
        make_plan(settings, project="acme-llm", stack="l4")
        return
    with pytest.raises(PlanError, match="which of the two holds afterwards is not defined") as refused:
        make_plan(settings, project="acme-llm", stack="l4")
    (problem,) = refused.value.problems
    assert problem.key == "bezel:scaling.schedule.1"
    same = with_schedule(entry(first[0], 1, first[1]), entry(second[0], 1, second[1]), lowering)
    make_plan(same, project="acme-llm", stack="l4")


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, 23), st.integers(0, 59), st.integers(0, 6)), min_size=2, max_size=2),
    st.lists(st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu"]), min_size=2, max_size=2),
)
def test_what_is_said_to_occur_together_does(times: list[tuple[int, int, int]], zones: list[str]) -> None:
    one, other = (Entry(f"{m} {h} * * {day}", zone, 0) for (h, m, day), zone in zip(times, zones, strict=True))
    at = together(one, other)
    span = datetime(2027, 1, 3, tzinfo=UTC), datetime(2027, 12, 31, tzinfo=UTC)
    both = [set(parse_cron(each.cron).between(*span, time_zone(each.zone))) for each in (one, other)]
    assert at in both[0] & both[1] if at else not both[0] & both[1]
