"""Cloud Monitoring's series of Cloud Run services: what runs by state, what is billed, as late as Google documents."""

import asyncio
import contextlib
from types import SimpleNamespace

import pytest

from bezel_localcloud.core.store import Store
from bezel_localcloud.routing.context import RevisionSeries, RevisionUse, Sample
from bezel_localcloud.services.monitoring.service_use import BILLABLE, INSTANCES, REQUESTS, ServiceUseSampler
from localcloud_support.client import PARENT, until
from localcloud_support.in_process import Clock, Project

SERIES = f"/monitoring/v3/{PARENT}/timeSeries"
SERVICE = f"{PARENT}/locations/us-east4/services/llm"
REVISION = f"{SERVICE}/revisions/llm-1"
ALL = {"interval.startTime": "2000-01-01T00:00:00Z", "interval.endTime": "2099-01-01T00:00:00Z"}
OF_REVISION = {
    "project_id": "bezel-local",
    "service_name": "llm",
    "revision_name": "llm-1",
    "location": "us-east4",
    "configuration_name": "llm",
}
NOW = 1_800_000_000.0


class Cloud:
    """A cloud with one service, whose use a test sets."""

    def __init__(self, resources):
        self.pace = Clock()
        self.revision = {"containers": [{"resources": resources}]}
        self.used = {}
        self.store = SimpleNamespace(rows=lambda _: [(SERVICE, {})], get=lambda *_: self.revision, put=lambda *_: None)
        self.services = SimpleNamespace(use=lambda _: self.used)


@pytest.fixture
def cloud_run():
    return Cloud({"limits": {"cpu": "4"}})


def values(use, metric, state=""):
    series = RevisionSeries(metric, "us-east4", "llm", "llm-1", state)
    return [sample.value for sample in use.series().get(series, [])]


def test_instances_are_sampled_by_state_and_zero_after_the_first(cloud_run):
    """Instances are sampled by state and zero is a sample once there was one."""
    use = ServiceUseSampler(cloud_run)
    use.sample()
    assert use.series() == {}
    for active, idle in ((1, 0), (0, 1), (0, 0)):
        cloud_run.used = {REVISION: RevisionUse(active, idle, 1.0)}
        use.sample()
        cloud_run.pace.time += 60
    cloud_run.pace.time += 120
    assert (values(use, INSTANCES, "active"), values(use, INSTANCES, "idle")) == ([1, 0, 0], [0, 1, 0])


def test_billable_time_is_that_since_the_last_sample(cloud_run):
    """Billable time is that since the last sample and an interval without any has no point."""
    use = ServiceUseSampler(cloud_run)
    for seconds in (10.0, 70.0, 70.0, 95.5):
        cloud_run.used = {REVISION: RevisionUse(0, 0, seconds)}
        cloud_run.pace.time += 60
        use.sample()
    cloud_run.pace.time += 120
    assert values(use, BILLABLE) == [10.0, 60.0, 25.5]


def test_an_instance_that_is_billed_by_request_has_no_billable_time():
    for resources in ({"limits": {"cpu": "1"}, "cpuIdle": True}, {}):
        cloud = Cloud(resources)
        cloud.used = {REVISION: RevisionUse(1, 0, 10.0)}
        use = ServiceUseSampler(cloud)
        use.sample()
        cloud.pace.time += 120
        assert (values(use, INSTANCES, "active"), values(use, BILLABLE)) == ([1], [])


def test_a_sample_can_be_read_within_two_minutes(cloud_run):
    """A sample can be read within two minutes and always with the same delay."""
    use = ServiceUseSampler(cloud_run)
    cloud_run.used = {REVISION: RevisionUse(1, 0, 10.0)}
    use.sample()
    series = RevisionSeries(INSTANCES, "us-east4", "llm", "llm-1", "active")
    sample = Sample(NOW, NOW, 1)
    delay = use.delay(series, sample)
    assert 0 <= delay <= 120
    assert delay == ServiceUseSampler(cloud_run).delay(series, sample)
    cloud_run.pace.time = NOW + delay - 0.001
    assert values(use, INSTANCES, "active") == []
    cloud_run.pace.time = NOW + delay
    assert values(use, INSTANCES, "active") == [1]


def test_requests_are_counted_by_status_since_the_last_sample(cloud_run):
    use = ServiceUseSampler(cloud_run)
    for statuses in ((200, 200, 503), (), (200,)):
        for status in statuses:
            use.add_request(REVISION, status)
        cloud_run.pace.time += 60
        use.sample()
    cloud_run.pace.time += 120
    values_by_code = {
        series.response_code: [sample.value for sample in samples] for series, samples in use.series().items()
    }
    assert values_by_code == {"200": [2, 1], "503": [1]}


def bill_by_a_daemon(store, time, *seconds):
    """Billable time that is known at the end of a daemon which samples these seconds, and its samples of instances."""
    cloud = Cloud({"limits": {"cpu": "4"}})
    cloud.pace.time = time
    store.put("service", SERVICE, {})
    store.put("revision", REVISION, cloud.revision)
    cloud.store = store

    async def run():
        use = ServiceUseSampler(cloud)
        use.resume()
        for each in seconds:
            cloud.used = {REVISION: RevisionUse(0, 1, each)}
            cloud.pace.time += 60
            use.sample()
        cloud.used = {REVISION: RevisionUse(0, 1, seconds[-1] + 5.0)}
        cloud.pace.time += 60
        await use.close()
        cloud.pace.time += 120
        return use

    use = asyncio.run(run())
    return sum(values(use, BILLABLE)), len(values(use, INSTANCES, "idle"))


def test_billable_time_outlives_its_daemon_and_ends_with_the_project(tmp_path):
    """A daemon of another speed or of newer code takes over: what its predecessor's instances cost stays."""
    with contextlib.closing(Store(tmp_path / "store")) as store:
        assert bill_by_a_daemon(store, NOW, 10.0, 70.0)[0] == 75.0
        later = [float(count) for count in range(1, 201)]
        # Its own samples of instances alone, and no second of an earlier daemon twice.
        assert bill_by_a_daemon(store, NOW + 3600, *later) == (75.0 + 205.0, 201)
        ((_, row),) = store.rows("billedTime")
        assert len(row["samples"]) <= 64
        store.clear()
        assert bill_by_a_daemon(store, NOW + 36_000, 1.0)[0] == 6.0


def test_requests_outlive_their_daemon_and_end_with_the_project(tmp_path):
    async def count_by_a_daemon(store, time, number):
        cloud = Cloud({"limits": {"cpu": "4"}})
        cloud.pace.time, cloud.store = time, store
        use = ServiceUseSampler(cloud)
        use.resume()
        for _ in range(number):
            use.add_request(REVISION, 200)
        cloud.pace.time += 60
        await use.close()
        cloud.pace.time += 120
        return {series.response_code: sum(each.value for each in samples) for series, samples in use.series().items()}

    with contextlib.closing(Store(tmp_path / "store")) as store:
        assert asyncio.run(count_by_a_daemon(store, NOW, 3)) == {"200": 3}
        assert asyncio.run(count_by_a_daemon(store, NOW + 3600, 2)) == {"200": 5}
        assert asyncio.run(count_by_a_daemon(store, NOW + 7200, 0)) == {"200": 5}
        store.clear()
        assert asyncio.run(count_by_a_daemon(store, NOW + 36_000, 0)) == {}


@pytest.mark.slow
def test_the_sum_of_billable_time_stays_however_many_samples_there_are(cloud_run):
    use = ServiceUseSampler(cloud_run)
    for count in range(1, 6001):
        cloud_run.used = {REVISION: RevisionUse(0, 1, float(count))}
        cloud_run.pace.time += 60
        use.sample()
    cloud_run.pace.time += 120
    billable = values(use, BILLABLE)
    assert (sum(billable), len(billable) <= 4096, len(values(use, INSTANCES, "idle"))) == (6000.0, True, 4096)


@pytest.fixture
def project(tmp_path):
    new_project = Project(tmp_path)
    key = ("us-east4", "llm", "llm-1")
    samples = {
        RevisionSeries(INSTANCES, *key, "active"): [Sample(NOW - 60, NOW - 60, 2), Sample(NOW, NOW, 1)],
        RevisionSeries(INSTANCES, *key, "idle"): [Sample(NOW, NOW, 0)],
        RevisionSeries(REQUESTS, *key, response_code="503"): [Sample(NOW - 60, NOW, 3)],
        RevisionSeries(BILLABLE, *key): [Sample(NOW - 120, NOW - 60, 90.5), Sample(NOW - 60, NOW, 60.0)],
    }
    new_project.cloud.service_use = SimpleNamespace(series=lambda: samples)
    yield new_project
    new_project.close()


def read(project, text, **query):
    return project.ok("GET", SERIES, filter=text, **(ALL | query))


def test_requests_are_a_delta_with_the_code_its_class_and_the_route(project):
    (series,) = read(project, f'metric.type = "{REQUESTS}" AND metric.labels.response_code_class = "5xx"')["timeSeries"]
    labels = {"response_code": "503", "response_code_class": "5xx", "route": "llm"}
    assert series["metric"] == {"type": REQUESTS, "labels": labels}
    assert (series["metricKind"], series["valueType"]) == ("DELTA", "INT64")
    assert series["points"][0]["value"] == {"int64Value": "3"}
    assert read(project, f'metric.type = "{REQUESTS}" AND metric.labels.response_code = "200"') == {}


def test_the_number_of_instances_is_a_gauge(project):
    """The number of instances is a gauge with the labels of the revision."""
    active, idle = read(project, f'metric.type = "{INSTANCES}"')["timeSeries"]
    assert active["metric"] == {"type": INSTANCES, "labels": {"state": "active"}}
    assert active["resource"] == {"type": "cloud_run_revision", "labels": OF_REVISION}
    assert (active["metricKind"], active["valueType"]) == ("GAUGE", "INT64")
    assert [point["value"]["int64Value"] for point in active["points"]] == ["1", "2"]
    assert idle["points"][0]["value"]["int64Value"] == "0"


def test_billable_time_is_a_delta_aligned_to_the_interval(project):
    """Billable time is a delta whose sum is aligned to the end of the interval."""
    text = f'metric.type = "{BILLABLE}" AND resource.labels.service_name = "llm"'
    (one,) = read(project, text)["timeSeries"]
    assert (one["metricKind"], one["valueType"], "labels" in one["metric"]) == ("DELTA", "DOUBLE", False)
    assert [point["value"]["doubleValue"] for point in one["points"]] == [60.0, 90.5]
    aligned = {"aggregation.perSeriesAligner": "ALIGN_SUM", "aggregation.alignmentPeriod": "3600s"}
    interval = {"interval.endTime": "2027-01-15T08:00:00Z", "interval.startTime": "2027-01-15T07:00:00Z"}
    (one,) = read(project, text, **aligned, **interval)["timeSeries"]
    assert one["points"] == [
        {
            "interval": {"startTime": "2027-01-15T07:00:00.000000Z", "endTime": "2027-01-15T08:00:00.000000Z"},
            "value": {"doubleValue": 150.5},
        }
    ]
    assert read(project, f'metric.type = "{BILLABLE}" AND resource.labels.service_name = "other"') == {}
    (active, idle) = read(project, f'metric.type = "{INSTANCES}"', **aligned, **interval)["timeSeries"]
    assert [each["points"][0]["value"]["int64Value"] for each in (active, idle)] == ["3", "0"]
    assert active["points"][0]["interval"] == dict.fromkeys(("startTime", "endTime"), "2027-01-15T08:00:00.000000Z")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "metric", "query", "message"),
    [
        (400, INSTANCES, {"aggregation.perSeriesAligner": "ALIGN_MAX"}, "ALIGN_MAX of the metric"),
        (400, BILLABLE, {"aggregation.perSeriesAligner": "ALIGN_RATE"}, "ALIGN_RATE"),
        (400, BILLABLE, {"aggregation.crossSeriesReducer": "REDUCE_SUM"}, "crossSeriesReducer"),
        (400, BILLABLE, {"aggregation.perSeriesAligner": "ALIGN_SUM"}, "at least 60 seconds"),
        (
            400,
            BILLABLE,
            {"aggregation.perSeriesAligner": "ALIGN_SUM", "aggregation.alignmentPeriod": "59s"},
            "at least 60 seconds",
        ),
    ],
)
def test_an_aggregation_that_cannot_be_or_is_not_served_is_refused(project, status, metric, query, message):
    error = project.refusal(status, "GET", SERIES, filter=f'metric.type = "{metric}"', **(ALL | query))
    assert message in error["message"]


@pytest.mark.slow
def test_a_label_of_another_metric_is_refused(project):
    text = f'metric.type = "{BILLABLE}" AND metric.labels.state = "idle"'
    assert "is not a label of" in project.refusal(400, "GET", SERIES, filter=text, **ALL)["message"]


@pytest.mark.slow
def test_a_service_that_runs_has_instances_and_billable_time(cloud):
    place = f"/run/v2/{PARENT}/locations/europe-west1"

    def newest(metric):
        text = f'metric.type = "{metric}" AND resource.labels.service_name = "sampled"'
        series = cloud.get(SERIES, filter=text, **ALL).json().get("timeSeries", [])
        points = [one["points"][0]["value"] for one in series]
        return sum(float(value.get("int64Value") or value.get("doubleValue") or 0) for value in points)

    template = cloud.template("--a=1", scaling={"minInstanceCount": 1, "maxInstanceCount": 1})
    cloud.finish("run/v2", cloud.post(f"{place}/services", {"template": template}, serviceId="sampled"))
    until(lambda: newest(INSTANCES) == 1)
    until(lambda: newest(BILLABLE) > 0)
    cloud.finish("run/v2", cloud.delete(f"{place}/services/sampled"))
