"""Zones of hardware: where it exists, is accepted, has quota, and what it costs. Requests no capacity.

Of a stack's hardware, or of any in the catalogue; an accelerator of Cloud Run has regions. Google states no capacity:
`bezel tpu find --probe` requests a lease and returns it, which this operation never does.
"""

from typing import Annotated

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import OptionalStack, Zone
from bezel.operations.context import Context
from bezel.operations.plan.plan import plan_of
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.operations.zones.hardware_names import hardware_named
from bezel.operations.zones.regions import find_regions
from bezel.operations.zones.zone_search import Search, Show, find, find_hardware
from bezel.planner import AnyPlan, LeasePlan, Plan
from bezel.planner.base.hardware import LeasedHardware, find_leased_hardware, leased_hardware
from bezel.planner.base.settings import PriceRow
from bezel_base.errors import NOT_SET, Problem, UserError, WrongValueError
from bezel_base.terminal.blocks import Block, Line, Table
from bezel_catalog import accelerators

_HEADS = ("zone", "hardware", "provisioning model", "quota", "USD per hour")
_UNKNOWN = "unknown"
_MOST = 30
_CAPACITY = "no API states capacity: `bezel tpu find` with `--probe` requests a lease and returns it at once"


class ZonesArguments(Arguments):
    """Which hardware."""

    stack: OptionalStack = Field(None, description="stack whose hardware it is")
    accelerator: Annotated[str | None, Reach.INSIDE, Option("NAME")] = Field(
        None, max_length=100, description="any other accelerator, e.g. v6e-4, nvidia-l4"
    )
    zone: Annotated[tuple[Zone, ...], Reach.INSIDE] = Field((), max_length=_MOST, description="only these zones")


class ZoneOffer(Result):
    """The hardware in a zone."""

    zone: str = Field(description="zone; of Cloud Run a region")
    accelerator: str = Field(description="the hardware's id in the catalogue")
    hardware: str = Field(description="yes, no, on invitation, not judged, or `? (reason)` if the API refused")
    provisioning_model: str = Field(
        description="accepted, refused or unknown, for the stack's provisioning model, else flex-start; or Cloud Run"
    )
    quota: str = Field(
        description="chips or machines that the project may use; no limit, unknown, not judged, or `? (reason)`"
    )
    usd_per_hour: str | None = Field(
        description="price of the whole lease, or of a smallest instance, in USD, decimal; null if unknown"
    )


class Zones(Result):
    """Zones of hardware."""

    stack: str | None
    project: str | None = Field(description="project whose quota is shown; null: none is named, nothing was asked")
    zones: tuple[ZoneOffer, ...]
    notes: tuple[str, ...] = Field(description="what the APIs refused, and what no API states")

    def page(self) -> tuple[Block, ...]:
        """A table of the zones."""
        several = len({each.accelerator for each in self.zones}) > 1
        rows = [
            (
                each.zone,
                *([each.accelerator] if several else []),
                *(each.hardware, each.provisioning_model, each.quota, each.usd_per_hour or _UNKNOWN),
            )
            for each in self.zones
        ]
        heads = (_HEADS[0], *(["accelerator"] if several else []), *_HEADS[1:])
        return (Table(heads, rows), *(Line(f"note: {note}") for note in self.notes))


def zones(context: Context, arguments: ZonesArguments) -> Zones:
    """The zones of hardware.

    Raises:
        UserError: Neither a stack nor an accelerator is named, the catalogue has no such one, or the stack cannot be
            planned.
    """
    notes: list[str] = []
    plan, project = _plan_and_project(context, arguments, notes)
    name = _name(arguments, plan)
    wanted = tuple(dict.fromkeys(arguments.zone))
    prices = () if plan is None else plan.settings.cost.prices
    offers: list[ZoneOffer] = []
    if (gpu := accelerators().get(name)) is not None:
        regions = tuple(dict.fromkeys(zone.rpartition("-")[0] for zone in wanted))
        rows = find_regions(gpu, regions, project, context.clock, notes.append, prices)
        offers += [_offer(name, row) for row in rows]
    for hardware in _leases_of(name):
        if isinstance(plan, LeasePlan) and hardware.id == plan.terms.hardware.id:
            own_zones = [choice.zone for choice in plan.terms.zones]
            rows = find(
                plan, wanted or _zones(hardware, own_zones), context.clock, probe_seconds=None, show=notes.append
            )
        else:
            rows = _find_any(context, hardware, wanted, project, prices, notes.append)
        offers += [_offer(hardware.id, row) for row in rows]
    return Zones(
        stack=arguments.stack,
        project=project,
        zones=tuple(offers),
        notes=tuple(clean_text(note, 500) for note in (*notes, _CAPACITY)),
    )


def _plan_and_project(
    context: Context, arguments: ZonesArguments, notes: list[str]
) -> tuple[AnyPlan | None, str | None]:
    """The plan of the stack that is named, and the project."""
    if arguments.stack is not None:
        return plan_of(context, arguments.stack)
    try:
        return None, context.cloud_project(None)
    except UserError:
        notes.append("no Google Cloud project is named (GOOGLE_CLOUD_PROJECT): quota and hardware are not judged")
        return None, None


def _name(arguments: ZonesArguments, plan: AnyPlan | None) -> str:
    if arguments.accelerator is not None:
        return hardware_named(arguments.accelerator)
    if isinstance(plan, LeasePlan):
        return plan.terms.hardware.id
    if isinstance(plan, Plan):
        return plan.service.accelerator
    consequence = "neither a stack nor an accelerator is named."
    known_ids = ", ".join([*accelerators(), *leased_hardware()])
    repair = f"name a stack, or add --accelerator with one of {known_ids}."
    raise WrongValueError(Problem("STACK, --accelerator", NOT_SET, consequence, repair))


def _leases_of(name: str) -> list[LeasedHardware]:
    """The leased hardware of that name, or the machines with that GPU."""
    if (hardware := find_leased_hardware(name)) is not None:
        return [hardware]
    return [each for each in leased_hardware().values() if each.gpu is not None and each.gpu.id == name]


def _find_any(
    context: Context,
    hardware: LeasedHardware,
    wanted: tuple[str, ...],
    project: str | None,
    prices: tuple[PriceRow, ...],
    show: Show,
) -> list[dict[str, str]]:
    search = Search(hardware, hardware.back_ends[0], "flex-start", project, prices)
    return find_hardware(search, wanted or _zones(hardware), context.clock, show)


def _zones(hardware: LeasedHardware, more: list[str] | None = None) -> tuple[str, ...]:
    return tuple(sorted({*hardware.zones, *hardware.zones_refused, *(more or ())}))


def _offer(accelerator: str, row: dict[str, str]) -> ZoneOffer:
    zone, hardware, model, quota, hourly = (row[name] for name in _HEADS)
    return ZoneOffer(
        zone=zone,
        accelerator=accelerator,
        hardware=hardware,
        provisioning_model=model,
        quota=quota,
        usd_per_hour=None if hourly == _UNKNOWN else hourly,
    )
