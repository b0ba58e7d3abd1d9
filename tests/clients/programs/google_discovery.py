"""Calls of google-api-python-client, which is made of discovery documents: APIs that have no other client over HTTP.

Cloud Run, Cloud Storage and Compute Engine have clients of their own: each is called once here.
"""

import datetime as dt
import os
import time
from collections.abc import Callable
from typing import Any

from google_calls import PARENT, PROJECT, REGION, Report
from googleapiclient import discovery
from googleapiclient.errors import HttpError

ACCOUNT = f"tried-account@{PROJECT}.iam.gserviceaccount.com"
report = Report("google-api-python-client")


def service(api: str, version: str, variable: str, path: str = "") -> Any:
    """A client of an API; its endpoint is the API's address, with a slash at the end."""
    address = os.environ[f"GOOGLE_{variable}_CUSTOM_ENDPOINT"].removesuffix(f"{version}/").rstrip("/")
    return discovery.build(
        api, version, static_discovery=True, cache_discovery=False, client_options={"api_endpoint": f"{address}/{path}"}
    )


def expect_refusal(name: str, status: int, word: str, action: Callable[[], Any]) -> None:
    """Call; it passes if the response has a status, and a word in its text."""

    def run() -> str:
        try:
            action()
        except HttpError as error:
            return f"{error.status_code} {error.reason}"
        return ""

    report.call(name, run, lambda text: text.startswith(str(status)) and word in text)


def pages(collection: Any, key: str, request: Any) -> list[Any]:
    """All items of a list."""
    items = []
    while request is not None:
        page = request.execute()
        items += page.get(key, [])
        request = collection.list_next(request, page)
    return items


def accounts() -> None:
    """IAM v1: service accounts."""
    api = service("iam", "v1", "IAM").projects().serviceAccounts()
    name = f"{PARENT}/serviceAccounts/{ACCOUNT}"
    body = {"accountId": "tried-account", "serviceAccount": {"displayName": "Tried"}}
    report.call(
        "iam: create",
        api.create(name=PARENT, body=body).execute,
        lambda made: made["email"] == ACCOUNT and made["uniqueId"],
    )
    expect_refusal("iam: create again", 409, "already exists", api.create(name=PARENT, body=body).execute)
    report.call("iam: get", api.get(name=name).execute, lambda got: got["displayName"] == "Tried")
    report.call(
        "iam: list, pages of 1",
        lambda: pages(api, "accounts", api.list(name=PARENT, pageSize=1)),
        lambda answer: ACCOUNT in {one["email"] for one in answer},
    )
    change = {"serviceAccount": {"description": "new"}, "updateMask": "description"}
    report.call("iam: patch", api.patch(name=name, body=change).execute, lambda got: got["description"] == "new")
    policy = report.call("iam: getIamPolicy", api.getIamPolicy(resource=name).execute)
    policy["bindings"] = [{"role": "roles/iam.serviceAccountUser", "members": [f"serviceAccount:{ACCOUNT}"]}]
    report.call("iam: setIamPolicy", api.setIamPolicy(resource=name, body={"policy": policy}).execute)
    expect_refusal(
        "iam: setIamPolicy with an old etag",
        409,
        "concurrent",
        api.setIamPolicy(resource=name, body={"policy": policy}).execute,
    )
    asked = {"permissions": ["iam.serviceAccounts.actAs"]}
    report.call(
        "iam: testIamPermissions", api.testIamPermissions(resource=name, body=asked).execute, lambda got: got == asked
    )
    report.call("iam: disable", api.disable(name=name, body={}).execute)
    report.call("iam: enable", api.enable(name=name, body={}).execute)
    report.call("iam: keys.create", api.keys().create(name=name, body={}).execute)
    report.call("iam: delete", api.delete(name=name).execute)
    expect_refusal("iam: get of a deleted one", 404, "Unknown service account", api.get(name=name).execute)


def reads() -> None:
    """APIs that are read only: logs, metrics, the project."""
    logs = service("logging", "v2", "LOGGING").entries()
    body = {"resourceNames": [PARENT], "pageSize": 1, "orderBy": "timestamp desc"}
    report.call("logging: entries.list", logs.list(body=body).execute, lambda got: len(got["entries"]) == 1)
    metrics = service("monitoring", "v3", "MONITORING").projects().timeSeries()
    now = dt.datetime.now(dt.UTC)
    wanted = 'metric.type = "serviceruntime.googleapis.com/quota/allocation/usage"'
    interval = {
        "interval_startTime": (now - dt.timedelta(hours=1)).isoformat(),
        "interval_endTime": (now + dt.timedelta(hours=1)).isoformat(),
    }
    report.call(
        "monitoring: timeSeries.list",
        metrics.list(name=PARENT, filter=wanted, **interval).execute,
        lambda got: isinstance(got, dict),
    )
    projects = service("cloudresourcemanager", "v1", "RESOURCE_MANAGER").projects()
    report.call(
        "resource manager v1: get", projects.get(projectId=PROJECT).execute, lambda got: got["projectId"] == PROJECT
    )
    report.call("resource manager v1: list", projects.list().execute, lambda got: len(got["projects"]) == 1)
    runs = service("run", "v2", "CLOUD_RUN_V2").projects().locations().services()
    report.call("run: services.list", runs.list(parent=f"{PARENT}/locations/{REGION}").execute)
    storage = service("storage", "v1", "STORAGE", "v1/")
    report.call("storage: buckets.list", storage.buckets().list(project=PROJECT).execute, lambda got: got["items"])
    compute = service("compute", "v1", "COMPUTE", "v1/")
    report.call("compute: zones.list", compute.zones().list(project=PROJECT).execute, lambda got: got["items"])


def channels() -> None:
    """Monitoring v3: the channels that a budget notifies."""
    api = service("monitoring", "v3", "MONITORING").projects().notificationChannels()
    body = {"type": "email", "displayName": "Tried", "labels": {"email_address": "team@example.com"}}
    made = report.call("monitoring: notificationChannels.create", api.create(name=PARENT, body=body).execute)
    name = made["name"]
    report.call("monitoring: notificationChannels.get", api.get(name=name).execute, lambda got: got == made)
    report.call(
        "monitoring: notificationChannels.list",
        lambda: pages(api, "notificationChannels", api.list(name=PARENT, pageSize=1)),
        lambda answer: made in answer,
    )
    report.call(
        "monitoring: notificationChannels.patch",
        api.patch(name=name, updateMask="enabled", body={"enabled": False}).execute,
        lambda got: got["enabled"] is False and got["displayName"] == "Tried",
    )
    report.call("monitoring: notificationChannels.verify", api.verify(name=name, body={"code": "1"}).execute)
    report.call("monitoring: notificationChannels.delete", api.delete(name=name, force=False).execute)
    expect_refusal(
        "monitoring: notificationChannels.get of a deleted one", 404, "Cannot find", api.get(name=name).execute
    )


def lease() -> None:
    """TPU v2alpha1: a slice for a limited time."""
    api = service("tpu", "v2alpha1", "TPU_V2ALPHA1").projects().locations()
    parent = f"{PARENT}/locations/us-east5-b"
    node = {
        "acceleratorType": "v6e-1",
        "runtimeVersion": "v2-alpha-tpuv6e",
        "networkConfig": {"network": "tpus", "subnetwork": "tpus"},
    }
    body = {
        "tpu": {"nodeSpec": [{"parent": parent, "nodeId": "leased", "node": node}]},
        "provisioningModel": "FLEX_START",
        "runDuration": {"maxRunDuration": "3600s"},
    }
    name = f"{parent}/queuedResources/leased"
    queued = api.queuedResources()
    made = report.call("tpu: create", queued.create(parent=parent, queuedResourceId="leased", body=body).execute)
    report.call(
        "tpu: operations.get",
        lambda: ended_operation(api.operations(), made["name"]),
        lambda got: got["response"]["name"] == name,
    )
    while queued.get(name=name).execute()["state"]["state"] != "ACTIVE":
        time.sleep(0.05)
    report.call("tpu: get", queued.get(name=name).execute, lambda got: got["provisioningModel"] == "FLEX_START")
    gone = report.call("tpu: delete", queued.delete(name=name, force=True).execute)
    report.call("tpu: operations.get of the deletion", lambda: ended_operation(api.operations(), gone["name"]))
    expect_refusal("tpu: get of a deleted one", 404, "was not found", queued.get(name=name).execute)


def ended_operation(operations: Any, name: str) -> Any:
    """An operation when it has ended."""
    while not (body := operations.get(name=name).execute()).get("done"):
        time.sleep(0.05)
    return body


if __name__ == "__main__":
    accounts()
    reads()
    channels()
    lease()
