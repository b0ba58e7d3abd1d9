"""A stack in several regions and behind an address: one service a region, the failover that holds, and what is read."""

from typing import Any

import pytest

from bezel.planner import Plan, make_plan
from tests.support.planner.l4_stack import with_changes

TWO = {"region": "", "regions": ["us-east4", "europe-west4"]}
ADDRESS = {"address": {"domain": "llm.acme.example"}}
NIGHTS_OFF = [{"cron": "0 8 * * *", "min_instances": 1}, {"cron": "0 18 * * *", "min_instances": 0}]
LESS_AT_NIGHT = [{"cron": "0 8 * * *", "min_instances": 2}, {"cron": "0 18 * * *", "min_instances": 1}]
KEPT = {"scaling": {"min_instances": 1}, "environment": "prod"}


def plan_of(*changes: dict[str, Any]) -> Plan:
    merged: dict[str, Any] = {"cost": {"max_hourly_usd": 9}}
    for change in changes:
        merged |= change
    plan = make_plan(with_changes(merged), project="acme-llm", stack="l4-qat")
    assert isinstance(plan, Plan)
    return plan


def test_each_region_has_one_service_of_the_same_revision() -> None:
    plan = plan_of(TWO, {"optional_regions": ["europe-west4"]})
    assert [(each.region, each.optional) for each in plan.regions] == [("us-east4", False), ("europe-west4", True)]
    first, second = plan.services
    assert first == plan.service
    assert first.name == second.name
    assert (second.region, second.options, second.weights) == ("europe-west4", first.options, first.weights)
    assert plan.address is None


def test_one_region_is_planned_as_a_stack_without_the_keys() -> None:
    plan, listed = plan_of(), plan_of({"region": "", "regions": ["us-east4"]})
    assert listed.service == plan.service
    assert plan.services == (plan.service,)
    assert [each.region for each in listed.regions] == [each.region for each in plan.regions] == ["us-east4"]
    assert plan.service.readiness_probe is None


@pytest.mark.parametrize(
    ("changes", "failover", "seconds"),
    [
        ({}, "outlier detection", 1),
        (KEPT, "service health", 19),
        ({"scaling": {"schedule": NIGHTS_OFF}, "environment": "prod"}, "outlier detection", 1),
        ({"scaling": {"schedule": LESS_AT_NIGHT, "max_instances": 2}, "environment": "prod"}, "service health", 19),
        ({"region": "us-east4", "regions": [], **KEPT}, "none", None),
    ],
)
def test_the_failover_follows_from_the_instances_that_are_kept(
    changes: dict[str, Any], failover: str, seconds: int | None
) -> None:
    plan = plan_of(TWO, ADDRESS, changes)
    assert plan.address
    assert plan.address.url == "https://llm.acme.example"
    assert (plan.address.failover, plan.address.detection_seconds) == (failover, seconds)
    assert all((each.readiness_probe is not None) is (failover == "service health") for each in plan.services)


@pytest.mark.parametrize("loading", ["fuse-prefetch", "runai-streamer"])
def test_a_regional_bucket_is_read_in_its_own_region_only(loading: str) -> None:
    weights = {"weights": {"loading": loading, "bucket": "acme-w", "regional_buckets": True}}
    plan = plan_of(TWO, weights)
    for each, region in zip(plan.services, plan.regions, strict=True):
        assert each.weights.bucket == region.bucket == f"acme-w-{region.region}"
        named = [word for word in each.arguments if "gs://" in word]
        assert bool(named) is (loading == "runai-streamer")
        assert all(f"gs://acme-w-{region.region}/" in word for word in named)
    shared = plan_of(TWO, {"weights": {"loading": loading, "bucket": "acme-w"}})
    assert {each.weights.bucket for each in shared.services} == {"acme-w"}
