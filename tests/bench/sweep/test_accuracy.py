"""Adaptive sweeps of made-up grids of every shape: a quarter of the requests, most cells with a figure, ranges hold."""

from __future__ import annotations

from functools import cache

import pytest

from bezel_bench.sweep.run import SHARE
from tools.bench.sweeps import engines, made_up
from tools.bench.sweeps.grids import Oracle, oracle
from tools.bench.sweeps.methods import Outcome, own
from tools.bench.sweeps.trials import MANY

pytestmark = pytest.mark.slow
GRIDS = 16


def grids(shape: str) -> list[Oracle]:
    return [oracle(made.name, list(made.rows())) for made in (made_up.grid(7000 + at, shape) for at in range(GRIDS))]


@cache
def outcomes_of(shape: str) -> list[Outcome]:
    """Sweeps of the grids of a shape, a second of CPU."""
    return [own(grid) for grid in grids(shape)]


def check_shape(outcomes: list[Outcome]) -> None:
    assert all(outcome.share <= SHARE for outcome in outcomes)
    assert all(outcome.figures >= 0.7 for outcome in outcomes)
    ranges = [is_inside for outcome in outcomes for is_inside in outcome.held]
    assert len(ranges) >= 12 * GRIDS
    assert 0.85 <= sum(ranges) / len(ranges) <= 0.98


def test_ranges_hold_on_made_up_grids_of_a_shape() -> None:
    check_shape(outcomes_of("noisy"))


@pytest.mark.wide
def test_ranges_hold_over_all_shapes_and_on_each_grid() -> None:
    outcomes = [outcome for shape in made_up.SHAPES for outcome in outcomes_of(shape)]
    for shape in made_up.SHAPES:
        check_shape(outcomes_of(shape))
    ranges = [is_inside for outcome in outcomes for is_inside in outcome.held]
    assert 0.85 <= sum(ranges) / len(ranges) <= 0.95
    many = [sum(outcome.held) / len(outcome.held) for outcome in outcomes if len(outcome.held) >= MANY]
    assert len(many) >= 30
    assert sum(share < 0.75 for share in many) <= 0.05 * len(many), "cells of a grid miss together"


@pytest.mark.wide
def test_ranges_hold_on_grids_of_the_second_generator() -> None:
    outcomes = [own(oracle(made.name, list(made.rows()))) for made in (engines.grid(9000 + at) for at in range(60))]
    assert all(outcome.figures >= 0.7 for outcome in outcomes)
    ranges = [is_inside for outcome in outcomes for is_inside in outcome.held]
    assert len(ranges) >= 15 * len(outcomes)
    assert 0.85 <= sum(ranges) / len(ranges) <= 0.95
    many = [sum(outcome.held) / len(outcome.held) for outcome in outcomes if len(outcome.held) >= MANY]
    assert sum(share < 0.75 for share in many) <= 0.05 * len(many)


def test_engine_is_the_same_for_the_same_seed_and_kinds_differ() -> None:
    assert engines.grid(3) == engines.grid(3)
    assert engines.grid(3).measured != engines.grid(8).measured
    assert [engines.grid(seed).kind for seed in range(len(engines.KINDS))] == list(engines.KINDS)
    alone = engines.grid(0).engine
    assert alone.rate(64, 1) > alone.rate(8192, 1), "longer prompts take longer"


def test_a_grid_is_the_same_for_the_same_seed_and_shapes_differ() -> None:
    assert made_up.grid(3) == made_up.grid(3)
    assert made_up.grid(3).measured != made_up.grid(8).measured
    assert {made_up.grid(seed).shape for seed in range(len(made_up.SHAPES))} == set(made_up.SHAPES)
