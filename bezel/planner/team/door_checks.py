"""Checks of `access.keys`: a way past the door, a door that reaches no server, and names that the door cannot have.

Facts: a request from one Cloud Run service to another comes from outside of the project's networks unless it is sent
through one (Cloud Run's page on ingress, November 2026).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.base.names import PREFIX, SERVICE_LENGTH
from bezel.planner.base.problems import setting
from bezel.planner.cost.price_rows import UnpricedProblem, rows_to_add
from bezel.planner.team.door_plan import DOOR, door_bucket, door_name
from bezel_base.errors import Problem
from bezel_catalog import Price

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.planner.base.settings import Settings
    from bezel.planner.cost.door_cost import DoorCost

KEYS = f"`{setting('access')}: {{keys: true}}`"


def check_keys(settings: Settings, stack: str, project: str | None) -> Iterator[Problem]:
    """Check a stack with a door.

    Args:
        settings: of the stack.
        stack: its name.
        project: None where it is not known.
    """
    access = settings.access
    if not access.keys:
        return
    if access.public:
        yield Problem(
            setting("access.public"),
            True,
            f"anyone could call the server past the door, and {KEYS} would bound and count no one.",
            "remove it: a caller with a key reaches the door from anywhere.",
        )
    by_address = settings.address.domain is not None
    if access.ingress == "internal" or (access.ingress != "all" and not by_address):
        address = "" if access.ingress == "internal" else ", or give the stack an address, by which the door calls"
        yield Problem(
            setting("access.ingress"),
            access.ingress,
            f"the door of {KEYS} is outside of the project's networks: its requests get 404, and so does every caller "
            "with a key.",
            f"write all (every request still needs an identity or a key){address}, or remove the keys.",
        )
    name = door_name(settings, stack)
    if len(name) > SERVICE_LENGTH:
        yield Problem(
            setting("service_name"),
            settings.service_name,
            f"the door of {KEYS} is named {name}, and a name of Cloud Run has {SERVICE_LENGTH} characters at most.",
            f"shorten it to {SERVICE_LENGTH - len(DOOR) - 1} characters.",
        )
    if project and settings.weights.bucket == (bucket := door_bucket(project, name)):
        yield Problem(
            setting("weights.bucket"),
            bucket,
            f"it is the bucket of the door of {KEYS}: who reads the weights could read the keys' hashes, and who "
            "writes them could admit callers.",
            "name another bucket for the weights.",
        )


def check_door_price(cost: DoorCost | None, *, region: str) -> Iterator[Problem]:
    """Refuse a door whose price is unknown, so that no limit could hold.

    Args:
        cost: of the door; None without one.
        region: of it.
    """
    if cost is not None and cost.missing:
        yield UnpricedProblem(
            setting("region"),
            region,
            f"the price of the door of {KEYS} is unknown there, so the cost cannot be compared with any limit. "
            f"Missing price row: {'; '.join(cost.missing)}.",
            rows_to_add(line.price for line in cost.parts if not isinstance(line.price, Price)),
        )


def shared_door_warnings(name: str, stack: str) -> Iterator[str]:
    """What is to be known of a service or gateway that has the name of another stack's door.

    Args:
        name: of the service.
        stack: its own.
    """
    other = name.removeprefix(f"{PREFIX}-").removesuffix(f"-{DOOR}")
    if name.endswith(f"-{DOOR}") and other not in {"", stack}:
        yield (
            f"The door of a stack {other} would have the name {name} too, and Cloud Run refuses a second service of "
            f"one name in a region: if there is such a stack with keys, set {setting('service_name')}."
        )
