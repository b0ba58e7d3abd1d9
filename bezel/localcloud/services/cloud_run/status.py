"""Conditions, names and messages of services and revisions in run v2's words. Pure."""

import random
import string

from bezel.localcloud.core.json_types import Json, timestamp
from bezel.localcloud.core.paths import PROJECT
from bezel.localcloud.services.cloud_run.failures import RevisionFailureError

SERVICE_TYPE = "type.googleapis.com/google.cloud.run.v2.Service"
LATEST = "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"
_REVISION_CONDITIONS = ("ResourcesAvailable", "ContainerReady", "ContainerHealthy", "MinInstancesProvisioned")
_PER_REVISION = (
    "containers", "volumes", "scaling", "timeout", "serviceAccount", "executionEnvironment", "nodeSelector",
    "gpuZonalRedundancyDisabled", "maxInstanceRequestConcurrency", "vpcAccess", "sessionAffinity", "encryptionKey",
    "labels", "annotations",
)  # fmt: skip


def revision_id(service_id: str, number: int) -> str:
    """NAME-00001-xyz."""
    letters = random.choices(string.ascii_lowercase, k=3)  # noqa: S311 - a name, not a secret
    return f"{service_id}-{number:05d}-{''.join(letters)}"


def short(name: str) -> str:
    """The last part of a resource name."""
    return name.rpartition("/")[2]


def new_revision(name: str, service: Json, now: float) -> Json:
    """A new revision of the service's template, not ready yet."""
    template = service["template"]
    return {
        "name": name,
        "uid": service["uid"][:-12] + f"{int(now * 1000) % 16**12:012x}",
        "generation": "1",
        "createTime": timestamp(now),
        "updateTime": timestamp(now),
        "service": short(service["name"]),
        "launchStage": service.get("launchStage", "GA"),
        "reconciling": True,
        "observedGeneration": "1",
        "logUri": logs_url(short(service["name"]), short(name)),
        "etag": f'"{short(name)}"',
        "conditions": [condition(kind, "CONDITION_PENDING", now) for kind in ("Ready", *_REVISION_CONDITIONS)],
    } | {key: template[key] for key in _PER_REVISION if key in template}


def condition(kind: str, state: str, now: float, message: str = "", reason: Json | None = None) -> Json:
    """One Condition."""
    body: Json = {"type": kind, "state": state}
    if message:
        body["message"] = message
    if state == "CONDITION_FAILED":
        body["severity"] = "ERROR"
    return body | {"lastTransitionTime": timestamp(now)} | (reason or {})


def ready_revision(revision: Json, now: float) -> Json:
    """The revision once its first instance is healthy."""
    conditions = [condition(kind, "CONDITION_SUCCEEDED", now) for kind in ("Ready", *_REVISION_CONDITIONS)]
    return revision | {"reconciling": False, "conditions": conditions, "updateTime": timestamp(now)}


def failed_revision(revision: Json, failure: RevisionFailureError, now: float) -> Json:
    """The revision that will never be ready."""
    message = failure_message(revision["name"], failure)
    conditions = [condition("Ready", "CONDITION_FAILED", now, message, failure.reason)]
    for kind in _REVISION_CONDITIONS:
        if kind == failure.condition:
            conditions.append(condition(kind, "CONDITION_FAILED", now, failure.text, failure.reason))
            break
        conditions.append(condition(kind, "CONDITION_SUCCEEDED", now))
    return revision | {"reconciling": False, "conditions": conditions, "updateTime": timestamp(now)}


def failure_message(revision: str, failure: RevisionFailureError) -> str:
    """Message of the operation and the service about a failed revision."""
    text = f"Revision '{short(revision)}' is not ready and cannot serve traffic. {failure.text}"
    if failure.condition == "ContainerHealthy":
        service = short(revision).rpartition("-")[0].rpartition("-")[0]
        text += (
            f" Logs for this revision might contain more information.\n\nLogs URL: {logs_url(service, short(revision))}"
        )
    return text


def logs_url(service: str, revision: str) -> str:
    """Console URL of the log of a revision."""
    return (
        f"https://console.cloud.google.com/logs/viewer?project={PROJECT}&resource=cloud_run_revision/"
        f"service_name/{service}/revision_name/{revision}"
    )


def pending_status(now: float) -> Json:
    """The service's status while a revision starts."""
    return {
        "reconciling": True,
        "terminalCondition": condition("Ready", "CONDITION_RECONCILING", now),
        "conditions": [
            condition(kind, "CONDITION_RECONCILING", now) for kind in ("RoutesReady", "ConfigurationsReady")
        ],
    }


def ready_status(service: Json, now: float) -> Json:
    """The service's status when it matches its spec."""
    return {
        "reconciling": False,
        "observedGeneration": service["generation"],
        "terminalCondition": condition("Ready", "CONDITION_SUCCEEDED", now),
        "conditions": [condition(kind, "CONDITION_SUCCEEDED", now) for kind in ("RoutesReady", "ConfigurationsReady")],
        "trafficStatuses": [dict(target) for target in service["traffic"]],
    }


def failed_status(service: Json, revision: str, failure: RevisionFailureError, now: float) -> Json:
    """The service's status when its newest revision failed; an older ready one keeps its traffic."""
    message = failure_message(revision, failure)
    serves = bool(service.get("latestReadyRevision"))
    routes = "CONDITION_SUCCEEDED" if serves else "CONDITION_FAILED"
    return {
        "reconciling": False,
        "observedGeneration": service["generation"],
        "terminalCondition": condition("Ready", "CONDITION_FAILED", now, message, failure.reason),
        "conditions": [
            condition("RoutesReady", routes, now, "" if serves else message, None if serves else failure.reason),
            condition("ConfigurationsReady", "CONDITION_FAILED", now, message, failure.reason),
        ],
    }
