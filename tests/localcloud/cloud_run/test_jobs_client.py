"""The client of Cloud Run's jobs: an answer that was lost, what cannot be run, and what is gone already."""

import os

import pytest

from bezel.bench_jobs.cloud_run_jobs import CloudRunJobs
from bezel.rest import ApiError, Backoff, Credentials, GoogleClient
from bezel_base.errors import UserError
from bezel_localcloud import control
from localcloud_support.client import REGION, until

pytestmark = pytest.mark.slow

FAULTS = "/localcloud/faults"


@pytest.fixture
def client(cloud, monkeypatch):
    for name, value in control.environment(cloud.endpoint).items():
        monkeypatch.setenv(name, value)
    with GoogleClient(Credentials(environ=dict(os.environ)), backoff=Backoff(first=0.01)) as google:
        yield CloudRunJobs(google, "bezel-local", REGION, lambda _: None)


def body(cloud, run="a", *args):
    container = {"image": cloud.template()["containers"][0]["image"], "args": list(args)}
    task = {"containers": [container], "maxRetries": 0}
    return {"labels": {"bezel-run": run}, "template": {"template": task}}


def test_a_job_is_made_once_though_the_answer_is_lost(cloud, client):
    lost = {"when": "after", "method": "POST", "path": "/run/v2/*/jobs", "count": 1}
    assert cloud.post(FAULTS, {"kind": "dropped-connections", "parameters": lost}).is_success
    try:
        client.create("lost", body(cloud))
    finally:
        cloud.delete(FAULTS)
    assert client.find("lost")["labels"] == {"bezel-run": "a"}
    assert client.delete("lost")


def test_a_job_of_another_run_is_not_taken_for_its_own(cloud, client):
    client.create("held", body(cloud, "a"))
    with pytest.raises(ApiError, match="409"):
        client.create("held", body(cloud, "b"))
    assert client.delete("held")


def test_a_job_that_cannot_be_run_says_why(cloud, client):
    made = body(cloud)
    made["template"]["template"]["containers"][0]["image"] = "docker.io/nobody/nothing:1"
    with pytest.raises(UserError, match=r"job never cannot be run: Image .* not found"):
        client.create("never", made)
    assert client.delete("never")


def test_what_is_gone_is_gone(client):
    assert client.find("absent") is None
    assert client.delete("absent") is False


def test_an_execution_is_looked_at_with_its_tasks(cloud, client):
    client.create("looked-at", body(cloud, "a", "--exit=3"))
    execution = client.run("looked-at")
    ended = until(lambda: (execution_state := client.execution(execution)).get("completionTime") and execution_state)
    assert ended["failedCount"] == 1
    assert client.tasks(execution)[0]["lastAttemptResult"]["exitCode"] == 3
    assert client.delete("looked-at")
