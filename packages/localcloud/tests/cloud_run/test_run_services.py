"""Cloud Run's services: revisions, conditions, operations and what is refused."""

import itertools

import pytest

from localcloud_support.client import REGION, RUNTIME, SERVICES, is_alive, until


@pytest.fixture
def make_service(cloud):
    """A function that makes services, removed afterwards."""
    names = []

    def make(name, *args, **changes):
        names.append(name)
        return cloud.create(name, cloud.template(*args, **changes))

    yield make
    for name in names:
        cloud.remove(name)


def state(service):
    return service["terminalCondition"]["state"]


@pytest.mark.slow
def test_a_service_becomes_ready_and_says_so_in_every_field(cloud, make_service):
    operation = make_service("whole", "/mnt/models/m", "--max-model-len=64")
    service = cloud.service("whole")
    assert "error" not in operation
    assert operation["response"]["@type"] == "type.googleapis.com/google.cloud.run.v2.Service"
    assert state(service) == "CONDITION_SUCCEEDED"
    assert {c["type"]: c["state"] for c in service["conditions"]} == {
        "RoutesReady": "CONDITION_SUCCEEDED",
        "ConfigurationsReady": "CONDITION_SUCCEEDED",
    }
    assert service["latestReadyRevision"] == service["latestCreatedRevision"]
    assert service["latestReadyRevision"].rpartition("/")[2].startswith("whole-00001-")
    assert service["generation"] == service["observedGeneration"] == "1"
    assert service["trafficStatuses"] == [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}]
    assert service["urls"] == [service["uri"]]
    assert "reconciling" not in service


def test_a_container_that_ends_makes_the_create_fail(cloud, make_service):
    """A container that ends makes the create fail, and its service is not ready."""
    operation = make_service("ends", "--exit=2")
    service = cloud.service("ends")
    assert operation["error"]["code"] == 9
    assert "is not ready and cannot serve traffic" in operation["error"]["message"]
    assert state(service) == "CONDITION_FAILED"
    assert service["terminalCondition"]["revisionReason"] == "HEALTH_CHECK_CONTAINER_ERROR"
    assert "latestReadyRevision" not in service
    assert cloud.log("ends", 'severity>="WARNING"')[0]["textPayload"] == "Container called exit(2)."


@pytest.mark.slow
@pytest.mark.parametrize(("kills", "ready"), [(0, True), (1, True), (3, True), (4, False)])
def test_a_container_killed_at_its_start_is_tried_again(cloud, make_service, tmp_path, kills, ready):
    """A container that is killed while it starts is tried again and no memory is blamed."""
    counter = tmp_path / "kills"
    counter.write_text("x" * kills)
    name = f"killed-{kills}"
    operation = make_service(name, f"--killed={counter}")
    assert ("response" in operation) is ready
    texts = [entry["textPayload"] for entry in cloud.log(name) if "textPayload" in entry]
    assert texts.count("Container terminated on signal 9.") == kills
    assert sum(text.startswith("Starting new instance.") for text in texts) == min(kills + 1, 4)
    assert not [text for text in texts if "Memory limit" in text]


@pytest.mark.slow
def test_a_container_that_was_out_of_memory_says_so_and_is_not_tried_again(cloud, make_service):
    operation = make_service("too-much", "--exit=137")
    assert operation["error"]["code"] == 9
    texts = [entry["textPayload"] for entry in cloud.log("too-much") if "textPayload" in entry]
    assert sum(text.startswith("Memory limit of 32768 MiB exceeded.") for text in texts) == 1
    assert sum(text.startswith("Starting new instance.") for text in texts) == 1


@pytest.mark.slow
def test_a_template_change_makes_a_new_revision_and_takes_the_traffic(cloud, make_service):
    make_service("changed", "--a=1")
    first = cloud.service("changed")["latestReadyRevision"]
    cloud.update("changed", cloud.template("--a=2"))
    service = cloud.service("changed")
    assert service["latestReadyRevision"] != first
    assert "-00002-" in service["latestReadyRevision"]
    assert service["generation"] == "2"
    assert cloud.front("changed").get("/").json()["arguments"] == ["--a=2"]
    revisions = cloud.get(f"{SERVICES}/changed/revisions").json()["revisions"]
    assert [r["name"] for r in revisions] == [service["latestReadyRevision"], first]


@pytest.mark.slow
def test_the_same_template_makes_no_new_revision(cloud, make_service):
    make_service("same", "--a=1")
    first = cloud.service("same")["latestCreatedRevision"]
    cloud.update("same", cloud.template("--a=1"), labels={"tier": "b"})
    service = cloud.service("same")
    assert service["latestCreatedRevision"] == first
    assert service["labels"] == {"tier": "b"}
    forced = cloud.patch(f"{SERVICES}/same", {"template": cloud.template("--a=1")}, forceNewRevision="true")
    cloud.finish("run/v2", forced)
    assert cloud.service("same")["latestCreatedRevision"] != first


@pytest.mark.slow
def test_a_failed_update_keeps_the_old_revision_serving(cloud, make_service):
    make_service("kept", "--a=1")
    first = cloud.service("kept")["latestReadyRevision"]
    operation = cloud.update("kept", cloud.template("--exit=1"))
    service = cloud.service("kept")
    assert operation["error"]["code"] == 9
    assert state(service) == "CONDITION_FAILED"
    assert service["latestReadyRevision"] == first
    assert service["latestCreatedRevision"] != first
    assert {c["type"]: c["state"] for c in service["conditions"]} == {
        "RoutesReady": "CONDITION_SUCCEEDED",
        "ConfigurationsReady": "CONDITION_FAILED",
    }
    assert cloud.front("kept").get("/").json()["arguments"] == ["--a=1"]
    again = cloud.update("kept", cloud.template("--exit=1"))
    assert again["error"]["message"] == operation["error"]["message"]
    assert cloud.service("kept")["latestCreatedRevision"] == service["latestCreatedRevision"]


@pytest.mark.slow
def test_zero_values_are_absent_and_user_maps_kept(cloud, make_service):
    template = cloud.template()
    template["scaling"] = {"minInstanceCount": 0, "maxInstanceCount": 1}
    template["labels"] = {"empty": ""}
    template["containers"][0]["resources"]["cpuIdle"] = False
    template["containers"][0]["startupProbe"] |= {"grpc": None, "initialDelaySeconds": 0}
    make_service("zeros")
    cloud.update("zeros", template)
    shown = cloud.service("zeros")["template"]
    assert shown["scaling"] == {"maxInstanceCount": 1}
    assert "cpuIdle" not in shown["containers"][0]["resources"]
    assert not {"grpc", "initialDelaySeconds"} & set(shown["containers"][0]["startupProbe"])
    assert shown["labels"] == {"empty": ""}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"nodeSelector": {"accelerator": "nvidia-l5"}}, "node_selector.accelerator"),
        ({"maxInstanceRequestConcurrency": 2000}, "max_instance_request_concurrency"),
        ({"timeout": "4000s"}, "timeout"),
        ({"env": [{"name": "PORT", "value": "1"}]}, "env"),
        ({"volumeMounts": [{"name": "none", "mountPath": "/m"}]}, "volume_mounts"),
    ],
)
def test_an_impossible_template_is_refused_with_its_field(cloud, change, field):
    """A template that the platform never takes is refused with its field."""
    answer = cloud.post(SERVICES, {"template": cloud.template(**change)}, serviceId="refused")
    error = answer.json()["error"]
    assert (answer.status_code, error["status"]) == (400, "INVALID_ARGUMENT")
    assert field in error["details"][0]["fieldViolations"][0]["field"]
    assert cloud.get(f"{SERVICES}/refused").status_code == 404


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"cpu": "2", "memory": "16Gi", "nvidia.com/gpu": "1"}, "needs at least 4"),
        ({"cpu": "4", "memory": "8Gi", "nvidia.com/gpu": "1"}, "between 16Gi and 32Gi"),
        ({"cpu": "4", "memory": "16Gi"}, "must be 1"),
    ],
)
def test_a_gpu_has_its_least_cpu_and_memory(cloud, limits, message):
    template = cloud.template()
    template["containers"][0]["resources"]["limits"] = limits
    answer = cloud.post(SERVICES, {"template": template}, serviceId="small")
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


def test_a_region_without_the_accelerator_is_refused(cloud):
    path = SERVICES.replace(REGION, "europe-north1")
    answer = cloud.post(path, {"template": cloud.template()}, serviceId="north")
    assert answer.status_code == 400
    assert "not available in europe-north1" in answer.json()["error"]["message"]


@pytest.mark.parametrize(("period", "failures", "taken"), [(15, 120, True), (240, 30, False)])
def test_the_startup_window_with_a_gpu_is_half_an_hour(cloud, period, failures, taken):
    template = cloud.template()
    template["containers"][0]["startupProbe"] |= {"periodSeconds": period, "failureThreshold": failures}
    answer = cloud.post(SERVICES, {"template": template}, serviceId="window", validateOnly="true")
    assert answer.status_code == (200 if taken else 400)
    assert taken or "7200s, more than 1800s" in answer.json()["error"]["message"]


def test_an_unknown_service_account_is_refused_at_once(cloud):
    template = cloud.template(serviceAccount=RUNTIME.replace("runtime", "nobody"))
    answer = cloud.post(SERVICES, {"template": template}, serviceId="nobody")
    assert (answer.status_code, answer.json()["error"]["status"]) == (403, "PERMISSION_DENIED")
    assert "iam.serviceaccounts.actAs" in answer.json()["error"]["message"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"envs": [{"name": "A"}]}, "Unknown name \"envs\" at 'service.template.containers[0]'"),
        (
            {"ports": [{"containerPort": "x"}]},
            "Invalid value at 'service.template.containers[0].ports[0].container_port'",
        ),
        ({"args": "one"}, "Invalid value at 'service.template.containers[0].args'"),
        (
            {"resources": {"limits": {"cpu": 4}}},
            "'service.template.containers[0].resources.limits[cpu]' (TYPE_STRING)",
        ),
    ],
)
def test_a_body_that_is_not_the_apis_message_is_refused_with_its_place(cloud, change, text):
    template = cloud.template()
    template["containers"][0] |= change
    answer = cloud.post(SERVICES, {"template": template, "ingress": "NONE"}, serviceId="typo")
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert text in message
    assert "Invalid value at 'service.ingress' (TYPE_ENUM)" in message


@pytest.mark.slow
def test_a_name_is_given_once_and_a_stale_etag_changes_nothing(cloud, make_service):
    make_service("once")
    again = cloud.post(SERVICES, {"template": cloud.template()}, serviceId="once")
    assert (again.status_code, again.json()["error"]["status"]) == (409, "ALREADY_EXISTS")
    stale = cloud.patch(f"{SERVICES}/once", {"template": cloud.template("--b"), "etag": '"old"'})
    assert (stale.status_code, stale.json()["error"]["status"]) == (409, "ABORTED")
    assert cloud.service("once")["generation"] == "1"


@pytest.mark.slow
def test_a_mask_changes_what_it_names_and_nothing_else(cloud, make_service):
    make_service("masked", "--a=1")
    body = {"labels": {"x": "y"}, "template": cloud.template("--other")}
    cloud.finish("run/v2", cloud.patch(f"{SERVICES}/masked", body, updateMask="labels"))
    service = cloud.service("masked")
    assert service["labels"] == {"x": "y"}
    assert service["template"]["containers"][0]["args"] == ["--a=1"]
    cloud.finish("run/v2", cloud.patch(f"{SERVICES}/masked", {}, updateMask="labels"))
    assert "labels" not in cloud.service("masked")


def test_more_gpus_than_the_quota_are_refused_at_once_with_the_quotas_name(cloud):
    body = {"template": cloud.template(scaling={"maxInstanceCount": 4})}
    answer = cloud.post(SERVICES, body, serviceId="many")
    error = answer.json()["error"]
    assert (answer.status_code, error["details"][0]["fieldViolations"][0]["field"]) == (
        400,
        "service.template.scaling.max_instance_count",
    )
    assert "set to 3 or fewer in order to set GPU requirements" in error["message"]
    assert "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion requested: 4 allowed: 3" in error["message"]


@pytest.mark.slow
def test_services_beyond_the_gpu_quota_fail_with_the_quotas_name(make_service):
    """Services that need more GPUs together fail the operation with the quota's name."""
    assert "error" not in make_service("first", scaling={"maxInstanceCount": 2})
    operation = make_service("second", scaling={"maxInstanceCount": 2})
    assert operation["error"]["code"] == 8
    assert "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion is 3" in operation["error"]["message"]
    assert "need 4" in operation["error"]["message"]


@pytest.mark.slow
def test_an_older_revision_counts_in_the_quota_while_it_holds_an_instance(cloud, make_service):
    make_service("rolling", "--a=1", scaling={"maxInstanceCount": 3})
    pid = cloud.front("rolling").get("/").json()["pid"]
    refused = cloud.update("rolling", cloud.template("--a=2", scaling={"maxInstanceCount": 3}))
    assert (refused["error"]["code"], "need 4" in refused["error"]["message"]) == (8, True)
    cloud.front("rolling").get("/die")
    until(lambda: not is_alive(pid))
    # The platform notices the end a moment after it.
    later = (cloud.template(f"--a={n}", scaling={"maxInstanceCount": 3}) for n in itertools.count(3))
    until(lambda: "error" not in cloud.update("rolling", next(later)))


@pytest.mark.slow
def test_a_service_that_failed_holds_no_quota_and_one_that_runs_does(make_service):
    make_service("failed", "--exit=1", scaling={"maxInstanceCount": 3})
    assert "error" not in make_service("holder", scaling={"maxInstanceCount": 3})
    assert make_service("late", scaling={"maxInstanceCount": 1})["error"]["code"] == 8
