"""Cost of several regions and of an address: the sums, each part by its own rows, and the limits that hold for all."""

from decimal import Decimal
from typing import Any

import pytest

from bezel.planner import LeasePlan, Plan, PlanError, make_plan, plan_summary
from bezel.planner.base.money import Priced, Unpriced
from bezel.planner.cost.address_cost import address_cost
from bezel.planner.cost.weights_choices import weights_choices
from bezel.planner.render.short_summary import short_blocks
from bezel_base.terminal.layout import lay_out
from tests.support.planner.l4_stack import with_changes

TWO = {"region": "", "regions": ["us-east4", "europe-west4"]}
ADDRESS = {"address": {"domain": "llm.acme.example"}}
# 0.0001867 x 3600 for the GPU, 4 x 0.000018 x 3600 for the vCPUs, 16 x 0.000002 x 3600 for the memory.
INSTANCE = Decimal("0.67212") + Decimal("0.2592") + Decimal("0.1152")
RULE = Decimal("0.025")
OWN_GPU = {
    "item": "gpu nvidia-l4 no zonal redundancy",
    "region": "europe-west4",
    "usd_per_unit": 0.0002,
    "as_of": "2026-11",
    "source": "our contract",
}


def plan_of(*changes: dict[str, Any], limit: float = 9) -> Plan:
    merged: dict[str, Any] = {"cost": {"max_hourly_usd": limit}}
    for change in changes:
        merged |= change
    plan = make_plan(with_changes(merged), project="acme-llm", stack="l4-qat")
    assert isinstance(plan, Plan)
    return plan


def short_text(plan: Plan | LeasePlan) -> str:
    return "\n".join(lay_out(short_blocks(plan)))


def test_the_sum_has_every_region_and_the_address_once() -> None:
    plan = plan_of(TWO, ADDRESS, {"scaling": {"min_instances": 1, "max_instances": 3}, "environment": "prod"})
    assert plan.total.hourly_at_max == Priced(2 * 3 * INSTANCE + RULE, derived=True)
    assert plan.total.hourly_at_min == Priced(2 * INSTANCE + RULE, derived=True)
    assert plan.total.monthly_without_traffic == Priced(730 * (2 * INSTANCE + RULE), derived=True)
    output = plan.as_output()["cost"]
    assert isinstance(output, dict)
    assert (output["usd_per_hour_all_instances"], output["total"]["usd_per_hour_all_instances"]) == (3.1396, 6.3041)
    assert "total" not in plan_of().as_output()["cost"]  # type: ignore[operator]


def test_a_region_is_priced_by_its_own_rows() -> None:
    plan = plan_of(TWO, {"cost": {"max_hourly_usd": 9, "prices": [OWN_GPU]}})
    first, second = (each.cost.hourly for each in plan.regions)
    assert first == Priced(INSTANCE, derived=True)
    assert second == Priced(INSTANCE - Decimal("0.67212") + Decimal("0.72"))
    text = short_text(plan)
    assert "price in us-east4      1.0465 USD/h" in text
    assert "price in europe-west4  1.0944 USD/h" in text
    assert "at most                2.1409 USD/h in all" in text
    assert "(estimated, in us-east4)" in text
    assert "in us-east4)" not in short_text(plan_of())


def test_a_schedule_counts_in_each_region() -> None:
    schedule = [{"cron": "0 8 * * *", "min_instances": 1}, {"cron": "0 20 * * *", "min_instances": 0}]
    plan = plan_of(TWO, {"scaling": {"schedule": schedule}, "environment": "prod"})
    assert plan.total.monthly_without_traffic == Priced(730 * INSTANCE, derived=True)


def test_data_is_priced_where_it_has_a_row_and_unknown_elsewhere() -> None:
    cost = address_cost(["us-central1", "asia-southeast1"])
    assert cost.gib("us-central1") == Priced(Decimal("0.016"))
    assert isinstance(cost.gib("asia-southeast1"), Unpriced)
    assert cost.as_output()["usd_per_gib_in_and_out"] == {"us-central1": 0.016, "asia-southeast1": "unknown"}
    assert (cost.hourly, cost.monthly) == (Priced(RULE), Priced(Decimal("18.25")))


@pytest.mark.parametrize(
    ("changes", "limits", "key", "consequence", "repair"),
    [
        (
            TWO,
            {"max_hourly_usd": 2},
            "cost.max_hourly_usd",
            "us-east4, europe-west4 cost 2.0930 USD",
            "to 2.10, or name",
        ),
        (
            {**TWO, "scaling": {"max_instances": 3}},
            {"max_hourly_usd": 5},
            "cost.max_hourly_usd",
            "with 3 instances in each region",
            "lower `bezel:scaling.max_instances` to 2",
        ),
        (ADDRESS, {"max_hourly_usd": 1.05}, "cost.max_hourly_usd", "us-east4 and the address cost 1.0715", "to 1.08"),
        (
            {**TWO, **ADDRESS, "scaling": {"min_instances": 1}},
            {"max_hourly_usd": 9},
            "scaling.min_instances",
            "cost 2.1180 USD per hour together, 1546.17 per month; dev scales to zero",
            "lower `bezel:scaling.min_instances` to 0, or raise `bezel:cost.max_idle_hourly_usd` to 2.12, or set",
        ),
        (
            ADDRESS,
            {"max_hourly_usd": 9, "max_idle_hourly_usd": 0.01},
            "address.domain",
            "0.0250 USD per hour together, 18.25 per month",
            "raise `bezel:cost.max_idle_hourly_usd` to 0.03",
        ),
    ],
)
def test_a_sum_above_a_limit_is_refused(
    changes: dict[str, Any], limits: dict[str, float], key: str, consequence: str, repair: str
) -> None:
    with pytest.raises(PlanError) as caught:
        make_plan(with_changes({**changes, "cost": limits}), project="acme-llm", stack="l4-qat")
    (problem,) = caught.value.problems
    assert problem.key == f"bezel:{key}"
    assert consequence in problem.consequence
    assert repair in problem.repair


def test_a_sum_at_its_limit_is_planned() -> None:
    assert plan_of(TWO, limit=2.1).regions[1].region == "europe-west4"
    assert plan_of(ADDRESS, {"cost": {"max_hourly_usd": 1.08}}).address
    assert plan_of(ADDRESS, {"environment": "dev"}).total.hourly_at_min == Priced(RULE, derived=True)


def test_a_region_without_a_price_is_named() -> None:
    with pytest.raises(PlanError) as caught:
        plan_of({"region": "", "regions": ["us-east4", "asia-southeast1"]})
    assert [problem.key for problem in caught.value.problems] == ["bezel:regions.1"]
    assert "its price is unknown" in caught.value.problems[0].consequence


def test_the_ways_to_have_the_weights_are_priced_or_unknown() -> None:
    ways = {way.name: way for way in weights_choices(["us-east4", "us-central1"], 10)}
    assert ways["one bucket in us-east4"].monthly == Priced(Decimal("0.23"))
    assert ways["one bucket in us-east4"].start == Priced(Decimal("0.2"))
    assert ways["a copy in each region"].monthly == Priced(Decimal("0.43"))
    assert ways["a copy in each region"].start == Priced(Decimal(0))
    assert ways["one bucket in the multi-region US"].monthly == Priced(Decimal("0.26"))
    assert isinstance(ways["one bucket in the multi-region US"].start, Unpriced)
    far = {way.name: way for way in weights_choices(["us-east4", "asia-southeast1"], 10)}
    assert set(far) == {"one bucket in us-east4", "a copy in each region"}
    rows = " ".join(plan_summary(plan_of(TWO)).split())
    assert "weights, one bucket in us-east4 0.17 USD/month, dearest start unknown (no price of a transfer" in rows
    assert "weights, a copy in each region 0.33 USD/month, dearest start 0.00 USD (computed)" in rows
    assert isinstance(far["a copy in each region"].monthly, Unpriced)


def test_a_plan_says_what_finds_a_dead_region_and_what_is_off() -> None:
    asleep = short_text(plan_of(TWO, ADDRESS))
    assert "within 1 s of 5 failed" in " ".join(asleep.split())
    assert "a repeated POST is a generation paid twice" in asleep
    assert "_acme-challenge.llm.acme.example." in asleep
    kept = plan_of(TWO, ADDRESS, {"scaling": {"min_instances": 1}, "environment": "prod"})
    assert "a dead region gets requests for at most 19 s" in " ".join(short_text(kept).split())
    assert "GET /health every 5 s" in plan_summary(kept)
    apart = " ".join(short_text(plan_of(TWO)).split())
    assert "no failover between us-east4, europe-west4" in apart
    assert "failover" not in short_text(plan_of())


def test_weights_that_are_far_from_a_region_are_warned_of() -> None:
    def warnings_of(**weights: Any) -> str:
        return "\n".join(plan_of(TWO, ADDRESS, {"weights": weights}).warnings)

    assert "no location of Cloud Storage holds us-east4, europe-west4" in warnings_of()
    assert "is in us-east4, and servers run in europe-west4" in warnings_of(create=True)
    assert "Use a copy in each region: `bezel:weights: {regional_buckets: true}`" in warnings_of(create=True)
    assert warnings_of(regional_buckets=True) == warnings_of(regional_buckets=True, create=True) == ""


def test_the_end_of_a_stack_is_warned_of_where_records_stay() -> None:
    until = {"labels": {"owner": "ml-platform", "expires-at": "2027-01-31"}}
    assert any("remove both records" in text for text in plan_of(ADDRESS, until).warnings)
    ours = {"address": {"domain": "llm.acme.example", "zone": "acme-example"}}
    assert plan_of(ours, until).warnings == plan_of(ADDRESS).warnings == ()
