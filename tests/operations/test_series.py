"""Counts of a stack's servers over some time, by their series: begins, restarts, ends, buckets that are missing."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.operations.vllm_metrics.increases import Buckets, fill_buckets, increases, sum_buckets
from bezel.operations.vllm_metrics.time_range import TimeRangeError, time_range
from tests.support.operations.deployed import NOW

INF = math.inf


@pytest.mark.parametrize(
    ("values", "growth"),
    [
        ([5, 7, 7, 12], [2, 0, 5]),  # it ran before
        ([None, 7, 9], [7, 2]),  # it began inside
        ([None, None, 3, None, None], [0, 3, 0, 0]),  # it ended: its last sample is kept
        ([9, 4, 6], [4, 2]),  # it began to count again
        ([9, None, None, 11], [0, 0, 2]),  # a gap
        ([None, None], [0]),
    ],
)
def test_a_count_grows_over_begins_ends_and_restarts(values, growth):
    assert increases(values) == growth


def test_every_sample_counts_in_a_window_with_a_restart():
    # 9 rises to 12, then another process reaches 20, and a third one ends at 15: the last sample tells 6 of 38.
    samples = [(12.0, False), (20.0, True), (1.0, True), (15.0, False)]
    assert increases([9, 15, 16], {0: samples}) == [3 + 20 + 1 + 14, 1]
    assert increases([9, 15, 16]) == [6, 1]


@pytest.mark.parametrize(
    ("finer", "growth"),
    [
        ({}, [3, 0, 0, 42]),  # no sample in the window of the restart
        ({1: [(12.5, False)]}, [3, 0.5, 0, 42]),  # its last one is of the process before
        # Its last one is of a process between two restarts, of which the second has no sample.
        ({1: [(12.5, False), (4.0, True), (None, True)]}, [3, 4.5, 0, 42]),
    ],
)
def test_a_counter_that_appears_windows_after_a_restart_counts_from_zero(finer, growth):
    """The next process counts more, so that no value falls."""
    assert increases([9, 12, None, None, 42], finer, {1}) == growth
    assert increases([9, 12, None, None, 42]) == [3, 0, 0, 30]


def test_a_value_after_an_unread_restart_is_of_the_next_process():
    assert increases([9, 20, 25], {}, {0}) == [20, 5]


@given(st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=9), min_size=1, max_size=5), st.integers(1, 7))
def test_windows_of_any_length_add_up_to_what_all_processes_counted(processes, length):
    """Processes of one server in turn, each with its growth between samples; every sample is in one window."""
    samples, total = [], 0
    for grown in processes:
        count = 0
        for number, more in enumerate(grown):
            count += more
            samples.append((float(count), number == 0 and bool(samples)))
        total += count
    windows = [samples[at : at + length] for at in range(0, len(samples), length)]
    growth = increases([None, *(window[-1][0] for window in windows)], dict(enumerate(windows)))
    assert sum(growth) == total
    assert min(growth) >= 0


@pytest.mark.parametrize(
    ("counts", "share", "value"),
    [
        ((0, 10, 10, 10), 0.5, (0.55, "between")),
        ((0, 5, 10, 10), 0.75, (5.5, "between")),
        ((10, 10, 10, 10), 0.5, (0.1, "at most")),
        ((0, 0, 0, 4), 0.5, (10.0, "at least")),
        ((0, 0, 9, 10), 0.99, (10.0, "at least")),
        ((0, 0, 0, 0), 0.5, None),
    ],
)
def test_a_percentile_is_interpolated_between_two_bounds_only(counts, share, value):
    quantile = Buckets((0.1, 1.0, 10.0, INF), counts).quantile(share)
    assert quantile == (value if value is None else (pytest.approx(value[0]), value[1]))


def test_observations_of_servers_with_other_bounds_keep_the_common_ones():
    both = sum_buckets([Buckets((1.0, 2.0, INF), (1, 2, 3)), Buckets((2.0, 4.0, INF), (5, 5, 6)), Buckets((), ())])
    assert both == Buckets((2.0, INF), (7, 9))
    assert sum_buckets([]) == Buckets((), ())


def test_a_bucket_that_is_not_stored_has_the_count_of_the_one_below():
    columns = {0.1: [None, 2, 2], 1.0: [None, None, 5], INF: [None, 4, 9]}
    assert fill_buckets(columns) == {0.1: [None, 2, 2], 1.0: [None, 2, 5], INF: [None, 4, 9]}


@pytest.mark.parametrize(
    ("since", "problem"),
    [
        ("0", "an age or a time"),
        ("0s", "less than 300"),
        ("-1d", "an age or a time"),
        ("400d", "more than six weeks"),
        ("2027-01-01T00:00:00Z", "in the future"),
        ("yesterday", "an age or a time"),
        ("1w", "an age or a time"),
        ("", "an age or a time"),
        ("24", "an age or a time"),
    ],
)
def test_a_time_that_cannot_be_asked_for_is_refused_with_examples(since, problem):
    with pytest.raises(TimeRangeError, match=r"such as 1h, 24h or 7d") as refused:
        time_range(since, NOW)
    assert problem.replace("300", "5 min") in str(refused.value) or problem in str(refused.value)


@pytest.mark.parametrize(("longest", "beyond"), [("5m", "299s"), ("42d", "1009h")])
def test_the_shortest_and_longest_ages_hold_at_any_fraction_of_a_second(longest, beyond):
    """An age becomes a time in microseconds, and a length again: 300 s are 299.9999998 s then."""
    for number in range(200):
        now = NOW + number * 0.7311
        assert time_range(longest, now).seconds >= 300
        with pytest.raises(TimeRangeError):
            time_range(beyond, now)


@pytest.mark.parametrize("since", ["5m", "1h", "24h", "7d", "42d", "2026-09-20T14:13:20Z"])
def test_windows_cover_the_time_and_those_of_a_day_end_at_midnight(since):
    now = NOW + random.Random(since).random() * 86_400  # noqa: S311 - no secret
    when = time_range(since, NOW if since.startswith("2026") else now)
    assert when.start % when.step == 0
    assert 4 < len(when.ends) <= 58
    assert (when.begins[0], when.ends[-1]) == (when.start, when.end)
    assert all(begin < end for begin, end in zip(when.begins, when.ends, strict=True))
    midnights = range(int(when.start // 86_400 + 1) * 86_400, int(when.end), 86_400)
    assert set(midnights) <= {*when.begins, when.end}
