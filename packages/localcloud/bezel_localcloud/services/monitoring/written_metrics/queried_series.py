"""Series that PromQL queries: those that collectors wrote, counts of log entries, and what localcloud samples.

Source of the platform's names and labels: cloud.google.com/monitoring/promql/promql-mapping (November 2026). Amounts of
intervals are counters, as there.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

from bezel_localcloud.routing.context import Context
from bezel_localcloud.routing.prometheus_samples import Kind, StoredSeries
from bezel_localcloud.services.monitoring.metrics import METRICS, Metric, series_of
from bezel_localcloud.services.monitoring.promql.syntax import UnservedPartError

_OF_LOGS = "logging_googleapis_com:user_"


def prometheus_name(metric_type: str) -> str:
    """The name in PromQL of a metric of Cloud Monitoring."""
    domain, _, path = metric_type.partition("/")
    return re.sub(r"\W", "_", domain) + ":" + re.sub(r"\W", "_", path)


def queried_series(cloud: Context) -> Iterator[StoredSeries]:
    """Every series, written ones first."""
    yield from cloud.prometheus_series.series()
    for metric in METRICS.values():
        yield from _platform_series(cloud, metric)
    for series in cloud.log_counts.series():
        yield replace(series, family=prometheus_name(series.family))


def is_platform_name(name: str) -> bool:
    """Whether a name in PromQL has the form of a metric of one of Google's services."""
    return name.partition(":")[0].endswith("_googleapis_com")


def check_name(name: str) -> None:
    """Check that a metric is written by collectors, counts log entries, or is sampled by localcloud.

    Raises:
        UnservedPartError: It is one of Google's services that localcloud does not sample.
    """
    sampled = {prometheus_name(metric) for metric in METRICS}
    if is_platform_name(name) and name not in sampled and not name.startswith(_OF_LOGS):
        raise UnservedPartError(f"the metric {name}, of Google's only {', '.join(sorted(sampled))}")


def _platform_series(cloud: Context, metric: Metric) -> Iterator[StoredSeries]:
    kind: Kind = "counter" if metric.kind == "DELTA" else "gauge"
    for labels, samples in series_of(cloud, metric):
        by_part: dict[str, dict[str, str]] = {"metric": {}, "resource": {"monitored_resource": metric.resource}}
        for name, value in labels.items():
            part, _, label = name.partition(".labels.")
            if label:
                by_part[part][label] = value
        series = StoredSeries(prometheus_name(metric.type), kind, by_part["metric"], by_part["resource"])
        values = [sample.value for sample in samples]
        for sample, amount in zip(samples, accumulate(values) if kind == "counter" else values, strict=True):
            start = samples[0].start if kind == "counter" else sample.end
            series.add(start, round(sample.end, 3), (float(amount),))
        yield series
