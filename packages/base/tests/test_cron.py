"""Cron schedules: the next occurrence is the first minute of the wall clock that matches."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_base.cron import CronError, parse_cron, time_zone

BERLIN = time_zone("Europe/Berlin")


def times(text, start, end, zone=BERLIN):
    return [f"{occurrence:%d %H:%M}" for occurrence in parse_cron(text).between(start, end, zone)]


def day(month, number):
    return datetime(2026, month, number, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 8 * * 1-5", ["02 06:00", "03 06:00"]),  # the 4th and 5th are a weekend
        ("0 8 * * mon-FRI", ["02 06:00", "03 06:00"]),
        ("*/30 22 4 JUL *", ["04 20:00", "04 20:30"]),
        ("0 0 4 * 0", ["03 22:00", "04 22:00"]),  # the 4th, and Sunday the 5th
        ("0 0 4 * 7", ["03 22:00", "04 22:00"]),
        ("5,10-12/2 1 2 7 *", ["01 23:05", "01 23:10", "01 23:12"]),
    ],
)
def test_each_part_of_the_format_counts(text, expected):
    occurrences = times(text, day(7, 1) + timedelta(hours=12), day(7, 5) + timedelta(hours=23))
    assert occurrences == expected


def test_a_skipped_time_does_not_occur_and_a_repeated_one_once():
    assert times("30 2 * * *", day(3, 28), day(3, 31)) == ["28 01:30", "30 00:30"]
    assert times("30 2 * * *", day(10, 24), day(10, 26)) == ["24 00:30", "25 00:30"]
    hours = times("0 * * * *", day(10, 25), day(10, 25) + timedelta(hours=3))
    assert hours == ["25 01:00", "25 02:00", "25 03:00"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("* * * *", "4 fields"),
        ("60 * * * *", r"expected a minute \(0 to 59\), got '60'"),
        ("* * 0 * *", "day of the month"),
        ("* * * * 8", "day of the week"),
        ("* * * 0 *", "month"),
        ("5/2 * * * *", "a step needs a range"),
        ("*/0 * * * *", "1 or more"),
        ("9-5 * * * *", "ends before it begins"),
        ("* * * * L", "a day of the week .* got 'L'"),
        ("٣ * * * *", "expected a minute"),
    ],
)
def test_a_text_that_is_no_schedule_is_refused_with_the_field(text, why):
    with pytest.raises(CronError, match=why):
        parse_cron(text)


def test_a_date_that_never_comes_has_no_next_time_and_a_rare_one_has():
    assert parse_cron("0 0 30 2 *").after(day(1, 1), BERLIN) is None
    assert parse_cron("0 0 29 2 *").after(day(1, 1), time_zone("utc")) == datetime(2028, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize("name", ["Mars/Base", "", "../../etc/passwd", "Europe", "Europe/Berlin\0"])
def test_a_name_that_is_no_zone_is_refused(name):
    with pytest.raises(CronError, match="expected a time zone"):
        time_zone(name)


_FIELDS = st.tuples(
    st.sampled_from(["*", "0", "30", "*/20", "7,37"]),
    st.sampled_from(["*", "2", "0-4", "*/6", "23"]),
    st.sampled_from(["*", "1", "25", "29-31"]),
    st.sampled_from(["*", "3", "10", "jan-jun"]),
    st.sampled_from(["*", "0", "1-5"]),
)


@pytest.mark.slow
@given(_FIELDS, st.integers(0, 400 * 1440), st.sampled_from(["Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata"]))
def test_the_next_time_is_the_first_minute_that_matches(fields, minutes, name):
    cron, zone = parse_cron(" ".join(fields)), time_zone(name)
    start = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    occurrence = cron.after(start, zone)

    def matches(instant):
        local = instant.astimezone(zone)
        named = local.hour in cron.hours and local.minute in cron.minutes
        return cron.on(local) and named and not (local.fold and not cron.any_hour)

    end = start + timedelta(days=3)
    first = next((one for one in _minutes(start, end) if matches(one)), None)
    assert occurrence == first if first else occurrence is None or occurrence > end


def _minutes(start, end):
    while start < end:
        start += timedelta(minutes=1)
        yield start
