"""A whole plan of leased machines as resources: in the right order, known to policies at once, and nothing exposed."""

from __future__ import annotations

import base64
import json
from functools import cache, partial
from typing import Any

import pytest

from bezel.leases.names import spec_hash
from bezel.planner import LeasePlan, make_plan
from bezel_components.config.gateway import gateway_configuration
from bezel_components.config.subnet_ranges import usable_addresses
from bezel_stacks.dispatch import deploy
from tests.support.components.fake_engine import DIGEST, Declarations, declare, has_unknown
from tests.support.planner.v6e_stack import L4X8, V6E4_MOE, with_lease_changes

GATEWAY = "cloudrunv2/service:Service"


def plan(config: dict[str, Any] | None = None, **changes: Any) -> LeasePlan:
    made = make_plan(with_lease_changes(config or V6E4_MOE, **changes), project="acme-llm", stack="moe")
    assert isinstance(made, LeasePlan)
    return made


def declare_lease(config: dict[str, Any] | None = None, *, preview: bool = False, **changes: Any) -> Declarations:
    made = plan(config, **changes)
    return declare(lambda: deploy(made), preview=preview)


@cache
def declare_plain() -> Declarations:
    """Declare the lease of four chips as it is, once for all tests that only read it."""
    return declare_lease()


@cache
def declare_gpus() -> Declarations:
    """Declare the lease of eight GPUs as it is, once for all tests that only read it."""
    return declare_lease(L4X8)


def node_of(declared: Declarations) -> dict[str, Any]:
    (spec,) = declared.one("TpuRequest").inputs["body"]["tpu"]["nodeSpec"]
    return dict(spec["node"])


@pytest.mark.slow
def test_the_plan_arrives_at_the_queue() -> None:
    declared = declare_plain()
    request = declared.one("TpuRequest").inputs
    assert [(one["zone"], one["patience_seconds"]) for one in request["zones"]] == [
        ("europe-west4-a", 1800),
        ("us-east5-a", 7200),
    ]
    assert request["body"]["provisioningModel"] == "FLEX_START"
    assert request["body"]["runDuration"] == {"maxRunDuration": "14400s"}
    assert node_of(declared)["acceleratorType"] == "v6e-4"
    assert set(request["subnetworks"]) == {"europe-west4", "us-east5"}


@pytest.mark.slow
def test_a_machine_gets_what_to_run_and_no_secret() -> None:
    metadata = node_of(declare_lease(secrets={"HF_TOKEN": "hf-token"}))["metadata"]
    assert json.loads(metadata["bezel-arguments"]) == list(plan().node.arguments)
    assert metadata["bezel-image"].endswith(f"/vllm/vllm-tpu@{DIGEST}")
    assert json.loads(metadata["bezel-secrets-by-name"]) == {"HF_TOKEN": "hf-token"}
    assert metadata["bezel-weights"] == "gs://acme-llm-models/gemma-4-26B-A4B-it"
    assert metadata["startup-script"].startswith("#!/bin/bash")
    assert metadata["bezel-packages"] == ""


@pytest.mark.slow
def test_no_machine_has_an_address_and_only_the_gateway_reaches_it() -> None:
    declared = declare_plain()
    assert node_of(declared)["networkConfig"]["enableExternalIps"] is False
    (rule,) = declared.of("compute/firewall:Firewall")
    interface = declared.one(GATEWAY).inputs["template"]["vpcAccess"]["networkInterfaces"][0]
    assert interface["subnetwork"].endswith("-gateway")
    (subnetwork,) = [
        one for one in declared.of("compute/subnetwork:Subnetwork") if one.inputs["name"].endswith("-gateway")
    ]
    assert rule.inputs["sourceRanges"] == [subnetwork.inputs["ipCidrRange"]]
    assert rule.inputs["targetTags"] == node_of(declared)["tags"]
    assert not declared.of("compute/routerNat:RouterNat")


@pytest.mark.slow
def test_a_way_to_the_internet_is_there_only_where_it_was_asked_for() -> None:
    assert len(declare_gpus().of("compute/routerNat:RouterNat")) == 1


@pytest.mark.slow
def test_the_gateway_forwards_to_the_machine_and_waits_for_it() -> None:
    declared = declare_plain()
    gateway = declared.one(GATEWAY)
    (environment,) = gateway.inputs["template"]["containers"][0]["envs"]
    assert environment["value"] == gateway_configuration(["10.64.0.5"], 8000)
    assert declared.waits_for(gateway, declared.one("TpuNode"))


@pytest.mark.slow
def test_needs_of_a_machine_come_before_it_and_the_checks_come_last() -> None:
    declared = declare_lease(secrets={"HF_TOKEN": "hf-token"}, weights={"create": True})
    request, node = declared.one("TpuRequest"), declared.one("TpuNode")
    for token in ("SecretIamMember", "storage/bucket:Bucket", "compute/firewall:Firewall", "RepositoryIamMember"):
        assert declared.waits_for(request, declared.of(token)[0]), token
    assert declared.waits_for(node, request)
    assert declared.waits_for(declared.one("HealthCheck"), declared.one(GATEWAY))


def own_folder(declared: Declarations) -> str:
    """Where the machines may write, as the condition of their grant says it."""
    members = {one.inputs["role"]: one.inputs for one in declared.of("BucketIAMMember")}
    assert "condition" not in members["roles/storage.objectViewer"]
    begin, end = 'resource.name.startsWith("projects/_/buckets/acme-llm-models/objects/', '")'
    expression = members["roles/storage.objectUser"]["condition"]["expression"]
    assert (expression.startswith(begin), expression.endswith(end)) == (True, True)
    return str(expression.removeprefix(begin).removesuffix(end))


@pytest.mark.slow
def test_a_machine_writes_compiled_graphs_to_its_own_folder_only() -> None:
    folder = own_folder(declare_plain())
    assert folder == "compile-cache/acme-llm/bezel-moe/gemma-4-26b-a4b-it/v6e-4/0.32.0/"
    cache = node_of(declare_plain())["metadata"]["bezel-compile-cache"]
    assert f"{cache}/" == f"gs://acme-llm-models/{folder}"
    without = declare_lease(lease={"compile_cache": False}).of("BucketIAMMember")
    assert [one.inputs["role"] for one in without] == ["roles/storage.objectViewer"]


@pytest.mark.slow
def test_no_machine_writes_where_another_stack_reads_compiled_graphs() -> None:
    asked = [("acme-llm", "moe"), ("acme-llm", "moe-2"), ("acme-llm", "mo"), ("other-llm", "moe")]
    config = with_lease_changes(V6E4_MOE, weights={"bucket": "acme-llm-models"})
    plans = [make_plan(config, project=project, stack=stack) for project, stack in asked]
    declared = [declare(partial(deploy, one)) for one in plans if isinstance(one, LeasePlan)]
    caches = [node_of(one)["metadata"]["bezel-compile-cache"] for one in declared]
    for place, one in enumerate(declared):
        folder = f"gs://acme-llm-models/{own_folder(one)}"
        assert [f"{cache}/graph".startswith(folder) for cache in caches] == [n == place for n in range(len(asked))]


@pytest.mark.slow
def test_more_machines_change_none_that_is_there_but_the_gateway() -> None:
    two, three = declare_lease(lease={"count": 2}), declare_lease(lease={"count": 3})
    names = {one.name for one in two.of("TpuRequest")}
    assert names < {one.name for one in three.of("TpuRequest")}
    for name in names:
        assert two.by_name(name).inputs == three.by_name(name).inputs
    assert two.one(GATEWAY).inputs != three.one(GATEWAY).inputs
    assert declare_plain().by_name("vllm-lease-request").inputs == two.by_name("vllm-lease-request").inputs


@pytest.mark.slow
def test_eight_gpus_are_asked_for_as_a_machine() -> None:
    body = declare_gpus().one("TpuRequest").inputs["body"]
    assert body["machineType"] == "g2-standard-96"
    assert body["scheduling"]["provisioningModel"] == "SPOT"
    assert body["scheduling"]["maxRunDuration"]["seconds"] == "14400"
    attributes = {one["key"]: one["value"] for one in body["metadata"]["items"]}
    assert (attributes["bezel-device"], attributes["bezel-packages"]) == ("gpu", "docker")


@pytest.mark.slow
@pytest.mark.parametrize("config", [V6E4_MOE, L4X8], ids=["tpu", "gpus"])
def test_in_a_first_preview_every_value_that_a_policy_judges_is_known(config: dict[str, Any]) -> None:
    declared = declare_lease(config, preview=True, weights={"create": True})
    judged = [one for one in declared.all if one.type.startswith("gcp:") and not one.type.endswith(GATEWAY)]
    judged += declared.of("TpuRequest")
    assert len(judged) >= 12
    assert not [one.name for one in judged if has_unknown(one.inputs)]


@pytest.mark.slow
def test_the_outputs_have_place_end_and_cost_of_the_lease() -> None:
    outputs = declare(lambda: deploy(plan()), preview=False).result
    assert set(outputs) == {"url", "leases", "settings", "image", "model", "arguments", "plan", "smoke", "simulated"}
    assert set(outputs["leases"]["bezel-moe"]) == {"state", "zone", "ends_at", "cost"}


HOURS = {
    "zones": [{"zone": "us-east5-a"}],
    "duration": "10h",
    "hours": [{"start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "time_zone": "Europe/Berlin"}],
}
JOB = "cloudscheduler/job:Job"


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 3])
def test_with_hours_the_gateway_has_all_addresses_and_waits_for_no_machine(count: int) -> None:
    declared = declare_lease(lease=HOURS | {"count": count})
    gateway = declared.one(GATEWAY)
    (environment,) = gateway.inputs["template"]["containers"][0]["envs"]
    ip_range = {1: "10.64.31.8/29", 3: "10.64.31.16/28"}[count]
    assert environment["value"] == gateway_configuration(usable_addresses(ip_range), 8000, count)
    (nodes,) = [one for one in declared.of("compute/subnetwork:Subnetwork") if one.name.endswith("addresses-us-east5")]
    assert nodes.inputs["ipCidrRange"] == ip_range
    for node in declared.of("TpuNode"):
        assert not declared.waits_for(gateway, node)
        assert declared.waits_for(declared.one("HealthCheck"), node)


@pytest.mark.slow
def test_with_hours_each_lease_has_its_jobs_after_the_checks() -> None:
    declared = declare_lease(lease=HOURS | {"count": 2})
    jobs = {job.inputs["name"]: job for job in declared.of(JOB)}
    verbs = ("start", "end", "clear", "again")
    assert set(jobs) == {f"bezel-moe{lease}-{verb}-0" for lease in ("", "-1") for verb in verbs}
    for job in jobs.values():
        assert declared.waits_for(job, declared.one("ShortBenchmark"))
        email = job.inputs["httpTarget"]["oauthToken"]["serviceAccountEmail"]
        assert email == "bezel-moe-hours@acme-llm.iam.gserviceaccount.com"
    for lease, request in (("", "vllm-lease-request"), ("-1", "vllm-lease-1-request")):
        body = json.loads(base64.b64decode(jobs[f"bezel-moe{lease}-start-0"].inputs["httpTarget"]["body"]))
        node = body["tpu"]["nodeSpec"][0]["node"]
        assert node["labels"]["bezel-spec"] == spec_hash(declared.by_name(request).inputs["body"])
        assert node["networkConfig"]["subnetwork"].endswith("/us-east5/subnetworks/bezel-moe-4-addresses")


@pytest.mark.slow
def test_with_hours_no_secret_or_unknown_value_is_in_a_previewed_job() -> None:
    declared = declare_lease(lease=HOURS, secrets={"HF_TOKEN": "hf-token"}, preview=True)
    assert not [job.name for job in declared.of(JOB) if has_unknown(job.inputs)]


@pytest.mark.slow
def test_with_hours_an_alert_names_each_job_and_no_machine_its_end() -> None:
    declared = declare_lease(lease=HOURS | {"count": 2}, observability={"alerts": True})
    text = json.dumps([policy.inputs for policy in declared.of("AlertPolicy")])
    assert all(name in text for name in ("bezel-moe-start-0", "bezel-moe-1-start-0", "bezel-moe-again-0"))
    assert len(declared.of("AlertPolicy")) == 3
    assert "bezel-lease" not in text
    for request in declared.of("TpuRequest"):
        (spec,) = request.inputs["body"]["tpu"]["nodeSpec"]
        assert "bezel-end-notice" not in spec["node"]["metadata"]


@pytest.mark.slow
def test_without_hours_there_is_no_job_and_no_account_for_any() -> None:
    declared = declare_plain()
    assert declared.of(JOB) == []
    assert declared.of("projects/iAMMember:IAMMember") == []
    assert "hours" not in declared.one("TpuRequest").inputs


@pytest.mark.slow
def test_the_gateway_is_reached_from_where_the_plan_says() -> None:
    declared = declare_lease(access={"ingress": "internal"}, smoke={"inside": True})
    assert declared.one(GATEWAY).inputs["ingress"] == "INGRESS_TRAFFIC_INTERNAL_ONLY"
    assert declare_plain().one(GATEWAY).inputs["ingress"] == "INGRESS_TRAFFIC_ALL"


@pytest.mark.slow
def test_a_machine_runs_the_image_that_the_stack_file_names() -> None:
    image_digest = "sha256:" + "f" * 64
    metadata = node_of(declare_lease(image={"tag": "v0.32.0-tpu", "digest": image_digest}))["metadata"]
    assert metadata["bezel-image"].endswith(f"/vllm/vllm-tpu@{image_digest}")


@pytest.mark.slow
def test_machines_write_the_notice_of_their_end_only_with_alerts() -> None:
    declared = declare_lease(observability={"alerts": True, "dashboard": True, "email": "team@example.com"})
    assert json.loads(node_of(declared)["metadata"]["bezel-end-notice"]) == {
        "lease": "bezel-moe",
        "stack": "moe",
        "run_seconds": 14_400,
    }
    member = declared.one("projects/iAMMember:IAMMember")
    assert declared.waits_for(declared.one("TpuRequest"), member)
    policies = declared.of("monitoring/alertPolicy:AlertPolicy")
    assert {policy.name for policy in policies} == {"vllm-observability-lease-ends", "vllm-observability-errors"}
    assert all(declared.waits_for(policy, declared.one(GATEWAY)) for policy in policies)
    for unwatched in (declare_plain(), declare_lease(observability={"dashboard": True})):
        assert "bezel-end-notice" not in node_of(unwatched)["metadata"]
        assert not unwatched.of("projects/iAMMember:IAMMember")
        assert not unwatched.of("monitoring/alertPolicy:AlertPolicy")
