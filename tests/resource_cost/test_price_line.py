"""The price line: one line, before -> after, and an unknown amount is never left out or shown as 0."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.planner.base.money import Priced, Unpriced
from bezel.resource_cost.price_line import cost_of_json, price_line, price_now
from bezel.resource_cost.stack_cost import StackCost

NOTHING = StackCost()
L4 = StackCost(Priced(Decimal("1.0466")), Priced(Decimal("764.018")), Priced(Decimal(0)), count=1)
NO_PRICE = "the price was not determined"
ROW = "cloud-run, gpu nvidia-l4 no zonal redundancy, asia-southeast1"
UNPRICED = StackCost(Unpriced(ROW), Unpriced(ROW), Unpriced(ROW), (ROW,), 1)


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (NOTHING, L4, "0.00 -> 1.05 USD/h (+1.05), 0.00 -> 764.02 USD/month (+764.02), idle 0.00 USD/h (unchanged)"),
        (L4, NOTHING, "1.05 -> 0.00 USD/h (-1.05), 764.02 -> 0.00 USD/month (-764.02), idle 0.00 USD/h (unchanged)"),
        (L4, L4, "1.05 USD/h (unchanged), 764.02 USD/month (unchanged), idle 0.00 USD/h (unchanged)"),
        (
            L4,
            UNPRICED,
            "1.05 -> unknown USD/h, 764.02 -> unknown USD/month, idle 0.00 -> unknown USD/h; unknown: " + ROW,
        ),
        (UNPRICED, UNPRICED, f"unknown USD/h, unknown USD/month, idle unknown USD/h; unknown: {ROW}"),
        (
            None,
            L4,
            f"unknown -> 1.05 USD/h, unknown -> 764.02 USD/month, idle unknown -> 0.00 USD/h; unknown: {NO_PRICE}",
        ),
    ],
)
def test_the_line_compares_before_and_after(before: StackCost, after: StackCost, line: str) -> None:
    assert price_line(before, after) == line
    assert "\n" not in line


def test_a_difference_below_a_cent_is_shown_as_the_amounts_are() -> None:
    more = StackCost(Priced(Decimal("1.0549")), L4.monthly, L4.idle_hourly, count=1)
    assert price_line(L4, more).startswith("1.05 USD/h (unchanged)")


def test_without_a_state_only_the_price_after_is_shown() -> None:
    assert price_now(L4) == "1.05 USD/h, 764.02 USD/month at most, idle 0.00 USD/h"
    assert price_now(UNPRICED).endswith(f"idle unknown USD/h; unknown: {ROW}")


def in_regions(**hourly: str) -> StackCost:
    """A cost of services in regions."""
    regions = {name.replace("_", "-"): Priced(Decimal(usd)) for name, usd in hourly.items()}
    amount = Priced(sum((each.usd for each in regions.values()), Decimal(0)))
    return StackCost(amount, amount, amount, count=len(regions), regions=regions)


NEAR, BOTH = in_regions(us_east4="1.05"), in_regions(us_east4="1.05", europe_west4="1.2")


@pytest.mark.parametrize(
    ("before", "after", "end"),
    [
        (NEAR, NEAR, "idle 1.05 USD/h (unchanged)"),
        (NEAR, BOTH, "; by region: us-east4 1.05 USD/h (unchanged), europe-west4 0.00 -> 1.20 USD/h (+1.20)"),
        (BOTH, NEAR, "; by region: us-east4 1.05 USD/h (unchanged), europe-west4 1.20 -> 0.00 USD/h (-1.20)"),
        (None, BOTH, "; by region: us-east4 unknown -> 1.05 USD/h, europe-west4 unknown -> 1.20 USD/h"),
    ],
)
def test_each_of_several_regions_has_its_price_beside_the_sum(
    before: StackCost | None, after: StackCost, end: str
) -> None:
    assert price_line(before, after).endswith(end)
    read = cost_of_json(after.as_json())
    assert read is not None
    assert price_now(read) == price_now(after)
    assert ("europe-west4 1.20 USD/h" in price_now(after)) == (after is BOTH)


LEASED = StackCost(*(Priced(Decimal(5)),) * 3, count=1, left_out=1)


def test_a_line_names_the_services_that_its_sums_leave_out() -> None:
    note = "; not included: a Cloud Run service without a GPU"
    assert price_line(NOTHING, LEASED).endswith(note)
    assert price_now(LEASED).endswith(note)
    assert price_now(replace(LEASED, left_out=2)).endswith("; not included: 2 Cloud Run services without a GPU")
    assert "not included" not in price_line(LEASED, L4)


KEPT = replace(LEASED, samples=Priced(Decimal("0.9198")))


def test_a_line_names_the_samples_that_its_sums_leave_out() -> None:
    note = "; vLLM's figures over time: at most 0.92 USD/month"
    assert price_line(NOTHING, KEPT).endswith(f"{note}; not included: a Cloud Run service without a GPU")
    assert price_now(replace(KEPT, left_out=0)).endswith(note)
    assert price_now(replace(KEPT, left_out=0, samples=Unpriced("it"))).endswith("at most unknown USD/month")
    assert "samples" not in price_line(KEPT, LEASED)


@pytest.mark.parametrize("cost", [NOTHING, L4, UNPRICED, BOTH, LEASED, KEPT])
def test_a_document_keeps_what_is_known_and_what_is_not(cost: StackCost) -> None:
    read = cost_of_json(cost.as_json())
    assert price_line(NOTHING, read) == price_line(NOTHING, cost)


@pytest.mark.parametrize("amount", [None, 1.05, "NaN", "Infinity", "-1", "1e99", "free", ["1"], True])
def test_what_is_not_an_amount_is_unknown(amount: object) -> None:
    line = price_line(NOTHING, cost_of_json({"hourly_usd": amount, "monthly_usd": "1", "idle_hourly_usd": "0"}))
    assert line.startswith("0.00 -> unknown USD/h")
    assert line.endswith("; unknown: a price without a reason")
    assert cost_of_json(None) is None


CENTS = st.decimals(min_value=0, max_value=100_000, places=8)


@pytest.mark.slow
@given(CENTS, CENTS)
def test_price_is_rounded_once_on_its_way_through_json(hourly: Decimal, monthly: Decimal) -> None:
    """763.97496 USD are 763.97; 763.9750 USD, rounded before, would be 763.98."""
    cost = StackCost(Priced(hourly), Priced(monthly), Priced(Decimal(0)), count=1)
    read = cost_of_json(cost.as_json())
    assert read is not None
    assert price_now(read) == price_now(cost)
    assert (read.hourly, read.monthly) == (Priced(hourly), Priced(monthly))
