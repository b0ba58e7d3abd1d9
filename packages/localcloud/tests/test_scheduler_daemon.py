"""Jobs of Cloud Scheduler in a daemon: one changes the minimum of a service's instances, with its own rights only."""

import base64
import json

import pytest

from bezel_localcloud import control
from localcloud_support.client import PARENT, REGION, RUNTIME, SERVICES, Client, until

pytestmark = pytest.mark.slow
JOBS = f"/cloudscheduler/v1/{PARENT}/locations/{REGION}/jobs"
RUNNER = "runner@bezel-local.iam.gserviceaccount.com"
SERVICE = f"{PARENT}/locations/{REGION}/services/llm"


def job(name, minimum, account=RUNNER):
    body = base64.b64encode(json.dumps({"scaling": {"minInstanceCount": minimum}}).encode()).decode()
    uri = f"https://run.googleapis.com/v2/{SERVICE}?updateMask=scaling.minInstanceCount"
    target = {"uri": uri, "httpMethod": "PATCH", "body": body, "headers": {"Content-Type": "application/json"}}
    target |= {"oauthToken": {"serviceAccountEmail": account}}
    name = f"{PARENT}/locations/{REGION}/jobs/{name}"
    return {"name": name, "schedule": "* * * * *", "timeZone": "Europe/Berlin", "httpTarget": target}


def minimum(client):
    return client.service("llm").get("scaling", {}).get("minInstanceCount", 0)


def status(client, name):
    return client.get(f"{JOBS}/{name}").json().get("status")


def last_attempt(client, name):
    return client.get(f"{JOBS}/{name}").json()["lastAttemptTime"]


def test_a_due_job_changes_the_minimum_of_a_service(own_daemon, tmp_path):
    """A due job changes the minimum of a service without a revision, and continues after a kill."""
    client = Client(own_daemon(speed=200))
    client.prepare()
    client.enable("cloudscheduler", "iam")
    client.account("runner")
    client.create("llm", client.template())
    before = client.service("llm")
    assert client.post(JOBS, job("up", 1)).is_success

    # A minute of the schedule is 0.3 s here. Without a right to the service the job fails, and says so.
    until(lambda: (status(client, "up") or {}).get("code") == 7)
    assert minimum(client) == 0

    role = f"/iam/v1/{PARENT}/roles"
    permissions = ["run.services.get", "run.services.update"]
    made = client.post(role, {"roleId": "schedule", "role": {"title": "s", "includedPermissions": permissions}})
    client.grant(f"{SERVICES}/llm", made.json()["name"], f"serviceAccount:{RUNNER}")
    # The right to the service alone does not suffice: a change of a service acts as its account.
    granted = last_attempt(client, "up")
    until(lambda: last_attempt(client, "up") > granted and status(client, "up").get("code") == 7)
    assert minimum(client) == 0
    account = f"/iam/v1/{PARENT}/serviceAccounts/{RUNTIME}"
    acting = {"role": "roles/iam.serviceAccountUser", "members": [f"serviceAccount:{RUNNER}"]}
    policy = client.post(f"{account}:getIamPolicy").json()
    bindings = [*policy.get("bindings", []), acting]
    assert client.post(f"{account}:setIamPolicy", {"policy": policy | {"bindings": bindings}}).is_success
    until(lambda: minimum(client) == 1)
    until(lambda: status(client, "up") == {})
    after = client.service("llm")
    assert after["latestCreatedRevision"] == before["latestCreatedRevision"]
    assert after["template"] == before["template"]
    assert after["lastModifier"] == RUNNER

    assert client.post(f"{JOBS}/up:pause", {}).is_success
    control.stop(tmp_path / "cloud")
    again = Client(own_daemon(speed=200))
    assert again.post(JOBS, job("down", 0)).is_success
    until(lambda: minimum(again) == 0)
    assert again.get(f"{JOBS}/up").json()["state"] == "PAUSED"
