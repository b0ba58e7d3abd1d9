"""The door of a deployed stack, which admits callers by key: its bucket and its address by the state. Pure.

Leaves out what the bucket holds (`bezel.operations.keys`).
"""

from __future__ import annotations

from dataclasses import dataclass

from bezel.operations.deployment.deployment import DOOR_TYPE, Deployment

_BUCKET = f"{DOOR_TYPE}$gcp:storage/bucket:Bucket::"


@dataclass(frozen=True)
class DeployedDoor:
    """A door.

    Attributes:
        bucket: Bucket of its keys and of their use.
        url: Its address, "" if it is not recorded.
    """

    bucket: str
    url: str = ""


def door_of(deployment: Deployment) -> DeployedDoor | None:
    """The door of a deployment; None where it has none, or none with a bucket yet."""
    entries = [entry for entry in deployment.resources if entry.get("id") and not entry.get("delete")]
    bucket = next((str(entry["id"]) for entry in entries if _BUCKET in str(entry.get("urn"))), None)
    return None if bucket is None else DeployedDoor(bucket, deployment.door.uri if deployment.door else "")
