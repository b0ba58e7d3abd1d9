"""A stack of leased machines is planned whole: names, zones, arguments, folders, money, what a later start saves."""

from __future__ import annotations

import pytest

from bezel.planner import Plan, make_plan, plan_summary
from bezel.planner.base.hardware import leased_hardware
from bezel.planner.base.money import Unpriced, figure
from bezel.planner.cost.lease_cost import lease_total
from tests.support.planner.l4_stack import L4
from tests.support.planner.v6e_stack import L4X8, V6E4_MOE, lease_plan, with_lease_changes


def test_a_slice_is_leased_and_a_gpu_of_cloud_run_is_not():
    assert lease_plan().terms.hardware.id == "v6e-4"
    assert isinstance(make_plan(L4, project="p", stack="s"), Plan)


def test_all_chips_share_the_model_which_lies_on_the_machine_itself():
    node = lease_plan().node
    assert node.arguments[0] == "/dev/shm/models/gemma-4-26B-A4B-it"  # noqa: S108 - of the machine
    assert "--tensor-parallel-size=4" in node.arguments
    assert "--port=8000" in node.arguments
    assert node.weights.address == "gs://p-models/gemma-4-26B-A4B-it"


def test_weights_of_the_hub_are_downloaded_and_kept_in_no_bucket():
    plan = lease_plan(with_lease_changes(V6E4_MOE, weights={"loading": "hub"}, network={"nat": True}))
    assert plan.node.arguments[0] == "google/gemma-4-26B-A4B-it"
    assert (plan.node.weights.address, plan.node.compile_cache) == ("", "")
    assert "HF_HUB_OFFLINE" not in plan.node.environment
    assert plan.start.saved_seconds == (0.0, 0.0)


def test_a_tpu_server_starts_with_variables_that_vllm_itself_does_not_know():
    plan = lease_plan(with_lease_changes(V6E4_MOE, variables={"VLLM_TPU_BUCKET_PADDING_GAP": "256"}))
    assert plan.node.environment["VLLM_TPU_BUCKET_PADDING_GAP"] == "256"
    assert "--fail-on-environ-validation" not in plan.node.arguments
    assert "--fail-on-environ-validation" in lease_plan(L4X8).node.arguments


def test_zones_keep_their_order_and_each_its_patience():
    zones = [(each.zone, each.patience_seconds) for each in lease_plan().terms.zones]
    assert zones == [("europe-west4-a", 1800), ("us-east5-a", 7200)]
    plain = lease_plan(with_lease_changes(V6E4_MOE, lease={"zones": [{"zone": "us-east5-a"}], "patience": "45m"}))
    assert [each.patience_seconds for each in plain.terms.zones] == [2700]


def test_more_leases_of_a_fleet_change_none_of_the_first():
    assert lease_plan().terms.names == ("bezel-moe",)
    fleet = lease_plan(with_lease_changes(V6E4_MOE, lease={"count": 3}))
    assert fleet.terms.names == ("bezel-moe", "bezel-moe-1", "bezel-moe-2")
    larger = lease_plan(with_lease_changes(V6E4_MOE, lease={"count": 4}))
    assert larger.terms.names[:3] == fleet.terms.names
    assert larger.node == fleet.node


def test_machines_cost_what_was_worked_out_by_hand():
    cost = lease_plan().cost.as_output()
    assert (cost["usd_per_hour"], cost["usd_per_lease"], cost["lease_seconds"]) == (5.4, 21.6, 14_400)
    # Two instances of 1 vCPU and half a GiB that answer all the time: 2 x (0.0864 + 0.0045).
    assert (cost["usd_per_hour_with_gateway"], cost["usd_per_lease_with_gateway"]) == (5.5818, 22.33)
    fleet = lease_plan(with_lease_changes(V6E4_MOE, lease={"count": 2, "duration": "7d"})).cost
    assert figure(fleet.machines_lease, 2) == 2 * 907.2


def test_the_dearest_zone_counts_and_one_without_a_price_makes_all_unknown():
    def cost(*zones):
        hardware = leased_hardware()["v6e-4"]
        return lease_total(
            hardware,
            zones=zones,
            provisioning="on-demand",
            count=1,
            run_seconds=3600,
            gateway_region="us-east5",
        )

    assert figure(cost("us-east5-a", "europe-west4-a").machines_lease, 2) == 11.88
    assert figure(cost("us-east5-a").machines_lease, 2) == 10.80
    unknown = cost("us-east5-a", "southamerica-west1-a")
    assert isinstance(unknown.hourly_at_max, Unpriced)
    assert unknown.missing == ("tpu, v6e chip, southamerica-west1, on-demand",)


def test_an_own_row_prices_a_machine_that_the_catalogue_does_not():
    cost = lease_plan(L4X8).cost
    assert figure(cost.machines_hourly, 4) == 4.32
    (row, *_) = cost.as_output()["lines"]
    assert row["kind"] == "own row"


def test_a_kept_cache_saves_minutes_and_dollars_and_without_one_none():
    text = plan_summary(lease_plan())
    assert "the cache saves" in text
    assert "6 to 13 min, 0.54 to 1.13 USD" in text
    assert "the cache saves" not in plan_summary(
        lease_plan(with_lease_changes(V6E4_MOE, lease={"compile_cache": False}))
    )


@pytest.mark.parametrize("config", [V6E4_MOE, L4X8], ids=["tpu", "gpus"])
def test_the_text_shows_lease_money_and_way_out_and_the_output_is_plain(config):
    plan = lease_plan(config)
    text, output = plan_summary(plan), plan.as_output()
    for part in ("ends after", "4h", "provisioning", "with the gateway", "not included", "renewed by `up`"):
        assert part in text
    assert ("to the internet through NAT" in text) is plan.network.nat
    assert set(output) >= {"fit", "weights", "start", "estimate", "cost"}
    assert output["weights"]["model"] == plan.node.arguments[0]


def test_the_queue_needs_its_api_and_a_machine_does_not():
    assert "tpu.googleapis.com" in lease_plan().apis
    assert "tpu.googleapis.com" not in lease_plan(L4X8).apis


def test_production_protects_the_gateway_and_development_does_not():
    assert lease_plan(with_lease_changes(V6E4_MOE, environment="prod")).is_protected
    assert not lease_plan().is_protected
