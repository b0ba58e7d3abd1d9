"""Reading of the series that a stack with `observability.metrics` keeps, over some time, by PromQL.

Owns which series are a stack's and the questions. A window of a query has the newest sample of each series in it, so
that a server which ended inside is not lost; of a window in which a server was restarted, every sample is read. Sums
and percentiles are made here of what the servers counted: `rate` extrapolates, and loses what was counted before the
first sample. Leaves the sums to `served`.
"""

import math
from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.results import format_count
from bezel.operations.vllm_metrics import sample as names
from bezel.operations.vllm_metrics.increases import Buckets, Column, Samples, fill_buckets, increases
from bezel.operations.vllm_metrics.promql import PromQl, Series
from bezel.operations.vllm_metrics.served import CounterGrowth, HistogramGrowth, Served
from bezel.operations.vllm_metrics.time_range import TimeRange
from bezel.operations.vllm_metrics.unwritten import REVISION, unwritten_notes
from bezel.planner.team.series_labels import CLUSTER_OF_LEASES
from bezel_base.text.shell import shell_word
from bezel_catalog.vllm.kept_series import KEPT_SERIES, KeptSeries

COLLECTOR = "cloud-run-gmp-sidecar"
"""What the image of the collector beside a server is called."""
# The collector of a machine writes a counter from its second sample on, without what it had counted by the first one.
# vLLM's own counters exist before the first request; those of responses do not.
_OF_LEASES = (
    "of leased machines, the first responses of each kind, up to their first scrape, are in no number of requests"
)
_READERS = 8
_MOST_RESTARTS = 8
_LOOK_BACK = 86_400  # seconds before the time in which a server that ran may have no sample
_SCRAPES = 60  # seconds in which a server that runs is sampled
_TARGET = ("project_id", "location", "cluster", "namespace", "job", "instance")
"""Labels of the monitored resource, which tell one server from another."""
Target = tuple[str, ...]
Key = tuple[tuple[str, str], ...]
Restarts = Mapping[int, Mapping[Target, tuple[float, ...]]]
"""Window -> the servers that were restarted before or in it, each with the times of the first samples after that."""


def keeps_series(deployment: Deployment) -> bool:
    """Whether a stack keeps series of its servers, as of its last deploy."""
    images = [
        str(container.get("image") or "")
        for service in deployment.services
        for container in (service.inputs.get("template") or {}).get("containers") or ()
    ]
    return any(COLLECTOR in image for image in images) or bool(_plan(deployment).get("metrics"))


def _plan(deployment: Deployment) -> Mapping[str, object]:
    plan = deployment.outputs.get("plan")
    return plan if isinstance(plan, Mapping) else {}


def how_to_keep(stack: str) -> str:
    """How a stack gets series."""
    return (
        "no figures are kept over time: set `bezel:observability: {metrics: true}` in its file, then "
        f"`bezel deploy {shell_word(stack)}`"
    )


def source_of(until: float | None) -> str:
    """The source of figures that were read from series, for people."""
    return "series" if until is None else f"series until {datetime.fromtimestamp(until, UTC):%Y-%m-%d %H:%M} UTC"


def selector_of(deployment: Deployment) -> str:
    """The matchers of a stack's series; of one region where one is meant.

    A collector of Cloud Run names the service as namespace, and so does that of a leased machine with its gateway.
    """
    services = [each for each in deployment.services if deployment.region in ("", each.location)]
    namespaces = sorted({service.name for service in services})
    regions = sorted({service.location for service in services})
    matchers = {"project_id": [services[0].project] if services else [], "namespace": namespaces}
    if not deployment.is_leased:
        matchers["location"] = regions
    # Names of projects, regions and services hold no character that has another meaning in RE2, beside a period.
    return ",".join(f'{name}=~"{"|".join(values)}"' for name, values in matchers.items() if values)


def read_series(context: Context, deployment: Deployment, when: TimeRange, families: Iterable[str] = ()) -> Served:
    """What the servers of a stack did in the windows.

    Args:
        context: The context of the operation.
        deployment: The deployed stack, which keeps series.
        when: The windows.
        families: The families that are read; all by default.

    Raises:
        RestError: Cloud Monitoring refused, or did not answer.
        SeriesError: Its answer cannot be used.
    """
    if deployment.service is None:
        return Served(when)
    chosen = {*families}
    reader = _Reader(PromQl(context, deployment.service.project), selector_of(deployment), when)
    running = reader.windows(names.RUNNING, "max")
    if not running:
        return Served(when, notes=("nothing was written in this time",))
    processes = reader.processes()
    written = {each.labels.get(REVISION, "") for each in running}
    lease_notes = (_OF_LEASES,) if any(each.labels.get("cluster") == CLUSTER_OF_LEASES for each in running) else ()
    with ThreadPoolExecutor(_READERS) as readers:
        asked_unwritten = readers.submit(unwritten_notes, context, deployment, when, written)
        asked_restarts = readers.submit(reader.restarts, processes)
        asked_newest = readers.submit(reader.newest, running)
        kept = [each for each in KEPT_SERIES if each.name != names.RUNNING and (not chosen or each.name in chosen)]
        restarts = asked_restarts.result()
        gauges = {each.name: readers.submit(reader.windows, each.name, "max") for each in kept if each.kind == "gauge"}
        counters = {
            each.name: readers.submit(reader.counter, each.name, restarts) for each in kept if each.kind == "counter"
        }
        histograms = {
            each.name: readers.submit(reader.histogram, each, restarts) for each in kept if each.kind == "histogram"
        }
        by_gauge = {names.RUNNING: running} | {name: asked.result() for name, asked in gauges.items()}
        grown = {name: asked.result() for name, asked in counters.items()}
        observed = {name: asked.result() for name, asked in histograms.items()}
        until, unwritten = asked_newest.result(), asked_unwritten.result()
    targets = _columns_by_target(running, when)
    number = sum(len(moments) for targets in restarts.values() for moments in targets.values())
    note = f"{format_count(number, 'restart')} of a server: counts between its last sample and its end are in none"
    unread = number > 0 and len(restarts) > _MOST_RESTARTS
    more = f"; of {_MOST_RESTARTS} windows with one every sample was read, of the others the last one"
    return Served(
        when,
        until,
        {name: series for name, series in grown.items() if series},
        {name: series for name, series in observed.items() if series},
        {name: _highest(series, when) for name, series in by_gauge.items() if series},
        servers=[
            sum(column[window + 1] is not None for column in targets.values()) for window in range(len(when.ends))
        ],
        starts=sum(column[0] is None for column in _columns_by_target(processes or running, when).values()),
        restarts=number,
        notes=(*lease_notes, *reader.unsampled_notes(), *((note + more * unread,) if number else ()), *unwritten),
        is_partial=bool(unwritten),
    )


class _Reader:
    """Questions about the series of one stack in some windows."""

    def __init__(self, promql: PromQl, selector: str, when: TimeRange) -> None:
        self._promql, self._selector, self._when = promql, selector, when
        self._looks_back = False
        self._begins_before: Mapping[Target, float] = {}
        self.unsampled = 0  # servers that began before the time and have no sample of then

    def windows(self, metric: str, over: str = "last") -> list[Series]:
        """The last, the highest or the lowest sample of each series in each window."""
        short = round(self._when.end - self._when.begins[-1])
        least = _SCRAPES if over == "max" else short
        queries = [f"{over}_over_time({self._range(metric, seconds)})" for seconds in (0, max(short, least))]
        series = self._promql.over(queries[0], self._when, queries[1])
        if over != "last":
            return series
        if self._looks_back:
            before = self._promql.at(f"last_over_time({self._range(metric, _LOOK_BACK)})", self._when.start)
            earlier = {_key(each.labels): each.points for each in before}
            series = [Series(each.labels, earlier.get(_key(each.labels), ()) + each.points) for each in series]
        return self._without_earlier_processes(metric, series) if self._begins_before else series

    def _without_earlier_processes(self, metric: str, series: Sequence[Series]) -> list[Series]:
        """The series without values at the begin of the first window that a process counted which had ended by then."""
        samples = {_key(each.labels): each.points for each in self._before(metric)}
        kept = []
        for each in series:
            begin, points = self._begins_before.get(_target(each.labels)), each.points
            if begin is not None:
                last = [value for at, value in samples.get(_key(each.labels), ()) if at >= begin][-1:]
                later = tuple(point for point in points if point[0] > self._when.start)
                points = (*((self._when.start, value) for value in last), *later)
            kept.append(Series(each.labels, points))
        return kept

    def _before(self, metric: str, over: str = "") -> list[Series]:
        """Every sample before the first window in the time in which values of then are looked for, or one of them."""
        window = self._range(metric, _LOOK_BACK * self._looks_back)
        return self._promql.at(f"{over}_over_time({window})" if over else window, self._when.start)

    def _range(self, metric: str, seconds: int = 0) -> str:
        return f"{metric}{{{self._selector}}}[{seconds or self._when.step}s]"

    def processes(self) -> list[Series]:
        """The start of each server's process in each window.

        From then on values before the time are looked for further back, where a server ran before the time without a
        sample in the window before it; and those of a process that ended before the time are left out.
        """
        series = self.windows(names.STARTED)
        columns = [_column(each, self._when) for each in series]
        firsts = [value for column in columns if column[0] is None for value in column if value is not None]
        self._looks_back = any(started < self._when.start for started in firsts)
        series = self.windows(names.STARTED) if self._looks_back else series
        self._begins_before = self._restarts_before(series)
        for column in _columns_by_target(series, self._when).values():
            starts = [started for started in column if started is not None]
            self.unsampled += column[0] is None and bool(starts) and starts[0] < self._when.start
        return series

    def unsampled_notes(self) -> tuple[str, ...]:
        """What is counted that may be of before the time, for people."""
        servers = format_count(self.unsampled, "server")
        note = (
            f"{servers} began before this time, without a sample of then: the counts since the start of each are here"
        )
        return (note,) if self.unsampled else ()

    def _restarts_before(self, processes: Sequence[Series]) -> dict[Target, float]:
        """Servers that were restarted before the first window -> the first sample of the process that ran last."""
        present = {target: column[0] for target, column in _columns_by_target(processes, self._when).items()}
        oldest = [(_target(each.labels), each.points[-1][1]) for each in self._before(names.STARTED, "min")]
        restarted = {target for target, started in oldest if present.get(target) not in (None, started)}
        if not restarted:
            return {}
        return {
            target: min((at for at, started in each.points if started == present[target]), default=0.0)
            for each in self._before(names.STARTED)
            if (target := _target(each.labels)) in restarted
        }

    def newest(self, running: Sequence[Series]) -> float | None:
        """The time of the newest sample; a window tells its end only."""
        last = max((at for each in running for at, _ in each.points), default=None)
        if last is None:
            return None
        samples = self._promql.at(self._range(names.RUNNING), last)
        return max((at for each in samples for at, _ in each.points), default=last)

    def restarts(self, processes: Sequence[Series]) -> Restarts:
        """The windows in which a process of a server was sampled that is not its first one."""
        oldest = _columns_by_target(self.windows(names.STARTED, "min"), self._when)
        restarted: defaultdict[int, dict[Target, float | None]] = defaultdict(dict)
        for target, column in _columns_by_target(processes, self._when).items():
            last: float | None = None
            for place, started in enumerate(column):
                first = started if target not in oldest else oldest[target][place]
                if place and started is not None and (first != started or last not in (None, started)):
                    restarted[place - 1][target] = last
                last = started or last
        return {window: self._moments(window, processes) for window, processes in sorted(restarted.items())}

    def _moments(self, window: int, processes: Mapping[Target, float | None]) -> dict[Target, tuple[float, ...]]:
        """The times in a window at which another process of a server was sampled first.

        Args:
            window: The window.
            processes: Server -> start of its process before the window; None without one.
        """
        moments = {}
        for each in self._samples(names.STARTED, window):
            target = _target(each.labels)
            if target in processes:
                started = [start for _, start in each.points]
                before = [processes[target] or started[0], *started] if started else []
                moments[target] = tuple(
                    at for (at, start), last in zip(each.points, before, strict=False) if start != last
                )
        return moments

    def _samples(self, metric: str, window: int) -> list[Series]:
        """Every sample in a window."""
        begin = self._when.begins[window]
        series = self._promql.at(self._range(metric), self._when.ends[window])
        return [Series(each.labels, tuple(point for point in each.points if point[0] > begin)) for each in series]

    def counter(self, metric: str, restarts: Restarts) -> list[CounterGrowth]:
        """The growth of each series of a counter."""
        finer = self._finer(metric, restarts)
        return [
            CounterGrowth(
                each.labels,
                increases(_column(each, self._when), finer.get(_key(each.labels)), _windows_of(restarts, each.labels)),
            )
            for each in self.windows(metric)
        ]

    def histogram(self, family: KeptSeries, restarts: Restarts) -> list[HistogramGrowth]:
        """The growth of each histogram of a family."""
        metric = f"{family.name}_bucket"
        finer = self._finer(metric, restarts)
        columns: defaultdict[Key, dict[float, Column]] = defaultdict(dict)
        samples: defaultdict[Key, dict[float, Mapping[int, Samples]]] = defaultdict(dict)
        restarted: dict[Key, Container[int]] = {}
        for each in self.windows(metric):
            bound = _parse_bound(each.labels.get("le", ""))
            if bound is not None:
                key = _key({name: value for name, value in each.labels.items() if name != "le"})
                columns[key][bound] = _column(each, self._when)
                samples[key][bound] = finer.get(_key(each.labels), {})
                restarted[key] = _windows_of(restarts, each.labels)
        sums = {_key(each.labels): each.growth for each in self.counter(f"{family.name}_sum", restarts)}
        none = [0.0] * len(self._when.ends)
        return [
            HistogramGrowth(_buckets(by_bound, samples[key], restarted[key]), sums.get(key, none))
            for key, by_bound in columns.items()
        ]

    def _finer(self, metric: str, restarts: Restarts) -> dict[Key, dict[int, Samples]]:
        """Every sample of the windows in which a server was restarted, by series and window."""
        finer: defaultdict[Key, dict[int, Samples]] = defaultdict(dict)
        for window in list(restarts)[-_MOST_RESTARTS:]:
            for each in self._samples(metric, window):
                firsts = restarts[window].get(_target(each.labels))
                if firsts is not None:
                    times = [at for at, _ in each.points]
                    begins = {min((at for at in times if at >= first), default=None) for first in firsts}
                    unsampled = [(None, True)] if max(firsts, default=0.0) > max(times, default=0.0) else []
                    finer[_key(each.labels)][window] = [
                        *((value, at in begins) for at, value in each.points),
                        *unsampled,
                    ]
        return finer


def _windows_of(restarts: Restarts, labels: Mapping[str, str]) -> frozenset[int]:
    """The windows in which the server of a series was restarted."""
    return frozenset(window for window, targets in restarts.items() if targets.get(_target(labels)))


def _buckets(
    columns: Mapping[float, Column], finer: Mapping[float, Mapping[int, Samples]], restarted: Container[int]
) -> list[Buckets]:
    """Observations of one histogram in each window."""
    growth = {bound: increases(column, finer.get(bound), restarted) for bound, column in fill_buckets(columns).items()}
    bounds = tuple(growth)
    return [Buckets(bounds, counts) for counts in zip(*growth.values(), strict=True)]


def _column(series: Series, when: TimeRange) -> list[float | None]:
    """The values of a series at the begin of the first window and at the end of each."""
    places = {round(at): place for place, at in enumerate((when.start, *when.ends))}
    column: list[float | None] = [None] * len(places)
    for at, value in series.points:
        if (place := places.get(round(at))) is not None:
            column[place] = value
    return column


def _columns_by_target(series: Iterable[Series], when: TimeRange) -> dict[Target, list[float | None]]:
    columns: dict[Target, list[float | None]] = {}
    for each in series:
        column = _column(each, when)
        before = columns.get(_target(each.labels), column)
        columns[_target(each.labels)] = [new if old is None else old for old, new in zip(before, column, strict=True)]
    return columns


def _highest(series: Sequence[Series], when: TimeRange) -> list[float | None]:
    """The highest value of any series in each window."""
    columns = [_column(each, when) for each in series]
    return [
        max((value for column in columns if (value := column[window + 1]) is not None), default=None)
        for window in range(len(when.ends))
    ]


def _target(labels: Mapping[str, str]) -> Target:
    return tuple(labels.get(name, "") for name in _TARGET)


def _key(labels: Mapping[str, str]) -> Key:
    return tuple(sorted(labels.items()))


def _parse_bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) else bound
