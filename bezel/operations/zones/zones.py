"""Zones of a stack's leased hardware: where it exists, is accepted, has quota, and what it costs. Requests no capacity.

Google states no capacity; `bezel tpu find --probe` requests a lease and returns it, which this operation never does.
"""

from typing import Annotated

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Reach
from bezel.operations.arguments.shared import Zone
from bezel.operations.context import Context
from bezel.operations.plan.plan import plan_of
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.operations.zones.zone_search import find
from bezel.planner import LeasePlan
from bezel_base.console import align_columns
from bezel_base.errors import Problem, UserError

_HEADS = ("zone", "hardware", "provisioning model", "quota", "USD per hour")
_UNKNOWN = "unknown"
_MOST = 30


class ZonesArguments(Arguments):
    """Which hardware, and where."""

    stack: Annotated[str, Reach.INSIDE] = Field(
        max_length=100, description="stack that names the hardware and the model"
    )
    zone: Annotated[tuple[Zone, ...], Reach.INSIDE] = Field(
        (), max_length=_MOST, description="search only these zones (default: every known zone)"
    )


class ZoneOffer(Result):
    """The hardware in a zone."""

    zone: str
    hardware: str = Field(description="yes, no, or `? (reason)` if the API refused")
    provisioning_model: str = Field(description="accepted, refused or unknown, for the stack's provisioning model")
    quota: str = Field(description="chips or machines that the project may use; no limit, unknown, or `? (reason)`")
    usd_per_hour: str | None = Field(description="price of the whole lease in USD, decimal; null if unknown")


class Zones(Result):
    """Zones of a stack's hardware."""

    stack: str
    project: str
    zones: tuple[ZoneOffer, ...]
    notes: tuple[str, ...] = Field(description="what the APIs refused, and what no API states")

    def text(self) -> str:
        """A table of the zones."""
        rows = [
            (each.zone, each.hardware, each.provisioning_model, each.quota, each.usd_per_hour or _UNKNOWN)
            for each in self.zones
        ]
        return "\n".join([*align_columns(_HEADS, rows), *(f"note: {note}" for note in self.notes)]) + "\n"


def zones(context: Context, arguments: ZonesArguments) -> Zones:
    """The zones of a stack's hardware.

    Raises:
        UserError: The stack cannot be planned, or leases nothing.
    """
    plan, project = plan_of(context, arguments.stack)
    if not isinstance(plan, LeasePlan):
        consequence = "the stack leases nothing: Cloud Run owns its accelerator."
        raise UserError(Problem("STACK", arguments.stack, consequence, "choose a stack with `bezel:lease`."))
    hardware = plan.terms.hardware
    hardware_zones = {*hardware.zones, *hardware.zones_refused, *(choice.zone for choice in plan.terms.zones)}
    wanted = tuple(dict.fromkeys(arguments.zone)) or tuple(sorted(hardware_zones))
    notes: list[str] = []
    rows = find(plan, wanted, context.clock, probe_seconds=None, show=notes.append)
    notes.append("no API states capacity: `bezel tpu find` with `--probe` requests a lease and returns it at once")
    return Zones(
        stack=arguments.stack,
        project=project,
        zones=tuple(_offer(row) for row in rows),
        notes=tuple(clean_text(note, 500) for note in notes),
    )


def _offer(row: dict[str, str]) -> ZoneOffer:
    zone, hardware, model, quota, hourly = (row[name] for name in _HEADS)
    usd = None if hourly == _UNKNOWN else hourly
    return ZoneOffer(zone=zone, hardware=hardware, provisioning_model=model, quota=quota, usd_per_hour=usd)
