"""Prices by volume: dated, cheaper with more of it, and each tier for what is above it alone."""

from decimal import Decimal
from itertools import pairwise

import pytest

from bezel_catalog import NotInCatalogueError
from bezel_catalog.checks.integrity_errors import check_dated
from bezel_catalog.metrics import SAMPLES, SERIES_READ, monitoring_prices, monitoring_usd
from bezel_catalog.storage_locations import operation_prices
from bezel_catalog.volume_prices.secret_manager import ACCESSES, ACTIVE_VERSIONS, secret_price


@pytest.mark.parametrize("item", [SAMPLES, SERIES_READ])
def test_each_tier_is_dated_and_cheaper_than_the_one_below(item: str) -> None:
    rows = monitoring_prices(item)
    assert [problem for row in rows for problem in check_dated(row.id, row)] == []
    for lower, upper in pairwise(rows):
        assert lower.above_millions < upper.above_millions
        assert lower.usd_per_million > upper.usd_per_million > 0


@pytest.mark.parametrize(
    ("item", "millions", "usd"),
    [
        (SAMPLES, "0", "0"),
        (SAMPLES, "12.6144", "0.756864"),
        (SAMPLES, "50000", "3000"),
        (SAMPLES, "50001", "3000.048"),
        (SAMPLES, "600000", "24000"),
        (SERIES_READ, "1", "0"),
        (SERIES_READ, "3", "1"),
    ],
)
def test_each_tier_prices_what_is_above_it_alone(item: str, millions: str, usd: str) -> None:
    assert monitoring_usd(item, Decimal(millions)) == Decimal(usd)


def test_an_item_without_a_price_is_refused_and_not_free() -> None:
    with pytest.raises(NotInCatalogueError, match="log bytes"):
        monitoring_usd("log bytes", Decimal(5))


def test_requests_to_a_bucket_are_dated_and_a_write_costs_more_than_a_read() -> None:
    prices = operation_prices()
    assert [problem for row in prices.values() for problem in check_dated(row.id, row)] == []
    assert prices["writes"].usd_per_thousand > prices["reads"].usd_per_thousand > 0


@pytest.mark.parametrize(
    ("item", "number", "usd"),
    [
        (ACCESSES, "10000", "0"),
        (ACCESSES, "25000", "0.045"),
        (ACCESSES, "131400", "0.3642"),
        (ACTIVE_VERSIONS, "6", "0"),
        (ACTIVE_VERSIONS, "8", "0.12"),
    ],
)
def test_a_secret_costs_beyond_what_is_free_alone(item: str, number: str, usd: str) -> None:
    row = secret_price(item)
    assert not [*check_dated(row.id, row)]
    assert row.monthly_usd(Decimal(number)) == Decimal(usd)


def test_an_item_of_secrets_without_a_price_is_refused_and_not_free() -> None:
    with pytest.raises(NotInCatalogueError, match="rotations"):
        secret_price("rotations")
