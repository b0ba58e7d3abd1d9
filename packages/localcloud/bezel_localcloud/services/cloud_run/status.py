"""Conditions, names, etags and messages of services and revisions in run v2's words. Pure."""

import random
import string
import uuid
from collections.abc import Iterable
from typing import Any

from bezel_localcloud.core.json_types import Json, timestamp, without_zeros
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.services.cloud_run.failures import RevisionFailureError

LATEST = "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST"
_REVISION_CONDITIONS = ("ResourcesAvailable", "ContainerReady", "ContainerHealthy", "MinInstancesProvisioned")
_SERVICE_CONDITIONS = ("RoutesReady", "ConfigurationsReady")
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


def new_etag() -> str:
    """Return a new, unique etag."""
    return f'"{uuid.uuid4().hex[:12]}"'


def new_resource(name: str, now: float, **fields: Any) -> Json:
    """A new resource: the fields that all kinds share, and its own."""
    stamps = {"createTime": timestamp(now), "updateTime": timestamp(now)}
    return {"name": name, "uid": str(uuid.uuid4()), "generation": "1"} | stamps | {"etag": new_etag()} | fields


def typed_message(kind: str, row: Json) -> Json:
    """A message ("Service", "Job", "Execution") as the response or the metadata of an operation."""
    return {"@type": f"type.googleapis.com/google.cloud.run.v2.{kind}"} | without_zeros(row)


def conditions(kinds: Iterable[str], state: str, now: float) -> list[Json]:
    """Several Conditions in the same state."""
    return [condition(kind, state, now) for kind in kinds]


def new_revision(name: str, service: Json, now: float) -> Json:
    """A new revision of the service's template, not ready yet."""
    template = service["template"]
    return new_resource(
        name,
        now,
        uid=service["uid"][:-12] + f"{int(now * 1000) % 16**12:012x}",
        service=short(service["name"]),
        launchStage=service.get("launchStage", "GA"),
        reconciling=True,
        observedGeneration="1",
        logUri=logs_url(short(service["name"]), short(name)),
        etag=f'"{short(name)}"',
        conditions=conditions(("Ready", *_REVISION_CONDITIONS), "CONDITION_PENDING", now),
    ) | {key: template[key] for key in _PER_REVISION if key in template}


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
    new_conditions = conditions(("Ready", *_REVISION_CONDITIONS), "CONDITION_SUCCEEDED", now)
    return revision | {"reconciling": False, "conditions": new_conditions, "updateTime": timestamp(now)}


def is_ready(revision: Json) -> bool:
    """Whether a revision became ready, so that it can serve."""
    return any(
        each["type"] == "Ready" and each["state"] == "CONDITION_SUCCEEDED" for each in revision.get("conditions") or []
    )


def failed_revision(revision: Json, failure: RevisionFailureError, now: float) -> Json:
    """The revision that will never be ready."""
    message = failure_message(revision["name"], failure)
    met = _REVISION_CONDITIONS[: _REVISION_CONDITIONS.index(failure.condition)]
    new_conditions = [
        condition("Ready", "CONDITION_FAILED", now, message, failure.reason),
        *conditions(met, "CONDITION_SUCCEEDED", now),
        condition(failure.condition, "CONDITION_FAILED", now, failure.text, failure.reason),
    ]
    return revision | {"reconciling": False, "conditions": new_conditions, "updateTime": timestamp(now)}


def failure_message(revision: str, failure: RevisionFailureError) -> str:
    """Message of the operation and the service about a failed revision."""
    text = f"Revision '{short(revision)}' is not ready and cannot serve traffic. {failure.text}"
    if failure.condition == "ContainerHealthy":
        service = short(revision).rpartition("-")[0].rpartition("-")[0]
        url = logs_url(service, short(revision))
        text += f" Logs for this revision might contain more information.\n\nLogs URL: {url}"
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
        "conditions": conditions(_SERVICE_CONDITIONS, "CONDITION_RECONCILING", now),
    }


def ready_status(service: Json, now: float) -> Json:
    """The service's status when it matches its spec."""
    return {
        "reconciling": False,
        "observedGeneration": service["generation"],
        "terminalCondition": condition("Ready", "CONDITION_SUCCEEDED", now),
        "conditions": conditions(_SERVICE_CONDITIONS, "CONDITION_SUCCEEDED", now),
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
