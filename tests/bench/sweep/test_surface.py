"""Invariants of the surface: it interpolates what was measured, ranges hold, and nothing beyond is made up."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.bench.sweep.knees import knee
from bezel.bench.sweep.surface import surface_of

CONTEXTS, USERS = (64, 512, 4096), (1, 4, 16, 64, 256)


def saturating(context: int, users: int) -> float:
    return min(users * 2.0, 40.0) / (1 + context / 2000)


def measured(*, without: set[tuple[int, int]] = frozenset()) -> dict[tuple[int, int], float]:  # type: ignore[assignment]
    places = {(row, column) for row in range(len(CONTEXTS)) for column in range(len(USERS))} - without
    return {(row, column): saturating(CONTEXTS[row], USERS[column]) for row, column in places}


def test_a_cell_between_measured_ones_lies_on_the_line_between_them_in_logarithms() -> None:
    surface = surface_of(CONTEXTS, USERS, measured(without={(1, 2)}))
    expected = math.sqrt(saturating(512, 4) * saturating(512, 64))
    assert surface.value[1, 2] == pytest.approx(expected)


def test_beyond_the_last_measured_users_throughput_is_that_of_the_last() -> None:
    surface = surface_of(CONTEXTS, USERS, measured(without={(2, 3), (2, 4)}))
    assert surface.value[2, 3] == surface.value[2, 4] == pytest.approx(saturating(4096, 16))


def test_beyond_the_last_measured_users_throughput_falls_as_at_contexts_that_were_measured_further() -> None:
    values = measured(without={(1, 4)})
    values |= {(0, 4): values[0, 3] / 2, (2, 4): values[2, 3] / 2}
    surface = surface_of(CONTEXTS, USERS, values)
    assert surface.value[1, 4] == pytest.approx(values[1, 3] / 2)
    grown = values | {(0, 4): 2 * values[0, 3], (2, 4): 2 * values[2, 3]}
    assert surface_of(CONTEXTS, USERS, grown).value[1, 4] == pytest.approx(values[1, 3]), "growth is not promised"


def test_a_context_without_a_measured_cell_lies_between_its_neighbours_and_is_known_worse() -> None:
    surface = surface_of(CONTEXTS, USERS, measured(without={(1, column) for column in range(5)}))
    assert saturating(4096, 256) < surface.value[1, 4] < saturating(64, 256)
    assert surface.unit[1, 4] > 2 * surface.unit[0, 4]


def test_where_throughput_still_grew_a_range_is_wider_than_where_it_did_not() -> None:
    surface = surface_of(CONTEXTS, USERS, measured(without={(0, 4), (1, 2), (1, 3), (1, 4), (2, 4)}))
    assert surface.unit[1, 4] > 2 * surface.unit[0, 4]
    assert surface.unit[1, 4] == pytest.approx(math.hypot(0.01, surface.noise, math.log(2)))


def test_a_fall_between_measured_cells_widens_the_range_of_those_between() -> None:
    values = measured(without={(0, 3)}) | {(0, 4): 4.0}
    surface = surface_of(CONTEXTS, USERS, values)
    low, high = surface.interval()
    assert low[0, 3] < 8
    assert high[0, 3] > 20


def test_noise_of_the_plateaus_widens_every_range() -> None:
    flat = {place: value for place, value in measured().items() if place[1] != 4}
    noisy = {place: value * (1.2 if place[1] == 3 else 1) for place, value in flat.items()}
    narrow, wide = (surface_of(CONTEXTS, USERS, values).unit[0, 4] for values in (flat, noisy))
    assert wide > narrow + 0.1


@given(st.dictionaries(st.tuples(st.integers(0, 2), st.integers(0, 4)), st.floats(1e-3, 1e6), min_size=1))
def test_measured_cells_keep_their_values_and_every_range_holds_its_own(values: dict[tuple[int, int], float]) -> None:
    surface = surface_of(CONTEXTS, USERS, values)
    low, high = surface.interval()
    assert np.isfinite(surface.log).all()
    assert (low < surface.value).all()
    assert (surface.value < high).all()
    assert all(surface.value[place] == pytest.approx(value) for place, value in values.items())
    assert surface.value.max() <= 1.001 * max(values.values())
    shuffled = surface_of(CONTEXTS, USERS, dict(sorted(values.items(), reverse=True)))
    assert np.array_equal(shuffled.log, surface.log)


def test_the_knee_is_the_fewest_users_near_the_plateau() -> None:
    assert knee(USERS, [1.0, 4.0, 9.5, 10.0, 10.2]) == 2


@pytest.mark.parametrize(
    ("users", "values"),
    [
        ((1, 4, 8), (24.5, 87.5, 159.0)),
        ((1, 4), (243.0, 926.0)),
        ((16,), (2872.0,)),
        ((1, 2, 4, 8, 16), (1.0, 2.0, 4.0, 8.0, 16.0)),
        ((28, 30, 32), (140.0, 150.0, 159.0)),
        ((1, 2, 4, 8), (100.0, 112.0, 125.0, 140.0)),
    ],
)
def test_while_throughput_rises_no_knee_is_named(users: tuple[int, ...], values: tuple[float, ...]) -> None:
    assert knee(users, values) is None


@pytest.mark.slow
@given(st.lists(st.integers(1, 4096), min_size=1, max_size=12, unique=True), st.floats(0.3, 1.0))
def test_no_server_whose_throughput_grows_with_the_users_has_a_knee(users: list[int], power: float) -> None:
    assert knee(sorted(users), [count**power for count in sorted(users)]) is None


@pytest.mark.slow
@given(st.lists(st.integers(1, 4096), min_size=1, max_size=12, unique=True), st.floats(1, 5000))
def test_a_knee_has_nine_tenths_of_what_twice_its_users_have(users: list[int], most: float) -> None:
    rising = sorted(users)
    values = [min(float(count), most) for count in rising]
    found = knee(rising, values)
    flat = [count for count in rising if count >= most]
    assert found is not None or len(flat) < 3 or flat[-1] < 2 * flat[0], "what was seen is named"
    if found is not None:
        assert rising[-1] >= 2 * rising[found]
        assert values[found] >= 0.9 * values[-1]


def test_a_lucky_cell_is_not_the_plateau() -> None:
    assert knee(USERS, [1.0, 9.8, 10.0, 12.5, 10.1]) == 1


def test_a_server_that_falls_behind_its_knee_has_it_before() -> None:
    assert knee(USERS, [1.0, 8.0, 10.0, 9.6, 5.0]) == 2
