"""DoorPlan: the service that admits callers by key and calls the stack's servers with its own identity.

Owns its names, size and place. Leaves keys and their use to the door itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.planner.base.deployment import ImagePlan
from bezel.planner.base.names import ACCOUNT_LENGTH, SERVICE_LENGTH, resource_name
from bezel.planner.team.door_cost import DOOR_INSTANCES, DoorCost, door_cost

if TYPE_CHECKING:
    from bezel.planner.base.settings import Settings

DOOR = "door"
# Python alone, as its maintainers publish it: the door is one archive of modules of the standard library.
DOOR_IMAGE = ImagePlan("docker.io", "library/python", "3.13-slim")


@dataclass(frozen=True, slots=True)
class DoorPlan:
    """The door of a stack; it scales to zero, and callers with an identity of Google go past it.

    Attributes:
        name: of its service.
        region: of its service, the stack's first.
        image: that runs its archive.
        max_instances: at a time.
        timeout_seconds: time limit of a request with its whole response, the stack's own.
        bucket: of its keys and of their use.
        service_account_id: account as which it calls the servers.
        cost: while it serves.
    """

    name: str
    region: str
    image: ImagePlan
    max_instances: int
    timeout_seconds: int
    bucket: str
    service_account_id: str
    cost: DoorCost


def door_name(settings: Settings, stack: str) -> str:
    """Name of a door: that of the service or gateway, and `-door`."""
    if settings.service_name:
        return f"{settings.service_name}-{DOOR}"
    return resource_name(stack, suffix=DOOR, length=SERVICE_LENGTH)


def door_plan(settings: Settings, *, project: str, stack: str, region: str) -> DoorPlan | None:
    """The door of a stack; None where it has none.

    Args:
        settings: of the stack.
        project: whose id begins the bucket's name, since names of buckets are global.
        stack: its name.
        region: the first of a service, or that of a gateway.
    """
    if not settings.access.keys:
        return None
    name = door_name(settings, stack)
    return DoorPlan(
        name=name,
        region=region,
        image=DOOR_IMAGE,
        max_instances=DOOR_INSTANCES,
        timeout_seconds=settings.scaling.request_timeout_seconds,
        bucket=f"{project}-{name}",
        service_account_id=resource_name(stack, suffix=DOOR, length=ACCOUNT_LENGTH),
        cost=door_cost(settings, region=region),
    )
