"""What is wrong with a row of the catalogue: where, what stands there, what it would cause, how it is mended."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

_DATED = re.compile(r"20\d\d-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that must not stand in the catalogue.

    Attributes:
        row: file and row, e.g. "models.toml: gemma-4-12b-it".
        value: what stands there, e.g. "weight_bytes = 0".
        consequence: what a plan would get wrong.
        repair: the edit that mends it.
    """

    row: str
    value: str
    consequence: str
    repair: str

    def __str__(self) -> str:
        return f"{self.row}: {self.value}\n   {self.consequence}\n   Repair: {self.repair}"


class Sourced(Protocol):
    """Any record of the catalogue."""

    @property
    def as_of(self) -> str:
        """The month of the fact, e.g. 2026-11."""

    @property
    def source(self) -> str:
        """Where it was read or measured."""


def check_dated(row: str, record: Sourced) -> Iterable[Fault]:
    """A fact without a date and a source cannot be checked by anyone."""
    if not _DATED.fullmatch(record.as_of):
        yield Fault(
            row, f"as_of = {record.as_of!r}", "nobody can tell how old the fact is.", "write the month, e.g. 2026-11."
        )
    if not record.source.strip():
        yield Fault(row, "source = ''", "nobody can check the fact.", "say where it was read or measured.")


def check_between(row: str, name: str, value: float, low: float, high: float, consequence: str) -> Iterable[Fault]:
    """A figure within bounds that leave room for every real one, so that a slip of a digit is noticed."""
    if not low <= value <= high:
        yield Fault(
            row, f"{name} = {value:g}", consequence, f"write a figure between {low:g} and {high:g}, or mend both."
        )
