"""Stacks that keep vLLM's figures: what is made for a service, in several regions, for leases and their fallback."""

from typing import Any

import pytest
import yaml

from bezel_stacks.dispatch import deploy
from tests.stacks.test_cloud_run_stack import declare_plain, declare_plan
from tests.stacks.test_fallback_stack import FALLBACK
from tests.stacks.test_lease_stack import plan as lease_plan
from tests.stacks.test_regions_stack import A, B, declare_regions
from tests.support.components.fake_engine import declare, has_unknown

KEPT = {"observability": {"metrics": True}}
SERVICE, SECRET = "cloudrunv2/service:Service", "secretmanager/secret:Secret"


def collectors(services: list[Any]) -> list[dict[str, Any]]:
    """The second container of each service."""
    return [container for one in services for container in one.inputs["template"]["containers"][1:]]


@pytest.mark.slow
def test_a_service_that_keeps_figures_has_a_collector_with_what_it_needs() -> None:
    made = declare_plan(**KEPT)
    (collector,) = collectors(made.of(SERVICE))
    assert "/cloud-run-gmp-sidecar@sha256:" in collector["image"]
    secret, version, grant = (made.one(f":{kind}") for kind in ("Secret", "SecretVersion", "SecretIamMember"))
    service = made.one(SERVICE)
    assert service.inputs["template"]["volumes"][-1]["secret"]["secret"] == secret.inputs["secretId"]
    assert grant.inputs["member"] == f"serviceAccount:{service.inputs['template']['serviceAccount']}"
    port = service.inputs["template"]["containers"][0]["ports"]["containerPort"]
    (endpoint,) = yaml.safe_load(version.inputs["secretData"]["value"])["spec"]["endpoints"]
    assert endpoint["port"] == f"{port:g}"
    for earlier in (secret, version, grant, *made.of("projects/iAMMember:IAMMember")):
        assert made.waits_for(service, earlier)
        assert made.waits_for(earlier, made.of("projects/service:Service")[0])
    assert secret.inputs["labels"]["stack"] == "l4-qat"


@pytest.mark.slow
def test_a_service_without_figures_has_nothing_of_it() -> None:
    made = declare_plain()
    assert collectors(made.of(SERVICE)) == made.of(SECRET) == made.of("projects/iAMMember:IAMMember") == []


@pytest.mark.slow
def test_in_a_first_preview_the_collector_is_known_to_policies() -> None:
    made = declare_plan(preview=True, rollout="gated", **KEPT)
    assert not has_unknown(made.one(SERVICE).inputs["template"])
    assert not has_unknown(made.one(":SecretIamMember").inputs)


@pytest.mark.slow
def test_regions_share_one_configuration() -> None:
    made = declare_regions(regions=[A, B], **KEPT)
    first, second = collectors(made.of(SERVICE))
    assert first == second
    assert len(made.of(SECRET)) == 1


@pytest.mark.slow
def test_series_of_a_lease_are_its_gateway_s_and_a_fallback_has_its_own() -> None:
    watched = {"observability": {"metrics": True, "dashboard": True}}
    made = declare(lambda: deploy(lease_plan(fallback=FALLBACK, **watched)))
    metadata = made.one("TpuRequest").inputs["body"]["tpu"]["nodeSpec"][0]["node"]["metadata"]
    assert "@sha256:" in metadata["bezel-collector-image"]
    (job,) = yaml.safe_load(metadata["bezel-collector-configuration"])["scrape_configs"]
    gateway, fallback = made.by_name("vllm-gateway-service"), made.by_name("vllm-fallback-service-service")
    assert job["static_configs"][0]["labels"]["namespace"] == gateway.inputs["name"]
    assert collectors([gateway]) == []
    assert [each["name"] for each in collectors([fallback])] == ["collector"]
    writers = [one for one in made.of("projects/iAMMember:IAMMember") if "metricWriter" in one.inputs["role"]]
    assert len(writers) == 2
    names = f"{gateway.inputs['name']}|{fallback.inputs['name']}"
    assert f'namespace=~\\"{names}\\"' in made.one("monitoring/dashboard:Dashboard").inputs["dashboardJson"]


@pytest.mark.slow
def test_a_leased_machine_without_figures_collects_none() -> None:
    metadata = declare(lambda: deploy(lease_plan())).one("TpuRequest").inputs["body"]["tpu"]["nodeSpec"][0]["node"]
    assert [name for name in metadata["metadata"] if "collector" in name] == []
    assert "start_collector" not in metadata["metadata"]["startup-script"]


@pytest.mark.slow
def test_objectives_and_drafts_of_a_stack_file_arrive_at_its_alerts() -> None:
    watched = {"alerts": True, "metrics": True, "max_ttft_seconds": 2}
    made = declare_plan(observability=watched, vllm={"spec-method": "ngram", "spec-tokens": 3})
    (ttft,) = [one for one in made.of("AlertPolicy") if one.name.endswith("-ttft")]
    query = ttft.inputs["conditions"][0]["conditionPrometheusQueryLanguage"]["query"]
    service = made.one(SERVICE).inputs
    assert f'namespace="{service["name"]}",location="us-east4"' in query
    assert query.endswith(" > 2")
    ends = {one.name.rpartition("observability-")[2] for one in made.of("AlertPolicy")}
    assert {"drafts", "kv-cache-full"} <= ends
    assert not {"tpot", "cache-full"} & ends
    plain = declare_plan(observability={"alerts": True, "metrics": True})
    assert not [one for one in plain.of("AlertPolicy") if one.name.endswith(("-ttft", "-drafts"))]
