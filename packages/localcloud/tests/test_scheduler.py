"""Cloud Scheduler on localcloud: jobs are stored as Google stores them, and their requests are really sent."""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bezel_localcloud.core.json_types import timestamp
from localcloud_support.client import PARENT
from localcloud_support.in_process import SCOPE, Project

LOCATION = f"/cloudscheduler/v1/{PARENT}/locations/us-east4"
JOBS = f"{LOCATION}/jobs"
NAME = f"{PARENT}/locations/us-east4/jobs/tick"
ONE = f"/cloudscheduler/v1/{NAME}"
RUNNER = "runner@bezel-local.iam.gserviceaccount.com"


class Target:
    """A server that keeps each request and answers with the statuses that it is given, 200 after the last."""

    def __init__(self):
        self.seen, self.statuses = [], []
        target = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                target.seen.append((self.command, self.path, dict(self.headers), body))
                self.send_response(target.statuses.pop(0) if target.statuses else 200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST = do_PATCH = answer  # noqa: N815

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def target():
    new_target = Target()
    yield new_target
    new_target.close()


@pytest.fixture
def project(tmp_path):
    new_project = Project(tmp_path, speed=60.0)
    new_project.cloud.store.put("api", "cloudscheduler.googleapis.com", {"state": "ENABLED"})
    new_project.cloud.store.put("account", RUNNER, {"email": RUNNER, "uniqueId": "1"})
    yield new_project
    new_project.close()


def job(url, **more):
    return {"name": NAME, "schedule": "0 * * * *", "httpTarget": {"uri": url}} | more


def run_due(project):
    asyncio.run(project.cloud.scheduler.run_due())


@pytest.mark.slow
def test_a_new_job_has_the_values_that_google_fills_in(project, target):
    made = project.ok("POST", JOBS, job(target.url))
    assert made["state"] == "ENABLED"
    assert (made["timeZone"], made["attemptDeadline"]) == ("UTC", "180s")
    assert "retryConfig" not in made
    assert made["httpTarget"] == {
        "uri": target.url,
        "httpMethod": "POST",
        "headers": {"User-Agent": "Google-Cloud-Scheduler"},
    }
    # 2027-01-15T08:00:00Z is the clock's start
    assert made["scheduleTime"] == "2027-01-15T09:00:00.000000Z"
    assert project.ok("GET", ONE) == made
    assert project.ok("GET", JOBS)["jobs"] == [made]
    assert "already exists." in project.refusal(409, "POST", JOBS, job(target.url))["message"]
    assert project.ok("POST", JOBS, {**job(target.url), "name": ""})["name"].startswith(f"{PARENT}/locations/us-east4/")


def test_a_due_job_sends_its_request_with_its_account_s_token(project, target):
    """A due job sends its request with its account's token and only then."""
    body = {"uri": f"{target.url}/x?y=1", "httpMethod": "PATCH", "body": "e30=", "headers": {"A": "b"}}
    project.ok("POST", JOBS, job("", httpTarget=body | {"oidcToken": {"serviceAccountEmail": RUNNER}}))
    project.clock.time += 59  # 59 minutes of the platform's time
    run_due(project)
    assert target.seen == []
    project.clock.time += 1
    run_due(project)
    ((verb, path, headers, content),) = target.seen
    assert (verb, path, content) == ("PATCH", "/x?y=1", b"{}")
    assert headers["User-Agent"] == "Google-Cloud-Scheduler"
    assert (headers["A"], headers["Content-Type"]) == ("b", "application/octet-stream")
    assert (headers["X-CloudScheduler"], headers["X-CloudScheduler-JobName"]) == ("true", "tick")
    assert headers["X-CloudScheduler-ScheduleTime"] == "2027-01-15T09:00:00.000000Z"
    token = headers["Authorization"].removeprefix("Bearer ")
    assert project.cloud.tokens.identity(token, {body["uri"]}) == RUNNER
    shown = project.ok("GET", ONE)
    assert (shown["status"], shown["scheduleTime"]) == ({}, "2027-01-15T10:00:00.000000Z")
    assert shown["lastAttemptTime"] == timestamp(project.clock.now())
    run_due(project)
    assert len(target.seen) == 1


def test_a_job_calls_a_google_api_of_this_cloud_under_its_public_address(project):
    uri = "https://cloudresourcemanager.googleapis.com/v1/projects/bezel-local"
    address = project.cloud.scheduler._address  # the in-process cloud has no port to listen on
    assert address(uri) == f"{project.cloud.base}/crm/v1/projects/bezel-local"
    assert address("https://run.googleapis.com/v2/x?a=b") == f"{project.cloud.base}/run/v2/x?a=b"
    assert address("https://storage.googleapis.com/storage/v1/b") == f"{project.cloud.base}/storage/v1/b"
    for outside in ("https://example.com/", "http://10.0.0.1/", "https://googleapis.com.example/"):
        assert address(outside) is None


def test_a_request_that_would_leave_this_machine_is_not_sent(project):
    """A request that would leave this machine is not sent and its job says so."""
    project.ok("POST", JOBS, job("https://example.com/"))
    project.clock.time += 60
    run_due(project)
    assert project.ok("GET", ONE)["status"] == {
        "code": 14,
        "message": "localcloud sends requests to this machine only",
    }


@pytest.mark.slow
@pytest.mark.parametrize(("status", "code"), [(500, 13), (503, 14), (404, 5), (403, 7), (418, 2)])
def test_a_failed_run_shows_its_code_and_waits_for_the_next_time(project, target, status, code):
    target.statuses = [status]
    project.ok("POST", JOBS, job(target.url))
    project.clock.time += 60
    run_due(project)
    shown = project.ok("GET", ONE)
    assert shown["status"]["code"] == code
    assert str(status) in shown["status"]["message"]
    assert shown["scheduleTime"] == "2027-01-15T10:00:00.000000Z"


def test_a_failed_run_is_repeated_with_growing_pauses(project, target):
    """A failed run is repeated as often as its job allows with growing pauses."""
    target.statuses = [500, 500, 500]
    retry = {"retryCount": 2, "minBackoffDuration": "60s", "maxDoublings": 3}
    project.ok("POST", JOBS, job(target.url, retryConfig=retry))
    project.clock.time += 60
    run_due(project)
    assert project.ok("GET", ONE)["scheduleTime"] == "2027-01-15T09:01:00.000000Z"
    project.clock.time += 1
    run_due(project)
    assert project.ok("GET", ONE)["scheduleTime"] == "2027-01-15T09:03:00.000000Z"
    project.clock.time += 2
    run_due(project)
    assert project.ok("GET", ONE)["scheduleTime"] == "2027-01-15T10:00:00.000000Z"
    assert len(target.seen) == 3


def test_a_paused_job_does_not_run_until_it_is_resumed_but_can_be_forced(project, target):
    project.ok("POST", JOBS, job(target.url))
    assert project.ok("POST", f"{ONE}:resume", {})["state"] == "ENABLED"
    assert project.ok("POST", f"{ONE}:pause", {})["state"] == "PAUSED"
    project.clock.time += 120
    run_due(project)
    assert target.seen == []

    async def force():
        project.cloud.scheduler.run_now(NAME)
        await asyncio.gather(*project.cloud.scheduler._tasks)

    asyncio.run(force())
    assert len(target.seen) == 1
    resumed = project.ok("POST", f"{ONE}:resume", {})
    assert (resumed["state"], resumed["scheduleTime"]) == ("ENABLED", "2027-01-15T09:00:00.000000Z")
    project.refusal(404, "POST", f"{JOBS}/absent:run", {})


def test_missed_runs_become_one_and_jobs_run_in_the_order_of_their_times(project, target):
    on = job(f"{target.url}/on", name=f"{NAME}-on", schedule="0 12 * * *")
    project.ok("POST", JOBS, job(f"{target.url}/off", name=f"{NAME}-off", schedule="0 18 * * *"))
    project.ok("POST", JOBS, on)
    project.clock.time += 5 * 24 * 60  # five days of the platform's time
    project.restart()
    run_due(project)
    run_due(project)
    assert [path for _, path, _, _ in target.seen] == ["/on", "/off"]


@pytest.mark.slow
def test_a_change_keeps_the_times_of_a_job_whose_schedule_it_leaves(project, target):
    made = project.ok("POST", JOBS, job(target.url))
    project.clock.time += 30
    changed = project.ok("PATCH", ONE, {"description": "x"}, updateMask="description")
    assert (changed["description"], changed["scheduleTime"]) == ("x", made["scheduleTime"])
    moved = project.ok(
        "PATCH", ONE, {"schedule": "30 * * * *", "timeZone": "Asia/Kolkata"}, updateMask="schedule,timeZone"
    )
    assert moved["scheduleTime"] == "2027-01-15T09:00:00.000000Z"
    assert project.ok("DELETE", ONE) == {}
    project.refusal(404, "DELETE", ONE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "status", "word"),
    [
        ({"schedule": "every 5 minutes"}, 400, "unix-cron"),
        ({"schedule": "0 * * *"}, 400, "Schedule or time zone is invalid."),
        ({"schedule": "0 0 30 2 *"}, 400, "Schedule or time zone is invalid."),
        ({"timeZone": "Mars/Base"}, 400, "Schedule or time zone is invalid."),
        ({"attemptDeadline": "5s"}, 400, "15s"),
        ({"retryConfig": {"retryCount": 6}}, 400, "retry_count"),
        ({"httpTarget": {"uri": "ftp://x"}}, 400, "Invalid url"),
        ({"httpTarget": {"uri": "http://x", "httpMethod": "GET", "body": "e30="}}, 400, "body"),
        ({"httpTarget": {}}, 400, "target"),
        ({"pubsubTarget": {"topicName": "x"}}, 400, "pubsubTarget"),
        ({"name": f"{PARENT}/locations/us-east1/jobs/x"}, 400, "must be formatted"),
        ({"httpTarget": {"uri": "http://x", "oauthToken": {"serviceAccountEmail": "no@x"}}}, 403, "actAs"),
    ],
)
def test_a_job_that_cannot_be_is_refused(project, target, wrong, status, word):
    assert word in project.refusal(status, "POST", JOBS, job(target.url) | wrong)["message"]


def test_a_job_needs_the_right_to_act_as_its_account(project, target):
    email = "deploy@bezel-local.iam.gserviceaccount.com"
    project.cloud.store.put("account", email, {"email": email, "uniqueId": "2"})
    policy = project.ok("POST", f"/crm/v1/{PARENT}:getIamPolicy")
    binding = {"role": "roles/cloudscheduler.admin", "members": [f"serviceAccount:{email}"]}
    bindings = [*policy["bindings"], binding]
    project.ok("POST", f"/crm/v1/{PARENT}:setIamPolicy", {"policy": policy | {"bindings": bindings}})
    project.token = project.cloud.tokens.access_token(email, SCOPE, 1e7)[0]
    project.ok("POST", JOBS, job(target.url))
    changed = {"uri": target.url, "oauthToken": {"serviceAccountEmail": RUNNER}}
    refusal = project.refusal(403, "PATCH", ONE, {"httpTarget": changed}, updateMask="httpTarget")
    assert "iam.serviceAccounts.actAs" in refusal["message"]


def test_each_attempt_is_in_the_log(project, target):
    target.statuses = [500]
    project.ok("POST", JOBS, job(target.url))
    project.clock.time += 60
    run_due(project)
    asked = {"resourceNames": [PARENT], "filter": 'resource.type="cloud_scheduler_job"'}
    entries = project.ok("POST", "/logging/v2/entries:list", asked)["entries"]
    kinds = [entry["jsonPayload"]["@type"].rpartition(".")[2] for entry in entries]
    assert kinds == ["AttemptStarted", "AttemptFinished"]
    assert entries[1]["severity"] == "ERROR"
    assert entries[1]["httpRequest"] == {"status": 500}
    assert "Bearer" not in json.dumps(entries)
