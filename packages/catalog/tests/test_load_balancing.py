"""Prices of load balancers: dated, positive, of regions that exist, each once; a region without a row is unpriced."""

from collections import Counter
from decimal import Decimal

import pytest

from bezel_catalog import Price, Unpriced
from bezel_catalog.checks.integrity_errors import check_dated
from bezel_catalog.load_balancing import (
    DATA_IN,
    DATA_OUT,
    EVERYWHERE,
    FIRST_RULES,
    FURTHER_RULE,
    UNUSED_ADDRESS,
    load_balancing_price,
    load_balancing_prices,
)
from bezel_catalog.loader import region_names

UNITS = {FIRST_RULES: "rule-hour", FURTHER_RULE: "rule-hour", UNUSED_ADDRESS: "address-hour"}
ROWS = load_balancing_prices().values()


def test_each_row_is_dated_positive_and_of_a_region() -> None:
    keys = Counter((row.item, region) for row in ROWS for region in row.regions)
    assert set(keys.values()) == {1}
    for row in ROWS:
        assert list(check_dated(row.id, row)) == []
        assert row.usd_per_unit > 0
        assert row.unit == UNITS.get(row.item, "gib")
        assert set(row.regions) <= (region_names() if row.unit == "gib" else {EVERYWHERE})


def test_an_item_is_priced_where_it_has_a_row_only() -> None:
    rules = load_balancing_price(FIRST_RULES)
    assert isinstance(rules, Price)
    assert (rules.usd_per_unit, rules.is_derived) == (Decimal("0.025"), False)
    for item in (DATA_IN, DATA_OUT):
        read, derived = (load_balancing_price(item, region) for region in ("us-central1", "us-east4"))
        assert isinstance(read, Price)
        assert isinstance(derived, Price)
        assert (read.is_derived, derived.is_derived) == (False, True)
        assert isinstance(load_balancing_price(item, "asia-southeast1"), Unpriced)


@pytest.mark.parametrize("item", UNITS)
def test_rules_have_no_price_of_a_single_region(item: str) -> None:
    assert str(load_balancing_price(item, "us-east4")) == f"load-balancing, {item}, us-east4, premium"
