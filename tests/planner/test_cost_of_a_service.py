"""Costs come out as the worked examples say; an unknown price makes the whole unknown and is never taken for 0."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.planner.base.money import Unpriced
from bezel.planner.base.settings import PriceRow
from bezel.planner.cost.service_cost import check_cost, service_cost
from bezel_catalog import accelerators, prices

REGIONS = sorted({row.region for row in prices().values()} | {"moon-east1"})


def cost_of(accelerator="nvidia-l4", region="us-east4", cpu=4, memory_gib=16, least=0, most=1, **more):
    return service_cost(
        accelerator, region=region, cpu=cpu, memory_gib=memory_gib, min_instances=least, max_instances=most, **more
    )


@pytest.mark.parametrize(
    ("accelerator", "region", "cpu", "memory", "hourly", "monthly"),
    [
        ("nvidia-l4", "us-central1", 4, 16, 1.0465, 763.96),
        ("nvidia-l4", "us-east4", 4, 16, 1.0465, 763.96),
        ("nvidia-l4", "europe-west1", 8, 32, 1.4209, 1037.27),
        ("nvidia-rtx-pro-6000", "us-central1", 20, 80, 3.1896, 2328.41),
    ],
)
def test_the_worked_examples_come_out(accelerator, region, cpu, memory, hourly, monthly):
    output = cost_of(accelerator, region, cpu, memory).as_output()
    assert output["usd_per_hour"] == hourly
    assert output["usd_per_month_always_on"] == monthly
    assert output["usd_per_month_without_traffic"] == 0.0
    assert "missing_rows" not in output


def test_zonal_redundancy_has_a_price_of_its_own():
    cheap, dear = cost_of(region="us-central1"), cost_of(region="us-central1", zonal_redundancy=True)
    assert dear.hourly.usd - cheap.hourly.usd == (Decimal("0.0002909") - Decimal("0.0001867")) * 3600


def test_instances_that_run_without_traffic_cost_all_month():
    assert cost_of(least=2, most=3).monthly_without_traffic.usd == 2 * cost_of().monthly_always_on.usd
    assert cost_of(least=2, most=3).hourly_at_min.usd == 2 * cost_of().hourly.usd
    assert cost_of(least=2, most=3).hourly_at_max.usd == 3 * cost_of().hourly.usd


@pytest.mark.slow
@given(
    st.sampled_from(sorted(accelerators())),
    st.sampled_from(REGIONS),
    st.integers(1, 44),
    st.integers(1, 176),
    st.integers(0, 3),
)
def test_a_cost_is_a_positive_number_or_unknown_with_its_missing_rows(accelerator, region, cpu, memory, least):
    cost = cost_of(accelerator, region, cpu, memory, least, 3)
    output = cost.as_output()
    if cost.missing:
        assert isinstance(cost.hourly, Unpriced)
        assert all(row in cost.hourly.reason for row in cost.missing)
        assert {value for name, value in output.items() if name.startswith("usd")} == {"unknown"}
        assert cost.start(0) == cost.hourly_at_min == cost.hourly
        assert output["missing_rows"] == list(cost.missing)
        assert all(region in row for row in cost.missing)
        assert list(check_cost(cost, region=region, limit=None, priced_regions=()))
    else:
        assert cost.hourly.usd > 0
        assert 0 < output["usd_per_hour"] < 100


def test_an_own_row_prices_what_the_catalogue_lacks():
    row = PriceRow(
        item="gpu nvidia-l4 no zonal redundancy",
        region="asia-southeast1",
        usd_per_unit=0.0002,
        as_of="2026-11",
        source="our invoice",
    )
    cost = cost_of(region="asia-southeast1", own_prices=(row,))
    assert cost.hourly.usd == Decimal("0.0002") * 3600 + (4 * Decimal("0.0000216") + 16 * Decimal("0.0000024")) * 3600
    assert cost.as_output()["lines"][0]["source"] == "your own row: our invoice"
    assert cost_of(region="europe-west2", own_prices=(row,)).missing


@pytest.mark.parametrize(
    ("limit", "refused"), [(1.04, True), (1.0465, True), (1.04652, False), (2.0, False), (None, False)]
)
def test_the_gate_closes_exactly_above_the_limit(limit, refused):
    assert any(check_cost(cost_of(), region="us-east4", limit=limit, priced_regions=())) is refused


def test_a_derived_price_says_so_where_it_is_shown():
    assert cost_of().as_output()["lines"][0]["source"].startswith("derived")
    assert not cost_of(region="us-central1").as_output()["lines"][0]["source"].startswith("derived")
