"""Invariants of the surface: it saturates, it interpolates, its intervals hold, and one bad cell does not bend it."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.bench.sweep.knees import knee
from bezel.bench.sweep.surface import fit
from tests.support.bench.surfaces import FEWER_USERS, LAWS, server

CONTEXTS, USERS = (64, 512, 4096), (1, 4, 16, 64, 256)


def saturating(context: int, users: int) -> float:
    return min(users * 2.0, 40.0) / (1 + context / 2000)


def measured(*, without: set[tuple[int, int]] = frozenset()) -> dict[tuple[int, int], float]:  # type: ignore[assignment]
    places = {(row, column) for row in range(len(CONTEXTS)) for column in range(len(USERS))} - without
    return {(row, column): saturating(CONTEXTS[row], USERS[column]) for row, column in places}


def test_a_cell_between_measured_ones_is_inferred() -> None:
    surface, _ = fit(CONTEXTS, USERS, measured(without={(1, 2)}))
    assert surface.value[1, 2] == pytest.approx(saturating(512, 16), rel=0.1)


def test_what_was_measured_is_known_better_than_what_was_not() -> None:
    surface, _ = fit(CONTEXTS, USERS, measured(without={(2, 3), (2, 4)}))
    assert surface.spread[2, 4] > surface.spread[1, 4]
    assert surface.spread[2, 4] > surface.spread[2, 3]


@pytest.mark.slow
def test_one_bad_cell_does_not_bend_the_surface_and_a_slow_context_does() -> None:
    contexts, users = (64, 256, 512, 1024, 4096), (1, 8, 32, 64, 128, 256, 512)
    values = {
        (row, column): saturating(context, count)
        for row, context in enumerate(contexts)
        for column, count in enumerate(users)
        if (row, column) != (2, 4)
    }
    expected = saturating(512, 128)
    one, _ = fit(contexts, users, values | {(2, 5): values[2, 5] * 0.5})
    assert one.value[2, 4] == pytest.approx(expected, rel=0.1)
    slow, _ = fit(contexts, users, {place: value * (0.5 if place[0] == 2 else 1) for place, value in values.items()})
    assert slow.value[2, 4] == pytest.approx(expected * 0.5, rel=0.1)


def test_one_measured_cell_is_a_surface_that_knows_next_to_nothing() -> None:
    surface, _ = fit(CONTEXTS, USERS, {(0, 0): 2.0})
    assert surface.value[0, 0] == pytest.approx(2.0, rel=0.05)
    assert surface.spread[2, 4] > 0.5


@pytest.mark.slow
def test_the_same_cells_give_the_same_surface_in_any_order() -> None:
    values = measured(without={(1, 2)})
    one, scales = fit(CONTEXTS, USERS, values)
    other, same = fit(CONTEXTS, USERS, dict(sorted(values.items(), reverse=True)))
    assert np.array_equal(one.mean, other.mean)
    assert np.array_equal(scales, same)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_ninety_in_a_hundred_measurements_lie_in_their_interval(law: str) -> None:
    """On servers of laws that the fit does not know, from a third of the cells, chosen by chance."""
    within = total = 0
    for seed in range(8):
        made = server(5000 + seed, law, users=FEWER_USERS)
        places = [(row, column) for row in range(len(made.contexts)) for column in range(len(made.users))]
        chances = random.Random(seed)  # noqa: S311 - no secret
        chosen = set(chances.sample(places, len(places) // 3)) | {(0, 0), (0, 7), (12, 0), (12, 7)}
        of = {(row, column): made.measured[made.contexts[row], made.users[column]] for row, column in places}
        surface, _ = fit(made.contexts, made.users, {place: of[place] for place in chosen})
        low, high = surface.interval()
        left = [place for place in places if place not in chosen]
        within += sum(low[place] <= of[place] <= high[place] for place in left)
        total += len(left)
        narrow = np.exp(surface.mean - 0.1 * surface.spread), np.exp(surface.mean + 0.1 * surface.spread)
        assert sum(narrow[0][place] <= of[place] <= narrow[1][place] for place in left) < 0.5 * len(left)
    assert 0.82 <= within / total <= 0.99


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
