"""Invariants of the surface: a figure lies between measured cells, nothing beyond is made up, ranges are conformal."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_bench.sweep.inference.reach import LEAST, Error, Reach, quantile, quantile_line
from bezel_bench.sweep.inference.repeats import REPEATABLE
from bezel_bench.sweep.inference.surface import Surface

CONTEXTS, USERS = (64, 512, 4096), (1, 4, 16, 64, 256)
Values = dict[tuple[int, int], float]
GRADES = [at / 20 for at in range(21)]


def saturating(context: int, users: int) -> float:
    return min(users * 2.0, 40.0) / (1 + context / 2000)


def measured_values(*, without: set[tuple[int, int]] = frozenset()) -> Values:  # type: ignore[assignment]
    places = {(row, column) for row in range(len(CONTEXTS)) for column in range(len(USERS))} - without
    return {(row, column): saturating(CONTEXTS[row], USERS[column]) for row, column in places}


def surface(values: Values) -> Surface:
    return Surface(CONTEXTS, USERS, values)


def test_a_cell_between_measured_contexts_lies_on_their_line_in_logarithms() -> None:
    estimate = surface(measured_values(without={(1, 2)})).estimate((1, 2))
    assert estimate is not None
    assert estimate.value == pytest.approx(math.sqrt(saturating(64, 16) * saturating(4096, 16)))
    assert (estimate.line.axis, estimate.line.below, estimate.line.above) == ("contexts", (0, 2), (2, 2))


def test_a_cell_at_the_longest_context_lies_between_its_users() -> None:
    estimate = surface(measured_values(without={(2, 2)})).estimate((2, 2))
    assert estimate is not None
    assert estimate.value == pytest.approx(math.sqrt(saturating(4096, 4) * saturating(4096, 64)))
    assert estimate.line.axis == "users"


@pytest.mark.parametrize("missing", [{(2, 4)}, {(0, 4)}, {(0, 0)}, {(0, 3), (0, 4), (1, 3), (1, 4)}])
def test_nothing_is_carried_beyond_the_measured_cells(missing: set[tuple[int, int]]) -> None:
    fitted = surface(measured_values(without=missing))
    assert all(fitted.estimate(place) is None for place in missing)


def test_a_fall_at_a_short_context_is_not_carried_to_a_long_one() -> None:
    """At short contexts the client or HTTP may be the limit: it says nothing of where the server is."""
    values = measured_values(without={(1, 4), (2, 4)}) | {(0, 4): 5.0}
    assert surface(values).estimate((2, 4)) is None
    assert surface(values).estimate((1, 4)) is None
    between = surface(values | {(2, 4): 12.0}).estimate((1, 4))
    assert between is not None
    assert 5.0 < between.value < 12.0, "where both sides are measured it lies between them"


def grid(noise: float, seed: int, rows: int = 9, columns: int = 6) -> tuple[Surface, Values]:
    """A straight surface with noise: the surface without every second context but one, and the full values."""
    chances = random.Random(seed)  # noqa: S311 - no secret
    contexts, users = tuple(2**row * 16 for row in range(rows)), tuple(2**column for column in range(columns))
    full = {
        (row, column): 5.0 * users[column] / contexts[row] ** 0.5 * math.exp(chances.gauss(0, noise))
        for row in range(rows)
        for column in range(columns)
    }
    left_out = {place for place in full if place[0] % 2 and place[0] // 2 != place[1] % (rows // 2)}
    return Surface(contexts, users, {place: full[place] for place in full if place not in left_out}), full


def test_too_few_errors_give_a_figure_without_a_range() -> None:
    estimate = surface(measured_values(without={(1, 2)})).estimate((1, 2))
    assert estimate is not None
    assert estimate.errors < LEAST == 9
    assert estimate.low is None
    assert estimate.high is None
    enough = grid(0.03, 1)[0].estimate((1, 3))
    assert enough is not None
    assert enough.errors >= LEAST
    assert enough.low is not None
    assert enough.low < enough.value < (enough.high or 0.0)


def test_a_range_is_never_narrower_than_repeats_differ() -> None:
    exact, noisy = grid(0.0, 1)[0].estimate((1, 3)), grid(0.2, 1)[0].estimate((1, 3))
    assert exact is not None
    assert noisy is not None
    assert exact.high == pytest.approx(exact.value * (1 + REPEATABLE))
    assert exact.low == pytest.approx(exact.value / (1 + REPEATABLE))
    assert (noisy.high or 0.0) / noisy.value > 1.1, "the grid's own errors widen it"


def test_range_follows_the_distance_of_the_neighbours() -> None:
    """A context left out of every second one is inferred over twice the distance, and a bend shows four times."""
    contexts = tuple(2**row for row in range(9))
    bent = {(row, column): math.exp(-0.1 * (row - 4) ** 2) for row in range(9) for column in range(6)}
    all_rows = Surface(contexts, (*USERS, 1024), {place: bent[place] for place in bent if place != (3, 3)})
    second = Surface(contexts, (*USERS, 1024), {place: bent[place] for place in bent if place[0] % 2 == 0})
    near, far = all_rows.estimate((3, 3)), second.estimate((3, 3))
    assert near is not None
    assert far is not None
    assert math.log((near.high or 0) / near.value) == pytest.approx(0.1, rel=0.01)
    assert math.log((far.high or 0) / far.value) == pytest.approx(0.4, rel=0.01), "no nearer errors: the wider ones"


def test_few_errors_as_near_leave_the_range_to_all_errors() -> None:
    """Two near errors and many over twice the distance: a bend of 0.1 in each step has 0.1 at hand, 0.4 beyond."""
    bent = {(row, column): math.exp(-0.1 * (row - 4) ** 2) for row in range(9) for column in range(6)}
    values = {place: value for place, value in bent.items() if place[0] % 2 == 0 or place in ((3, 3), (5, 3))}
    estimate = Surface(tuple(2**row for row in range(9)), (*USERS, 1024), values).estimate((1, 1))
    assert estimate is not None
    assert estimate.errors >= LEAST
    assert math.log((estimate.high or 0) / estimate.value) == pytest.approx(0.1, rel=0.01), (
        "not that of the longer ones, 0.4"
    )


@pytest.mark.parametrize(("level", "slope"), [(0.2, 0.0), (0.0, 0.3), (0.05, 0.1)])
def test_line_separates_noise_from_a_bend(level: float, slope: float) -> None:
    errors = [Error(product, share * (level + slope * product)) for product in (0.5, 1.0, 2.0) for share in GRADES]
    line = quantile_line(errors)
    assert line == pytest.approx((0.9 * level, 0.9 * slope), abs=0.01)
    assert Reach(errors).at(1.0) == pytest.approx(0.95 * (level + slope), rel=0.06)
    assert Reach(errors[: LEAST - 1]).at(1.0) is None
    assert Reach([Error(1.0, 0.0)] * LEAST).at(4.0) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("count", [9, 10, 19, 20, 100])
def test_a_quantile_is_kept_by_nine_of_ten_further_errors(count: int) -> None:
    chances = random.Random(count)  # noqa: S311 - no secret
    kept = [
        chances.random() <= quantile([chances.random() for _ in range(count)])
        for _ in range(4000)
    ]  # fmt: skip
    assert 0.885 <= sum(kept) / len(kept) <= 0.9 + 1 / (count + 1) + 0.015


@pytest.mark.slow
def test_ranges_of_noise_hold_nine_of_ten_measurements() -> None:
    inside = total = 0
    for seed in range(60):
        fitted, full = grid(0.1, seed)
        for place in sorted(set(full) - set(fitted.values)):
            if (one := fitted.estimate(place)) and one.low is not None and one.high is not None:
                inside, total = inside + (one.low <= full[place] <= one.high), total + 1
    assert total >= 900
    assert 0.87 <= inside / total <= 0.95


@pytest.mark.slow
@given(st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 4)), st.floats(1e-3, 1e6), min_size=1))
def test_a_figure_lies_between_the_two_cells_that_it_names(values: Values) -> None:
    fitted = surface(values)
    for place in ((row, column) for row in range(3) for column in range(5)):
        if one := fitted.estimate(place):
            ends = sorted((values[one.line.below], values[one.line.above]))
            assert ends[0] * 0.999 <= one.value <= ends[1] * 1.001
            assert place not in (one.line.below, one.line.above)
            assert (one.low is None) == (one.errors < LEAST)
