"""Warnings of a plan: every region on invitation, and weights that a declared bucket holds elsewhere."""

import pytest

from bezel.planner import make_plan, plan_summary
from bezel_catalog import accelerators
from tests.support.planner.l4_stack import with_changes
from tests.support.planner.v6e_stack import V6E4_MOE, with_lease_changes

PLACES = [(gpu, region) for gpu in accelerators().values() for region in (*gpu.regions, *gpu.regions_on_invitation)]


def plan_of_settings(settings, stack="one"):
    return make_plan(settings, project="acme-llm", stack=stack)


def row(gpu, region):
    return {
        "item": f"gpu {gpu.id} no zonal redundancy",
        "region": region,
        "usd_per_unit": 0.0002,
        "as_of": "2026-11",
        "source": "our invoice",
    }


@pytest.mark.parametrize(("gpu", "region"), PLACES, ids=lambda each: getattr(each, "id", each))
def test_each_region_on_invitation_is_warned_of_and_no_other(gpu, region):
    others = [
        {"item": item, "region": region, "usd_per_unit": 0.00002, "as_of": "2026-11", "source": "our invoice"}
        for item in ("vcpu", "memory")
    ]
    cost = {"max_hourly_usd": 9, "prices": [row(gpu, region), *others]}
    resources = {"cpu": gpu.min_cpu, "memory": f"{gpu.min_memory_gib}Gi"}
    made = plan_of_settings(
        with_changes({"accelerator": gpu.id, "region": region, "cost": cost, "resources": resources})
    )
    invited = [warning for warning in made.warnings if f"{region} offers {gpu.id} on invitation only" in warning]
    assert bool(invited) is (region in gpu.regions_on_invitation)
    assert ("Warnings" in plan_summary(made)) is bool(invited)


def test_a_bucket_of_the_stack_is_near_and_free_and_another_is_not_known():
    made, used = plan_of_settings(with_changes({"weights": {"create": True}})), plan_of_settings(with_changes({}))
    assert made.warnings == used.warnings == ()
    assert made.as_output()["cost"]["usd_of_transfer_per_cold_start"] == 0
    assert used.as_output()["cost"]["usd_of_transfer_per_cold_start"] == "unknown"
    assert "weights of a start" in plan_summary(used)
    hub = plan_of_settings(with_changes({"weights": {"loading": "hub"}}))
    assert hub.transfer() is None
    assert "weights of a start" not in plan_summary(hub)


def test_a_leases_own_bucket_far_from_its_zones_is_warned_of():
    far_settings = with_lease_changes(V6E4_MOE, weights={"create": True})
    near = with_lease_changes(
        far_settings, lease={**far_settings["lease"], "zones": [{"zone": "us-east5-a", "patience": "2h"}]}
    )
    assert plan_of_settings(near).warnings == ()
    far = plan_of_settings(far_settings)
    (warning,) = far.warnings
    assert "is in us-east5, and servers run in europe-west4" in warning
    assert warning in plan_summary(far)
