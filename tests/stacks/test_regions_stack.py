"""A stack of several regions with one address: one region after the other, then the address, and the names of each."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from bezel.planner import PlanError, make_plan
from bezel_stacks.dispatch import deploy
from tests.support.components.fake_engine import Declarations, Declared, declare
from tests.support.planner.v6e_stack import V6E4_MOE, with_lease_changes

if TYPE_CHECKING:
    from tests.support.components.fake_cloud_run import FakeRun

A, B = "us-east4", "europe-west4"
SETTINGS: dict[str, Any] = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4"}
ADDRESS = {"domain": "llm.acme.example", "zone": "acme"}
URL = "https://llm.acme.example"
SERVICE, GRANT = "cloudrunv2/service:Service", "ServiceIamMember"
_VLLM = "urn:pulumi:test::bezel::bezel:services:VllmService"
_BELOW = {
    "service-service": "bezel:cloudrun:CloudRunGpuService$gcp:cloudrunv2/service:Service",
    "image-repository": "bezel:registry:ContainerImage$gcp:artifactregistry/repository:Repository",
    "weights-bucket": "bezel:storage:WeightsBucket$gcp:storage/bucket:Bucket",
    "address": "bezel:address:GlobalAddress",
}


def declare_regions(
    *, state: dict[str, dict[str, Any]] | None = None, preview: bool = False, **settings: Any
) -> Declarations:
    """Declare a stack; `state` has the outputs of earlier resources by their names below the component."""
    made = make_plan({**SETTINGS, **settings}, project="acme-llm", stack="l4-qat")
    kept = {
        f"{_VLLM}${_BELOW[name]}::vllm-{name}": {"type": _BELOW[name].rpartition("$")[2], "outputs": outputs}
        for name, outputs in (state or {}).items()
    }
    return declare(lambda: deploy(made), preview=preview, state=kept)


def by_region(declared: Declarations, token: str) -> dict[str, Declared]:
    return {each.inputs["location"]: each for each in declared.of(token)}


@pytest.mark.slow
@pytest.mark.parametrize("rollout", ["direct", "gated"])
def test_one_region_is_checked_after_the_other_and_the_address_comes_last(rollout: str) -> None:
    declared = declare_regions(regions=[A, B], address=ADDRESS, rollout=rollout)
    services = by_region(declared, SERVICE)
    assert {region: each.name for region, each in services.items()} == {
        A: "vllm-service-us-east4-service",
        B: "vllm-service-europe-west4-service",
    }
    assert {each.inputs["name"] for each in services.values()} == {"bezel-l4-qat"}
    assert [each.inputs["customAudiences"] for each in services.values()] == [[URL], [URL]]
    last = "vllm-traffic" if rollout == "gated" else "vllm-benchmark"
    order = [f"vllm-health-{A}", f"{last}-{A}", f"vllm-service-{B}-service", f"vllm-health-{B}", f"{last}-{B}"]
    parts = [services[A], *map(declared.by_name, order), declared.one("GlobalForwardingRule")]
    assert [declared.waits_for(later, earlier) for earlier, later in pairwise(parts)] == [True] * 6
    assert not any(declared.waits_for(services[A], each) for each in parts[2:])
    groups = {each.inputs["region"]: each.inputs["cloudRun"] for each in declared.of("NetworkEndpointGroup")}
    assert groups == {A: {"service": "bezel-l4-qat"}, B: {"service": "bezel-l4-qat"}}
    assert not [each.name for each in services.values() if each.deleted_first]


@pytest.mark.slow
def test_outputs_name_the_regions_and_the_address() -> None:
    seen: list[Any] = []

    def program(**settings: Any) -> None:
        import pulumi

        made = make_plan({**SETTINGS, **settings}, project="acme-llm", stack="l4-qat")
        outputs = deploy(made)
        kept = {key: outputs[key] for key in ("url", "regions", "urls", "address") if key in outputs}
        pulumi.Output.from_input(kept).apply(seen.append)

    for settings in ({"region": A}, {"regions": [A, B]}, {"region": A, "address": ADDRESS}):
        declare(lambda settings=settings: program(**settings))  # type: ignore[misc]
    several = {"regions": [A, B], "urls": {A: "https://chat.example", B: "https://chat.example"}}
    assert seen[0] == {"url": "https://chat.example"}
    assert seen[1] == {"url": "https://chat.example", **several}
    assert seen[2].keys() == {"url", "regions", "urls", "address"}
    assert (seen[2]["url"], seen[2]["urls"]) == (URL, {A: "https://chat.example"})
    address = seen[2]["address"]
    assert (address["domain"], address["ip"]) == (ADDRESS["domain"], "203.0.113.10")
    assert address["certificate"] == "vllm-address-certificate-id"
    assert [each["type"] for each in address["records"]] == ["A", "CNAME"]


PLACED_A = {"service-service": {"location": A}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "state", "aliases"),
    [
        ({"region": A}, {}, {A: f"vllm-health-{A}"}),
        ({"regions": [A, B]}, PLACED_A, {A: "vllm-health", B: ""}),
        ({"regions": [B, A]}, PLACED_A, {A: "vllm-health", B: ""}),
        ({"regions": [B, A]}, {"image-repository": {"location": A}}, {A: "vllm-health", B: ""}),
        ({"regions": [A, B]}, {}, {A: "", B: ""}),
        ({"regions": [A, B]}, {"service-service": {"location": "asia-southeast1"}}, {A: "", B: ""}),
    ],
    ids=["one", "one more behind", "one more before", "only an image there", "new or several before", "another before"],
)
def test_a_region_keeps_its_resources_whatever_its_place(
    settings: dict[str, Any], state: dict[str, Any], aliases: dict[str, str]
) -> None:
    """An alias leads from the names of one region to those of several, for the region that the state has them of."""
    declared = declare_regions(state=state, **settings)
    checks = {each.inputs["service"].split("/")[3]: each for each in declared.of("HealthCheck")}
    assert {region: ",".join(each.aliases) for region, each in checks.items()} == aliases


@pytest.mark.slow
def test_tokens_for_a_former_domain_count_until_the_next_deploy() -> None:
    former = {"address": {"url": "https://old.acme.example"}}
    (service,) = declare_regions(region=A, address=ADDRESS, state=former).of(SERVICE)
    assert service.inputs["customAudiences"] == [URL, "https://old.acme.example"]
    (service,) = declare_regions(region=A, address=ADDRESS, state={"address": {"url": URL}}).of(SERVICE)
    assert service.inputs["customAudiences"] == [URL]
    (service,) = declare_regions(region=A).of(SERVICE)
    assert "customAudiences" not in service.inputs


@pytest.mark.slow
def test_only_an_optional_region_is_left_out_for_want_of_quota(run: FakeRun, caplog: pytest.LogCaptureFixture) -> None:
    run.full = {B}
    with pytest.raises(PlanError) as refused:
        declare_regions(regions=[A, B], preview=True)
    assert [f"this project has 0 in {B}" in each.consequence for each in refused.value.problems] == [True]
    declared = declare_regions(regions=[A, B], optional_regions=[B], address=ADDRESS, preview=True)
    assert list(by_region(declared, SERVICE)) == [A]
    assert [each.inputs["region"] for each in declared.of("NetworkEndpointGroup")] == [A]
    assert f"{B} is left out: 1 instance may need 1 of" in caplog.text
    assert f"The stack runs in {A} only." in caplog.text
    run.full = {A}
    with pytest.raises(PlanError, match=f"this project has 0 in {A}"):
        declare_regions(regions=[A, B], optional_regions=[B])


@pytest.mark.slow
def test_an_optional_region_that_serves_is_never_left_out(run: FakeRun) -> None:
    run.full = {B}
    run.neighbours = [{"name": f"projects/acme-llm/locations/{B}/services/bezel-l4-qat"}]
    with pytest.raises(PlanError, match=f"this project has 0 in {B}.*its service there would be deleted"):
        declare_regions(regions=[A, B], optional_regions=[B])
    run.neighbours = None
    with pytest.raises(PlanError, match=f"this project has 0 in {B}"):
        declare_regions(regions=[A, B], optional_regions=[B])


@pytest.mark.slow
def test_the_weights_are_read_from_one_bucket_or_from_one_in_each_region() -> None:
    def buckets_of(declared: Declarations) -> dict[str, str]:
        services = by_region(declared, SERVICE)
        return {region: each.inputs["template"]["volumes"][0]["gcs"]["bucket"] for region, each in services.items()}

    weights = {"create": True}
    moved = {"weights-bucket": {"location": "EUROPE-WEST4"}}
    shared = declare_regions(regions=[A, B], weights=weights, state=moved)
    assert buckets_of(shared) == dict.fromkeys((A, B), "acme-llm-models")
    assert [(each.name, each.inputs["location"].lower()) for each in shared.of("bucket:Bucket")] == [
        ("vllm-weights-bucket", B)
    ], "a bucket stays where it is"
    copies = declare_regions(regions=[A, B], weights={**weights, "regional_buckets": True})
    assert buckets_of(copies) == {A: f"acme-llm-models-{A}", B: f"acme-llm-models-{B}"}
    buckets = {each.inputs["location"].lower(): each.inputs["name"] for each in copies.of("bucket:Bucket")}
    assert buckets == buckets_of(copies)
    assert {each.inputs["bucket"] for each in copies.of("ModelFiles")} == set(buckets.values())
    first = by_region(copies, SERVICE)[A]
    assert all(copies.waits_for(first, each) for each in copies.of("ModelFiles")), "all copies are checked first"


@pytest.mark.slow
def test_regions_watch_and_schedule_for_themselves_and_have_one_budget() -> None:
    watched = {"alerts": True, "budget": 100, "billing_account": "012345-6789AB-CDEF01"}
    hours = {"schedule": [{"cron": "0 8 * * 1-5", "min_instances": 1}, {"cron": "0 18 * * 1-5", "min_instances": 0}]}
    declared = declare_regions(
        regions=[A, B], observability=watched, scaling=hours, cost={"max_idle_hourly_usd": 5, "max_hourly_usd": 5}
    )
    assert len({each.inputs["accountId"] for each in declared.of("serviceaccount/account:Account")}) == 3
    assert {each.inputs["region"] for each in declared.of("cloudscheduler/job:Job")} == {A, B}
    assert len(declared.of("ServiceObservability")) == 2
    names = {each.inputs["displayName"].partition(":")[0] for each in declared.of("AlertPolicy")}
    assert names == {f"bezel-l4-qat ({A})", f"bezel-l4-qat ({B})"}
    assert len(declared.of("billing/budget:Budget")) == 1
    telling = [each.name for each in declared.all if f"vllm-explain-regions-{A}" in each.hooks]
    assert sorted(telling) == [f"vllm-benchmark-{A}", f"vllm-health-{A}", f"vllm-service-{A}-service"]


@pytest.mark.slow
def test_the_gateway_of_leases_can_have_the_address() -> None:
    plan = make_plan(with_lease_changes(V6E4_MOE, address=ADDRESS), project="acme-llm", stack="moe")
    declared = declare(lambda: deploy(plan))
    (gateway,) = declared.of(SERVICE)
    assert gateway.inputs["customAudiences"] == [URL]
    (group,) = declared.of("NetworkEndpointGroup")
    assert group.inputs["cloudRun"] == {"service": gateway.inputs["name"]}
    assert group.inputs["region"] == gateway.inputs["location"]
    assert declared.waits_for(group, declared.one("ShortBenchmark"))
