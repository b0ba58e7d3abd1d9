"""The collector beside a server on Cloud Run: what it writes, when, and how it ends."""

import base64

import pytest

from bezel_localcloud.core.store import Store
from bezel_localcloud.services.monitoring.prometheus_series import PrometheusSeries
from localcloud_support.client import PARENT, RUNTIME, Client, until

SECRETS = f"/secretmanager/v1/{PARENT}/secrets"
IMAGE = (
    "us-docker.pkg.dev/cloud-ops-agents-artifacts/cloud-run-gmp-sidecar/cloud-run-gmp-sidecar"
    "@sha256:ff1fc68871118f1032a3ce17e2b0abd703292e883989d220244330ebdf522fd1"
)
EXITED = "entrypoint: sidecar exited"
CONFIGURATION = """
apiVersion: monitoring.googleapis.com/v1beta
kind: RunMonitoring
metadata: {name: vllm}
spec:
  endpoints:
  - port: 8080
    interval: 30s
    metricRelabeling:
    - {action: keep, sourceLabels: [__name__], regex: "fake_.*"}
"""


def add_version(cloud, text):
    payload = {"payload": {"data": base64.b64encode(text.encode()).decode()}}
    assert cloud.post(f"{SECRETS}/collector:addVersion", payload).status_code == 200


def template(cloud, **changes):
    body = cloud.template()
    (server,) = body["containers"]
    limits = {"cpu": "4", "memory": "16Gi", "nvidia.com/gpu": "1"}
    collector = {
        "name": "collector",
        "image": IMAGE,
        "volumeMounts": [{"name": "config", "mountPath": "/etc/rungmp"}],
        "dependsOn": ["vllm"],
    }
    items = [{"path": "config.yaml", "version": "latest"}]
    body["containers"] = [server | {"name": "vllm", "resources": {"limits": limits}}, collector | changes]
    return body | {"volumes": [{"name": "config", "secret": {"secret": "collector", "items": items}}]}


def lines_of(cloud, service):
    more = 'AND labels.container_name="collector"'
    return [entry.get("textPayload", "") for entry in cloud.log(service, more)]


@pytest.fixture
def lone(own_daemon):
    """The client of a daemon of this test's own, with the collector's secret."""
    client = Client(own_daemon(speed=1000, idle=2))
    client.prepare()
    client.post(SECRETS, {"replication": {"automatic": {}}}, secretId="collector")
    client.grant(f"{SECRETS}/collector", "roles/secretmanager.secretAccessor", f"serviceAccount:{RUNTIME}")
    return client


def series_of(cloud):
    """Series that the daemon has stored, by (family, instance)."""
    store = Store(cloud.endpoint.directory / "cloud.db")
    try:
        return {(one.family, one.resource["instance"]): one for one in PrometheusSeries(store).series()}
    finally:
        store.close()


def counters_of(cloud):
    """The counter of each instance, in the order of their first scrapes."""
    counters = [one for (family, _), one in series_of(cloud).items() if family == "fake_requests_total"]
    return sorted(counters, key=lambda one: one.times[0])


@pytest.mark.slow
def test_a_server_is_scraped_after_its_start_at_intervals_and_at_its_end(lone):
    add_version(lone, CONFIGURATION)
    operation = lone.create("seen", template(lone))
    assert "error" not in operation, operation
    until(lambda: any("Permission monitoring.timeSeries.create denied" in line for line in lines_of(lone, "seen")))
    assert series_of(lone) == {}
    lone.grant_project("roles/monitoring.metricWriter", f"serviceAccount:{RUNTIME}")
    with lone.front("seen") as front:
        with front.stream("GET", "/stream"):  # keeps its instance from its end
            until(lambda: any(len(one.times) > 1 for one in counters_of(lone)))
            ended = lines_of(lone, "seen").count(EXITED)
            assert front.get("/go").status_code == 200
        # It scales to zero: the last scrape counts the last request, and the next instance begins at 0.
        until(lambda: lines_of(lone, "seen").count(EXITED) > ended)
        # The next one's server dies: the last scrape fails, and a further instance counts from 0 again.
        with front.stream("GET", "/stream"):
            until(lambda: [one.columns[0][-1] for one in counters_of(lone)] == [2.0, 1.0])
            assert front.get("/die").status_code == 503
        until(lambda: lines_of(lone, "seen").count(EXITED) > ended + 1)
        assert any("Failed to scrape Prometheus endpoint" in line for line in lines_of(lone, "seen"))
        until(lambda: front.get("/").status_code == 200)
        until(lambda: lines_of(lone, "seen").count(EXITED) > ended + 2)
    series = series_of(lone)
    assert {family for family, _ in series} - {"up"} == {
        "fake_requests_total",
        "fake_seconds",
        "scrape_duration_seconds",
        "scrape_samples_scraped",
        "scrape_samples_post_metric_relabeling",
        "scrape_series_added",
    }
    counters = counters_of(lone)
    assert [one.columns[0][-1] for one in counters[:3]] == [2.0, 1.0, 1.0]
    second = counters[1].resource["instance"]
    assert list(series["up", second].columns[0])[-2:] == [1.0, 0.0]
    assert counters[0].starts[0] < counters[0].times[0]
    first = counters[0]
    revision = lone.service("seen")["latestReadyRevision"].rpartition("/")[2]
    instance = first.labels["instanceId"]
    assert first.labels == {
        "kind": "any",
        "instanceId": instance,
        "service_name": "seen",
        "revision_name": revision,
        "configuration_name": "seen",
    }
    assert first.resource == {
        "project_id": "bezel-local",
        "location": "us-east4",
        "cluster": "__run__",
        "namespace": "seen",
        "job": "vllm",
        "instance": f"{instance}:8080",
    }
    written = [line for line in lines_of(lone, "seen") if "samples were written" in line]
    assert all(int(line.split()[1]) >= 5 for line in written[-3:])
    lone.remove("seen")


@pytest.mark.slow
def test_a_wrong_configuration_ends_the_instance_with_its_reason(lone):
    add_version(lone, CONFIGURATION.replace("interval: 30s", "intervall: 30s"))
    operation = lone.create("lame", template(lone))
    assert "The container 'collector' exited before all containers" in operation["error"]["message"]
    assert lines_of(lone, "lame") == [
        'spec.endpoints[0]: unknown field "intervall"',
        "Container called exit(1).",
    ]
    lone.remove("lame")
    # One that turns wrong ends an instance that runs.
    add_version(lone, CONFIGURATION)
    assert "error" not in lone.create("turned", template(lone), scaling={"minInstanceCount": 1})
    add_version(lone, CONFIGURATION.replace("RunMonitoring", "Other"))
    until(lambda: "Container called exit(1)." in lines_of(lone, "turned"))
    assert "kind must be RunMonitoring" in lines_of(lone, "turned")
    lone.remove("turned")
    unknown = IMAGE.replace("ff1fc", "00000")
    operation = lone.create("unknown", template(lone, image=unknown))
    assert f"Image '{unknown}' not found." in operation["error"]["message"]
    lone.remove("unknown")
