"""Access to the fields of other tools' documents: dotted paths, statistics of a metric, and what no reader reads.

Leaves out which fields a format has: reports.toml and the readers.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bezel_bench.audit.figure import StatedFigure, figure
from bezel_bench.audit.spread import Spread

SECONDS = {"s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SECONDS_PER_TOKEN = {f"{unit}/token": factor for unit, factor in SECONDS.items()}
# Names of quantiles in all formats, with their shares.
QUANTILES = {
    "p0.1": 0.001, "p0p1": 0.001, "p001": 0.001, "p1": 0.01, "p01": 0.01, "p5": 0.05, "p05": 0.05, "p10": 0.10,
    "p20": 0.20, "p25": 0.25, "p30": 0.30, "p40": 0.40, "median": 0.50, "p50": 0.50, "p60": 0.60, "p70": 0.70,
    "p75": 0.75, "p80": 0.80, "p90": 0.90, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "p99p9": 0.999, "p999": 0.999,
}  # fmt: skip
UNITS = ("unit", "units")
SETTINGS = " (settings)"


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
            if isinstance(value, dict):
                value = value.get(name)
            elif isinstance(value, list) and name.lstrip("-").isdigit():
                value = value[int(name)] if -len(value) <= int(name) < len(value) else None
            else:
                return None
        return value

    def below(self, path: str, name: str) -> Any:
        """Return a statistic below a metric; names with dots ("p99.9") are one name."""
        return next(iter(self.each_below(path, (name,)).values()), None)

    def each_below(self, path: str, names: Iterable[str]) -> dict[str, Any]:
        """Return those of some statistics below a metric that are stated."""
        metric = self.at(path) if not self.flat else None
        values: dict[str, Any] = {}
        for name in names:
            if isinstance(metric, dict) and name in metric:
                value = metric[name]
            elif isinstance(metric, dict) and name and "." not in name:
                continue
            else:
                value = self.at(f"{path}.{name}" if name else path)
            if value is not None:
                values[name] = value
        return values

    def first(self, paths: Iterable[str]) -> Any:
        """Return the first value that one of the paths leads to."""
        return next((value for path in paths if (value := self.at(path)) is not None), None)


def without(document: Any, path: tuple[str, ...]) -> Any:
    """Return a copy of a document in which the value at a path states nothing."""
    if not path:
        return None
    name, *rest = path
    if isinstance(document, list):
        place = int(name)
        return [without(part, tuple(rest)) if at == place % len(document) else part for at, part in enumerate(document)]
    return {**document, name: without(document[name], tuple(rest))}


def not_read(path: str, why: str) -> str:
    """Return the doubt about a stated value that cannot be one."""
    return f"{path} was not read: {why}"


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
        moments: dict[str, StatedFigure] = {}
        for name in ("mean", "deviation", "least", "most"):
            if value := figure(fields.below(path, getattr(self, name))):
                moments[name] = value
        quantiles: dict[float, StatedFigure] = {}
        place = f"{path}.{self.quantiles}" if self.quantiles else path
        for name, stated in fields.each_below(place, QUANTILES).items():
            if value := figure(stated):
                quantiles[QUANTILES[name]] = value
        if median := figure(fields.below(path, self.median)):
            quantiles[0.5] = median
        halves = [value.half for value in (*moments.values(), *quantiles.values())]
        return Spread(
            mean=_scale(moments.get("mean"), factor),
            deviation=_scale(moments.get("deviation"), factor),
            least=_scale(moments.get("least"), factor),
            most=_scale(moments.get("most"), factor),
            quantiles={share: value.value * factor for share, value in quantiles.items()},
            half=max(halves, default=0.0) * factor,
        )


def unit_factor(metric: Any, default: float) -> float | None:
    """Return the factor to seconds by the unit stated beside a time, else the default; None for an unknown unit."""
    unit = next((metric[name] for name in UNITS if metric.get(name)), None) if isinstance(metric, dict) else None
    if not isinstance(unit, str):
        return default
    return (SECONDS | _SECONDS_PER_TOKEN).get(unit.strip().lower())


@dataclass(frozen=True)
class ReadNames:
    """What a format has, by dotted paths without numbers of lists.

    Attributes:
        read: Values, and metrics with `statistics` below them.
        statistics: Names below a metric that are read, or that only say again what is read.
        settings: Parts that hold no figure of the load, as far as none is read.
    """

    read: Collection[str]
    statistics: Collection[str]
    settings: Collection[str]

    def has(self, path: str) -> bool:
        """Whether a value is read, or is a statistic of a metric that is."""
        return path in self._read or any(
            start in self._read and any(one in self._statistics for one in (rest, *(head for head, _ in _cuts(rest))))
            for start, rest in _cuts(path)
        )

    @cached_property
    def _read(self) -> frozenset[str]:
        return frozenset(self.read)

    @cached_property
    def _statistics(self) -> frozenset[str]:
        return frozenset(self.statistics)


def _cuts(path: str) -> Iterator[tuple[str, str]]:
    """Yield what is before and after each dot."""
    at = path.find(".")
    while at >= 0:
        yield path[:at], path[at + 1 :]
        at = path.find(".", at + 1)


def unread(document: Any, read_names: ReadNames) -> tuple[str, ...]:
    """Return the names of what is stated in a document and not read: figures and texts, then parts with settings.

    Values of lists go by the name of the list. What is null or empty states nothing.
    """
    figures: dict[str, None] = {}
    settings: dict[str, None] = {}
    for path in _stated_paths(document, "", set()):
        if read_names.has(path):
            continue
        part = next((each for each in read_names.settings if path == each or path.startswith(f"{each}.")), None)
        if part is None:
            figures[_metric(path)] = None
        else:
            settings[f"{part}{SETTINGS}"] = None
    return (*figures, *settings)


def _stated_paths(value: Any, path: str, above: set[int]) -> Iterator[str]:
    """Yield the path of each value; a part that contains itself (YAML allows it) is walked once."""
    if isinstance(value, dict | list):
        if id(value) in above:
            return
        above.add(id(value))
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _stated_paths(part, f"{path}.{name}" if path else str(name), above)
    elif isinstance(value, list):
        for part in value if any(isinstance(part, dict) for part in value) else value[:1]:
            yield from _stated_paths(part, path, above)
    elif value not in (None, ""):
        yield path


def _metric(path: str) -> str:
    """Return the metric of which a path names a statistic."""
    statistics = {
        "mean", "avg", "std", "stddev", "std_dev", "variance", "mode", "min", "max", "count", "sum", "total_sum",
        "unit", "units", *QUANTILES,
    }  # fmt: skip
    for dotted in ("p0.1", "p99.9"):
        path = path.removesuffix(f".{dotted}")
    names = path.split(".")
    while len(names) > 1 and (names[-1] in statistics or names[-1] in ("percentiles", "quantiles", "pdf")):
        names.pop()
    while len(names) > 1 and names[-1] in ("successful", "errored", "incomplete", "total"):
        names.pop()
    return ".".join(names)


def _scale(value: StatedFigure | None, factor: float) -> float | None:
    return value.value * factor if value else None
