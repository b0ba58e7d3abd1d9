"""Metrics of Cloud Monitoring by their names, with what decides how their points can be aligned.

Owns the look-up of the recorded list (data/metrics.toml). Leaves out what is done with a metric.
"""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path


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
