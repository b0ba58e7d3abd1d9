"""Reader of reports that hold the statistics of a metric below its name: guidellm, aiperf, genai-perf and others.

Owns the walk along the paths of reports.toml, which names each format's places and traps. A load is a row.
"""

import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel_bench.audit.figure import StatedFigure, figure, is_unlimited, number, whole, why_no_figure
from bezel_bench.audit.labels import date_in
from bezel_bench.audit.readers.fields import (
    QUANTILES,
    SETTINGS,
    UNITS,
    Fields,
    ReadNames,
    Statistics,
    not_read,
    unit_factor,
    unread,
    without,
)
from bezel_bench.audit.systems import system_of
from bezel_bench.audit.table import (
    INPUT,
    LATENCIES,
    NTPOT,
    OUTPUT,
    OUTPUT_LENGTH,
    PROMPT_LENGTH,
    REQUESTS,
    Clock,
    Counts,
    ResultSource,
    Row,
    median_of,
)

if TYPE_CHECKING:
    from bezel_bench.audit.spread import Spread

_TIMES = (*LATENCIES, NTPOT)
_PLACES = ("completed", "failed", "total", "incomplete", "seconds", "planned", "sent_rate", "sent_seconds", "delay",
           "context", "output", "in_flight", "users", "rate", "alone", "cached", "totals", "uncounted", "dated",
           "model", "hardware")  # fmt: skip
_TEXTS = ("alone", "dated", "model", "hardware")
_NUMBERED = re.compile(r"\.-?\d+(?=\.|$)")
_ALIKE = 0.02
_APART = 0.10


@functools.cache
def _formats() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("reports.toml").read_text("utf-8"))


def is_report(document: Any) -> bool:
    """Whether a document is a report of one of the formats, or a list of them."""
    return _format(document) is not None


def read_report(document: Any, item: str, label: str) -> ResultSource:
    """Return the loads of a report, each with the words of the file's name where it names no model."""
    name = _format(document) or ""
    places = _formats()[name]
    loads = _loads(document, places)
    read = [_ReportedLoad(places, load, label) for load in loads]
    rows = tuple(load.row(order, len(loads)) for order, load in enumerate(read, start=1))
    left = dict.fromkeys([*_around(document, places), *(name for load in read for name in load.unread())])
    doubts = dict.fromkeys(doubt for load in read for doubt in load.doubts)
    first = document[0] if isinstance(document, list) else document
    return ResultSource(
        item=item,
        format=name,
        rows=rows,
        dated=date_in(str(Fields(first).at("start_time") or "")),
        unread=tuple(sorted(left, key=lambda each: each.endswith(SETTINGS))),
        doubts=tuple(doubts),
    )


def _around(document: Any, places: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts of a document beside its loads."""
    if "loads" not in places:
        return ()
    beside = {name: part for name, part in document.items() if name != places["loads"]}
    return unread(beside, ReadNames((), (), places["settings"]))


def _format(document: Any) -> str | None:
    for name, places in _formats().items():
        loads = [Fields(load, flat="flat" in places) for load in _loads(document, places)]
        if loads and all(_fits(load, places) for load in loads):
            return name
    return None


def _fits(load: Fields, places: Mapping[str, Any]) -> bool:
    if not isinstance(load.document, Mapping) or any(load.at(path) is None for path in places["known"]):
        return False
    return not places["any"] or load.first(places["any"]) is not None


def _loads(document: Any, places: Mapping[str, Any]) -> list[Any]:
    if "loads" not in places:
        return document if isinstance(document, list) else [document]
    loads = Fields(document).at(places["loads"])
    return loads if isinstance(loads, list) else []


@functools.cache
def _steps(path: str, *, flat: bool) -> tuple[str, ...]:
    """Return the names that lead to a value; "p99.9" is one name."""
    if flat:
        return (path.replace(".", "_"),)
    for last in ("p99.9", "p0.1"):
        if path.endswith(f".{last}"):
            return (*path.removesuffix(f".{last}").split("."), last)
    return tuple(path.split("."))


class _ReportedLoad:
    """One load of a report, read along the paths of its format."""

    def __init__(self, places: Mapping[str, Any], load: Any, label: str) -> None:
        self.places, self.label = places, label
        self.fields = Fields(load, flat="flat" in places)
        names = ("mean", "median", "deviation", "least", "most", "quantiles")
        self.statistics = Statistics(**{name: places[name] for name in names})
        self.doubts: list[str] = []
        self._left_out: list[str] = []
        self._leave_out_impossible()
        self.figures: dict[str, StatedFigure] = {}
        self.spreads: dict[str, Spread] = {}
        for name, (*paths, factor) in places["figures"].items():
            self._read(name, next((path for path in paths if self._has_figure(path)), paths[0]), factor)

    def _leave_out_impossible(self) -> None:
        """Leave numbers out that cannot be ones: each is a doubt, and unknown, not 0."""
        statistics = self.statistics
        below = (statistics.mean, statistics.median, statistics.deviation, statistics.least, statistics.most)
        quantiles = tuple(f"{statistics.quantiles}.{name}" if statistics.quantiles else name for name in QUANTILES)
        metrics = [path for *paths, _ in self.places["figures"].values() for path in paths]
        metrics += [path for name in ("context", "output", "delay") for path in self.places[name]]
        numbers = [path for name in _PLACES if name not in (*_TEXTS, "context", "output") for path in self.places[name]]
        for metric in dict.fromkeys(metrics):
            value = self.fields.at(metric)
            if value is not None and not isinstance(value, dict):
                numbers.append(metric)
            if self.fields.flat or isinstance(value, dict):
                numbers += [f"{metric}.{name}" for name in (*below, *quantiles)]
        for path in dict.fromkeys(numbers):
            steps = _steps(path, flat=self.fields.flat)
            value = self._value(steps)
            if value is None or isinstance(value, dict):  # a metric with statistics, which are tried one by one
                continue
            if path in self.places["rate"] and is_unlimited(value):
                continue
            if why := why_no_figure(value):
                self.doubts.append(not_read(path, why))
                self._left_out.append(path)
                self.fields = replace(self.fields, document=without(self.fields.document, steps))

    def _value(self, steps: tuple[str, ...]) -> Any:
        value = self.fields.document
        for name in steps:
            if isinstance(value, dict):
                value = value.get(name)
            elif isinstance(value, list):
                value = Fields(value).at(name)
            else:
                return None
        return value

    def unread(self) -> tuple[str, ...]:
        """Return the names of what is stated and not read; of a flat format without the names of the statistics."""
        metrics = [path for *paths, _ in self.places["figures"].values() for path in paths]
        metrics += [path for name in _PLACES for path in self.places[name]] + self.places.get("tool", [])
        read = [_NUMBERED.sub("", path) for path in metrics]
        read += [path.removesuffix(f".{self.statistics.mean}") for path in read]
        read_names = ReadNames(read, self._statistic_names(), self.places["settings"])
        if not self.fields.flat:
            return unread(self.fields.document, read_names)
        flat = [f"{path}.{name}".replace(".", "_") for path in read for name in read_names.statistics]
        left = unread(self.fields.document, ReadNames([*read, *flat], (), read_names.settings))
        ends = re.compile(r"_(?:quantiles_p\d+|mean|min|max|stddev)$")
        return tuple(dict.fromkeys(ends.sub("", name) for name in left))

    def _statistic_names(self) -> tuple[str, ...]:
        statistics = self.statistics
        below = f"{statistics.quantiles}." if statistics.quantiles else ""
        names = (
            statistics.mean,
            statistics.median,
            statistics.deviation,
            statistics.least,
            statistics.most,
            *self.places["beside"],
        )
        names += tuple(f"{below}{name}" for name in QUANTILES)
        parts = [name.partition(".") for name in names]
        others = [f"{other}.{rest}" for other in self.places.get("others", ()) for _, _, rest in parts]
        return (*names, *others, *UNITS)

    def row(self, order: int, of: int) -> Row:
        """Return the row of the load."""
        completed, failed, total = (whole(self._first(name)) for name in ("completed", "failed", "total"))
        if completed is None and total is not None:
            completed = max(0, total - (failed or 0) - (whole(self._first("incomplete")) or 0))
        prompt = self._length("context", PROMPT_LENGTH, None)
        output = self._length("output", OUTPUT_LENGTH, OUTPUT)
        users = 1 if self._first("alone") == "synchronous" else whole(self._first("users"))
        closed = any(path in self.places["users"] for path in self._left_out)
        model, hardware = self._first("model"), self._first("hardware")
        cached = round(number(self._first("cached")) or 0) if self.places["cached"] else None
        if cached:  # the rate of prompts holds the cached tokens, which were not computed
            self.figures.pop(INPUT, None)
        delay = next((path for path in self.places["delay"] if self.fields.at(path) is not None), None)
        return Row(
            where=f"benchmark {order}" if of > 1 else "the run",
            order=order,
            context=round(prompt) if prompt else None,
            users=users,
            rate=number(self._first("rate")) if users is None and not closed else None,
            output_tokens=round(output) if output else None,
            figures=self.figures,
            seconds=number(self._first("seconds")),
            planned=whole(self._first("planned")),
            requests=None if completed is None else completed + (failed or 0),
            completed=completed,
            failed=failed,
            prompt_tokens=round(prompt * completed) if prompt and completed else None,
            cached_tokens=cached,
            generated_tokens=round(output * completed) if output and completed else None,
            in_flight=number(self._first("in_flight")),
            mean_prompt=prompt,
            mean_output=output,
            spreads=self.spreads,
            clock=self._clock(),
            sent_rate=figure(self._first("sent_rate")),
            sent_seconds=number(self._first("sent_seconds")),
            delay=self.statistics.spread(self.fields, delay, 1.0) if delay else None,
            counts=self._counts(completed),
            system=system_of(
                {name: value for name, value in (("model", model), ("hardware", hardware)) if isinstance(value, str)},
                self.label,
            ),
        )

    def _read(self, name: str, path: str, factor: float) -> None:
        """Read one figure with its spread; what has an unknown unit is a doubt."""
        metric = self.fields.at(path)
        scale = unit_factor(metric, factor) if name in _TIMES else factor
        if scale is None:
            self.doubts.append(f"{path} was not read: its unit is unknown")
            return
        mean = figure(self.statistics.mean_of(self.fields, path))
        if mean and (mean.value or name not in _TIMES):
            self.figures[name] = mean.scale(scale)
        if name in _TIMES:
            middle = figure(self.fields.below(path, self.statistics.median))
            if middle and middle.value:
                self.figures[median_of(name)] = middle.scale(scale)
            if mean:
                self.spreads[name] = self.statistics.spread(self.fields, path, scale)

    def _length(self, place: str, name: str, rate: str | None) -> float | None:
        """Return the mean length of a prompt or a response; of two counts the one that the rates were taken with."""
        paths = [path for path in self.places[place] if self._has_figure(path)]
        means = [number(self.statistics.mean_of(self.fields, path)) for path in paths]
        requests, tokens = self.figures.get(REQUESTS), self.figures.get(rate or "")
        best = 0
        if requests and tokens and requests.value and len(paths) > 1:
            counted = tokens.value / requests.value
            fits = [index for index, mean in enumerate(means) if mean and abs(counted / mean - 1) <= _ALIKE]
            best = fits[0] if fits else 0
        if not paths:
            return None
        chosen = means[best]
        for path, mean in zip(paths, means, strict=True):
            if mean and chosen and abs(mean / chosen - 1) > _APART:
                self.doubts.append(
                    f"not judged: {path} has a mean of {mean:,.4g}, {paths[best]} of {chosen:,.4g}, and the rates are "
                    "of the latter: two counts of the same tokens, of which one may be the client's own"
                )
            self.spreads[f"{path} in tokens"] = self.statistics.spread(self.fields, path, 1.0)
        self.spreads[name] = self.statistics.spread(self.fields, paths[best], 1.0)
        return chosen

    def _counts(self, completed: int | None) -> tuple[Counts, ...]:
        """Return pairs of counts that the writer takes from the same requests."""
        pairs = []
        for path in self.places["totals"]:
            metric = path.rpartition(".")[0]
            total, mean = number(self.fields.at(path)), number(self.statistics.mean_of(self.fields, metric))
            if total and mean and completed:
                pairs.append(Counts(f"{metric} x completed requests", mean * completed, path, total))
        paths = [path for path in self.places["output"] if self._has_figure(path)]
        if completed and len(paths) > 1 and whole(self._first("uncounted")) == completed:
            # The server counted the tokens of no request, so that the client's count stands for both.
            first, second = (number(self.statistics.mean_of(self.fields, path)) or 0.0 for path in paths[:2])
            pairs.append(Counts(paths[0], first, f"{paths[1]}, the client's count too", second))
        return tuple(pairs)

    def _clock(self) -> Clock:
        """Return the clock of the tool; of a converted report that of the tool that measured."""
        tool = str(self.fields.first(self.places.get("tool", ())) or "").lower()
        return Clock(**_formats()["guidellm" if tool == "guidellm" else self._name()]["clock"])

    def _name(self) -> str:
        return next(name for name, places in _formats().items() if places is self.places)

    def _has_figure(self, path: str) -> bool:
        return number(self.statistics.mean_of(self.fields, path)) is not None

    def _first(self, name: str) -> Any:
        paths: Sequence[str] = self.places[name]
        return self.fields.first(paths)
