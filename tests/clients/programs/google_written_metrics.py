"""Calls of google-api-python-client about metrics that collectors write: what is written, and PromQL over it.

Google's package google-cloud-monitoring uses gRPC only.
"""

import datetime as dt
import json

from google_calls import PARENT
from google_discovery import expect_refusal, report, service

NOW = dt.datetime.now(dt.UTC).replace(microsecond=0)
TARGET = {"location": "us-east4", "cluster": "__run__", "namespace": "llm", "job": "run-gmp-sidecar", "instance": "a:1"}
KINDS = {"counter": "vllm:tokens_total", "gauge": "vllm:running", "histogram": "vllm:ttft"}
QUERY = "histogram_quantile(0.5, sum by (le) (increase(vllm:ttft_bucket[5m])))"


def ago(seconds: float) -> str:
    """A time before now in RFC 3339."""
    return (NOW - dt.timedelta(seconds=seconds)).isoformat()


def values(number: int) -> dict[str, dict[str, object]]:
    """The values of the n-th point of each kind."""
    options = {"explicitBuckets": {"bounds": [0.1, 1]}}
    counts = [str(number), str(3 * number), "0"]
    distribution = {"count": str(4 * number), "mean": 0.4, "bucketOptions": options, "bucketCounts": counts}
    return {
        "counter": {"doubleValue": 60.0 * number},
        "gauge": {"doubleValue": 2.5},
        "histogram": {"distributionValue": distribution},
    }


def write_points(series: object) -> None:
    """Three points, one a minute, of each kind."""
    for number in (1, 2, 3):
        end = ago(60 * (3 - number))
        body = [
            {
                "metric": {"type": f"prometheus.googleapis.com/{KINDS[kind]}/{kind}", "labels": {"model_name": "m"}},
                "resource": {"type": "prometheus_target", "labels": TARGET},
                "points": [
                    {"interval": {"startTime": end if kind == "gauge" else ago(200), "endTime": end}, "value": value}
                ],
            }
            for kind, value in values(number).items()
        ]
        report.call("timeSeries.create", series.create(name=PARENT, body={"timeSeries": body}).execute)
    expect_refusal(
        "timeSeries.create of an old point",
        400,
        "Points must be written in order",
        series.create(name=PARENT, body={"timeSeries": body}).execute,
    )


def read_series(metrics: object) -> None:
    """Raw points, aligned ones, and descriptors."""
    interval = {"interval_startTime": ago(600), "interval_endTime": ago(-1)}
    tokens, ttft = (
        f'metric.type = "prometheus.googleapis.com/{KINDS[kind]}/{kind}" AND resource.labels.namespace = "llm"'
        for kind in ("counter", "histogram")
    )
    series = metrics.timeSeries()
    report.call(
        "timeSeries.list",
        series.list(name=PARENT, filter=tokens, **interval).execute,
        lambda got: [p["value"]["doubleValue"] for p in got["timeSeries"][0]["points"]] == [180, 120, 60],
    )
    aligned = {"aggregation_alignmentPeriod": "300s", "aggregation_groupByFields": ["metric.labels.model_name"]}
    aligned |= {"aggregation_perSeriesAligner": "ALIGN_DELTA", "aggregation_crossSeriesReducer": "REDUCE_PERCENTILE_50"}
    report.call(
        "timeSeries.list, a percentile",
        series.list(name=PARENT, filter=ttft, **interval, **aligned).execute,
        lambda got: [p["value"]["doubleValue"] for p in got["timeSeries"][0]["points"]] == [0.4],
    )
    report.call(
        "metricDescriptors.list",
        metrics.metricDescriptors().list(name=PARENT, filter='metric.type = starts_with("prometheus")').execute,
        lambda got: len(got["metricDescriptors"]) == 3,
    )


def query_series() -> None:
    """Prometheus's HTTP API by Google's document of it."""
    v1 = service("monitoring", "v1", "MONITORING").projects().location().prometheus().api().v1()
    place = {"name": PARENT, "location": "global"}
    report.call(
        "prometheus: query",
        v1.query(**place, body={"query": QUERY, "time": ago(0)}).execute,
        lambda got: [one["value"][1] for one in of(got)["result"]] == ["0.4"],
    )
    ranged = {"query": "sum(vllm:running)", "start": ago(60), "end": ago(0), "step": "30s"}
    report.call(
        "prometheus: query_range",
        v1.query_range(**place, body=ranged).execute,
        lambda got: [value for _, value in of(got)["result"][0]["values"]] == ["2.5", "2.5", "2.5"],
    )
    report.call("prometheus: labels", v1.labels(**place, body={}).execute, lambda got: "model_name" in of(got))
    report.call(
        "prometheus: label values",
        v1.label().values(**place, label="__name__").execute,
        lambda got: "vllm:ttft_bucket" in of(got),
    )
    report.call("prometheus: metadata", v1.metadata().list(**place).execute, lambda got: len(of(got)) == 3)
    expect_refusal("prometheus: query that is none", 400, "", v1.query(**place, body={"query": "sum("}).execute)


def of(got: object) -> object:
    """The data of an answer, which the client returns as it is, or as text."""
    answer = got if isinstance(got, dict) else json.loads(str(got))
    return answer["data"]


if __name__ == "__main__":
    metrics = service("monitoring", "v3", "MONITORING").projects()
    write_points(metrics.timeSeries())
    read_series(metrics)
    query_series()
