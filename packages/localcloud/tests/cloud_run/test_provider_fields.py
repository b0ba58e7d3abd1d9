"""Fields of a Cloud Run service that the published provider sends and that no discovery document has."""

import pytest

from localcloud_support.in_process import PARENT, Project

SERVICES = f"/run/v2/{PARENT}/locations/us-east4/services"
PROBE = {"httpGet": {"path": "/health", "port": 8000}, "grpc": None, "periodSeconds": 10, "timeoutSeconds": 5}


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path / "cloud", speed=10_000)
    made.cloud.store.put("api", "run.googleapis.com", {"state": "ENABLED"})
    yield made
    made.close()


def template(**probe):
    container = {"image": "us-docker.pkg.dev/app/app/vllm:v1", "ports": [{"containerPort": 8000}]}
    return {"containers": [{**container, "readinessProbe": {**PROBE, **probe}}]}


def test_a_readiness_probes_success_threshold_is_kept(project):
    project.ok("POST", SERVICES, {"template": template(successThreshold=2)}, serviceId="llm")
    (container,) = project.ok("GET", f"{SERVICES}/llm")["template"]["containers"]
    assert container["readinessProbe"]["successThreshold"] == 2


@pytest.mark.parametrize("probe", [{"successThreshold": "two"}, {"successThresholds": 2}])
def test_a_success_threshold_of_another_name_or_kind_is_refused(project, probe):
    error = project.refusal(400, "POST", SERVICES, {"template": template(**probe)}, serviceId="llm")
    assert "success_threshold" in error["message"] or "successThresholds" in error["message"]


@pytest.mark.parametrize("field", [{"tags": {"123/env": "prod"}}, {"multiRegionSettings": {"regions": ["us-east4"]}}])
def test_a_services_unserved_fields_are_refused_by_name(project, field):
    error = project.refusal(400, "POST", SERVICES, {"template": template(), **field}, serviceId="llm")
    assert f"localcloud does not serve {next(iter(field))} of a service" in error["message"]
    project.ok("POST", SERVICES, {"template": template(), "tags": {}}, serviceId="llm")


def test_a_service_of_several_regions_is_refused_by_name(project):
    everywhere = SERVICES.replace("us-east4", "global")
    error = project.refusal(400, "POST", everywhere, {"template": template()}, serviceId="llm")
    assert "does not serve services of several regions (locations/global)" in error["message"]
    nowhere = SERVICES.replace("us-east4", "nowhere1")
    assert "Permission denied" in project.refusal(403, "POST", nowhere, {}, serviceId="llm")["message"]
