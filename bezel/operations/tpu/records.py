"""Arguments, results and access that the operations on single leases share.

Owns how a lease is shown. What Google and a machine say about it is text from outside. Leaves out requests and
deletions (`create_lease`, `delete_lease`).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated

from pydantic import Field

from bezel.engine.project.lease_zones import lease_zones
from bezel.engine.project.project import checked_cloud_project, cloud_project_of
from bezel.leases.inventory import LeaseInventory, new_client
from bezel.leases.requests import PROVISIONING_MODELS
from bezel.leases.state.observation import Observation
from bezel.operations.arguments.model import Arguments, Reach
from bezel.operations.arguments.shared import Project, Zone
from bezel.operations.context import Context
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result, Usd, utc
from bezel.operations.tpu.stopping import stopping_clock, stopping_show
from bezel.planner.base.hardware import find_leased_hardware, leased_hardware
from bezel.planner.base.money import Amount, Priced, Unpriced
from bezel.planner.cost.lease_cost import Provisioning, lease_cost
from bezel_base.errors import Problem, UserError

_MOST_ZONES = 100
_WORD, _REASON = 100, 500
_MODELS: dict[str, Provisioning] = {"FLEX_START": "flex-start", "SPOT": "spot", "STANDARD": "on-demand"}
assert {model: name for name, model in PROVISIONING_MODELS.items()} == _MODELS  # noqa: S101 - the same table
TYPES = {"queued_resource": "tpu.googleapis.com/QueuedResource", "flex_start_vm": "compute.googleapis.com/Instance"}
"""Kind of a lease -> its type in Cloud Asset Inventory."""
NODE_TYPE = "tpu.googleapis.com/Node"

Name = Annotated[str, Field(pattern=r"^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$", examples=["dev-1"])]
"""Name of a lease, as of `bezel.leases.names.NAME`; it becomes a part of addresses."""
LeaseName = Annotated[Name, Reach.BEYOND, Field(description="its name, as `bezel tpu list` shows it")]


class PlaceArguments(Arguments):
    """Where leases are looked for."""

    project: Project = None
    zone: Annotated[tuple[Zone, ...], Reach.BEYOND] = Field(
        (), max_length=_MOST_ZONES, description="only these zones (default: all known)"
    )


class LeaseRecord(Result):
    """A lease as Google shows it."""

    name: str
    stack: str = Field(description="stack that requested it; bezel-by-hand for one that an operator requested")
    zone: str
    kind: str = Field(description="queued_resource, flex_start_vm, or node for a node whose request is gone")
    hardware: str | None = Field(description="e.g. v6e-4, or a machine type")
    state: str = Field(description="waiting, provisioning, active, ending, ended, failed or deleting")
    word: str = Field(description="Google's own word for the state")
    reason: str | None = Field(description="why it failed; null where it did not, or Google gives none")
    created_at: datetime | None
    active_at: datetime | None
    ends_at: datetime | None = Field(description="end of its run duration; null before it is active")
    max_run_seconds: float | None = Field(description="longest run duration; null without an end")
    node_state: str | None = Field(description="state of its machine")
    health: str | None = Field(description="the platform's verdict on the machine")
    address: str | None = Field(description="internal address of the machine")
    usd_per_hour: Usd | None = Field(description="price while its machine runs; null if unknown")


def record_of(lease: Observation) -> LeaseRecord:
    """A lease as a result."""
    price = hourly_of(lease)
    return LeaseRecord(
        name=lease.name,
        stack=clean_text(lease.stack, _WORD),
        zone=lease.zone,
        kind=lease.kind,
        hardware=_text(lease.hardware),
        state=str(lease.state),
        word=clean_text(lease.word, _WORD),
        reason=_text(lease.reason, _REASON),
        created_at=utc(lease.created_at),
        active_at=utc(lease.active_at),
        ends_at=utc(lease.ends_at),
        max_run_seconds=lease.run_seconds,
        node_state=_text(lease.node_state),
        health=_text(lease.health),
        address=_text(lease.address),
        usd_per_hour=price.usd if isinstance(price, Priced) else None,
    )


def hourly_of(lease: Observation) -> Amount:
    """The price of an hour of a lease's machine."""
    hardware = find_leased_hardware(lease.hardware) or next(
        (each for each in leased_hardware().values() if each.machine_type == lease.hardware), None
    )
    model = _MODELS.get(lease.provisioning_model)
    if hardware is None or model is None:
        return Unpriced(f"a price of {lease.hardware or 'unknown hardware'} as it was requested")
    return lease_cost(hardware, zone=lease.zone, provisioning=model).hourly


def project_of(context: Context, project: str | None) -> str:
    """The Google Cloud project that an argument names, else the environment.

    Raises:
        UserError: None is named, or its name cannot be that of a project.
    """
    return checked_cloud_project(project or cloud_project_of(context.environ))


@contextmanager
def inventory(
    context: Context, arguments: PlaceArguments, note: Callable[[str], None] | None = None
) -> Iterator[LeaseInventory]:
    """The leases of the project and the zones that the arguments name.

    Args:
        context: The context; gets the progress of a deletion.
        arguments: Project and zones.
        note: Gets what is not looked at, and why; None: it is progress.

    Raises:
        UserError: No project is named.
    """
    project = project_of(context, arguments.project)
    zones = tuple(dict.fromkeys(arguments.zone)) or lease_zones(context.project, note or context.show)
    with new_client(context.clock) as client:
        clock = stopping_clock(context)
        yield LeaseInventory(client, clock, project, zones, note or stopping_show(context), named=bool(arguments.zone))


def leases_named(leases: LeaseInventory, name: str) -> list[Observation]:
    """The leases of that name, in whatever zone.

    Raises:
        UserError: There is none.
        RestError: A zone could not be read.
    """
    matches = [lease for lease in leases.list() if lease.name == name]
    if not matches:
        repair = "choose a lease of `bezel tpu list`."
        raise UserError(Problem("NAME", name, "these zones contain no such lease of this program.", repair))
    return matches


def _text(value: str, limit: int = _WORD) -> str | None:
    return clean_text(value, limit) if value else None
