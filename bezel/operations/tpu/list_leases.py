"""List of a project's leases: those of every stack, and those that an operator requested.."""

from collections.abc import Iterator

from pydantic import Field

from bezel.leases.clock import rfc3339
from bezel.operations.context import Context
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.operations.tpu.records import LeaseRecord, PlaceArguments, inventory, record_of
from bezel.planner.base.money import round_usd
from bezel_base.terminal.blocks import Block, Line, Table, mark

_HEADS = ("lease", "stack", "zone", "hardware", "state", "ends", "USD per hour", "address")
_MOST = 200


class ListArguments(PlaceArguments):
    """Where leases are listed."""


class Leases(Result):
    """Leases of a project."""

    leases: tuple[LeaseRecord, ...]
    notes: tuple[str, ...] = Field(description="what was not looked at, and why; how many leases are left out")

    def page(self) -> Iterator[Block]:
        """A table of the leases."""
        rows = [
            (
                *(each.name, each.stack, each.zone, each.hardware or "-"),
                mark(f"{each.state} ({each.word})" if each.word else each.state),
                *(rfc3339(each.ends_at.timestamp() if each.ends_at else None) or "-", _price(each)),
                each.address or "-",
            )
            for each in self.leases
        ]
        yield Table(_HEADS, rows) if rows else Line("no leases of this program in these zones")
        yield from (Line(f"note: {note}") for note in self.notes)


def list_leases(context: Context, arguments: ListArguments) -> Leases:
    """The leases of a project.

    Raises:
        UserError: No project is named, or no API knows a named zone.
        RestError: A zone could not be read: a list without it would look complete.
    """
    notes: list[str] = []
    with inventory(context, arguments, notes.append) as leases:
        observations = leases.list()
    if len(observations) > _MOST:
        notes.append(f"{len(observations) - _MOST} further leases: name zones to see them")
    records = tuple(record_of(lease) for lease in observations[:_MOST])
    return Leases(leases=records, notes=tuple(clean_text(note, 500) for note in notes))


def _price(lease: LeaseRecord) -> str:
    return "unknown" if lease.usd_per_hour is None else round_usd(lease.usd_per_hour, 2)
