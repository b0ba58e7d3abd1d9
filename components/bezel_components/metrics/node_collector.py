"""Collector on a leased machine: Google's build of Prometheus, and its configuration. Pure.

Weighed (Google's pages and repositories, read 2026-11-29): the Ops Agent is what Google recommends on Compute Engine,
installs packages from the internet and lists no image of a TPU VM; the collector for Cloud Run asks for the instance of
a service, which a machine has not; a plain OpenTelemetry collector needs the resource's labels made by processors.
Google's build of Prometheus ("self-deployed collection") writes the same series with a configuration of Prometheus'
own, is one container of Google's registry, which a machine without a route to the internet reaches too, and takes the
machine's account by itself. Its digest is that of Google's example of a collector beside a workload
(GoogleCloudPlatform/prometheus-engine, examples/inject-gmp-sidecar.sh).

It has no last scrape: what the server did in the last `interval_seconds` before its machine ends is in no series.
Leaves its start to `node/startup.sh`, which replaces `{zone}`.
"""

from bezel.planner.team.series_labels import CLUSTER_OF_LEASES, JOB
from bezel_catalog.vllm.kept_series import keep_expression

IMAGE = (
    "gke.gcr.io/prometheus-engine/prometheus:v3.13.0-gmp.1-gke.0"
    "@sha256:b8e81d2737a3ca7126b06cbd4bb495b4f9c694e9431e5a280d7d37f289ff2708"
)
ZONE = "{zone}"
"""What the machine replaces by its zone, which no plan knows."""


def node_configuration(*, project: str, namespace: str, lease: str, port: int, interval_seconds: int) -> str:
    """Write the collector's configuration for one machine.

    Args:
        project: Id of the project that the series are written to.
        namespace: Label of the series: name of the gateway, by which the stack is served.
        lease: Name of the lease.
        port: Port of the server.
        interval_seconds: Time between two scrapes.
    """
    return f"""\
global:
  scrape_interval: {interval_seconds}s
  metric_name_validation_scheme: legacy
  metric_name_escaping_scheme: underscores
  external_labels:
    project_id: "{project}"
    location: "{ZONE}"
    cluster: {CLUSTER_OF_LEASES}
scrape_configs:
- job_name: {JOB}
  static_configs:
  - targets: ["127.0.0.1:{port}"]
    labels:
      namespace: "{namespace}"
      instance: "{lease}:{port}"
  metric_relabel_configs:
  - action: keep
    source_labels: [__name__]
    regex: '{keep_expression()}'
"""
