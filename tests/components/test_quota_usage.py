"""What is asked of Cloud Monitoring about the use of a quota, over the wire, and what its answers mean."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bezel.planner.assemble.quota import Unread
from bezel.rest import GoogleClient, UnreachableError
from bezel.rest.cloud_quotas import Counted, Limit, counted_of
from bezel_components.lookups.quota import look_up
from tests.support.components.fake_cloud_run import QUOTA, FakeRun, point, running
from tests.support.rest.fake_google import Answer

L4 = Limit("run.googleapis.com", QUOTA, "us-east4")
METRIC = "run.googleapis.com/nvidia_l4_gpu_allocation_no_zonal_redundancy"
NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRun]:
    with running(monkeypatch) as fake:
        fake.quota = 3
        yield fake


def counted_use(run: FakeRun, *answers: dict[str, Any], seconds: float = 10.0) -> Counted | None:
    """What the answers say, one after the other."""
    left = list(answers)
    run.server.routes[:] = [lambda _call: Answer(json=left.pop(0))]
    with GoogleClient(timeout_seconds=seconds, deadline_seconds=seconds) as client:
        return counted_of(client, "acme-llm", L4, METRIC, NOW)


def series(*points: dict[str, Any]) -> dict[str, Any]:
    return {"timeSeries": [{"metric": {"labels": {"quota_metric": METRIC}}, "points": list(points)}]}


def test_the_newest_point_of_one_series_of_one_project_is_requested(run: FakeRun) -> None:
    """One series of one project is asked for and its newest point of a day."""
    counted_use(run, {})
    (call,) = run.server.calls
    assert (call.method, call.path) == ("GET", "/monitoring/v3/projects/acme-llm/timeSeries")
    assert call.query == {
        "filter": 'metric.type = "serviceruntime.googleapis.com/quota/allocation/usage"'
        f' AND metric.labels.quota_metric = "{METRIC}" AND resource.type = "consumer_quota"'
        ' AND resource.labels.project_id = "acme-llm" AND resource.labels.service = "run.googleapis.com"'
        ' AND resource.labels.location = "us-east4"',
        "interval.startTime": "2026-11-22T11:00:00+00:00",
        "interval.endTime": "2026-11-23T12:00:00+00:00",
        "view": "FULL",
        "pageSize": "1",
    }


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ([series(point(2, "2026-11-23T11:56:00.250Z"))], Counted(2, 239.75)),
        ([series(point(2, "2026-11-22T12:00:00Z"))], Counted(2, 86_400.0)),
        ([series(point(0, "2026-11-23T12:00:00Z"))], Counted(0, 0.0)),
        ([series(point(1, "2026-11-23T12:00:02Z"))], Counted(1, 0.0)),
        ([series(point(3, "2026-11-23T11:59:00Z"), point(9, "2026-11-23T11:58:00Z"))], Counted(3, 60.0)),
        ([{}], None),
        ([{"timeSeries": []}], None),
        ([series()], None),
        ([series({"interval": {"endTime": "2026-11-23T11:59:00Z"}, "value": {}})], None),
        ([series({"interval": {"endTime": "2026-11-23T11:59:00Z"}, "value": {"doubleValue": 1.5}})], None),
        ([{"nextPageToken": "more"}, series(point(4, "2026-11-23T11:59:00Z"))], Counted(4, 60.0)),
    ],
)
def test_a_point_is_a_number_with_its_age_and_no_point_is_no_zero(
    run: FakeRun, answers: list[dict[str, Any]], expected: Counted | None
) -> None:
    assert counted_use(run, *answers) == expected


@pytest.mark.parametrize("wrong", [point(1, "yesterday"), point(1, "") | {"interval": {"endTime": ""}}])
def test_what_is_no_time_is_no_value(run: FakeRun, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="isoformat"):
        counted_use(run, series(wrong))


@pytest.mark.slow
def test_nobody_waits_for_an_answer_beyond_the_deadline(run: FakeRun) -> None:
    run.server.routes[:] = [lambda _call: Answer(chunks=[60.0])]
    with GoogleClient(timeout_seconds=0.05, deadline_seconds=0.05) as client, pytest.raises(UnreachableError):
        counted_of(client, "acme-llm", L4, METRIC, NOW)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            Answer(403, {"error": {"code": 403, "message": "Permission denied.", "status": "PERMISSION_DENIED"}}),
            "403 PERMISSION_DENIED: Permission denied.",
        ),
        (Answer(json={}), "it has no value of the last day"),
        (Answer(text="<html>"), "200 : the response is not JSON"),
        (Answer(json=series(point(1, "yesterday"))), "Invalid isoformat string: 'yesterday'"),
        (Answer(json={"timeSeries": "none"}), "an answer of another form"),
        (Answer(json={"timeSeries": [{"points": [{"value": 3}]}]}), "an answer of another form"),
    ],
)
def test_whatever_monitoring_answers_the_quota_is_reported(run: FakeRun, answer: Answer, why: str) -> None:
    run.server.routes[:] = [lambda call: answer if call.path.startswith("/monitoring/") else run.route(call)]
    answers = look_up("acme-llm", [L4])
    assert (answers.allowed, answers.counted) == ((3,), (Unread(why, is_denied=why.startswith("403")),))


def test_a_quota_is_counted_by_the_metric_that_its_description_names(run: FakeRun) -> None:
    run.counted = {QUOTA: (2, timedelta(minutes=5).total_seconds())}
    (count,) = look_up("acme-llm", [L4]).counted
    assert isinstance(count, Counted)
    assert (count.used, round(count.age)) == (2, 300)


def test_monitoring_is_not_asked_without_need(run: FakeRun) -> None:
    """Monitoring is not asked where it could not say or nobody wants to know."""
    family = Limit("compute.googleapis.com", "TPUS", "us-east4", (("tpu_family", "CT6E"),))
    assert look_up("acme-llm", [family]).counted == (Unread("Cloud Monitoring does not count it by tpu_family"),)
    assert look_up("acme-llm", [L4], use=False).counted == (Unread("it was not requested"),)
    run.quota = None
    assert "has not been used in project" in str(look_up("acme-llm", [L4]).counted[0])
    assert not [call for call in run.server.calls if call.path.startswith("/monitoring/")]
