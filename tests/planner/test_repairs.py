"""Repairs that set a number keep to further limits: lowered where a limit is lower, left out where it forbids them."""

from decimal import Decimal

import pytest

from bezel.planner.base.repairs import lowest_numbers, to_number, within

MOST, HOURLY = "bezel:scaling.max_instances", "bezel:cost.max_hourly_usd"
TO_FIVE, TO_TWO = to_number("lower", "scaling.max_instances", 5), to_number("lower", "scaling.max_instances", 2)
TO_USD = to_number("raise", "cost.max_hourly_usd", "41.87")


@pytest.mark.parametrize(
    ("repair", "bounds", "kept"),
    [
        (f"{TO_FIVE}.", {MOST: 2}, f"{TO_TWO}."),
        (f"{TO_TWO}.", {MOST: 5}, f"{TO_TWO}."),
        (f"{TO_FIVE}, choose another, or wait.", {MOST: 2}, f"{TO_TWO}, choose another, or wait."),
        (f"{TO_USD}, or {TO_FIVE}.", {HOURLY: 6}, f"{TO_FIVE}."),
        (f"{TO_USD}, or {TO_FIVE}.", {HOURLY: 6, MOST: 2}, f"{TO_TWO}."),
        (f"{TO_USD}, or {TO_FIVE}.", {HOURLY: 42}, f"{TO_USD}, or {TO_FIVE}."),
        (f"{TO_USD}, or {TO_FIVE}.", {HOURLY: 6, MOST: 0}, "choose what the limits below allow."),
        (f"{TO_FIVE}, or request 5: `gcloud x`.", {MOST: 0}, "request 5: `gcloud x`."),
        ("write 1 or 2.", {MOST: 2}, "write 1 or 2."),
        (f"{TO_USD}.", {"bezel:cost.max_hourly": 1}, f"{TO_USD}."),
    ],
)  # fmt: skip
def test_repair_keeps_to_bounds(repair, bounds, kept):
    text = f"Stack s cannot be planned: 1 problem.\n\n1. a = 1\n   b.\n   Repair: {repair}"
    exact = {key: Decimal(bound) for key, bound in bounds.items()}
    assert within(text, exact) == text.replace(repair, kept)
    assert within(within(text, exact), exact) == within(text, exact)


@pytest.mark.parametrize(
    ("value", "kept"), [(4, f"{TO_TWO}."), (2, f"{TO_TWO}, or request 4: `gcloud x`."), ("auto", None)]
)
def test_larger_quota_is_no_repair_of_a_value_above_its_bound(value, kept):
    text = f"1. {MOST} = {value}\n   the project has 3.\n   Repair: {TO_FIVE}, or request 4: `gcloud x`."
    kept = kept or f"{TO_TWO}, or request 4: `gcloud x`."
    assert within(text, {MOST: Decimal(2)}) == f"1. {MOST} = {value}\n   the project has 3.\n   Repair: {kept}"


def test_only_repairs_are_changed():
    text = f"a = 1\n   someone wrote {TO_FIVE}.\n   Repair: {TO_FIVE}."
    assert within(text, {MOST: Decimal(2)}) == f"a = 1\n   someone wrote {TO_FIVE}.\n   Repair: {TO_TWO}."


def test_lowest_of_several_numbers_is_found():
    texts = [f"Repair: {TO_FIVE}.", f"Repair: {TO_TWO}, or {TO_USD}.", "Repair: lower it to 1."]
    assert lowest_numbers(texts) == {MOST: 2}
