"""Services of several containers that Cloud Run refuses at once, and the order in which containers start. Pure."""

import copy

import pytest

from bezel_localcloud.services.cloud_run.checks import violations
from bezel_localcloud.services.cloud_run.containers.order import start_order
from bezel_localcloud.services.cloud_run.job_checks import job_violations
from bezel_localcloud.services.cloud_run.quotas import CPU_METRIC, MEMORY_METRIC, amounts
from bezel_localcloud.services.cloud_run.spec import GIB, revision_spec

CONTAINERS = "service.template.containers"
PROBE = {"httpGet": {"path": "/health"}}
SERVER = {
    "name": "vllm",
    "image": "docker.io/a/b:c",
    "resources": {"limits": {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}},
    "ports": [{"containerPort": 8000}],
    "startupProbe": PROBE,
}
REST = {"gpuZonalRedundancyDisabled": True, "scaling": {"maxInstanceCount": 1}}
COLLECTOR = {"name": "collector", "image": "docker.io/a/c:d", "dependsOn": ["vllm"]}


def template(server=None, collector=None, *more):
    containers = [SERVER | (server or {}), COLLECTOR | (collector or {}), *more]
    containers = [{key: value for key, value in each.items() if value is not None} for each in containers]
    return {"containers": containers, "nodeSelector": {"accelerator": "nvidia-l4"}} | REST


def problems_of(body):
    return violations({"template": body}, "llm", "us-east4")


REFUSED = {
    "no port": ({"ports": None}, {}, CONTAINERS, "exactly one container with an exposed port"),
    "two ports": ({}, {"ports": [{"containerPort": 1}]}, CONTAINERS, "exactly one container with an exposed port"),
    "name twice": ({}, {"name": "vllm", "dependsOn": None}, CONTAINERS, "'vllm' is given more than once"),
    "form of a name": ({}, {"name": "A_b"}, f"{CONTAINERS}[1].name", "lower case letters"),
    "unknown name": ({}, {"dependsOn": ["app"]}, f"{CONTAINERS}[1].depends_on", "no container is named 'app'"),
    "no probe": ({"startupProbe": None}, {}, f"{CONTAINERS}[1].depends_on", "'vllm' must have startup probe specified"),
    "cycle": ({"dependsOn": ["collector"]}, {"startupProbe": PROBE}, CONTAINERS, "a cycle: collector, vllm"),
    "itself": ({"dependsOn": ["vllm"]}, {}, CONTAINERS, "a cycle: vllm"),
    "no image": ({}, {"image": None}, f"{CONTAINERS}[1].image", "is required"),
    "variable": ({}, {"env": [{"name": "PORT"}]}, f"{CONTAINERS}[1].env", "reserved"),
    "mount": ({}, {"volumeMounts": [{"name": "x", "mountPath": "/x"}]}, f"{CONTAINERS}[1].volume_mounts", "no volume"),
    "probe": ({}, {"startupProbe": {"periodSeconds": 241}}, f"{CONTAINERS}[1].startup_probe.period_seconds", "240"),
    "cpu": ({}, {"resources": {"limits": {"cpu": "3"}}}, f"{CONTAINERS}[1].resources.limits.cpu", "is none of"),
    "two GPUs": ({}, {"resources": SERVER["resources"]}, CONTAINERS, "only one container may have GPUs"),
    "sum of CPUs": ({}, {"resources": {"limits": {"cpu": "6"}}}, CONTAINERS, "10 vCPUs together are more than 8"),
    "sum of memory": ({}, {"resources": {"limits": {"memory": "17Gi"}}}, CONTAINERS, "33Gi of memory together"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_rule_for_several_containers_is_named_with_its_field(case):
    server, collector, field, text = REFUSED[case]
    problems = problems_of(template(server, collector))
    assert (field, True) in [(place, text in message) for place, message in problems]
    assert case == "two GPUs" or len(problems) == 1, problems


def test_containers_within_every_rule_are_taken_up_to_ten():
    assert problems_of(template()) == []
    assert problems_of(template({}, {"name": None})) == []
    big = {"cpu": "20", "memory": "80Gi", "nvidia.com/gpu": "1"}
    rtx = template({"resources": {"limits": big}}) | {"nodeSelector": {"accelerator": "nvidia-rtx-pro-6000"}}
    assert violations({"template": rtx}, "llm", "us-central1") == []
    small = [{"image": "docker.io/a/d:e", "resources": {"limits": {"cpu": "0.08", "memory": "128Mi"}}}] * 9
    assert problems_of(template({}, {}, *small[:8])) == []
    assert problems_of(template({}, {}, *small)) == [(CONTAINERS, "11 containers are more than 10")]


def test_a_revision_asks_for_the_sum_of_its_containers():
    spec = revision_spec(template({}, {"name": None}), {})
    assert (spec.port, spec.image, spec.cpu, spec.accelerators) == (8000, SERVER["image"], 4, 1)
    assert [(each.name, each.port, each.startup, each.cpu) for each in spec.sidecars] == [("container-1", 0, None, 1.0)]
    sums = dict(amounts(spec))
    assert (sums[CPU_METRIC], sums[MEMORY_METRIC], spec.instance_accelerators) == (5000, 16.5 * GIB, 1)
    behind = copy.deepcopy(template())
    behind["containers"].reverse()
    assert revision_spec(behind, {}).port == 8000


def test_each_container_starts_after_those_that_it_depends_on():
    assert start_order({"a": ["c"], "b": [], "c": ["b"]}) == ["b", "c", "a"]
    assert start_order({"a": [], "b": []}) == ["a", "b"]


def test_a_task_of_a_job_has_one_container():
    (problem,) = job_violations({"template": {"template": {"containers": [SERVER, COLLECTOR]}}}, "job", "us-east4")
    assert problem == ("job.template.template.containers", "localcloud runs one container per task: remove the others")
