"""Traffic, probes and bounds of a service that runs: what is routed where, and what is ended or started again."""

import asyncio

import pytest

from bezel_localcloud.services.cloud_run.runtime.upstream import passes
from bezel_localcloud.services.cloud_run.spec import ProbeSpec
from localcloud_support.client import RUNTIME, SERVICES, Client, is_alive, until
from localcloud_support.held_requests import SentRequest, held_request

pytestmark = pytest.mark.slow


@pytest.fixture
def service(cloud):
    """A function that makes one service of this test, removed afterwards."""
    yield lambda template, **body: cloud.create("scaled", template, **body)
    cloud.remove("scaled")


def arguments(cloud):
    return cloud.front("scaled").get("/").json()["arguments"]


def pin(revision, percent=100):
    revision = revision.rpartition("/")[2]
    targets = [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION", "revision": revision, "percent": percent}]
    if percent < 100:
        targets.append({"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100 - percent})
    return targets


def test_traffic_pinned_to_a_revision_stays_with_it_until_it_is_moved(cloud, service):
    service(cloud.template("--a=1"))
    first = cloud.service("scaled")["latestReadyRevision"]
    cloud.update("scaled", cloud.template("--a=2"), traffic=pin(first))
    assert cloud.service("scaled")["latestReadyRevision"] != first
    assert arguments(cloud) == ["--a=1"]
    cloud.update("scaled", cloud.template("--a=2"))
    assert arguments(cloud) == ["--a=2"]


@pytest.mark.parametrize(
    ("traffic", "message"),
    [(pin("absent"), "does not exist"), ([{"percent": 50, "type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"}], "add up")],
)
def test_traffic_to_nowhere_or_not_whole_is_refused(cloud, service, traffic, message):
    service(cloud.template())
    answer = cloud.patch(f"{SERVICES}/scaled", {"template": cloud.template(), "traffic": traffic})
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


def test_traffic_to_a_revision_that_is_not_ready_is_refused(cloud, service):
    service(cloud.template("--a=1"))
    first = cloud.service("scaled")["latestReadyRevision"]
    cloud.update("scaled", cloud.template("--exit=1"), traffic=pin(first))
    failed = cloud.service("scaled")["latestCreatedRevision"]
    assert failed != first
    answer = cloud.patch(f"{SERVICES}/scaled", {"traffic": pin(failed)}, updateMask="traffic")
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "FAILED_PRECONDITION")
    assert "is not ready and cannot serve traffic" in answer.json()["error"]["message"]
    assert cloud.service("scaled")["traffic"] == pin(first)


def test_shares_of_traffic_reach_both_revisions(cloud, service):
    service(cloud.template("--a=1"))
    first = cloud.service("scaled")["latestReadyRevision"]
    cloud.update("scaled", cloud.template("--a=2"), traffic=pin(first, percent=50))
    front = cloud.front("scaled")
    seen = {tuple(front.get("/").json()["arguments"]) for _ in range(40)}
    assert seen == {("--a=1",), ("--a=2",)}


def test_a_retired_revisions_instance_ends_when_its_last_request_does(cloud, service):
    service(cloud.template("--a=1"))
    pid = cloud.front("scaled").get("/").json()["pid"]
    cloud.update("scaled", cloud.template("--a=2"))
    until(lambda: not is_alive(pid))


def test_requests_of_a_retired_revision_are_answered_to_the_last(cloud, service, tmp_path):
    narrow = {"maxInstanceRequestConcurrency": 1}
    service(cloud.template("--a=1", **narrow))
    front = cloud.front("scaled")
    with held_request(front, tmp_path / "pipe") as first:
        second = SentRequest(cloud, front)
        cloud.update("scaled", cloud.template("--a=2", **narrow))
        assert arguments(cloud) == ["--a=2"]
        assert not second.is_answered()
    assert first.result(60).json()["arguments"] == second.response()["arguments"] == ["--a=1"]


def test_a_container_that_never_answers_its_probe_fails(cloud, service):
    """A container that never answers its probe fails when the window ends."""
    operation = service(cloud.template("--silent"))
    assert operation["error"]["code"] == 9
    assert "failed the configured startup probe checks" in operation["error"]["message"]
    assert "latestReadyRevision" not in cloud.service("scaled")


def test_an_instance_that_fails_its_liveness_probe_is_replaced(cloud, service):
    template = cloud.template()
    probe = {"httpGet": {"path": "/health"}, "periodSeconds": 1, "timeoutSeconds": 1, "failureThreshold": 1}
    template["containers"][0]["livenessProbe"] = probe
    template["scaling"] = {"minInstanceCount": 1, "maxInstanceCount": 1}
    service(template)
    front = cloud.front("scaled")
    pid = front.get("/hang-up").json()["pid"]
    until(lambda: not is_alive(pid))
    assert until(lambda: (answer := front.get("/")).is_success and answer.json()["pid"]) != pid


def test_a_service_level_minimum_starts_instances_without_a_new_revision(cloud, service):
    # Letters that are drawn for a name may be those of an earlier test's revision, whose lines are in the log too.
    template = cloud.template(scaling={"maxInstanceCount": 2}, revision="scaled-minimum")
    service(template)
    revision = cloud.service("scaled")["latestReadyRevision"]
    begins = 'textPayload="container begins" AND resource.labels.revision_name="scaled-minimum"'
    assert len(cloud.log("scaled", "AND " + begins)) == 1
    cloud.update("scaled", template, scaling={"minInstanceCount": 2})
    assert cloud.service("scaled")["latestReadyRevision"] == revision
    until(lambda: len(cloud.log("scaled", "AND " + begins)) == 2)


def test_where_no_further_instance_may_start_the_queue_ends_with_429(own_daemon, tmp_path):
    cloud = Client(own_daemon(queue=0.2))
    cloud.prepare()
    cloud.create("scaled", cloud.template(maxInstanceRequestConcurrency=1))
    front = cloud.front("scaled")
    with held_request(front, tmp_path / "pipe") as first:
        assert front.get("/").status_code == 429
    assert first.result(60).status_code == 200
    until(lambda: front.get("/").status_code == 200)
    entries = until(lambda: cloud.log("scaled", "httpRequest.status=429"))
    text = "The request was aborted because there was no available instance."
    assert (entries[0]["severity"], entries[0]["textPayload"].startswith(text)) == ("WARNING", True)


def test_a_cold_start_that_fails_is_reported_to_all_that_wait(cloud, service):
    body = {"name": "fading", "location": "US"}
    cloud.post("/storage/v1/b", body, project="bezel-local")
    cloud.grant_bucket("fading", "roles/storage.objectViewer", f"serviceAccount:{RUNTIME}")
    mount = {
        "volumes": [{"name": "w", "gcs": {"bucket": "fading"}}],
        "volumeMounts": [{"name": "w", "mountPath": "/w"}],
    }
    service(cloud.template(**mount))
    front = cloud.front("scaled")
    cloud.delete("/storage/v1/b/fading")
    front.get("/die")
    # The dying instance may take one more connection, and fail it too, before the front sees its end.
    until(lambda: front.get("/").status_code == 503 and cloud.log("scaled", 'textPayload:"bucket not found"'))


def test_a_mask_of_what_cannot_be_set_is_refused(cloud, service):
    service(cloud.template())
    assert cloud.patch(f"{SERVICES}/scaled", {}, updateMask="uri").status_code == 400
    assert cloud.patch(f"{SERVICES}/scaled", {}, updateMask="labels").status_code == 200


@pytest.mark.parametrize("probe", [ProbeSpec("/", 0, 0, 1, 1, 1), ProbeSpec(None, 0, 0, 1, 1, 1)])
def test_a_probe_where_nobody_listens_fails(probe, tmp_path):
    assert asyncio.run(passes(probe, str(tmp_path / "nobody"), 0.5)) is False
