"""Services that Cloud Run refuses at once: one case a rule, each with the field that it names."""

import copy

import pytest

from bezel_localcloud.services.cloud_run.checks import violations
from bezel_localcloud.services.cloud_run.quotas import gpu_quota_of, gpus_needed
from bezel_localcloud.services.cloud_run.spec import revision_spec

CONTAINER = "service.template.containers[0]"
LIMITS = f"{CONTAINER}.resources.limits"
GPU = {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}
L4 = {
    "template": {
        "containers": [{"image": "docker.io/a/b:c", "resources": {"limits": GPU}, "ports": [{"containerPort": 8000}]}],
        "nodeSelector": {"accelerator": "nvidia-l4"},
        "gpuZonalRedundancyDisabled": True,
        "scaling": {"maxInstanceCount": 3},
    }
}
PLAIN = {"template": {"containers": [{"image": "docker.io/a/b:c"}]}}


def change(base, **changes):
    """A copy with values set at paths such as template__scaling or container__env."""
    service = copy.deepcopy(base)
    for path, value in changes.items():
        *parents, last = path.split("__")
        at = service["template"]["containers"][0] if parents[:1] == ["container"] else service
        for parent in parents[1:] if parents[:1] == ["container"] else parents:
            at = at.setdefault(parent, {})
        at[last] = value
    return service


def problems_of(service, name="llm", location="us-east4"):
    return violations(service, name, location)


@pytest.mark.parametrize(
    "service",
    [
        L4,
        PLAIN,
        change(PLAIN, container__resources={"limits": {"cpu": "500m", "memory": "32Gi"}}),
        change(L4, template__revision="llm-green", description="x" * 512),
        change(L4, scaling={"scalingMode": "MANUAL"}),
        change(L4, traffic=[{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100, "tag": "a"}]),
        change(L4, container__startupProbe={"failureThreshold": 120, "periodSeconds": 15, "timeoutSeconds": 15}),
        change(L4, template__timeout="3600s", template__maxInstanceRequestConcurrency=1000),
    ],
)
def test_a_service_within_every_bound_is_taken(service):
    assert problems_of(service) == []


LATEST = {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"}
PINNED = {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION"}


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"template": {}}, "service.template.containers", "at least one"),
        ({"container__image": ""}, f"{CONTAINER}.image", "is required"),
        ({"container__resources": {"limits": GPU | {"cpu": "lots"}}}, LIMITS, "not a number of CPUs"),
        ({"container__resources": {"limits": GPU | {"memory": "lots"}}}, LIMITS, "not an amount of memory"),
        ({"container__resources": {"limits": GPU | {"cpu": "2"}}}, f"{LIMITS}.cpu", "at least 4"),
        ({"container__resources": {"limits": GPU | {"memory": "8Gi"}}}, f"{LIMITS}.memory", "between 16Gi and 32Gi"),
        ({"container__resources": {"limits": GPU | {"nvidia.com/gpu": "2"}}}, f"{LIMITS}.nvidia.com/gpu", "must be 1"),
        (
            {"container__resources": {"limits": GPU | {"nvidia.com/gpu": "\u00b2"}}},
            f"{LIMITS}.nvidia.com/gpu",
            "must be 1",
        ),
        (
            {"container__resources": {"limits": GPU, "cpuIdle": True}},
            f"{CONTAINER}.resources.cpu_idle",
            "instance-based",
        ),
        (
            {"template__nodeSelector": {"accelerator": "nvidia-t4"}},
            "service.template.node_selector.accelerator",
            "supported",
        ),
        ({"template__nodeSelector": {}}, "service.template.node_selector.accelerator", "is required"),
        (
            {"template__executionEnvironment": "EXECUTION_ENVIRONMENT_GEN1"},
            "service.template.execution_environment",
            "GEN2",
        ),
        (
            {"container__startupProbe": {"failureThreshold": 121, "periodSeconds": 15}},
            f"{CONTAINER}.startup_probe.failure_threshold",
            "more than 1800s",
        ),
        (
            {"container__startupProbe": {"initialDelaySeconds": 241}},
            f"{CONTAINER}.startup_probe.initial_delay_seconds",
            "between 0 and 240",
        ),
        (
            {"container__startupProbe": {"periodSeconds": 241}},
            f"{CONTAINER}.startup_probe.period_seconds",
            "between 1 and 240",
        ),
        (
            {"container__startupProbe": {"timeoutSeconds": 11}},
            f"{CONTAINER}.startup_probe.timeout_seconds",
            "not between 1 and period_seconds",
        ),
        (
            {"container__livenessProbe": {"failureThreshold": -1}},
            f"{CONTAINER}.liveness_probe.failure_threshold",
            "at least 1",
        ),
        (
            {"container__livenessProbe": {"periodSeconds": 3601}},
            f"{CONTAINER}.liveness_probe.period_seconds",
            "between 1 and 3600",
        ),
        (
            {"template__maxInstanceRequestConcurrency": 1001},
            "service.template.max_instance_request_concurrency",
            "between 1 and 1000",
        ),
        ({"template__timeout": "-1s"}, "service.template.timeout", "not a duration"),
        ({"template__timeout": "3601s"}, "service.template.timeout", "more than 3600s"),
        ({"traffic": [LATEST | {"percent": 99}]}, "service.traffic", "add up to 100"),
        (
            {"traffic": [LATEST | {"percent": 150}, LATEST | {"percent": -50}]},
            "service.traffic",
            "none of them below 0",
        ),
        (
            {"traffic": [LATEST | {"percent": 100, "tag": "a"}, LATEST | {"tag": "a"}]},
            "service.traffic.tag",
            "more than once",
        ),
        ({"traffic": [PINNED | {"percent": 100}]}, "service.traffic.revision", "is required"),
        ({"traffic": [LATEST | {"percent": 100, "revision": "llm-1"}]}, "service.traffic.revision", "only with"),
        ({"template__revision": "other-1"}, "service.template.revision", "does not begin"),
        ({"template__revision": "llm-a/b"}, "service.template.revision", "does not begin"),
        ({"template__revision": "llm-" + "x" * 60}, "service.template.revision", "longer than 63"),
        ({"description": "x" * 513}, "service.description", "longer than 512"),
        ({"annotations": {"run.googleapis.com/x": "y"}}, "service.annotations", "this namespace"),
        ({"template__labels": {"serving.knative.dev/x": "y"}}, "service.template.labels", "this namespace"),
        ({"scaling": {"minInstanceCount": -1}}, "service.scaling.min_instance_count", "between 0 and 1000"),
        ({"scaling": {"manualInstanceCount": 1001}}, "service.scaling.manual_instance_count", "between 0 and 1000"),
        (
            {"template__scaling": {"minInstanceCount": 4, "maxInstanceCount": 3}},
            "service.template.scaling.min_instance_count",
            "more than max_instance_count 3",
        ),
        ({"container__ports": [{"containerPort": 1}, {"containerPort": 2}]}, f"{CONTAINER}.ports", "only one port"),
        ({"container__ports": [{"containerPort": 65536}]}, f"{CONTAINER}.ports", "between 1 and 65535"),
        ({"container__env": [{"name": "PORT"}]}, f"{CONTAINER}.env", "reserved"),
        ({"container__env": [{"name": "1x"}]}, f"{CONTAINER}.env", "is not a name"),
        ({"container__env": [{"name": "x"}, {"name": "x"}]}, f"{CONTAINER}.env", "more than once"),
        ({"container__volumeMounts": [{"name": "x", "mountPath": "/x"}]}, f"{CONTAINER}.volume_mounts", "no volume"),
    ],
)
def test_what_goes_beyond_a_bound_is_named_with_its_field_and_nothing_else(changes, field, message):
    refused = problems_of(change(L4, **changes))
    assert [(place, message in text) for place, text in refused] == [(field, True)]


def test_a_mount_has_an_absolute_path():
    service = change(
        L4, template__volumes=[{"name": "x", "gcs": {}}], container__volumeMounts=[{"name": "x", "mountPath": "x"}]
    )
    assert problems_of(service) == [(f"{CONTAINER}.volume_mounts", "mount path 'x' is not absolute")]


@pytest.mark.parametrize("name", ["", "Llm", "1lm", "llm-", "x" * 50])
def test_a_name_has_its_form(name):
    assert [field for field, _ in problems_of(L4, name)] == ["service_id"]


def test_an_accelerator_is_where_it_is():
    assert problems_of(L4, location="us-west1")[0][1].startswith("nvidia-l4 is not available in us-west1")


@pytest.mark.parametrize(
    ("limits", "field", "message"),
    [
        ({"cpu": "3"}, f"{LIMITS}.cpu", "is none of"),
        ({"memory": "33Gi"}, f"{LIMITS}.memory", "more than 32Gi"),
    ],
)
def test_a_service_without_a_gpu_has_bounds_of_its_own(limits, field, message):
    refused = problems_of(change(PLAIN, container__resources={"limits": limits}))
    assert [(place, message in text) for place, text in refused] == [(field, True)]


def test_the_startup_window_without_a_gpu_is_ten_minutes():
    service = change(PLAIN, container__startupProbe={"failureThreshold": 61, "periodSeconds": 10})
    assert "more than 600s" in problems_of(service)[0][1]


RTX = change(
    L4,
    template__nodeSelector={"accelerator": "nvidia-rtx-pro-6000"},
    container__resources={"limits": {"cpu": "20", "memory": "80Gi", "nvidia.com/gpu": "1"}},
)


@pytest.mark.parametrize(
    ("service", "message"),
    [
        (
            change(L4, template__scaling={"maxInstanceCount": 4}),
            "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion requested: 4 allowed: 3",
        ),
        (
            change(L4, template__gpuZonalRedundancyDisabled=False),
            "NvidiaL4GpuAllocPerProjectRegion requested: 3 allowed: 0",
        ),
        (change(L4, scaling={"scalingMode": "MANUAL", "manualInstanceCount": 5}), "requested: 5 allowed: 3"),
        (
            change(RTX, template__scaling={"maxInstanceCount": 4}),
            "Max instances must be set to 3 or fewer in order to set GPU",
        ),
        (
            change(PLAIN, container__resources={"limits": {"cpu": "8"}}, template__scaling={"maxInstanceCount": 26}),
            "the requested total CPU. Quota violated: CpuAllocPerProjectRegion requested: 208000 allowed: 200000",
        ),
        (
            change(
                PLAIN, container__resources={"limits": {"memory": "32Gi"}}, template__scaling={"maxInstanceCount": 13}
            ),
            "set to 12 or fewer to set the requested total memory. Quota violated: MemAllocPerProjectRegion",
        ),
    ],
)
def test_a_service_beyond_a_quota_is_told_the_number_that_fits(service, message):
    """A service that alone is beyond a quota is reported the quota and the number that would do."""
    texts = [text for field, text in problems_of(service, location="europe-west4")]
    assert any(message in text for text in texts), texts


def revision(base, name, **changes):
    return {name: change(base, **changes)["template"]}


def service_of(ready, *, created="", **more):
    state = {"latestReadyRevision": ready} | (
        {"latestCreatedRevision": created, "reconciling": True} if created else {}
    )
    return state | more


def test_the_quota_of_the_rtx_is_in_thousandths():
    quota = gpu_quota_of("nvidia-rtx-pro-6000", redundant=False)
    assert (quota.gpus, quota.amount(2)) == (3, "2000 milli-GPU")
    assert gpu_quota_of("nvidia-l4", redundant=False).amount(2) == "2"


@pytest.mark.parametrize(
    ("services", "wanted"),
    [
        ([(service_of("a"), revision(L4, "a"), {})], 3),
        # While a new revision is on its way, it counts with its most, and the old one with what it holds.
        ([(service_of("a", created="b"), revision(L4, "a") | revision(L4, "b"), {"a": 1})], 4),
        ([(service_of("a", created="b"), revision(L4, "a") | revision(L4, "b"), {})], 3),
        # Neither other kinds nor other redundancy nor a revision that is gone.
        ([(service_of("a"), revision(RTX, "a"), {"a": 1, "gone": 2})], 0),
        ([(service_of("a"), revision(L4, "a", template__gpuZonalRedundancyDisabled=False), {})], 0),
        # The least instances count where they are more, and manual scaling says how many there are.
        ([(service_of("a", scaling={"scalingMode": "MANUAL", "manualInstanceCount": 2}), revision(L4, "a"), {})], 2),
        ([(service_of("a", scaling={"minInstanceCount": 5}), revision(L4, "a"), {})], 5),
        ([(service_of("a"), revision(L4, "a"), {}), (service_of("z"), revision(L4, "z"), {})], 6),
    ],
)
def test_gpus_are_counted_with_what_a_region_may_come_to_hold(services, wanted):
    assert gpus_needed(services, "nvidia-l4", redundant=False) == wanted


@pytest.mark.parametrize(("cpu", "requested", "wanted"), [("1", 0, 80), ("500m", 0, 1), ("500m", 5, 5), ("8", 7, 7)])
def test_less_than_a_cpu_takes_one_request_at_a_time(cpu, requested, wanted):
    container = {"resources": {"limits": {"cpu": cpu}}}
    assert (
        revision_spec({"containers": [container], "maxInstanceRequestConcurrency": requested}, {}).concurrency == wanted
    )
