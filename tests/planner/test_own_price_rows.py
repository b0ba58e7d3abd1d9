"""A price row of the user's own holds the limits: it is a price of its unit, dated and sourced, or it is refused."""

from __future__ import annotations

import math
import re
from datetime import date
from decimal import Decimal
from functools import cache

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bezel.planner import PlanError, make_plan
from bezel.planner.base.money import Priced
from bezel.planner.base.settings import PriceRow
from bezel.planner.cost.price_rows import check_own_prices, priced_items
from bezel_catalog import prices
from tests.support.planner.l4_stack import with_changes
from tests.support.planner.v6e_stack import L4X8, V6E4_MOE

TODAY = date(2026, 11, 23)
GPU = "gpu nvidia-l4 no zonal redundancy"
ROW = {"item": GPU, "region": "asia-southeast1", "usd_per_unit": 0.0002, "as_of": "2026-11", "source": "our invoice"}
UNPRICED = {"region": "asia-southeast1"}


def refusals(config, today=TODAY):
    """The problems of a configuration, none where it is planned."""
    try:
        make_plan(config, project="p", stack="s", today=today)
    except PlanError as error:
        return error.problems
    return ()


def with_row(**changes):
    """The stack in a region where its GPU has no price but this row."""
    return with_changes(UNPRICED | {"cost": {"max_hourly_usd": 2, "prices": [ROW | changes]}})


def test_a_row_that_can_be_true_prices_the_stack():
    assert refusals(with_row()) == ()
    assert refusals(with_row(as_of="2026-11-23")) == ()
    assert refusals(with_row(as_of="2026-11-24")) == ()  # it is that day already in the east
    assert refusals(with_row(usd_per_unit=0.0001)) == ()  # half of the list price: a discount that there is


@pytest.mark.parametrize(
    ("changes", "key", "phrase"),
    [
        ({"usd_per_unit": 1e-300}, "usd_per_unit", "no limit would hold"),
        ({"usd_per_unit": 0.00002}, "usd_per_unit", "0.072 USD per hour: far below"),
        ({"usd_per_unit": 3.9}, "usd_per_unit", "14,040 USD per hour: far above any real price"),
        ({"usd_per_unit": 1e300}, "usd_per_unit", "far above"),
        ({"usd_per_unit": 0}, "usd_per_unit", "out of range"),
        ({"usd_per_unit": -0.0002}, "usd_per_unit", "out of range"),
        ({"usd_per_unit": math.nan}, "usd_per_unit", "a finite number"),
        ({"usd_per_unit": math.inf}, "usd_per_unit", "a finite number"),
        ({"usd_per_unit": "PRICE"}, "usd_per_unit", "expected a number"),
        ({"as_of": ""}, "as_of", "the age"),
        ({"as_of": "YYYY-MM"}, "as_of", "the age"),
        ({"as_of": "recently"}, "as_of", "the age"),
        ({"as_of": "2026-13"}, "as_of", "the age"),
        ({"as_of": "2026-11-25"}, "as_of", "after today, 2026-11-23"),
        ({"as_of": "2026-12"}, "as_of", "after today, 2026-11-23"),
        ({"as_of": "2099-01"}, "as_of", "after today, 2026-11-23"),
        ({"source": ""}, "source", "cannot be checked"),
        ({"source": " - "}, "source", "cannot be checked"),
        ({"item": "gpu l4"}, "item", "not billed"),
    ],
)
def test_a_row_that_would_switch_off_limits_is_refused_alone(changes, key, phrase):
    problems = {problem.key: problem for problem in refusals(with_row(**changes))}
    problem = problems.pop(f"bezel:cost.prices.0.{key}")
    assert phrase in problem.consequence
    assert not any("max_hourly_usd" in other for other in problems)  # nothing is concluded from a wrong price


def test_the_price_of_an_hour_is_reported_with_what_to_write():
    (problem,) = refusals(with_row(usd_per_unit=0.6721))
    assert "if it is the price of an hour, write `usd_per_unit: 0.0001867`" in problem.repair
    assert refusals(with_row(usd_per_unit=0.0001867)) == ()


@cache
def bounds(item):
    """The lowest price of the catalogue and the highest of the unit."""
    listed = [
        row.usd_per_unit / (3600 if row.unit.endswith("-hour") else 1) for row in prices().values() if row.item == item
    ]
    return min(listed, default=priced_items()[item].min_usd), priced_items()[item].max_usd


@pytest.mark.slow
@pytest.mark.wide_cases("gpu * zonal redundancy")  # of the unit of the first GPU
@pytest.mark.parametrize("item", priced_items())
@given(share=st.floats(1e-12, 0.19), more=st.floats(1, 1e6))
def test_no_item_has_a_price_far_from_the_catalogues(item, share, more):
    lowest, most = bounds(item)
    for usd in (float(lowest) * share, float(most) * (1 + more)):
        row = PriceRow(**ROW | {"item": item, "usd_per_unit": usd})
        assert [problem.key for problem in check_own_prices([row], today=TODAY)] == ["bezel:cost.prices.0.usd_per_unit"]


@pytest.mark.parametrize(
    "config",
    [
        with_changes(UNPRICED | {"cost": {"max_hourly_usd": 5}}),
        {**L4X8, "cost": {}},
        {**V6E4_MOE, "region": "asia-southeast1", "lease": {"zones": [{"zone": "southamerica-west1-a"}]}},
    ],
    ids=["service", "machine", "slice with its gateway"],
)
def test_a_missing_row_is_shown_ready_to_fill_in_with_its_unit(config):
    (problem,) = [one for one in refusals(config) if "Missing price row" in one.consequence]
    assert "usd_per_unit is USD per second of one " in problem.repair
    assert "(the price of an hour divided by 3600)" in problem.repair
    pasted = problem.repair[problem.repair.index("     bezel:cost:") :]
    unfilled = yaml.safe_load(pasted)["bezel:cost"]
    refused = {one.key for one in refusals(config | {"cost": unfilled})}
    assert {f"bezel:cost.prices.{number}.usd_per_unit" for number in range(len(unfilled["prices"]))} <= refused
    units = {
        f"USD_PER_{unit.phrase.replace(' ', '_').upper()}": (unit.min_usd * unit.max_usd).sqrt()
        for unit in priced_items().values()
    }
    filled = re.sub(r"USD_PER_\w+", lambda match: str(units[match[0]]), pasted)
    filled = filled.replace("YYYY-MM", "2026-11").replace("source: ''", "source: our invoice")
    rows = yaml.safe_load(filled)["bezel:cost"]
    plan = make_plan(config | {"cost": rows}, project="p", stack="s", today=TODAY)
    assert isinstance(plan.cost.hourly_at_max, Priced)
    assert plan.cost.hourly_at_max.usd > Decimal("0.1")


def test_without_a_clock_no_date_is_too_new():
    assert refusals(with_row(as_of="2099-01"), today=None) == ()
