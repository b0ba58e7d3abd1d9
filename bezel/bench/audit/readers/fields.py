"""Access to the fields of other tools' documents: dotted paths, statistics of a metric, and what no reader reads.

Leaves out which fields a format has: reports.toml and the readers.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bezel.bench.audit.figure import Figure, figure, number
from bezel.bench.audit.spread import Spread

SECONDS = {"s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SECONDS_PER_TOKEN = {f"{unit}/token": factor for unit, factor in SECONDS.items()}
# Names of quantiles in all formats, with their shares.
QUANTILES = {
    "p0.1": 0.001, "p0p1": 0.001, "p001": 0.001, "p1": 0.01, "p01": 0.01, "p5": 0.05, "p05": 0.05, "p10": 0.10,
    "p20": 0.20, "p25": 0.25, "p30": 0.30, "p40": 0.40, "median": 0.50, "p50": 0.50, "p60": 0.60, "p70": 0.70,
    "p75": 0.75, "p80": 0.80, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "p99p9": 0.999, "p999": 0.999,
}  # fmt: skip
_UNITS = ("unit", "units")


@dataclass(frozen=True)
class Fields:
    """A document whose values are named by dotted paths; in a flat one the names are joined by "_" instead."""

    document: Any
    flat: bool = False

    def at(self, path: str) -> Any:
        """Return the value at a path, whose numbers count in lists; None where it leads nowhere."""
        if not path:
            return self.document
        if self.flat:
            return self.document.get(path.replace(".", "_"))
        value = self.document
        for name in path.split("."):
            if isinstance(value, list) and name.lstrip("-").isdigit():
                value = value[int(name)] if -len(value) <= int(name) < len(value) else None
            else:
                value = value.get(name) if isinstance(value, Mapping) else None
        return value

    def below(self, path: str, name: str) -> Any:
        """Return a statistic below a metric; names with dots ("p99.9") are one name."""
        metric = self.at(path) if not self.flat else None
        if isinstance(metric, Mapping) and name in metric:
            return metric[name]
        return self.at(f"{path}.{name}" if name else path)

    def first(self, paths: Iterable[str]) -> Any:
        """Return the first value that one of the paths leads to."""
        return next((found for path in paths if (found := self.at(path)) is not None), None)


@dataclass(frozen=True)
class Statistics:
    """Where a format holds the statistics of a metric, below its path."""

    mean: str
    median: str
    deviation: str
    least: str
    most: str
    quantiles: str

    def mean_of(self, fields: Fields, path: str) -> Any:
        """Return the mean of a metric, or the metric itself where it is a plain number."""
        plain = fields.at(path)
        return plain if isinstance(plain, int | float) else fields.below(path, self.mean)

    def spread(self, fields: Fields, path: str, factor: float) -> Spread:
        """Return the spread of a metric in the unit that `factor` gives."""
        found: dict[str, Figure] = {}
        for name in ("mean", "deviation", "least", "most"):
            if value := figure(fields.below(path, getattr(self, name))):
                found[name] = value
        quantiles: dict[float, Figure] = {}
        place = f"{path}.{self.quantiles}" if self.quantiles else path
        for name, share in QUANTILES.items():
            if value := figure(fields.below(place, name)):
                quantiles[share] = value
        if median := figure(fields.below(path, self.median)):
            quantiles[0.5] = median
        halves = [value.half for value in (*found.values(), *quantiles.values())]
        return Spread(
            mean=_scaled(found.get("mean"), factor),
            deviation=_scaled(found.get("deviation"), factor),
            least=_scaled(found.get("least"), factor),
            most=_scaled(found.get("most"), factor),
            quantiles={share: value.value * factor for share, value in quantiles.items()},
            half=max(halves, default=0.0) * factor,
        )


def unit_factor(metric: Any, default: float) -> float | None:
    """Return the factor to seconds by the unit stated beside a time, else the default; None for an unknown unit."""
    unit = next((metric[name] for name in _UNITS if metric.get(name)), None) if isinstance(metric, Mapping) else None
    if not isinstance(unit, str):
        return default
    return (SECONDS | _SECONDS_PER_TOKEN).get(unit.strip().lower())


def unread(document: Any, read: Iterable[str], settings: Iterable[str]) -> tuple[str, ...]:
    """Return the names of figures in a document that no path in `read` leads to; lists are not looked into.

    Args:
        document: Of nested mappings.
        read: Paths of metrics that are read, with everything below them.
        settings: Paths of what is no figure.
    """
    known = (*read, *settings)
    names: dict[str, None] = {}
    for path in _numbers(document, "", set()):
        if not any(path == each or path.startswith(f"{each}.") for each in known if each):
            names[_metric(path)] = None
    return tuple(names)


def _numbers(value: Any, path: str, above: set[int]) -> Iterator[str]:
    """Yield the path of each number; a part that contains itself (YAML allows it) is walked once."""
    if isinstance(value, Mapping):
        if id(value) in above:
            return
        above.add(id(value))
        for name, part in value.items():
            yield from _numbers(part, f"{path}.{name}" if path else str(name), above)
    elif isinstance(value, int | float) and not isinstance(value, bool) and number(value) is not None:
        yield path


def _metric(path: str) -> str:
    """Return the metric of which a path names a statistic."""
    statistics = {
        "mean", "avg", "std", "stddev", "std_dev", "variance", "mode", "min", "max", "count", "sum", "total_sum",
        *QUANTILES,
    }  # fmt: skip
    for dotted in ("p0.1", "p99.9"):
        path = path.removesuffix(f".{dotted}")
    names = path.split(".")
    while len(names) > 1 and (names[-1] in statistics or names[-1] in ("percentiles", "quantiles")):
        names.pop()
    while len(names) > 1 and names[-1] in ("successful", "errored", "incomplete", "total"):
        names.pop()
    return ".".join(names)


def _scaled(found: Figure | None, factor: float) -> float | None:
    return found.value * factor if found else None
