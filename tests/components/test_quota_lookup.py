"""What is asked of Cloud Quotas and Cloud Run, over the wire, and what their answers mean."""

import math
from collections.abc import Iterator
from typing import Any

import pytest

from bezel.planner.assemble.quota import Unread
from bezel.rest import GoogleClient
from bezel.rest.cloud_quotas import Allowed, Limit, quota_of
from bezel_components.lookups.quota import look_up
from tests.support.components.fake_cloud_run import QUOTA, FakeRun, running
from tests.support.rest.fake_google import Answer

L4 = Limit("run.googleapis.com", QUOTA, "us-east4")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRun]:
    with running(monkeypatch) as fake:
        fake.quota = 3
        yield fake


def answering(run: FakeRun, *entries: dict[str, Any]) -> None:
    run.server.routes[:] = [lambda _call: Answer(json={"dimensionsInfos": list(entries)})]


@pytest.mark.parametrize(("value", "allowed"), [({"value": "3"}, 3), ({}, 0), ({"value": "-1"}, math.inf)])
def test_a_zero_may_be_left_out_and_minus_one_is_no_limit(run: FakeRun, value: dict[str, str], allowed: float) -> None:
    answering(run, {"details": value, "applicableLocations": ["us-east4"]})
    with GoogleClient() as client:
        assert quota_of(client, "acme-llm", L4) == Allowed(allowed, "")


def test_a_quota_holds_where_the_answer_says_and_for_what_it_is_counted_by(run: FakeRun) -> None:
    other = {"dimensions": {"region": "us-east4", "tpu_family": "CT5LP"}, "details": {"value": "99"}}
    info = {"dimensions": {"region": "us-east4", "tpu_family": "CT6E"}, "details": {"value": "4"}}
    answering(run, other, info)
    family = (("tpu_family", "CT6E"),)
    with GoogleClient() as client:
        quota = quota_of(client, "acme-llm", Limit("compute.googleapis.com", "TPUS", "us-east4-a", family))
        assert quota == Allowed(4, "")
        assert quota_of(client, "acme-llm", Limit("compute.googleapis.com", "TPUS", "asia-south1", family)) is None


def test_each_answer_stands_alone(run: FakeRun) -> None:
    run.neighbours = None
    answers = look_up("acme-llm", [L4, Limit("run.googleapis.com", QUOTA, "asia-south1")], "us-east4")
    assert answers.allowed == (3, Unread(f"{QUOTA} has no value for asia-south1"))
    assert answers.services == Unread("403 TEST: Permission 'run.services.list' denied.", is_denied=True)


def test_where_cloud_run_was_never_used_there_is_no_service(run: FakeRun) -> None:
    message = "Cloud Run Admin API has not been used in project acme-llm before or it is disabled."
    refusal = Answer(403, {"error": {"code": 403, "message": message, "status": "PERMISSION_DENIED"}})
    run.server.routes[:] = [lambda call: refusal if call.path.endswith("/services") else run.route(call)]
    assert look_up("acme-llm", [L4], "us-east4").services == []
    assert look_up("acme-llm", [L4]).services == []


def test_nobody_who_answers_is_a_reason_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_QUOTAS_CUSTOM_ENDPOINT", "http://quotas.example/v1/")
    answers = look_up("acme-llm", [L4])
    assert "GOOGLE_CLOUD_QUOTAS_CUSTOM_ENDPOINT" in str(answers.allowed[0])
