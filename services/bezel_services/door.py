"""Door of a service for callers by key: its image, the door in front of the server, its check, and what watches it.

It is made last, after the server has passed its checks and has its address: callers by key are let in to what works.
It calls the address, where there is one, with that as its audience, and the first service else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pulumi

from bezel.planner import AnyPlan
from bezel.planner.team.door_plan import DoorPlan
from bezel.planner.team.series_labels import SECRETS_OF_STACKS
from bezel_services.children import Children
from bezel_services.images import FoundImages
from bezel_services.prerequisites import container_image

if TYPE_CHECKING:
    from bezel_components.door.key_door import KeyDoor
    from bezel_components.enabled_apis import EnabledApis
    from bezel_components.observability.door_figures import DoorFigures
    from bezel_services.regions.address import DeclaredAddress
    from bezel_smoke.door import DoorCheck


@dataclass(frozen=True)
class DeclaredDoor:
    """A door and its check.

    Attributes:
        door: The door.
        check: The check that it refuses callers without a key.
    """

    door: "KeyDoor"
    check: "DoorCheck"


@dataclass(frozen=True)
class ServerBehindDoor:
    """What a door calls.

    Attributes:
        url: URL of the first service.
        address: The address in front of all; None without one.
        services: Region -> name of the Cloud Run service there.
        repository_id: Id of the repository of the server's image, which that of the door's is named after.
        labels: Labels of the server, which the door has too.
        deletion_protection: Whether the server is protected from deletion.
    """

    url: pulumi.Output[str]
    address: "DeclaredAddress | None"
    services: Mapping[str, str]
    repository_id: str
    labels: Mapping[str, str]
    deletion_protection: bool


def declare_door(
    plan: AnyPlan,
    children: Children,
    images: FoundImages,
    apis: "EnabledApis",
    server: ServerBehindDoor,
    *earlier: pulumi.Resource,
) -> DeclaredDoor | None:
    """Declare the door of a plan; None where it has none.

    Args:
        plan: Plan of the service.
        children: Children of its component.
        images: The plan's images with their digests.
        apis: The enabled APIs.
        server: What the door calls.
        earlier: What has to be there first.
    """
    planned = plan.door
    if planned is None:
        return None
    from bezel_components.door.key_door import KeyDoor, KeyDoorArgs
    from bezel_smoke.door import DoorCheck, DoorCheckArgs

    image = container_image(
        "door-image",
        images.by_plan[planned.image],
        children,
        project=plan.project,
        location=planned.region,
        repository_id=f"{server.repository_id}-door",
        labels=server.labels,
        earlier=(apis,),
    )
    behind = () if server.address is None else (server.address.address, server.address.check)
    door = KeyDoor(
        children.name_of("door"),
        KeyDoorArgs(
            project=plan.project,
            location=planned.region,
            service=planned.name,
            account_id=planned.service_account_id,
            image=image.reference,
            secret_id=f"{SECRETS_OF_STACKS}{planned.name}-program",
            bucket=planned.bucket,
            upstream=server.url if server.address is None else server.address.url,
            servers=server.services,
            max_instances=planned.max_instances,
            request_concurrency=planned.request_concurrency,
            timeout_seconds=planned.timeout_seconds,
            deletion_protection=server.deletion_protection,
            labels=server.labels,
        ),
        opts=children.after(apis, image, *earlier, *behind),
    )
    check = DoorCheck(
        children.name_of("door-check"),
        DoorCheckArgs(service=door.resource_name, url=door.url, revision=door.created_revision),
        opts=children.after(door),
    )
    _observability(plan, planned, children, door, server.labels)
    return DeclaredDoor(door, check)


def door_figures(plan: AnyPlan) -> "DoorFigures | None":
    """The use of a door's keys, for the dashboard; None without a door."""
    if plan.door is None:
        return None
    from bezel_components.observability.door_figures import DoorFigures

    return DoorFigures(service=plan.door.name, location=plan.door.region)


def _observability(
    plan: AnyPlan, planned: DoorPlan, children: Children, door: "KeyDoor", labels: Mapping[str, str]
) -> None:
    """What watches the door, where the stack file asks for it; made after the door, deleted before it."""
    chosen = plan.settings.observability
    if not (chosen.alerts or chosen.dashboard):
        return
    from bezel_components.observability.door_figures import DoorFigures
    from bezel_components.observability.door_observability import DoorObservability, DoorObservabilityArgs

    args = DoorObservabilityArgs(
        project=plan.project,
        figures=DoorFigures(service=planned.name, location=planned.region),
        metrics=chosen.dashboard,
        alerts=chosen.alerts,
        email=chosen.email or "",
        max_error_share=chosen.max_error_share,
        labels=labels,
    )
    DoorObservability(children.name_of("door-observability"), args, opts=children.after(door))
