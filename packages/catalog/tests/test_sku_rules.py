"""Only the SKU on demand prices a row, only at a price that can be trusted, and no row is ever lost."""

from __future__ import annotations

import dataclasses
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_catalog import prices
from bezel_catalog.refresh import SkuCollector, compare, refreshed_rows, regions_to_refresh
from bezel_catalog.skus import sku_rules
from catalog_support.fake_billing_catalog import COMPUTE, DECOYS, RUN, list_skus, sku, sku_of, tier

ROWS = tuple(prices().values())
CHIP = next(row for row in ROWS if (row.region, row.model) == ("us-east5", "flex-start"))


def compare_skus(skus, rows=ROWS):
    """What a reading of these SKUs says of the rows: billing service -> SKUs."""
    rules, matches = sku_rules(), {}
    for service, each in skus.items():
        collector = SkuCollector([rule for rule in rules if rule.billing_service == service], regions_to_refresh(rows))
        for one in each:
            collector.add(one)
        matches |= collector.matches
    return compare(rows, rules, matches, as_of="2027-01")


def of_row(comparisons, row):
    return next(each for each in comparisons if each.old == row)


@pytest.mark.parametrize("decoy", DECOYS, ids=lambda decoy: decoy["description"])
def test_a_decoy_prices_nothing(decoy):
    for rule in sku_rules():
        for region in regions_to_refresh(ROWS):
            assert not rule.prices(decoy, region)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: ", ".join(row.key))
def test_each_row_has_its_sku_by_exactly_one_rule(row):
    taken = [rule for rule in sku_rules() if rule.prices(sku_of(row), row.region)]
    assert [(rule.service, rule.item, rule.model) for rule in taken] == [(row.service, row.item, row.model)]
    assert taken[0].usd(sku_of(row)) == row.usd_per_unit


def test_a_list_that_says_the_same_confirms_every_row_and_keeps_its_digits():
    comparisons = compare_skus(list_skus(ROWS))
    assert {each.outcome for each in comparisons if each.old} == {"confirmed"}
    kept = refreshed_rows(comparisons)[: len(ROWS)]
    assert [str(row.usd_per_unit) for row in kept] == [str(row.usd_per_unit) for row in ROWS]
    assert all(row.as_of == "2027-01" and row.sku and not row.is_derived for row in kept)


@pytest.mark.parametrize("usd", ["1.20", "1.50"])
def test_a_price_that_went_up_or_down_is_taken_over(usd):
    skus = {COMPUTE: [sku("DWS Defined Duration V6e running in Columbus", usd, regions=["us-east5"], name="A1")]}
    each = of_row(compare_skus(skus), CHIP)
    assert (each.outcome, each.row.usd_per_unit, each.row.sku) == ("changed", Decimal(usd), "A1")
    assert each.row.key == CHIP.key


# what the SKU of the flex-start chip says -> why it is not taken over
UNTRUSTED = {
    "nothing": ({"tiers": [tier("0")]}, "its price is 0"),
    "free behind a paid tier": ({"tiers": [tier("1.35"), tier("0", start=100)]}, "its price is 0"),
    "less than nothing": ({"tiers": [tier("-1.35")]}, "its price is -1.35"),
    "another currency": ({"tiers": [tier("1.35", currency="EUR")]}, "EUR, not USD"),
    "two currencies": ({"tiers": [tier("0", currency="EUR"), tier("1.35", start=1)]}, "EUR, USD, not USD"),
    "another unit": ({"unit": "mo"}, "per mo, not per h"),
    "two paid tiers": ({"tiers": [tier("1.35"), tier("1.10", start=1000)]}, "several prices by volume: 1.35, 1.1"),
}


@pytest.mark.parametrize(("changes", "why"), UNTRUSTED.values(), ids=UNTRUSTED)
def test_a_price_that_cannot_be_trusted_leaves_the_row_as_it_is(changes, why):
    attributes = {"regions": ["us-east5"], "name": "A1"} | changes
    each = of_row(
        compare_skus({COMPUTE: [sku("DWS Defined Duration V6e running in Columbus", "1.35", **attributes)]}), CHIP
    )
    assert (each.outcome, each.row) == ("refused", CHIP)
    assert "SKU A1" in each.why
    assert why in each.why


@pytest.mark.parametrize("broken", [{"pricingInfo": []}, {"pricingInfo": [{}]}, {"pricingInfo": None}])
def test_a_sku_without_a_price_leaves_the_row_as_it_is(broken):
    each = of_row(compare_skus({COMPUTE: [sku_of(CHIP) | broken]}), CHIP)
    assert (each.outcome, each.row) == ("refused", CHIP)
    assert "it has no price" in each.why


def test_a_free_tier_before_the_paid_one_is_no_price():
    tiers = [tier("0"), tier("1.35", start=10)]
    skus = [sku("DWS Defined Duration V6e running in Columbus", "0", regions=["us-east5"], tiers=tiers)]
    assert of_row(compare_skus({COMPUTE: skus}), CHIP).outcome == "confirmed"


def test_two_skus_that_disagree_decide_nothing_and_two_that_agree_are_one():
    one, other = (
        sku("DWS Defined Duration V6e running in Ohio", usd, regions=["us-east5"], name=usd) for usd in ("1", "2")
    )
    each = of_row(compare_skus({COMPUTE: [one, other]}), CHIP)
    assert (each.outcome, each.row) == ("refused", CHIP)
    assert "several SKUs match with different prices: 1 1, 2 2" in each.why
    same = [sku("DWS Defined Duration V6e running in Ohio", "1", regions=["us-east5"], name=name) for name in "AB"]
    each = of_row(compare_skus({COMPUTE: same}), CHIP)
    assert (each.outcome, each.row.sku) == ("changed", "A")


def test_a_row_whose_sku_is_gone_stays_and_is_named():
    comparisons = compare_skus({RUN: DECOYS, COMPUTE: DECOYS})
    assert {each.outcome for each in comparisons} == {"not found"}
    assert {each.why for each in comparisons} == {"no SKU has its description, region and usage type"}
    assert refreshed_rows(comparisons) == ROWS


def test_a_row_of_an_item_without_a_rule_stays_and_says_so():
    row = dataclasses.replace(CHIP, item="v9 chip")
    (each,) = compare_skus({COMPUTE: []}, (row,))
    assert (each.outcome, each.row, each.why) == ("not found", row, "skus.toml has no rule for such an item")


@pytest.mark.parametrize("region", ["asia-southeast1", "asia-south1"])
def test_a_region_that_is_offered_and_was_unpriced_becomes_a_row(region):
    description = f"NVIDIA L4 GPU with no zonal redundancy in {region}"
    comparisons = compare_skus({RUN: [sku(description, "0.00022", regions=[region], unit="s", name="NEW")]})
    (new,) = [each for each in comparisons if each.outcome == "new"]
    assert new.row.key == ("cloud-run", "gpu nvidia-l4 no zonal redundancy", region, "instance-based")
    assert (new.row.usd_per_unit, new.row.sku, new.row.unit) == (Decimal("0.00022"), "NEW", "gpu-second")
    assert refreshed_rows(comparisons) == (*ROWS, new.row)


def test_a_zone_that_takes_flex_start_and_was_unpriced_becomes_a_row():
    comparisons = compare_skus(
        {COMPUTE: [sku("DWS Defined Duration V6e running in Santiago", "1.5", regions=["southamerica-west1"])]}
    )
    (new,) = [each for each in comparisons if each.outcome == "new"]
    assert new.row.key == ("tpu", "v6e chip", "southamerica-west1", "flex-start")


def test_a_region_where_nothing_is_offered_becomes_no_row():
    description = "NVIDIA L4 GPU with no zonal redundancy in me-west1"
    assert len(compare_skus({RUN: [sku(description, "0.00022", regions=["me-west1"], unit="s")]})) == len(ROWS)


def test_an_unpriced_region_for_nothing_stays_unpriced():
    description = "NVIDIA L4 GPU with no zonal redundancy in asia-southeast1"
    comparisons = compare_skus({RUN: [sku(description, "0", regions=["asia-southeast1"], unit="s")]})
    (new,) = [each for each in comparisons if each.outcome == "refused"]
    assert (new.old, new.row) == (None, None)
    assert refreshed_rows(comparisons) == ROWS


ANY_TIERS = st.lists(
    st.builds(
        tier,
        st.decimals(-5, 50, places=6).map(str),
        st.integers(0, 10**6),
        st.sampled_from(["USD", "EUR"]),
    ),
    min_size=1,
    max_size=3,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.data())
def test_whatever_the_list_says_no_row_is_lost_and_none_is_free(data):
    rows = data.draw(st.lists(st.sampled_from(ROWS), min_size=1, max_size=4, unique_by=lambda row: row.key))
    skus = {RUN: [], COMPUTE: []}
    for row in data.draw(st.lists(st.sampled_from(rows), max_size=6)):
        made = sku_of(row)
        expression = made["pricingInfo"][0]["pricingExpression"]
        expression["tieredRates"] = data.draw(ANY_TIERS)
        made["category"]["usageType"] = data.draw(st.sampled_from(["OnDemand", "Preemptible", "Commit1Yr"]))
        skus[COMPUTE if row.service == "tpu" else RUN].append(made)
    after = refreshed_rows(compare_skus(skus, tuple(rows)))
    assert [row.key for row in after[: len(rows)]] == [row.key for row in rows]
    assert all(row.usd_per_unit > 0 for row in after)
    for old, new in zip(rows, after, strict=False):
        assert dataclasses.replace(
            new, usd_per_unit=old.usd_per_unit, as_of="", source="", sku=""
        ) == dataclasses.replace(old, as_of="", source="", sku="")
