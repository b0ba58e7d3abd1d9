"""The collector of a leased machine: Prometheus' configuration, counters from the first scrape on, its container."""

import pytest

from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.routing.prometheus_samples import Buckets, ScrapedSample
from bezel_localcloud.services.monitoring.collector.counted_from_first import CountedFromFirst
from bezel_localcloud.services.monitoring.collector.prometheus_configuration import scrape_targets
from bezel_localcloud.services.monitoring.collector.run_monitoring import ConfigurationError
from localcloud_support.client import REGION, RUNTIME, until
from localcloud_support.node_harness import SHORT_SCRIPT, RunningCloud, own_address

IMAGE = (
    "gke.gcr.io/prometheus-engine/prometheus:v3.13.0-gmp.1-gke.0"
    "@sha256:b8e81d2737a3ca7126b06cbd4bb495b4f9c694e9431e5a280d7d37f289ff2708"
)
CONFIGURATION = """\
global:
  scrape_interval: 30s
  metric_name_validation_scheme: legacy
  external_labels: {project_id: bezel-local, location: us-east4-a, cluster: __lease__}
scrape_configs:
- job_name: vllm
  static_configs:
  - targets: ["127.0.0.1:8000"]
    labels: {namespace: gateway, instance: "lease:8000"}
  metric_relabel_configs:
  - {action: keep, source_labels: [__name__], regex: 'fake_.*'}
"""
COLLECT = """
mkdir -p "$BEZEL_ROOT/collector"
cat >"$BEZEL_ROOT/collector/collector.yaml" <<'END'
{configuration}END
docker pull --quiet {image}
docker run --detach --name collector --restart unless-stopped --net host --memory 512m --cpus 1 \\
  --log-opt max-size=10m --tmpfs /prometheus --volume "$BEZEL_ROOT/collector:/etc/collector:ro" {image} \\
  --config.file=/etc/collector/collector.yaml --storage.tsdb.path=/prometheus/data
form='{{{{.State.Status}}}} {{{{.RestartCount}}}} {{{{.State.ExitCode}}}}'
echo collector $(docker inspect --format "$form" collector)
docker logs --tail 1 collector
"""
REFUSED = {
    "global: {scrape_intervall: 1s}": "field scrape_intervall not found in type config.plain",
    "scrape_configs: [{job_name: a, relabel_configs: []}]": "field relabel_configs not found in type",
    "scrape_configs: [{static_configs: []}]": "job_name is empty",
    "scrape_configs: [{job_name: a, scrape_interval: 1}]": 'not a valid duration string: "1"',
    "scrape_configs: [{job_name: a, scrape_interval: 1s, scrape_timeout: 2s}]": "scrape timeout greater than",
    "scrape_configs: [{job_name: a, metric_relabel_configs: [{action: keep, regex: '('}]}]": 'invalid regex "("',
    "- a": "cannot unmarshal",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_configuration_that_prometheus_refuses_is_refused(text):
    with pytest.raises(ConfigurationError) as refused:
        scrape_targets(text)
    assert REFUSED[text] in str(refused.value)


def test_targets_have_the_labels_of_their_group_and_of_all():
    (target,) = scrape_targets(CONFIGURATION)
    assert (target.endpoint.port, target.endpoint.interval, target.endpoint.timeout) == ("8000", 30.0, 10.0)
    assert target.labels == {
        "project_id": PROJECT,
        "location": "us-east4-a",
        "cluster": "__lease__",
        "job": "vllm",
        "namespace": "gateway",
        "instance": "lease:8000",
    }
    # Prometheus protects no label.
    rule = "{action: replace, source_labels: [a], target_label: instance}"
    assert scrape_targets(f"scrape_configs: [{{job_name: a, metric_relabel_configs: [{rule}]}}]") == ()


def test_counters_are_written_from_the_first_scrape_on():
    adjusted = CountedFromFirst()

    def values(counter, observed):
        histogram = Buckets((1.0,), (observed, observed + 1), 2.0 * observed)
        samples = [
            ScrapedSample("a", "counter", {}, counter),
            ScrapedSample("b", "histogram", {}, histogram),
            ScrapedSample("c", "gauge", {}, 5.0),
        ]
        return [sample.value for sample in adjusted.adjust(samples)]

    assert values(7.0, 3.0) == [5.0]
    assert values(9.0, 4.0) == [2.0, Buckets((1.0,), (1.0, 1.0), 2.0), 5.0]
    assert values(1.0, 0.0) == [1.0, Buckets((1.0,), (0.0, 1.0), 0.0), 5.0]
    assert values(3.0, 2.0) == [3.0, Buckets((1.0,), (2.0, 3.0), 4.0), 5.0]


@pytest.fixture
def world(tmp_path):
    running = RunningCloud(tmp_path)
    running.furnish()
    yield running
    running.close()


def series_of(world):
    stored = world.do(lambda: list(world.cloud.prometheus_series.series()))
    return {(one.family, tuple(one.resource.values())): list(one.columns[0]) for one in stored}


@pytest.mark.slow
def test_a_collector_on_a_machine_writes_the_servers_series(world):
    server = SHORT_SCRIPT.format(registry=f"{REGION}-docker.pkg.dev", image=world.image())
    script = server + COLLECT.format(configuration=CONFIGURATION, image=IMAGE)
    world.boot(world.spec(own_address(50), **{"startup-script": script}))
    until(lambda: "collector running 0 0" in world.console())
    assert series_of(world) == {}
    world.client.grant_project("roles/monitoring.metricWriter", f"serviceAccount:{RUNTIME}")
    resource = (PROJECT, "us-east4-a", "__lease__", "gateway", "vllm", "lease:8000")
    until(lambda: series_of(world).get(("fake_requests_total", resource)))
    assert series_of(world)["fake_requests_total", resource][0] == 0.0
    assert series_of(world)["up", resource][0] == 1.0
