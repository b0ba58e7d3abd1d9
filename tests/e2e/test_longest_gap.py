"""The longest gap between a steady client's answers, less the stalls of its own process. Pure."""

import pytest

from tests.support.e2e.steady_client import longest_gap

IN_TIME = [number / 10 for number in range(101)]


def without(begin: float, end: float) -> list[float]:
    """The ticks of a process that had no time in between."""
    return [tick for tick in IN_TIME if not begin < tick < end]


@pytest.mark.parametrize(
    ("answered", "ticks", "gap"),
    [
        pytest.param([0, 1, 7, 8], IN_TIME, 6, id="the service hangs"),
        pytest.param([0, 1, 7, 8], without(1, 7), 1, id="this process has no time"),
        pytest.param([0, 1, 7, 8], without(5, 7), 4, id="it has none for a part of it"),
        pytest.param([0, 1, 7, 8], without(6, 9), 5, id="its stall goes on after the answer"),
        pytest.param([0, 4, 10], without(1, 3), 6, id="its stall was before"),
        pytest.param([0, 1, 7, 8], IN_TIME[::5], 6, id="its ticks are a little late"),
    ],
)
def test_a_gap_between_answers_counts_without_stalls_of_the_process(
    answered: list[float], ticks: list[float], gap: float
) -> None:
    assert longest_gap(answered, ticks) == pytest.approx(gap)
