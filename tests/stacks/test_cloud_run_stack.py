"""A whole plan as resources: the plan's values arrive, in the right order, and nothing else is exposed."""

from functools import cache
from typing import Any

import pytest

from bezel.planner import Plan, PlanError, make_plan
from bezel_stacks.dispatch import deploy
from tests.support.components.fake_cloud_run import FakeRun
from tests.support.components.fake_engine import CREATED, DIGEST, REVISION, Declarations, declare, has_unknown

SETTINGS: dict[str, Any] = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}
FIT = {"ipCidrRange": "10.8.0.0/26", "privateIpGoogleAccess": True}
SERVICE = "cloudrunv2/service:Service"


def plan(**settings: Any) -> Plan:
    return make_plan({**SETTINGS, **settings}, project="acme-llm", stack="l4-qat")


def declare_plan(*, preview: bool = False, **settings: Any) -> Declarations:
    made = plan(**settings)
    return declare(lambda: deploy(made), preview=preview)


@cache
def declare_plain() -> Declarations:
    """Declare the plan without further settings, once for all tests that only read it."""
    return declare_plan()


def template(**settings: Any) -> dict[str, Any]:
    declared = declare_plan(**settings) if settings else declare_plain()
    return dict(declared.one(SERVICE).inputs["template"])


@pytest.mark.slow
def test_the_plan_arrives_at_cloud_run() -> None:
    wanted = plan().service
    service = template()
    (container,) = service["containers"]
    assert tuple(container["args"]) == wanted.arguments
    assert (
        container["image"] == f"us-east4-docker.pkg.dev/acme-llm/{wanted.image_repository_id}/vllm/vllm-openai@{DIGEST}"
    )
    assert {env["name"]: env["value"] for env in container["envs"]} == dict(wanted.environment)
    assert container["startupProbe"]["failureThreshold"] == wanted.startup_probe.failure_threshold
    assert container["startupProbe"]["httpGet"]["path"] == container["livenessProbe"]["httpGet"]["path"] == "/health"
    assert service["maxInstanceRequestConcurrency"] == wanted.request_concurrency
    assert service["serviceAccount"] == f"{wanted.service_account_id}@acme-llm.iam.gserviceaccount.com"
    assert service["volumes"][0]["gcs"]["mountOptions"][:2] == ["uid=1001", "gid=1001"]


@pytest.mark.slow
def test_other_settings_give_another_service() -> None:
    service = template(
        scaling={"max_instances": 2, "request_concurrency": 5, "request_timeout_seconds": 600},
        resources={"cpu": 8, "memory": "32Gi"},
        probe={"kind": "tcp"},
    )
    assert service["scaling"]["maxInstanceCount"] == 2
    assert service["maxInstanceRequestConcurrency"] == 5
    assert service["timeout"] == "600s"
    probe = service["containers"][0]["startupProbe"]
    assert (probe["tcpSocket"]["port"], probe.get("httpGet")) == (8080, None)
    assert service["containers"][0]["livenessProbe"]["httpGet"]["path"] == "/health"
    assert service["containers"][0]["resources"]["limits"]["memory"] == "32Gi"


@pytest.mark.slow
def test_what_the_service_needs_comes_before_it_and_the_checks_after() -> None:
    declared = declare_plan(secrets={"HF_TOKEN": "hf-token"}, weights={"create": True})
    service = declared.one(SERVICE)
    needed = ["SecretIamMember", "BucketIAMMember", "storage/bucket:Bucket", "serviceaccount/account:Account"]
    for token in [*needed, "ModelFiles", "artifactregistry/repository:Repository"]:
        assert declared.waits_for(service, declared.one(token)), token
        assert not declared.waits_for(declared.one(token), service), token
    assert all(declared.waits_for(service, api) for api in declared.of("projects/service:Service"))
    health, benchmark = declared.one("HealthCheck"), declared.one("ShortBenchmark")
    assert declared.waits_for(health, service)
    assert declared.waits_for(benchmark, health)


@pytest.mark.slow
def test_the_model_is_looked_for_as_early_as_can_be() -> None:
    made, used = declare_plan(weights={"create": True}), declare_plan()
    assert made.waits_for(made.one("ModelFiles"), made.one("storage/bucket:Bucket"))
    for declared in (made, used):
        assert declared.waits_for(declared.one("ModelFiles"), declared.by_name("vllm-apis-storage"))
        assert not declared.waits_for(declared.one("ModelFiles"), declared.one("BucketIAMMember"))


@pytest.mark.slow
def test_the_callers_rights_are_there_when_the_check_calls() -> None:
    declared = declare_plan(access={"invokers": ["user:a@acme.example"]})
    assert declared.waits_for(declared.one("HealthCheck"), declared.one("ServiceIamMember"))


@pytest.mark.slow
def test_the_model_is_looked_for_only_where_the_bucket_can_hold_it() -> None:
    made, used = declare_plan(preview=True, weights={"create": True}), declare_plan(preview=True)
    assert has_unknown(made.one("ModelFiles").inputs["bucket_url"])
    assert used.one("ModelFiles").inputs["bucket_url"] == "gs://acme-llm-models"
    assert used.one("ModelFiles").inputs["source"] == plan().service.weights.source


@pytest.mark.slow
def test_in_a_first_preview_every_value_that_a_policy_judges_is_known() -> None:
    declared = declare_plan(preview=True, secrets={"HF_TOKEN": "hf-token"}, weights={"create": True})
    judged = [resource for resource in declared.all if resource.type.startswith("gcp:")]
    assert len(judged) >= 10
    assert not [resource.name for resource in judged if has_unknown(resource.inputs)]


@pytest.mark.slow
@pytest.mark.parametrize(("environment", "protected"), [("dev", False), ("prod", True)])
def test_production_is_protected_from_a_destroy(environment: str, protected: bool) -> None:
    declared = declare_plan(environment=environment, weights={"create": True})
    assert declared.one(SERVICE).inputs["deletionProtection"] is protected
    assert declared.one("storage/bucket:Bucket").inputs["forceDestroy"] is not protected


@pytest.mark.slow
def test_nobody_but_the_named_callers_is_let_in() -> None:
    assert not declare_plain().of("ServiceIamMember")
    named = declare_plan(access={"invokers": ["user:a@acme.example"]})
    assert named.one("ServiceIamMember").inputs["member"] == "user:a@acme.example"
    assert "allUsers" not in named.everything()


@pytest.mark.slow
def test_a_public_service_lets_everybody_in_and_is_checked_as_such() -> None:
    declared = declare_plan(access={"public": True})
    assert declared.one("ServiceIamMember").inputs["member"] == "allUsers"
    assert declared.one("HealthCheck").inputs["public"] is True
    assert declare_plain().one("HealthCheck").inputs["public"] is False


@pytest.mark.slow
def test_a_failed_operation_on_the_service_is_explained() -> None:
    assert declare_plain().one(SERVICE).hooks


@pytest.mark.slow
def test_the_checks_run_again_for_each_revision_that_was_made() -> None:
    declared = declare_plain()
    assert declared.one("HealthCheck").inputs["revision"] == CREATED
    assert declared.one("ShortBenchmark").inputs["revision"] == CREATED


@pytest.mark.slow
def test_a_stack_says_where_it_answers_what_it_costs_and_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEZEL_SIMULATED", "1")
    outputs = declare_plan().result
    of_each = {"settings", "image", "model", "arguments", "plan", "smoke", "simulated"}
    assert outputs.keys() == {"url", "revision", *of_each}
    assert outputs["model"] == plan().served_model
    assert outputs["arguments"] == list(plan().service.arguments)
    assert outputs["plan"].keys() == {"fit", "weights", "start", "estimate", "cost"}
    assert outputs["smoke"].keys() == {"verdict", "figures"}
    assert outputs["simulated"] is True


@pytest.mark.slow
def test_without_the_sign_of_a_simulation_nothing_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BEZEL_SIMULATED", raising=False)
    declared = declare_plan()
    assert declared.result["simulated"] is False
    assert declared.one("ShortBenchmark").inputs["simulated"] is False


@pytest.mark.slow
def test_the_revision_in_the_outputs_is_the_one_that_answers() -> None:
    (component,) = declare_plain().of("CloudRunGpuService")
    assert component.outputs["revision"] == REVISION


@pytest.mark.slow
def test_where_it_is_reached_and_what_it_sends_through_arrive_at_cloud_run(run: FakeRun) -> None:
    run.subnetworks = {"projects/acme-llm/regions/us-east4/subnetworks/llm-east": FIT}
    declared = declare_plan(
        access={"ingress": "internal-and-cloud-load-balancing"},
        smoke={"inside": True},
        vpc={"subnetwork": "llm-east", "egress": "all-traffic", "tags": ["llm"]},
    )
    service = declared.one(SERVICE).inputs
    assert service["ingress"] == "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER"
    assert service["template"]["vpcAccess"] == {
        "egress": "ALL_TRAFFIC",
        "networkInterfaces": [{"subnetwork": "llm-east", "tags": ["llm"]}],
    }
    plain = declare_plain().one(SERVICE).inputs
    assert plain["ingress"] == "INGRESS_TRAFFIC_ALL"
    assert "vpcAccess" not in plain["template"]


@pytest.mark.slow
def test_a_reserve_and_a_boost_arrive_at_cloud_run(run: FakeRun) -> None:
    settings: dict[str, Any] = {"scaling": {"zonal_redundancy": True}, "resources": {"cpu_boost": True}}
    service = template(**settings)
    assert service["gpuZonalRedundancyDisabled"] is False
    assert service["containers"][0]["resources"]["startupCpuBoost"] is True
    asked = [call.path.rpartition("/")[2] for call in run.server.calls]
    assert "NvidiaL4GpuAllocPerProjectRegion" in asked
    assert template()["gpuZonalRedundancyDisabled"] is True
    assert "startupCpuBoost" not in template()["containers"][0]["resources"]


@pytest.mark.slow
def test_another_image_arrives_at_cloud_run() -> None:
    digest = "sha256:" + "f" * 64
    chosen = {
        "registry": "ghcr.io",
        "repository": "acme/vllm",
        "tag": "prod-7",
        "digest": digest,
        "options": "0.32.0",
    }
    declared = declare_plan(image=chosen)
    repository = declared.one("artifactregistry/repository:Repository").inputs["remoteRepositoryConfig"]
    assert repository["dockerRepository"]["customRepository"]["uri"] == "https://ghcr.io"
    (container,) = declared.one(SERVICE).inputs["template"]["containers"]
    assert container["image"].endswith(f"/acme/vllm@{digest}")


@pytest.mark.slow
def test_a_network_that_is_not_there_stops_before_anything_is_declared(run: FakeRun) -> None:
    with pytest.raises(PlanError, match=r"bezel:vpc.network = llm\n   projects/acme-llm/.*/llm does not exist"):
        declare_plan(vpc={"network": "llm"})
    run.subnetworks = {"projects/acme-llm/regions/us-east4/subnetworks/llm": FIT}
    assert declare_plan(vpc={"network": "llm"}).one(SERVICE).inputs["template"]["vpcAccess"]


@pytest.mark.slow
def test_a_network_that_nobody_may_see_is_said_to_be_unknown(run: FakeRun, caplog: pytest.LogCaptureFixture) -> None:
    run.subnetworks = None
    assert declare_plan(preview=True, vpc={"network": "llm"}).one(SERVICE)
    assert "subnetworks/llm could not be checked: " in caplog.text


@pytest.mark.slow
def test_without_a_network_nobody_asks_for_one(run: FakeRun) -> None:
    declare_plan()
    assert not [call for call in run.server.calls if call.path.startswith("/compute/")]
