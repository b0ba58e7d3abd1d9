"""Cloud Monitoring tells the use of quotas from what runs, as late and as seldom as Google does."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.routing.context import Point, Series
from bezel_localcloud.services.monitoring.api import required_labels
from bezel_localcloud.services.monitoring.quota_use import QuotaUseSampler
from localcloud_support.client import PARENT, RUNTIME, until
from localcloud_support.in_process import Project

SERIES = f"/monitoring/v3/{PARENT}/timeSeries"
USAGE = 'metric.type = "serviceruntime.googleapis.com/quota/allocation/usage"'
EAST = f"/tpu/v2alpha1/{PARENT}/locations/us-east5-a/queuedResources"
ALONE = "europe-west1"  # a region that no other test uses
END = "2099-01-01T00:00:00Z"
TPU = {"interval.startTime": "2000-01-01T00:00:00Z", "interval.endTime": END}
LEASE = {
    "tpu": {
        "nodeSpec": [
            {
                "parent": f"{PARENT}/locations/us-east5-a",
                "nodeId": "lease",
                "node": {
                    "acceleratorType": "v6e-4",
                    "runtimeVersion": "v2-alpha-tpuv6e",
                    "networkConfig": {"subnetwork": "net-us-east5"},
                },
            }
        ]
    },
    "provisioningModel": "FLEX_START",
    "runDuration": {"maxRunDuration": "14400s"},
}


@pytest.fixture
def project(tmp_path):
    new_project = Project(tmp_path)
    new_project.network()
    yield new_project
    new_project.close()


def read(project, text=USAGE, **query):
    return project.ok("GET", SERIES, filter=text, **(TPU | query))


def used(project):
    """What can be read of the preemptible v6e's use by now, newest first."""
    series = read(project).get("timeSeries", [])
    metric = "tpu.googleapis.com/tpu-v6e-preemptible"
    return [
        int(point["value"]["int64Value"])
        for one in series
        if one["metric"]["labels"]["quota_metric"] == metric
        for point in one["points"]
    ]


def sample(project):
    """What is in use now is sampled, and as old that it can be read."""
    project.ok("GET", EAST)
    project.cloud.quota_use.sample()
    project.passes(180)


def lease(project):
    project.ok("POST", EAST, LEASE, queuedResourceId="lease")
    project.passes(200)
    sample(project)


def given_back(project):
    project.ok("DELETE", f"{EAST}/lease", force="true")
    project.passes(700)
    sample(project)


def test_a_lease_counts_in_its_zone_until_it_is_gone(project):
    """What is leased counts in its zone until it is gone and then is zero."""
    assert read(project) == {}
    lease(project)
    (one,) = read(project)["timeSeries"]
    assert one["resource"] == {
        "type": "consumer_quota",
        "labels": {"project_id": "bezel-local", "service": "tpu.googleapis.com", "location": "us-east5-a"},
    }
    assert (one["metricKind"], one["valueType"], used(project)) == ("GAUGE", "INT64", [4])
    given_back(project)
    assert used(project) == [0, 4]


def test_a_point_is_made_where_something_changed_and_once_a_day(project):
    lease(project)
    for _ in range(5):
        project.cloud.quota_use.sample()
        project.passes(300)
    assert used(project) == [4]
    project.passes(86_400)
    project.cloud.quota_use.sample()
    project.passes(180)
    assert used(project) == [4, 4]
    project.passes(100_000)
    project.cloud.quota_use.sample()
    assert used(project) == []  # the next one cannot be read yet


@pytest.mark.slow
def test_a_point_can_be_read_half_a_minute_to_three_minutes_later(project):
    project.ok("POST", EAST, LEASE, queuedResourceId="lease")
    project.cloud.quota_use.sample()
    project.passes(29.9)
    assert used(project) == []
    project.passes(150.2)
    assert used(project) == [4]


@pytest.mark.slow
@given(st.floats(0, 2e9, allow_nan=False), st.floats(0.1, 10_000))
def test_the_delay_of_a_point_is_always_the_same_and_within_its_bounds(time, speed):
    class Pace:
        def seconds(self, simulated):
            return simulated / speed

    class OnlyPace:
        pace = Pace()

    series, point = Series("run.googleapis.com/cpu_allocation", ALONE), Point(time, 1)
    delay = QuotaUseSampler(OnlyPace()).delay(series, point)
    assert delay * speed * 1.000001 >= 30
    assert delay * speed <= 180.000001
    assert delay == QuotaUseSampler(OnlyPace()).delay(series, point)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "matches"),
    [
        ('metric.labels.quota_metric = "tpu.googleapis.com/tpu-v6e-preemptible"', True),
        ('metric.label.quota_metric="tpu.googleapis.com/tpu-v6e"', False),
        ('resource.type = "consumer_quota" AND resource.labels.location = "us-east5-a"', True),
        ('resource.labels.location = "us-east5"', False),
        ('resource.labels.service = "compute.googleapis.com"', False),
        ('resource.labels.project_id = "another"', False),
    ],
)
def test_each_label_of_a_filter_counts(project, more, matches):
    lease(project)
    assert bool(read(project, f"{USAGE} AND {more}")) is matches
    assert bool(read(project, f"{more} AND {USAGE}")) is matches


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "text", "message"),
    [
        (400, "", "could not parse"),
        (400, 'resource.type = "consumer_quota"', "must specify a single metric type"),
        (400, f"{USAGE} AND", "could not parse"),
        (400, f"{USAGE} nonsense", "could not parse"),
        (400, f'{USAGE} AND resource.labels.zone = "x"', "'resource.labels.zone' is not a label"),
        (400, f"{USAGE} AND {USAGE}", "given twice"),
        (400, f'{USAGE} AND resource.type = "gce_instance"', "of the resource consumer_quota"),
        (400, 'metric.type = "run.googleapis.com/request_latencies"', "does not serve the metric"),
        (400, 'metric.type = "run.googleapis.com/container/gpu/utilizations"', "no instance of localcloud has a GPU"),
        (400, 'metric.type = starts_with("serviceruntime.googleapis.com/")', "does not serve the filter"),
        (400, f'{USAGE} AND NOT resource.labels.location = "x"', "does not serve the filter"),
        (400, f'{USAGE} OR resource.labels.location = "x"', "does not serve the filter"),
        (400, f'{USAGE} AND resource.labels.location != "x"', "does not serve the filter"),
        (400, f"({USAGE})", "does not serve the filter"),
    ],
)
def test_a_filter_that_is_none_or_not_served_is_refused(project, status, text, message):
    assert message in project.refusal(status, "GET", SERIES, filter=text, **TPU)["message"]


@pytest.mark.slow
@given(st.text(alphabet='metric.type = "x\\"AND OR:()<>!labels', max_size=60))
def test_no_filter_is_more_than_refused(text):
    with contextlib.suppress(ApiError):
        required_labels(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "query", "message"),
    [
        (400, {"interval.startTime": END}, "interval.endTime is required"),
        (400, {"interval.endTime": "2020-01-01T00:00:00Z", "interval.startTime": END}, "is after"),
        (400, {"interval.endTime": "tomorrow"}, "Timestamp"),
        (400, TPU | {"aggregation.alignmentPeriod": "60s"}, "aggregation.alignmentPeriod"),
        (400, TPU | {"pageToken": "x"}, "Invalid page token"),
        (400, TPU | {"pageSize": "-1"}, "is negative"),
    ],
)
def test_a_question_that_cannot_be_is_refused(project, status, query, message):
    assert message in project.refusal(status, "GET", SERIES, filter=USAGE, **query)["message"]


def test_pages_count_points_and_headers_have_none(project):
    lease(project)
    given_back(project)
    lease(project)
    assert used(project) == [4, 0, 4]
    points, token = [], ""
    while token is not None:
        page = read(project, pageSize=1, pageToken=token)
        (one,) = page["timeSeries"]
        points += [int(point["value"]["int64Value"]) for point in one["points"]]
        assert len(one["points"]) == 1
        token = page.get("nextPageToken")
    assert points == [4, 0, 4]
    assert "points" not in read(project, view="HEADERS")["timeSeries"][0]


def test_an_interval_takes_its_end_and_not_its_start(project):
    lease(project)
    given_back(project)
    newest, first = [point["interval"]["endTime"] for point in read(project)["timeSeries"][0]["points"]]
    inside = read(project, **{"interval.startTime": first, "interval.endTime": newest})["timeSeries"][0]["points"]
    assert [point["interval"]["endTime"] for point in inside] == [newest]


def test_reading_takes_its_permission_and_the_api(cloud):
    reader = cloud.as_account(cloud.account("reader"))
    query = {"filter": USAGE, **TPU}
    assert "monitoring.timeSeries.list" in reader.get(SERIES, **query).json()["error"]["message"]
    cloud.grant_project("roles/monitoring.viewer", "serviceAccount:reader@bezel-local.iam.gserviceaccount.com")
    assert reader.get(SERIES, **query).status_code == 200
    service = f"/serviceusage/v1/{PARENT}/services/monitoring.googleapis.com"
    assert cloud.post(f"{service}:disable").is_success
    refused = cloud.get(SERIES, **query)
    assert cloud.post(f"{service}:enable").is_success
    assert (refused.status_code, refused.json()["error"]["details"][0]["reason"]) == (403, "SERVICE_DISABLED")


@pytest.mark.slow
def test_running_instances_and_tasks_are_counted(cloud):
    """Instances of services and tasks of jobs are counted while they run."""
    place = f"/run/v2/{PARENT}/locations/{ALONE}"

    def amounts():
        answer = cloud.get(SERIES, filter=f'{USAGE} AND resource.labels.location = "{ALONE}"', **TPU).json()
        return {
            one["metric"]["labels"]["quota_metric"].partition("/")[2]: int(one["points"][0]["value"]["int64Value"])
            for one in answer.get("timeSeries", [])
        }

    gpu, cpu, memory = "nvidia_l4_gpu_allocation_no_zonal_redundancy", "cpu_allocation", "mem_allocation"
    template = cloud.template("--a=1", scaling={"maxInstanceCount": 1})
    cloud.finish("run/v2", cloud.post(f"{place}/services", {"template": template}, serviceId="counted"))
    until(lambda: amounts() == {gpu: 1, cpu: 8000, memory: 32 << 30})

    container = {"image": template["containers"][0]["image"], "args": ["--silent"]}
    task = {"containers": [container], "serviceAccount": RUNTIME, "maxRetries": 0}
    body = {"template": {"taskCount": 2, "template": task}}
    cloud.finish("run/v2", cloud.post(f"{place}/jobs", body, jobId="counted"))
    assert cloud.post(f"{place}/jobs/counted:run", {}).is_success
    until(lambda: amounts() == {gpu: 1, cpu: 10_000, memory: 33 << 30})

    for kind in ("jobs", "services"):
        cloud.finish("run/v2", cloud.delete(f"{place}/{kind}/counted"))
    until(lambda: set(amounts().values()) == {0})
