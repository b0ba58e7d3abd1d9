"""DoorPlan: the service that admits callers by key and calls the stack's servers with its own identity.

Owns its names, size and place. Leaves keys and their use to the door itself.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.base.deployment import ImagePlan
from bezel.planner.base.names import ACCOUNT_LENGTH, SERVICE_LENGTH, resource_name
from bezel.planner.rules.storage_checks import is_bucket

if TYPE_CHECKING:
    from bezel.planner.base.settings import Settings
    from bezel.planner.cost.door_cost import DoorCost

DOOR = "door"
# Python alone: the door is an archive of modules that need no other. A later patch release exists, so this tag stays
# where it is, and a deploy has the image of its review.
DOOR_IMAGE = ImagePlan("docker.io", "library/python", "3.13.14-slim-bookworm")
# Streams at a time in one instance: each passes some 30 chunks a second, at 0.1 ms of its vCPU each.
DOOR_CONCURRENCY = 250
_LEAST_INSTANCES = 2  # one takes over while the other is replaced
_MOST_INSTANCES = 20


@dataclass(frozen=True, slots=True)
class DoorPlan:
    """The door of a stack; it scales to zero, and callers with an identity of Google go past it.

    Attributes:
        name: of its service.
        region: of its service, the stack's first.
        image: that runs its archive.
        max_instances: at a time.
        request_concurrency: requests at a time in one instance.
        timeout_seconds: time limit of a request with its whole response, the stack's own.
        bucket: of its keys and of their use.
        service_account_id: account as which it calls the servers.
        cost: while it serves.
    """

    name: str
    region: str
    image: ImagePlan
    max_instances: int
    request_concurrency: int
    timeout_seconds: int
    bucket: str
    service_account_id: str
    cost: DoorCost

    def as_output(self) -> dict[str, object]:
        """Plain values for a stack's output."""
        return {
            "service": self.name,
            "region": self.region,
            "bucket": self.bucket,
            "max_instances": self.max_instances,
            "cost": self.cost.as_output(),
        }


def door_name(settings: Settings, stack: str) -> str:
    """Name of a door: that of the service or gateway, and `-door`."""
    if settings.service_name:
        return f"{settings.service_name}-{DOOR}"
    return resource_name(stack, suffix=DOOR, length=SERVICE_LENGTH)


def door_bucket(project: str, name: str) -> str:
    """Name of a door's bucket; of another form where Cloud Storage would refuse `<project>-<name>`.

    Too long a name is refused, one with a domain of a project, and one that contains google.
    """
    bucket = f"{project}-{name}"
    if "." not in bucket and is_bucket(bucket):
        return bucket
    return f"bezel-{DOOR}-{hashlib.sha256(bucket.encode()).hexdigest()[:20]}"


def door_instances(requests: int) -> int:
    """Most instances of a door in front of servers that take so many requests at a time in all."""
    return min(_MOST_INSTANCES, max(_LEAST_INSTANCES, -(-requests // DOOR_CONCURRENCY) + 1))


def door_plan(settings: Settings, cost: DoorCost | None, *, project: str, stack: str, region: str) -> DoorPlan | None:
    """The door of a stack; None where it has none.

    Args:
        settings: of the stack.
        cost: of the door; None without one.
        project: whose id begins the bucket's name, since names of buckets are global.
        stack: its name.
        region: the first of a service, or that of a gateway.
    """
    if cost is None:
        return None
    name = door_name(settings, stack)
    return DoorPlan(
        name=name,
        region=region,
        image=DOOR_IMAGE,
        max_instances=cost.max_instances,
        request_concurrency=DOOR_CONCURRENCY,
        timeout_seconds=settings.scaling.request_timeout_seconds,
        bucket=door_bucket(project, name),
        service_account_id=resource_name(stack, suffix=DOOR, length=ACCOUNT_LENGTH),
        cost=cost,
    )
