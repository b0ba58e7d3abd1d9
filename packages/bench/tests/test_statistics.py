"""Percentiles and intervals, against values computed by other means."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_support.runs import noise
from bezel_bench.metrics import statistics
from bezel_bench.metrics.statistics import Series


@pytest.mark.parametrize(
    ("share", "degrees", "table"),
    [(0.975, 1, 12.7062), (0.975, 2, 4.3027), (0.975, 9, 2.2622), (0.95, 4, 2.1318), (0.995, 30, 2.7500)],
)
def test_t_quantiles_are_those_of_the_tables(share, degrees, table):
    assert statistics.t_quantile(share, degrees) == pytest.approx(table, abs=6e-5)


def test_a_quantile_outside_of_the_tables_is_refused():
    for share, degrees in ((1.0, 3), (0.4, 3), (0.975, 0)):
        with pytest.raises(ValueError, match="no t quantile"):
            statistics.t_quantile(share, degrees)


def test_percentiles_come_from_every_value():
    spread = statistics.distribution(Series(np.arange(1, 1002, dtype=float)[::-1]), "ms")
    assert (spread.p50, spread.p90, spread.p95, spread.p99, spread.p999) == (501, 901, 951, 991, 1000)
    assert (spread.min, spread.max, spread.mean, spread.n) == (1, 1001, 501, 1001)


@pytest.mark.parametrize("count", [1, 2, 3, 99, 1000, 10_007])
def test_percentiles_are_those_of_numpy_to_the_last_bit(count):
    values = np.random.default_rng(count).exponential(size=count)
    for share in (0.0, 0.3, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0):
        numpys = float(np.quantile(values, share))
        assert (Series(values).percentile(share), statistics.percentile(values, share)) == (numpys, numpys)
    with pytest.raises(ValueError, match="at least one value"):
        statistics.percentile(values[:0], 0.5)


def test_a_percentile_that_no_value_lies_above_is_left_out():
    spread = statistics.distribution(Series(np.arange(99, dtype=float)), "ms")
    assert spread.p95 is not None
    assert spread.p99 is None
    assert statistics.distribution(Series(np.arange(100, dtype=float)), "ms").p99 is not None


@pytest.mark.parametrize(
    "values", [[5.0], [0.0, 0.0], [0.0, 3.0], [1e-9, 1e9, 1e9], [7.0] * 50 + [math.nextafter(7, 8)]]
)
def test_a_histogram_holds_every_value_once(values):
    spread = statistics.distribution(Series(np.array(values)), "ms")
    assert sum(spread.histogram.counts) == len(values)
    assert spread.histogram.edges[0] <= min(values)
    assert spread.histogram.edges[-1] >= max(values)


def test_intervals_of_repeats_hold_the_truth_as_often_as_they_say():
    dice = noise(7)
    inside = 0
    for _ in range(1000):
        low, high = statistics.of_repeats([dice.gauss(100, 15) for _ in range(3)])
        inside += low <= 100 <= high
    assert 930 <= inside <= 968


def test_one_repeat_has_no_interval():
    assert statistics.of_repeats([1.0]) is None
    assert statistics.of_sections(Series(np.ones(19)), lambda part: part.mean) is None


@pytest.mark.slow
def test_neighbours_that_follow_each_other_widen_the_interval():
    """An autoregressive series: taken for independent, its mean would seem five times surer than it is."""
    dice = noise(3)
    inside = naive = 0
    for _ in range(60):
        values, level = [], 0.0
        for _ in range(2000):
            level = 0.9 * level + dice.gauss(0, 1)
            values.append(level)
        series = np.array(values)
        low, high = statistics.of_sections(Series(series), lambda part: part.mean)
        inside += low <= 0 <= high
        naive += abs(series.mean()) <= 1.96 * series.std() / math.sqrt(len(series))
    assert inside >= 52
    assert naive < 38


@pytest.mark.slow
@given(st.lists(st.floats(-1, 1), min_size=8, max_size=16), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_two_outliers_never_move_a_trimmed_mean_beyond_the_other_values(values, one, other):
    middle, low, high = statistics.of_trimmed([*values, one, other], 0.975)
    assert min(values) - 1e-9 <= middle <= max(values) + 1e-9
    assert low <= middle <= high


@pytest.mark.slow
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=16), st.floats(-5, 5))
def test_a_trimmed_mean_and_its_interval_move_with_the_values(values, shift):
    interval = statistics.of_trimmed(values, 0.975)
    assert statistics.of_trimmed([value + shift for value in values], 0.975) == pytest.approx(
        [end + shift for end in interval], abs=1e-6
    )
    middle, low, high = interval
    assert statistics.of_trimmed([-value for value in values], 0.975) == pytest.approx((-middle, -high, -low), abs=1e-6)


def test_few_values_have_none_to_spare_and_the_mean_is_that_of_repeats():
    values = [1.0, 2.0, 4.0, 8.0, 100.0]
    assert len(values) < statistics.TRIMMED_FROM
    assert statistics.of_trimmed(values, 0.975)[1:] == pytest.approx(statistics.of_repeats(values, 0.95))


@pytest.mark.slow
@pytest.mark.parametrize("count", [6, 8, 10])
def test_intervals_of_trimmed_means_hold_the_truth_as_often_as_they_say(count):
    dice = noise(11)
    inside = 0
    for _ in range(2000):
        _, low, high = statistics.of_trimmed([dice.gauss(100, 15) for _ in range(count)], 0.975)
        inside += low <= 100 <= high
    assert 1870 <= inside <= 1930
