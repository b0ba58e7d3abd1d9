"""A dashboard of a service as Cloud Monitoring's JSON: requests, latency, instances, starts, GPU. Pure.

Leaves the charts of vLLM's own figures to `figure_charts`.
"""

from collections.abc import Sequence
from typing import Any

from bezel_components.observability.alerts import INSTANCES, PENDING, REQUESTS, STARTS, series_filter

LATENCY = "run.googleapis.com/request_latencies"
GPU, GPU_MEMORY = (
    "run.googleapis.com/container/gpu/utilizations",
    "run.googleapis.com/container/gpu/memory_utilizations",
)
BILLED = "run.googleapis.com/container/billable_instance_time"
_P95, _SUM = ("ALIGN_PERCENTILE_95", "REDUCE_MAX"), ("ALIGN_RATE", "REDUCE_SUM")
# Title, metric, (aligner, reducer), the label that splits it.
_CHARTS = (
    ("Requests per second, by response", REQUESTS, _SUM, "metric.labels.response_code_class"),
    ("Latency of 95 % of requests, ms", LATENCY, _P95, ""),
    ("Requests that wait for an instance", PENDING, ("ALIGN_MAX", "REDUCE_SUM"), ""),
    ("Instances, by state", INSTANCES, ("ALIGN_MAX", "REDUCE_SUM"), "metric.labels.state"),
    ("Starts: 95 % are ready after, ms", STARTS, _P95, ""),
    ("Billed instances", BILLED, _SUM, ""),
    ("Use of the GPU", GPU, _P95, ""),
    ("Use of the GPU's memory", GPU_MEMORY, _P95, ""),
)
_COLUMNS, _WIDTH, _HEIGHT = 48, 24, 16


def dashboard(
    title: str, service: str, location: str, *, gpu: bool = True, more: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Return the dashboard of a service; one without a GPU has no charts of it, and `more` are further widgets."""
    charts = [chart for chart in _CHARTS if gpu or chart[1] not in {GPU, GPU_MEMORY}]
    widgets = [
        {"title": name, "xyChart": {"dataSets": [_series(metric, service, location, how, split)]}}
        for name, metric, how, split in charts
    ]
    tiles = [
        {
            "xPos": number % 2 * _WIDTH,
            "yPos": number // 2 * _HEIGHT,
            "width": _WIDTH,
            "height": _HEIGHT,
            "widget": widget,
        }
        for number, widget in enumerate([*widgets, *more])
    ]
    return {"displayName": title, "mosaicLayout": {"columns": _COLUMNS, "tiles": tiles}}


def _series(metric: str, service: str, location: str, how: tuple[str, str], split: str) -> dict[str, Any]:
    aligner, reducer = how
    aggregation: dict[str, Any] = {
        "alignmentPeriod": "60s",
        "perSeriesAligner": aligner,
        "crossSeriesReducer": reducer,
    }
    aggregation |= {"groupByFields": [split]} if split else {}
    query = {"timeSeriesFilter": {"filter": series_filter(metric, service, location), "aggregation": aggregation}}
    return {"plotType": "LINE", "timeSeriesQuery": query}
