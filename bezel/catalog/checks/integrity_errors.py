"""Integrity errors of the catalogue: the row, its value, the consequence and the repair."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

_DATED = re.compile(r"20\d\d-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class Fault:
    """One integrity error.

    Attributes:
        row: file and row, e.g. "models.toml: gemma-4-12b-it".
        value: the wrong value, e.g. "weight_bytes = 0".
        consequence: the error that it would cause in a plan.
        repair: the edit that repairs it.
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
        """The place where it was read or measured."""


def check_dated(row: str, record: Sourced) -> Iterable[Fault]:
    """Every fact has a date and a source, without which it cannot be verified."""
    if not _DATED.fullmatch(record.as_of):
        yield Fault(
            row, f"as_of = {record.as_of!r}", "nobody can tell how old the fact is.", "write the month, e.g. 2026-11."
        )
    if not record.source.strip():
        yield Fault(row, "source = ''", "nobody can check the fact.", "say where it was read or measured.")


def check_between(row: str, name: str, value: float, low: float, high: float, consequence: str) -> Iterable[Fault]:
    """A value is within bounds that include every real one, so that a slip of a digit is noticed."""
    if not low <= value <= high:
        yield Fault(
            row, f"{name} = {value:g}", consequence, f"write a figure between {low:g} and {high:g}, or mend both."
        )
