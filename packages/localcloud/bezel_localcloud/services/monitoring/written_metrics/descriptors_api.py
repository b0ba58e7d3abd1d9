"""Monitoring v3: projects.metricDescriptors.list, of the metrics that localcloud samples and of written ones."""

import re
from collections.abc import Iterator

from bezel_localcloud.core.errors import unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.routing.prometheus_samples import StoredSeries
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.monitoring.metrics import METRICS
from bezel_localcloud.services.monitoring.written_metrics.listing import RESOURCE

api = Api("monitoring.googleapis.com", "Cloud Monitoring API")
_FILTER = re.compile(r'metric\.type\s*=\s*(?:"([^"\\]*)"|starts_with\(\s*"([^"\\]*)"\s*\))')
_MOST = 10_000


@api.route(
    "GET",
    "/monitoring/v3/projects/{project:id}/metricDescriptors",
    needs="monitoring.metricDescriptors.list",
    query="filter pageSize pageToken",
)
def list_descriptors(call: Call) -> Json:
    """Descriptors by their types: all, that of one type, or those whose types begin with a text."""
    text = call.query("filter").strip()
    match = _FILTER.fullmatch(text) if text else None
    if text and match is None:
        form = 'give metric.type = "TYPE" or metric.type = starts_with("TEXT")'
        raise unserved_error(f"the filter {text[:200]!r} of descriptors", form)
    items = [
        (descriptor["type"], descriptor)
        for descriptor in _descriptors(call.cloud.prometheus_series.series())
        if match is None or descriptor["type"] == match[1] or (match[2] and descriptor["type"].startswith(match[2]))
    ]
    return call.page(sorted(items, key=lambda item: item[0]), "metricDescriptors", default=_MOST, max_size=_MOST)


def _descriptors(series: Iterator[StoredSeries]) -> Iterator[Json]:
    for metric in METRICS.values():
        yield _descriptor(metric.type, metric.kind, metric.value, metric.labels, metric.resource) | {
            "unit": metric.unit
        }
    labels: dict[tuple[str, str], set[str]] = {}
    for one in series:
        labels.setdefault((one.type, one.kind), set()).update(one.labels)
    for (metric_type, kind), names in labels.items():
        value = "DISTRIBUTION" if kind == "histogram" else "DOUBLE"
        metric_kind = "GAUGE" if kind == "gauge" else "CUMULATIVE"
        yield _descriptor(metric_type, metric_kind, value, tuple(sorted(names)), RESOURCE)


def _descriptor(metric_type: str, kind: str, value: str, labels: tuple[str, ...], resource: str) -> Json:
    descriptor = {
        "name": f"projects/{PROJECT}/metricDescriptors/{metric_type}",
        "type": metric_type,
        "metricKind": kind,
        "valueType": value,
        "monitoredResourceTypes": [resource],
    }
    return descriptor | ({"labels": [{"key": label} for label in labels]} if labels else {})
