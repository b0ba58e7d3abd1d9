"""A knee has a plateau behind it: cells that agree and none far above; a stalled cell makes none and hides none."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_support.oracle import RATE
from bezel_bench.sweep.grid import Grid
from bezel_bench.sweep.inference.knees import GROWTH, knee, knees
from tools.bench.sweeps import knee_rates

USERS = (1, 4, 16, 64, 256)
DOUBLED = (1, 2, 4, 8, 16, 32, 64)


def test_the_knee_is_the_fewest_users_near_the_plateau() -> None:
    assert knee(USERS, [1.0, 4.0, 9.5, 10.0, 10.2]).index == 2


@pytest.mark.parametrize(
    ("users", "values"),
    [
        ((1, 2, 4, 8), (234.0, 463.0, 960.0, 487.0)),
        ((1, 2, 4, 8, 16), (234.0, 463.0, 487.0, 470.0, 3800.0)),
        ((1, 2, 4), (234.0, 463.0, 480.0)),
        (DOUBLED, (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 33.0)),
        (DOUBLED, (1.0, 2.0, 4.0, 8.0, 16.0, 15.5, 64.0)),
    ],
)
def test_one_low_cell_makes_no_plateau(users: tuple[int, ...], values: tuple[float, ...]) -> None:
    verdict = knee(users, values)
    assert verdict.index is None
    assert verdict.why


@pytest.mark.parametrize("stalled", range(7))
def test_one_stalled_cell_hides_no_knee(stalled: int) -> None:
    values = [10.0, 20.0, 40.0, 60.0, 61.0, 59.0, 60.0]
    values[stalled] /= 2
    index = knee(DOUBLED, values).index
    assert index is not None
    assert abs(index - 3) <= 1


def test_two_stalled_cells_in_a_row_before_it_hide_a_knee_and_are_named() -> None:
    values = [10.0, 20.0, 40.0, 30.0, 30.0, 60.0, 60.0, 60.0]
    verdict = knee((*DOUBLED, 128), values)
    assert verdict.index is None
    assert "two in a row are no higher than with fewer users, just below 32 users" in verdict.why
    values[3] = 60.0
    assert knee((*DOUBLED, 128), values).index == 3


def test_a_lower_cell_behind_one_near_the_plateau_hides_a_knee() -> None:
    assert knee(DOUBLED, [10.0, 20.0, 53.0, 30.0, 60.0, 60.0, 60.0]).index is None
    assert knee(DOUBLED, [10.0, 20.0, 40.0, 30.0, 60.0, 60.0, 60.0]).index == 4


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
    assert knee(users, values).index is None


@pytest.mark.slow
@given(st.lists(st.integers(1, 4096), min_size=1, max_size=12, unique=True), st.floats(0.3, 1.0))
def test_no_server_whose_throughput_grows_with_the_users_has_a_knee(users: list[int], power: float) -> None:
    assert knee(sorted(users), [count**power for count in sorted(users)]).index is None


@pytest.mark.slow
@given(st.lists(st.integers(1, 4096), min_size=1, max_size=12, unique=True), st.floats(1, 5000))
def test_a_knee_has_most_of_what_twice_its_users_have(users: list[int], most: float) -> None:
    rising = sorted(users)
    values = [min(float(count), most) for count in rising]
    index = knee(rising, values).index
    flat = [count for count in rising if count >= most]
    assert index is not None or len(flat) < 3 or flat[-1] < 2 * flat[0], "what was seen is named"
    if index is not None:
        assert rising[-1] >= 2 * rising[index]
        assert values[index] >= 0.9 * math.exp(-GROWTH) * values[-1], "a plateau may grow so much"


def test_a_lucky_cell_is_not_the_plateau() -> None:
    assert knee(USERS, [1.0, 9.8, 10.0, 12.5, 10.1]).index == 1


def test_a_server_that_falls_behind_its_knee_has_it_before() -> None:
    assert knee(USERS, [1.0, 8.0, 10.0, 9.6, 5.0]).index == 2


def test_a_context_with_gaps_below_the_plateau_has_no_knee() -> None:
    grid = Grid((64, 256), DOUBLED)
    flat = {(0, column): 50.0 for column in (3, 4, 5, 6)} | {(0, 0): 8.0}
    (finding,) = knees(grid, RATE, flat)
    assert finding.name == "no_plateau"
    assert "too few numbers of users below 8 users were measured" in finding.text
    few = {(0, 0): 8.0, (0, 3): 50.0, (0, 6): 50.0}
    (finding,) = knees(grid, RATE, few)
    assert "no knee is named: only 3 of 7 numbers of users up to 64 were measured" in finding.text
    (finding,) = knees(grid, RATE, flat | {(0, 1): 16.0})
    assert (finding.name, finding.numbers["users"]) == ("knee", 8)


@pytest.mark.slow
@pytest.mark.parametrize("law", [*knee_rates.LAWS, knee_rates.MADE_UP])
def test_at_most_one_knee_in_a_hundred_is_false_and_nine_in_ten_are_found(law: str) -> None:
    rates = knee_rates.rates(law, 1000)
    assert rates.false_share <= 0.012
    assert rates.found_share is None or rates.found_share >= 0.9
    assert (rates.plateaus == 0) == law.startswith("rises")
