"""Cloud Monitoring: its metrics by name, with what decides how their points can be aligned, and its list prices.

Owns the look-up of the recorded list (data/metrics.toml) and of the prices by volume (data/monitoring_prices.toml).
Leaves out what is done with a metric, and what a stack writes.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

from bezel_catalog.loader import NotInCatalogueError, read_rows

SAMPLES, SERIES_READ = "samples", "time series read"


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: Its type, such as "run.googleapis.com/request_count".
        resource: Type of the monitored resource.
        kind: GAUGE or DELTA.
        value: Type of its values: INT64, DOUBLE, BOOL or DISTRIBUTION.
        labels: Names of its own labels.
        source: Where the list was read.
        date: When.
    """

    name: str
    resource: str
    kind: str
    value: str
    labels: tuple[str, ...]
    source: str
    date: str


@cache
def metrics() -> dict[str, Metric]:
    """Every recorded metric by its name."""
    table = tomllib.loads((Path(__file__).parent / "data" / "metrics.toml").read_text("utf-8"))
    by_name: dict[str, Metric] = {}
    for part in table.values():
        for resource, rows in part.items():
            if isinstance(rows, dict):
                by_name |= {
                    name: Metric(
                        name,
                        resource,
                        row["kind"],
                        row["value"],
                        tuple(row.get("labels", ())),
                        part["source"],
                        part["date"],
                    )
                    for name, row in rows.items()
                }
    return by_name


@dataclass(frozen=True, slots=True)
class VolumePrice:
    """Price of a million of an item in a month, above a number of millions, in USD."""

    id: str
    item: str
    above_millions: int
    usd_per_million: Decimal
    as_of: str
    source: str


@cache
def monitoring_prices(item: str) -> tuple[VolumePrice, ...]:
    """Prices of an item, from the smallest volume; below the first it is free.

    Raises:
        NotInCatalogueError: the item has no price.
    """
    rows = read_rows(VolumePrice, "monitoring_prices.toml").values()
    if item not in (items := {row.item for row in rows}):
        raise NotInCatalogueError("price of Cloud Monitoring", item, items)
    return tuple(sorted((row for row in rows if row.item == item), key=lambda row: row.above_millions))


def monitoring_usd(item: str, millions: Decimal) -> Decimal:
    """USD for so many millions of an item in a month, as if nothing else of the billing account had any."""
    usd, upper = Decimal(0), millions
    for row in reversed(monitoring_prices(item)):
        usd += max(Decimal(0), upper - row.above_millions) * row.usd_per_million
        upper = min(upper, Decimal(row.above_millions))
    return usd
