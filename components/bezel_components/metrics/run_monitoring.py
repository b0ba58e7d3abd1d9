"""Configuration of Google's collector for Cloud Run: which series it reads from the server, and how often. Pure.

Facts (GoogleCloudPlatform/run-gmp-sidecar, `confgenerator/config.go` and `entrypoint.go`, read 2026-11-29): the
collector reads `RunMonitoring` from /etc/rungmp/config.yaml, looks for another text every 20 seconds, and ends with a
message where a field is unknown. It replaces `job` by the name in the metadata. Its variable GMP_CFG_SPEC, which no
page of Google's documents, is handed over in the place of GMP_SCRAPE_PORTS, so the file is the way that works.
"""

from bezel.planner.team.series_labels import JOB
from bezel_catalog.vllm.kept_series import keep_expression

FOLDER, FILE = "/etc/rungmp", "config.yaml"
"""Where the collector looks for the file."""


def run_monitoring(*, port: int, interval_seconds: int) -> str:
    """Write the configuration of the collector beside one server.

    Args:
        port: Port of the server.
        interval_seconds: Time between two scrapes.
    """
    return f"""\
apiVersion: monitoring.googleapis.com/v1beta
kind: RunMonitoring
metadata:
  name: {JOB}
spec:
  endpoints:
  - port: "{port}"
    path: /metrics
    interval: {interval_seconds}s
    metricRelabeling:
    - action: keep
      sourceLabels: [__name__]
      regex: '{keep_expression()}'
"""
