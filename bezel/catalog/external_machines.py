"""Machines of other platforms that the product is compared with and never deploys to. Data: comparison.toml."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from bezel.catalog.loader import DataFileError, make, read_toml


@dataclass(frozen=True, slots=True)
class ComparedMachine:
    """One machine with `count` accelerators, whose memory and rates are those of the catalogue's `accelerator`.

    `usd_per_hour` is the list price of the whole machine; None is unpriced, and `source` holds the reason.
    """

    id: str
    title: str
    platform: str
    accelerator: str
    count: int
    usd_per_hour: Decimal | None
    region: str
    as_of: str
    source: str


@functools.cache
def compared_machines() -> dict[str, ComparedMachine]:
    """Return every machine of the comparison by id, e.g. "ec2-g6-xlarge"."""
    found = {}
    for name, row in read_toml("comparison.toml").items():
        where, usd = f"comparison.toml: {name}", row.pop("usd_per_hour", None)
        try:
            price = None if usd is None else Decimal(usd)
        except (InvalidOperation, TypeError):
            raise DataFileError(f"{where}: usd_per_hour = {usd!r} is no number in quotation marks") from None
        found[name] = make(ComparedMachine, where, row, id=name, usd_per_hour=price)
    return found
