"""Dated list prices, one row for each item and region. Data: prices.csv.

A missing row is unpriced: never 0, never another region's price. Leaves arithmetic to the planner.
"""

from __future__ import annotations

import csv
import functools
import io
from dataclasses import asdict, dataclass, fields
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from bezel_base.errors import Problem
from bezel_catalog.loader import DATA, DataFileError

if TYPE_CHECKING:
    from collections.abc import Iterable

PRICES = DATA / "prices.csv"
Key = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Price:
    """One list price in USD per `unit`, e.g. per gpu-second. `model` is the billing model, e.g. instance-based.

    `sku` is the id of the row in the Cloud Billing Catalog, "" where the price was not read there.
    """

    service: str
    item: str
    region: str
    model: str
    unit: str
    usd_per_unit: Decimal
    as_of: str
    source: str
    sku: str = ""

    @property
    def key(self) -> Key:
        """Service, item, region and billing model: the unique key of the row."""
        return self.service, self.item, self.region, self.model

    @property
    def is_derived(self) -> bool:
        """Whether the price was computed from another row or total instead of read for this region."""
        return self.source.startswith("derived")


@dataclass(frozen=True, slots=True)
class Unpriced:
    """The key of a row that the catalogue does not hold."""

    service: str
    item: str
    region: str
    model: str

    def __str__(self) -> str:
        return f"{self.service}, {self.item}, {self.region}, {self.model}"


def parse_prices(text: str) -> tuple[Price, ...]:
    """Return the rows of a price file in their order, with duplicate keys.

    Raises:
        DataFileError: a column is missing or too many, or a price is not a number.
    """
    reader = csv.reader(io.StringIO(text))
    names = [field.name for field in fields(Price)]
    if (header := next(reader, None)) != names:
        consequence = f"the columns are {', '.join(names)}."
        raise DataFileError(Problem("prices.csv: line 1", ",".join(header or []), consequence, "restore the header."))
    rows = []
    for line in reader:
        try:
            service, item, region, model, unit, usd, as_of, source, sku = line
            rows.append(Price(service, item, region, model, unit, Decimal(usd), as_of, source, sku))
        except (ValueError, InvalidOperation):
            consequence = f"a row has {len(names)} columns, the sixth of them a number."
            where = f"prices.csv: line {reader.line_num}"
            raise DataFileError(Problem(where, ",".join(line), consequence, "correct the line.")) from None
    return tuple(rows)


def format_prices(rows: Iterable[Price]) -> str:
    """Return the text of a price file with these rows, in their order; `parse_prices` reads it."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [field.name for field in fields(Price)], lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) | {"usd_per_unit": f"{row.usd_per_unit:f}"} for row in rows)
    return out.getvalue()


@functools.cache
def prices() -> dict[Key, Price]:
    """Return every row by (service, item, region, billing model).

    Raises:
        DataFileError: two rows have the same key, or a line is not a row.
    """
    rows: dict[Key, Price] = {}
    for row in parse_prices(PRICES.read_text(encoding="utf-8")):
        if row.key in rows:
            where = f"prices.csv: {', '.join(row.key)}"
            raise DataFileError(Problem(where, None, "the row occurs twice.", "keep the latest one."))
        rows[row.key] = row
    return rows


def price(service: str, item: str, region: str, model: str) -> Price | Unpriced:
    """Return the list price of an item in a region, or the key of the missing row."""
    return prices().get((service, item, region, model)) or Unpriced(service, item, region, model)
