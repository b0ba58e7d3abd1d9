"""Description of a lease: its state, the boot of its machine, and the end of the machine's console."""

from collections.abc import Iterator
from datetime import datetime

from pydantic import Field

from bezel.leases.clock import rfc3339
from bezel.operations.context import Context
from bezel.operations.redaction import clean_text, cleaned_lines
from bezel.operations.results import Result, utc
from bezel.operations.tpu.records import LeaseName, LeaseRecord, PlaceArguments, inventory, leases_named, record_of
from bezel.planner.base.money import round_usd
from bezel_base.terminal.blocks import Block, Line, NamedValues, Role, mark


class DescribeArguments(PlaceArguments):
    """Which lease."""

    name: LeaseName


class BootPhase(Result):
    """A step of a machine's boot, as the machine reports it."""

    name: str = Field(description="network, image, weights, compile or healthy")
    state: str = Field(description="running, done or failed")
    at: datetime | None = Field(description="when it began")
    detail: str


class LeaseDescription(Result):
    """A lease with its machine."""

    lease: LeaseRecord
    phases: tuple[BootPhase, ...] = Field(description="steps of the boot so far; empty before the first")
    console: tuple[str, ...] = Field(description="end of the machine's console; empty where the API has none")


class LeaseDescriptions(Result):
    """Every lease of a name: one in each zone that has one."""

    leases: tuple[LeaseDescription, ...]

    def page(self) -> Iterator[Block]:
        """The leases, each with its fields, its boot and its console."""
        for number, each in enumerate(self.leases):
            yield from (Line(),) if number else ()
            yield from _blocks(each)


def describe_lease(context: Context, arguments: DescribeArguments) -> LeaseDescriptions:
    """The leases of a name.

    Raises:
        UserError: There is none, or no project is named.
        RestError: A zone or a machine could not be read.
    """
    with inventory(context, arguments) as leases:
        return LeaseDescriptions(
            leases=tuple(
                LeaseDescription(
                    lease=record_of(lease),
                    phases=tuple(
                        BootPhase(
                            name=phase.name,
                            state=clean_text(phase.state, 40),
                            at=utc(phase.at or None),
                            detail=clean_text(phase.detail, 500),
                        )
                        for phase in boot.values()
                    ),
                    console=tuple(cleaned_lines(["\n".join(console)])) if console else (),
                )
                for lease in leases_named(leases, arguments.name)
                for boot, console in [leases.boot(lease)]
            )
        )


def _blocks(described: LeaseDescription) -> Iterator[Block]:
    lease = described.lease
    ends = rfc3339(lease.ends_at.timestamp()) if lease.ends_at else None
    rows = [
        ("stack", lease.stack),
        ("hardware", lease.hardware),
        ("state", mark(f"{lease.state} ({lease.word})" if lease.word else lease.state)),
        ("reason", lease.reason),
        ("machine", lease.node_state),
        ("health", lease.health),
        ("address", lease.address),
        ("ends", ends),
        ("USD per hour", "unknown" if lease.usd_per_hour is None else round_usd(lease.usd_per_hour, 2)),
        *((f"boot: {phase.name}", f"{phase.state} {phase.detail}".rstrip()) for phase in described.phases),
    ]
    yield Line(f"{lease.name} in {lease.zone}", Role.HEADING)
    yield NamedValues(rows)
    if described.console:
        yield Line("  console")
        yield from (Line(f"    {line}", is_verbatim=True) for line in described.console)
