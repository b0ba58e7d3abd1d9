"""Integrity errors of the catalogue, as problems: the row and its field, the value, the consequence and the repair."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol

from bezel_base.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

_DATED = re.compile(r"20\d\d-(0[1-9]|1[0-2])")


class Sourced(Protocol):
    """Any record of the catalogue."""

    @property
    def as_of(self) -> str:
        """The month of the fact, e.g. 2026-11."""

    @property
    def source(self) -> str:
        """The place where it was read or measured."""


def check_dated(row: str, record: Sourced) -> Iterable[Problem]:
    """Every fact has a date and a source, without which it cannot be verified."""
    if not _DATED.fullmatch(record.as_of):
        yield Problem(f"{row}: as_of", record.as_of, "the fact has no known age.", "write the month, e.g. 2026-11.")
    if not record.source.strip():
        yield Problem(f"{row}: source", "", "the fact cannot be verified.", "say where it was read or measured.")


def check_between(row: str, name: str, value: float, low: float, high: float, consequence: str) -> Iterable[Problem]:
    """A value is within bounds that include every real one, so that a slip of a digit is noticed."""
    if not low <= value <= high:
        repair = f"write a figure between {low:g} and {high:g}, or correct both."
        yield Problem(f"{row}: {name}", f"{value:g}", consequence, repair)


def check_known(row: str, name: str, value: str, choices: Collection[str], consequence: str) -> Iterable[Problem]:
    """A name is one of the known ones."""
    if value not in choices:
        yield Problem(f"{row}: {name}", value, consequence, f"choose one of {', '.join(choices)}.")
