"""Bounds of a spread hold for every set of values, and statistics that no set has are named."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_bench.audit.spread import Spread

VALUES = st.lists(st.floats(0.001, 1000.0), min_size=1, max_size=60)
SHARES = (0.01, 0.05, 0.10, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99)


def spread_of(values: list[float], *, deviation: bool = True, ends: bool = True) -> Spread:
    array = np.array(values)
    return Spread(
        mean=float(array.mean()),
        deviation=float(array.std()) if deviation else None,
        least=float(array.min()) if ends else None,
        most=float(array.max()) if ends else None,
        quantiles={share: float(np.quantile(array, share)) for share in SHARES},
    )


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_statistics_of_real_values_are_not_accused(values: list[float]) -> None:
    for ends in (True, False):
        assert not list(spread_of(values, ends=ends).contradictions(len(values)))


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.001, 1000.0), min_size=30, max_size=200))
def test_widest_deviation_bounds_the_real_one(values: list[float]) -> None:
    widest = spread_of(values, deviation=False).widest()
    assert widest is not None
    assert float(np.std(values)) <= widest * 1.05 + 1e-6 + max(values) / len(values)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"mean": 2.0}, "the largest mean that the percentiles allow"),
        ({"mean": 0.3}, "the least mean that the percentiles allow"),
        ({"most": 1.01}, "max"),
        ({"least": 1.5}, "min"),
        ({"deviation": 0.001}, "mean and standard deviation allow"),
    ],
)
def test_statistics_that_no_values_have_are_named(changed: dict[str, float], what: str) -> None:
    values = [1.0 + 0.2 * math.sin(index) for index in range(100)]
    clean = spread_of(values)
    fields = {"mean": clean.mean, "deviation": clean.deviation, "least": clean.least, "most": clean.most}
    contradictions = list(Spread(**{**fields, **changed}, quantiles=clean.quantiles).contradictions(100))  # type: ignore[arg-type]
    assert any(what in smaller or what in larger for smaller, _, larger, _ in contradictions)


def test_spread_without_ends_or_deviation_bounds_nothing() -> None:
    assert Spread(mean=1.0, quantiles={0.5: 1.0}).widest() is None
    assert Spread(mean=1.0, least=1.0, most=1.0).widest() == 0
