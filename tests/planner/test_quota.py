"""What a stack needs of each quota, what others hold of it, and whether it fits."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel.planner import Plan, make_plan
from bezel.planner.assemble.quota import (
    CPU_QUOTA,
    MEMORY_QUOTA,
    Need,
    Quota,
    gpu_quota,
    is_short,
    lease_needs,
    request,
    service_needs,
    shortage,
)
from bezel.planner.assemble.quota_use import has_already, used_by_others
from bezel_catalog import accelerators
from tests.support.planner.v6e_stack import L4X8, V6E4_MOE, lease_plan, with_lease_changes

L4 = Quota("run.googleapis.com", "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion", "GPU")


def plan(**settings: Any) -> Plan:
    config = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"} | settings
    made = make_plan(config, project="p", stack="s")
    assert isinstance(made, Plan)
    return made


def test_a_service_needs_its_quotas_for_each_instance_and_twice_if_gated() -> None:
    service = plan(scaling={"max_instances": 3}, resources={"cpu": 8, "memory": "32Gi"}).service
    wanted = {need.quota.id: need.amount for need in service_needs(service, gated=False)}
    assert wanted == {L4.id: 3, CPU_QUOTA: 24_000, MEMORY_QUOTA: 96 << 30}
    assert {need.quota.id: need.amount for need in service_needs(service, gated=True)} == {
        name: 2 * amount for name, amount in wanted.items()
    }


def test_a_collector_needs_a_vcpu_and_a_gib_of_each_instance() -> None:
    kept = plan(scaling={"max_instances": 3}, observability={"metrics": True})
    needs = {each.quota.id: each.amount for each in service_needs(kept.service, gated=False, collector=kept.metrics)}
    assert needs == {L4.id: 3, CPU_QUOTA: 15_000, MEMORY_QUOTA: 51 << 30}


@pytest.mark.parametrize("redundant", [False, True])
@pytest.mark.parametrize("name", accelerators())
def test_an_accelerator_counts_as_its_quota_does(name: str, redundant: bool) -> None:
    quota, accelerator = gpu_quota(name, zonal_redundancy=redundant), accelerators()[name]
    assert quota.unit == accelerator.quota_unit_per_gpu
    assert quota.id == (accelerator.quota_zonal_redundancy if redundant else accelerator.quota)
    assert quota.describe(2 * quota.unit) == f"{2 * quota.unit} of {quota.id} (2 GPUs)"


@pytest.mark.slow
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 2), st.integers(0, 40), st.integers(0, 9))
def test_what_is_refused_does_not_fit_and_each_repair_would(
    each: int, instances: int, revisions: int, allowed: int, used: int
) -> None:
    need = Need(L4, "us-east4", each, instances, revisions)
    assert is_short(need, allowed, used) is (each * instances * revisions + used > allowed)
    if not is_short(need, allowed, used):
        return
    problem = shortage(need, allowed, project="p", used=used, holders="others" if used else "")
    assert not is_short(need, int(problem.repair.partition("request ")[2].partition(":")[0]), used)
    if "max_instances to " in problem.repair:
        fewer = int(problem.repair.partition("max_instances to ")[2].partition(",")[0])
        assert fewer >= 1
        assert not is_short(Need(L4, "us-east4", each, fewer, revisions), allowed, used)
        assert is_short(Need(L4, "us-east4", each, fewer + 1, revisions), allowed, used)
    if "rollout to direct" in problem.repair:
        assert not is_short(Need(L4, "us-east4", each, instances), allowed, used)


def test_no_limit_is_never_short() -> None:
    assert not is_short(Need(L4, "us-east4", 1000, 1000, 2), math.inf, 10**9)


def test_the_request_names_all_that_the_quota_is_counted_by() -> None:
    of_zone = request(lease_needs(lease_plan().terms)[0], "p", 4)
    assert "--service=tpu.googleapis.com --quota-id=TPUV6EPreemptiblePerProjectPerZoneForTPUAPI " in of_zone
    assert "--dimensions=zone=europe-west4-a --preferred-value=4" in of_zone
    on_demand = with_lease_changes(
        V6E4_MOE, lease={"back_end": "flex_start_vm", "provisioning": "on-demand"}, network={"nat": True}
    )
    of_family = request(lease_needs(lease_plan(on_demand).terms)[0], "p", 4)
    assert "--quota-id=TPUS-PER-TPU-FAMILY-per-project-region" in of_family
    assert "--dimensions=region=europe-west4,tpu_family=CT6E " in of_family


def test_a_lease_counts_by_the_zone_or_by_the_region_once() -> None:
    both = {"zones": [{"zone": "us-central1-a"}, {"zone": "us-central1-b"}]}
    needs = lease_needs(lease_plan(with_lease_changes(L4X8, lease=both)).terms)
    assert [(need.place, need.amount) for need in needs] == [("us-central1", 8)]
    needs = lease_needs(lease_plan().terms)
    assert [(need.place, need.amount) for need in needs] == [("europe-west4-a", 4), ("us-east5-a", 4)]


def described_service(name: str, **template: Any) -> dict[str, Any]:
    return {"name": f"projects/p/locations/us-east4/services/{name}", "template": template}


GPU = {
    "nodeSelector": {"accelerator": "nvidia-l4"},
    "gpuZonalRedundancyDisabled": True,
    "containers": [{"resources": {"limits": {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}}}],
    "scaling": {"minInstanceCount": 1, "maxInstanceCount": 3},
}


def test_others_hold_what_runs_without_traffic_and_may_come_to_hold_more() -> None:
    services = [
        described_service("a", **GPU),
        described_service("own", **GPU),
        described_service("web", containers=[{}]),
    ]
    use = used_by_others(services, "own", L4.id)
    assert (use.certain, use.max_held, use.holders) == (1, 3, ("a",))
    assert used_by_others(services, "own", CPU_QUOTA).certain == 8000
    assert used_by_others(services, "own", MEMORY_QUOTA).certain == 32 << 30


@pytest.mark.parametrize(
    "changes",
    [
        {"gpuZonalRedundancyDisabled": False},
        {"nodeSelector": {"accelerator": "nvidia-rtx-pro-6000"}},
        {"nodeSelector": {"accelerator": "nvidia-of-tomorrow"}},
        {"nodeSelector": None},
    ],
)
def test_gpus_of_another_quota_are_not_counted(changes: dict[str, Any]) -> None:
    assert used_by_others([described_service("a", **GPU | changes)], "own", L4.id).max_held == 0


def test_an_amount_is_read_in_every_spelling() -> None:
    def limited_service(cpu: str, memory: str) -> list[dict[str, Any]]:
        limits = {"cpu": cpu, "memory": memory}
        return [described_service("a", containers=[{"resources": {"limits": limits}}], scaling={"minInstanceCount": 2})]

    assert [used_by_others(limited_service(cpu, "1Gi"), "", CPU_QUOTA).certain for cpu in ("500m", "0.5", "4")] == [
        1000,
        1000,
        8000,
    ]
    spellings = ("512Mi", "1Gi", "2G", "1048576")
    amounts = [used_by_others(limited_service("1", memory), "", MEMORY_QUOTA).certain for memory in spellings]
    assert amounts == [1 << 30, 2 << 30, 4 * 10**9, 2 << 20]


def test_instances_counted_by_hand_are_all_that_a_service_has() -> None:
    service = described_service("a", **GPU) | {"scaling": {"scalingMode": "MANUAL", "manualInstanceCount": 2}}
    use = used_by_others([service], "own", L4.id)
    assert (use.certain, use.max_held) == (2, 2)


@pytest.mark.parametrize(
    ("state", "instances", "granted"),
    [("CONDITION_SUCCEEDED", 3, True), ("CONDITION_SUCCEEDED", 4, False), ("CONDITION_FAILED", 3, False)],
)
def test_what_serves_has_been_given_what_it_may_scale_to(state: str, instances: int, granted: bool) -> None:
    service = described_service("own", **GPU) | {"terminalCondition": {"state": state}}
    need = Need(L4, "us-east4", 1, instances)
    assert has_already([service], "own", need) is granted
    assert not has_already([], "own", need)
