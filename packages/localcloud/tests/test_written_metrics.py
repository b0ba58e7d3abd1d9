"""Metrics that collectors write: written by timeSeries.create, shown by timeSeries.list, and what they grow by."""

import pytest

from bezel_localcloud.services.monitoring.written_metrics.aggregation import SeriesAggregation, align
from bezel_localcloud.services.monitoring.written_metrics.points import Distribution, WrittenPoint
from localcloud_support.client import PARENT
from localcloud_support.in_process import Project

SERIES, KINDS = (f"/monitoring/v3/{PARENT}/{name}" for name in ("timeSeries", "metricDescriptors"))
TARGET = {"project_id": "bezel-local", "location": "us-east4", "cluster": "__run__", "namespace": "llm"}
TARGET |= {"job": "run-gmp-sidecar", "instance": "a1:8080"}
START = "2027-01-15T07:00:00Z"  # an hour before the project's time
ALL = {"interval.startTime": START, "interval.endTime": "2027-01-15T08:00:00Z"}
COUNTER, GAUGE, HISTOGRAM = (
    f"prometheus.googleapis.com/vllm:{name}" for name in ("tokens_total/counter", "running/gauge", "ttft/histogram")
)


@pytest.fixture
def project(tmp_path):
    new_project = Project(tmp_path)
    yield new_project
    new_project.close()


def time(minute):
    return f"2027-01-15T07:{minute:02}:00Z"


def series(metric_type, minute, value, start=START, **labels):
    interval = {"endTime": time(minute)} | ({"startTime": start} if "gauge" not in metric_type else {})
    return {
        "metric": {"type": metric_type, "labels": {"model_name": "m"} | labels},
        "resource": {"type": "prometheus_target", "labels": TARGET},
        "points": [{"interval": interval, "value": value}],
    }


def distribution(*counts, mean=0.5):
    options = {"explicitBuckets": {"bounds": [0.1, 1.0]}}
    return {
        "distributionValue": {
            "count": str(sum(counts)),
            "mean": mean,
            "bucketOptions": options,
            "bucketCounts": list(map(str, counts)),
        }
    }


def write(project, *written):
    return project.ok("POST", SERIES, {"timeSeries": list(written)})


def read(project, metric_type, **query):
    listed = project.ok("GET", SERIES, filter=f'metric.type = "{metric_type}"', **(ALL | query))
    return listed.get("timeSeries", [])


def numbers(one):
    return [point["value"]["doubleValue"] for point in one["points"]]


def test_written_points_are_listed_with_their_kinds(project):
    write(project, series(COUNTER, 1, {"doubleValue": 7}), series(GAUGE, 1, {"int64Value": "2"}))
    write(project, series(COUNTER, 2, {"doubleValue": 9}), series(HISTOGRAM, 2, distribution(1, 2, 0)))
    (counter,), (gauge,), (histogram,) = (read(project, each) for each in (COUNTER, GAUGE, HISTOGRAM))
    assert (counter["metricKind"], counter["valueType"], numbers(counter)) == ("CUMULATIVE", "DOUBLE", [9, 7])
    assert counter["points"][0]["interval"] == {
        "startTime": "2027-01-15T07:00:00.000000Z",
        "endTime": "2027-01-15T07:02:00.000000Z",
    }
    assert counter["resource"] == {"type": "prometheus_target", "labels": TARGET}
    assert (gauge["metricKind"], gauge["valueType"], numbers(gauge)) == ("GAUGE", "DOUBLE", [2])
    assert (histogram["metricKind"], histogram["valueType"]) == ("CUMULATIVE", "DISTRIBUTION")
    value = histogram["points"][0]["value"]["distributionValue"]
    assert (value["count"], value["mean"], value["bucketCounts"]) == ("3", 0.5, ["1", "2", "0"])
    project.restart()
    assert read(project, HISTOGRAM) == [histogram]
    descriptors = project.ok("GET", KINDS, filter='metric.type = starts_with("prometheus.googleapis.com/")')
    kinds = {each["type"]: each["metricKind"] for each in descriptors["metricDescriptors"]}
    assert kinds == {COUNTER: "CUMULATIVE", GAUGE: "GAUGE", HISTOGRAM: "CUMULATIVE"}
    assert len(project.ok("GET", KINDS)["metricDescriptors"]) == 3 + 4


def test_series_are_aligned_and_reduced_by_group(project):
    for minute in (1, 2, 3):
        write(
            project,
            *(
                series(COUNTER, minute, {"doubleValue": 60 * minute}, reason=finished)
                for finished in ("stop", "length")
            ),
            series(HISTOGRAM, minute, distribution(minute, 3 * minute, 0)),
        )
    by_minute = {"interval.endTime": time(3), "aggregation.alignmentPeriod": "60s"}
    rate = by_minute | {"aggregation.perSeriesAligner": "ALIGN_RATE"}
    assert [numbers(one) for one in read(project, COUNTER, **rate)] == [[1, 1, 1], [1, 1, 1]]
    total = rate | {"aggregation.crossSeriesReducer": "REDUCE_SUM"}
    (one,) = read(project, COUNTER, **total, **{"aggregation.groupByFields": "metric.label.model_name"})
    assert (one["metric"]["labels"], numbers(one)) == ({"model_name": "m"}, [2, 2, 2])
    assert one["resource"]["labels"] == {"project_id": "bezel-local"}
    median = by_minute | {"aggregation.perSeriesAligner": "ALIGN_PERCENTILE_50"}
    assert [numbers(one) for one in read(project, HISTOGRAM, **median)] == [[0.4, 0.4, 0.4]]
    delta = by_minute | {"aggregation.perSeriesAligner": "ALIGN_DELTA"}
    (one,) = read(project, HISTOGRAM, **delta, **{"aggregation.crossSeriesReducer": "REDUCE_PERCENTILE_50"})
    assert (one["metricKind"], numbers(one)) == ("GAUGE", [0.4, 0.4, 0.4])


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        (series(COUNTER, 1, {"doubleValue": 1}) | {"points": []}, "must have exactly one point"),
        (series(COUNTER, 1, {"doubleValue": 1}, start=time(1)), "start time of a cumulative point must be before"),
        (series(COUNTER, 1, {"boolValue": True}), "must be a number"),
        (series(COUNTER, 1, {"doubleValue": 1}) | {"metricKind": "GAUGE"}, "cannot be GAUGE"),
        (series(HISTOGRAM, 1, {"doubleValue": 1}), "must be a distribution"),
        (series(HISTOGRAM, 1, {"distributionValue": {"count": "1"}}), "must have explicitBuckets"),
        (series(COUNTER.replace("counter", "summary"), 1, {"doubleValue": 1}), "localcloud does not serve the metric"),
        (series("custom.googleapis.com/x", 1, {"doubleValue": 1}), "write prometheus.googleapis.com/NAME/KIND"),
        (series(GAUGE, 1, {"doubleValue": 1}) | {"resource": {"type": "global"}}, "on the resource global"),
    ],
)
def test_a_series_that_cannot_be_written_is_refused_by_name(project, written, reason):
    assert reason in project.refusal(400, "POST", SERIES, {"timeSeries": [written]})["message"]


def test_a_late_point_is_refused_and_the_others_are_written(project):
    write(project, series(COUNTER, 2, {"doubleValue": 1}))
    both = [series(COUNTER, 1, {"doubleValue": 1}), series(GAUGE, 2, {"doubleValue": 4})]
    refusal = project.refusal(400, "POST", SERIES, {"timeSeries": both})
    assert "timeSeries[0]: Points must be written in order" in refusal["message"]
    assert [numbers(one) for each in (COUNTER, GAUGE) for one in read(project, each)] == [[1], [4]]


def test_a_metric_that_nothing_wrote_and_a_label_that_it_lacks_are_refused(project):
    text = {"filter": f'metric.type = "{COUNTER}"'} | ALL
    assert "Cannot find metric(s)" in project.refusal(404, "GET", SERIES, **text)["message"]
    write(project, series(COUNTER, 2, {"doubleValue": 1}))
    for more, reason in (("metric.labels.zone", "is not a label of"), ("resource.labels.pod", "is not a label of")):
        wrong = text | {"filter": f'{text["filter"]} AND {more} = "x"'}
        assert reason in project.refusal(400, "GET", SERIES, **wrong)["message"]
    wrong = text | {"aggregation.alignmentPeriod": "60s", "aggregation.perSeriesAligner": "ALIGN_PERCENTILE_95"}
    assert "ALIGN_PERCENTILE_95 of a counter" in project.refusal(400, "GET", SERIES, **wrong)["message"]


def test_a_count_that_began_again_grew_by_its_new_value():
    points = [WrittenPoint(0, 60, 5.0), WrittenPoint(0, 120, 9.0), WrittenPoint(130, 180, 2.0)]
    by_minute = SeriesAggregation("ALIGN_DELTA", 60.0)
    assert [point.value for point in align(points, "counter", by_minute, 0, 180)] == [2.0, 4.0, 5.0]
    grown = [
        WrittenPoint(0, 60, Distribution((1.0,), (1, 0), 0.5)),
        WrittenPoint(0, 120, Distribution((1.0,), (3, 1), 4.5)),
    ]
    assert align(grown, "histogram", by_minute, 60, 120)[0].value == Distribution((1.0,), (2, 1), 4.0)
