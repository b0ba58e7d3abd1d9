"""Patterns keep what they promise: rates, counts, ends, order; a seed makes the same plan again."""

import itertools
import math
import statistics
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_bench.load.patterns import instants, user_windows
from bezel_bench.load.plan import (
    Burst,
    Closed,
    Constant,
    Load,
    Poisson,
    PromptPlan,
    Replay,
    Stage,
    Staged,
    Stop,
    Target,
)

RATES = st.floats(0.5, 50)
LIGHT = settings(max_examples=25, deadline=None)
STAGES = st.lists(st.builds(Stage, st.integers(0, 9), st.floats(0.1, 9)), min_size=1, max_size=4).map(tuple)


def load(pattern: Any, stop: Stop, **others: Any) -> Load:
    return Load(Target("http://127.0.0.1:1", "m"), pattern, stop, PromptPlan(), **others)


@LIGHT
@given(RATES, st.floats(0.1, 9))
def test_a_constant_rate_is_kept_over_any_time(rate: float, seconds: float) -> None:
    planned = list(instants(Constant(rate), Stop(seconds=seconds), 0))
    assert abs(len(planned) - rate * seconds) <= 1
    assert all(at < seconds for at in planned)
    assert planned[0] == 0
    assert all(math.isclose(b - a, 1 / rate, rel_tol=1e-6) for a, b in itertools.pairwise(planned))


@LIGHT
@given(st.sampled_from([Constant(7.0), Poisson(7.0), Burst(7.0, 0.3), Replay((0.0, 0.5, 9.0))]), st.integers(1, 50))
def test_a_count_is_kept_whichever_end_comes_first(pattern: Any, count: int) -> None:
    longest = len(pattern.instants) if isinstance(pattern, Replay) else count
    assert len(list(instants(pattern, Stop(requests=count), 0))) == min(count, longest)
    both = list(instants(pattern, Stop(requests=count, seconds=1.0), 0))
    assert both == [at for at in instants(pattern, Stop(requests=count), 0) if at < 1.0]


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_gaps_have_the_mean_and_the_spread_of_their_gamma_distribution(burstiness: float) -> None:
    planned = list(instants(Burst(50.0, burstiness), Stop(requests=6_000), 3))
    gaps = [b - a for a, b in itertools.pairwise(planned)]
    assert statistics.mean(gaps) == pytest.approx(1 / 50, rel=0.06)
    assert statistics.stdev(gaps) / statistics.mean(gaps) == pytest.approx(1 / math.sqrt(burstiness), rel=0.06)


def test_poisson_arrivals_are_bursts_and_a_constant_rate_is_even() -> None:
    """Burstiness 1: the gaps deviate by as much as their mean."""
    gaps = [b - a for a, b in itertools.pairwise(instants(Poisson(50.0), Stop(requests=6_000), 3))]
    assert statistics.stdev(gaps) / statistics.mean(gaps) == pytest.approx(1, rel=0.06)
    even = [b - a for a, b in itertools.pairwise(instants(Constant(50.0), Stop(requests=2_000), 3))]
    assert statistics.stdev(even) / statistics.mean(even) < 1e-9


@LIGHT
@given(st.sampled_from([Poisson(9.0), Burst(9.0, 0.5)]), st.integers(0, 2**32))
def test_a_seed_makes_the_same_plan_again_and_another_another(pattern: Any, seed: int) -> None:
    planned = list(instants(pattern, Stop(requests=20), seed))
    assert planned == list(instants(pattern, Stop(requests=20), seed))
    assert planned == sorted(planned)
    assert planned != list(instants(pattern, Stop(requests=20), seed + 1))


@pytest.mark.slow
@LIGHT
@given(STAGES)
def test_stages_of_a_rate_send_the_area_below_them(stages: tuple[Stage, ...]) -> None:
    planned = list(instants(Staged("rate", stages), Stop(), 0))
    ends = list(itertools.accumulate(stage.seconds for stage in stages))
    assert abs(len(planned) - sum(stage.level * stage.seconds for stage in stages)) <= 1
    assert planned == sorted(planned)
    for stage, end in zip(stages, ends, strict=True):
        count = sum(end - stage.seconds <= at < end for at in planned)
        assert abs(count - stage.level * stage.seconds) <= 1
        assert stage.level or not count


@LIGHT
@given(STAGES)
def test_stages_of_users_have_so_many_users_at_any_time(stages: tuple[Stage, ...]) -> None:
    windows = user_windows(load(Staged("users", stages), Stop()))
    begin = 0.0
    for stage in stages:
        middle = begin + stage.seconds / 2
        assert sum(a <= middle < b for shown in windows for a, b in shown) == stage.level
        begin += stage.seconds
    assert all(b <= c for shown in windows for (_, b), (c, _) in itertools.pairwise(shown))


@pytest.mark.slow
@LIGHT
@given(st.integers(1, 60), st.floats(0, 30))
def test_users_ramp_up_one_after_the_other_and_then_stay(users: int, ramp: float) -> None:
    windows = user_windows(load(Closed(users), Stop(requests=1), ramp_seconds=ramp))
    begins = [begin for ((begin, end),) in windows if end == math.inf]
    assert len(begins) == users
    assert begins == sorted(begins)
    assert begins[0] == 0
    assert begins[-1] <= ramp


def test_time_to_stop_closes_open_windows_and_keeps_later_users_out() -> None:
    late = load(Closed(4), Stop(seconds=3.0), ramp_seconds=8.0)
    assert user_windows(late) == [[(0.0, 3.0)], [(2.0, 3.0)], [], []]
    assert user_windows(replace(late, ramp_seconds=0.0)) == [[(0.0, 3.0)]] * 4


def test_an_open_loop_has_no_users_and_a_closed_one_no_instants() -> None:
    with pytest.raises(ValueError, match="no users"):
        user_windows(load(Constant(1.0), Stop(requests=1)))
    for closed in (Closed(1), Staged("users", (Stage(1, 1.0),))):
        with pytest.raises(ValueError, match="no instants"):
            instants(closed, Stop(requests=1), 0)


def test_a_constant_rate_does_not_drift() -> None:
    (at,) = itertools.islice(instants(Constant(3.0), Stop(), 0), 20_000, 20_001)
    assert at == 20_000 / 3.0
