"""Metrics that localcloud samples, and their series in one form: labels, and points with an interval.

Owns the labels, kinds and units, as Google's list of metrics has them (November 2026). Leaves out the sampling
(quota_use.py, service_use.py), the filters and the response (api.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.routing.context import Context, Sample
from bezel_localcloud.services.monitoring.service_use import BILLABLE, INSTANCES, REQUESTS

QUOTA_USE = "serviceruntime.googleapis.com/quota/allocation/usage"


@dataclass(frozen=True)
class Metric:
    """A metric.

    Attributes:
        type: its name.
        resource: type of the monitored resource.
        kind: GAUGE (a value at a moment) or DELTA (an amount in an interval).
        value: type of its values.
        unit: unit of its values.
        labels: labels of the metric.
        resource_labels: labels of the resource.
    """

    type: str
    resource: str
    kind: Literal["GAUGE", "DELTA"]
    value: Literal["INT64", "DOUBLE"]
    unit: str
    labels: tuple[str, ...]
    resource_labels: tuple[str, ...]

    def filters(self) -> frozenset[str]:
        """Labels that a filter may name."""
        metric_labels = {f"metric.labels.{label}" for label in self.labels}
        return frozenset(metric_labels | {f"resource.labels.{label}" for label in self.resource_labels}) | _ALWAYS


_ALWAYS = frozenset({"metric.type", "resource.type"})
_RESPONSE = ("response_code", "response_code_class", "route")
_REVISION = ("project_id", "service_name", "revision_name", "location", "configuration_name")
METRICS = {
    metric.type: metric
    for metric in (
        Metric(
            QUOTA_USE,
            "consumer_quota",
            "GAUGE",
            "INT64",
            "1",
            ("quota_metric",),
            ("project_id", "service", "location"),
        ),
        Metric(INSTANCES, "cloud_run_revision", "GAUGE", "INT64", "1", ("state",), _REVISION),
        Metric(REQUESTS, "cloud_run_revision", "DELTA", "INT64", "1", _RESPONSE, _REVISION),
        Metric(BILLABLE, "cloud_run_revision", "DELTA", "DOUBLE", "s", (), _REVISION),
    )
}

Labels = Mapping[str, str]


def series_of(cloud: Context, metric: Metric) -> Iterator[tuple[Labels, Sequence[Sample]]]:
    """Each series of a metric that can be read by now: its labels by their names in a filter, its points."""
    always = {"metric.type": metric.type, "resource.type": metric.resource, "resource.labels.project_id": PROJECT}
    if metric.type == QUOTA_USE:
        for quota, points in cloud.quota_use.series().items():
            labels = {
                "metric.labels.quota_metric": quota.metric,
                "resource.labels.service": quota.metric.partition("/")[0],
                "resource.labels.location": quota.location,
            }
            yield always | labels, [Sample(point.time, point.time, point.used) for point in points]
        return
    for series, samples in cloud.service_use.series().items():
        if series.metric != metric.type:
            continue
        labels = {
            "resource.labels.service_name": series.service,
            "resource.labels.revision_name": series.revision,
            "resource.labels.location": series.location,
            "resource.labels.configuration_name": series.service,
        }
        metric_labels = {"state": series.state} if series.state else {}
        if code := series.response_code:
            metric_labels = {"response_code": code, "response_code_class": f"{code[0]}xx", "route": series.service}
        yield always | labels | {f"metric.labels.{name}": value for name, value in metric_labels.items()}, samples
