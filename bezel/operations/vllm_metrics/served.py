"""Growth of the series that the servers of a stack keep, in windows of the past. Pure.

Owns the sums over servers. A family without a series is unknown; one whose counters did not grow is 0. Leaves out the
reading of the series (`series`) and the meaning of the figures (`figures`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bezel.operations.vllm_metrics import sample as names
from bezel.operations.vllm_metrics.increases import Buckets, sum_buckets
from bezel.operations.vllm_metrics.sample import Sample, is_of_a_model
from bezel.operations.vllm_metrics.time_range import TimeRange

LENGTHS = "vllm:request_generation_tokens"
ALL = slice(None)
"""All windows."""


@dataclass(frozen=True)
class CounterGrowth:
    """The growth of a counter of one server in each window."""

    labels: Mapping[str, str]
    growth: Sequence[float]


@dataclass(frozen=True)
class HistogramGrowth:
    """The growth of a histogram of one server: in each window its buckets, and the sum of its observations."""

    buckets: Sequence[Buckets]
    sums: Sequence[float]


@dataclass(frozen=True)
class Served:
    """What the servers of a stack did.

    Attributes:
        when: The windows.
        until: Time of the newest sample, Unix seconds; None without one.
        counters: Family -> its series.
        histograms: Family -> its series.
        gauges: Family -> the highest value of any server in each window; None in one without a sample.
        servers: Servers that were sampled in each window.
        starts: Servers that began in the windows.
        restarts: Times that a server began to count again.
        notes: What limits the figures.
        is_partial: Whether instances ran that wrote no series, or that is unknown.
    """

    when: TimeRange
    until: float | None = None
    counters: Mapping[str, Sequence[CounterGrowth]] = field(default_factory=dict)
    histograms: Mapping[str, Sequence[HistogramGrowth]] = field(default_factory=dict)
    gauges: Mapping[str, Sequence[float | None]] = field(default_factory=dict)
    servers: Sequence[int] = ()
    starts: int = 0
    restarts: int = 0
    notes: tuple[str, ...] = ()
    is_partial: bool = False

    def is_unknown(self, windows: slice = ALL) -> bool:
        """Whether a server may have run in some windows of which nothing was written."""
        return self.is_partial and not any(self.servers[windows])

    def count(self, family: str, windows: slice = ALL) -> float | None:
        """Growth of a counter over all servers in some windows; None where it is unknown."""
        series = self.counters.get(family)
        return None if series is None or self.is_unknown(windows) else sum(sum(each.growth[windows]) for each in series)

    def buckets(self, family: str, windows: slice = ALL) -> Buckets | None:
        """Observations of a histogram over all servers in some windows; None where there is no series of it."""
        series = self.histograms.get(family)
        return None if series is None else sum_buckets(part for each in series for part in each.buckets[windows])

    def sum_of(self, family: str, windows: slice = ALL) -> float | None:
        """Sum of the observations of a histogram in some windows; None where there is no series of it."""
        series = self.histograms.get(family)
        return None if series is None else sum(sum(each.sums[windows]) for each in series)

    def highest(self, family: str) -> float | None:
        """The highest value of a gauge; None without a sample."""
        return max((value for value in self.gauges.get(family, ()) if value is not None), default=None)

    def samples(self) -> tuple[Sample, Sample]:
        """Two samples whose difference is the growth over all windows, as if one process had been read twice."""
        sums = {name: value for name in names.COUNTERS if (value := self.count(name)) is not None}
        for family in names.HISTOGRAMS:
            if (buckets := self.buckets(family)) is not None:
                sums |= {f"{family}_count": buckets.count, f"{family}_sum": self.sum_of(family) or 0.0}
        lengths = self.buckets(LENGTHS)
        if lengths is not None and (single := lengths.up_to(1.0)) is not None:
            # Those that asked for no more than one token are among those that had one.
            sums |= {names.ONE_TOKEN: single, names.ONE_TOKEN_ASKED: single}
        if (requests := self.buckets(names.ENGINE_REQUESTS.removesuffix("_count"))) is not None:
            sums[names.ENGINE_REQUESTS] = requests.count
        gauges = {name: value for name in names.GAUGES if (value := self.highest(name)) is not None}
        before = dict.fromkeys(sums, 0.0) | gauges
        sums |= gauges
        first = Sample(read_at=self.when.start, sums=before, kv_usage=None, outcomes={}, engines=0)
        outcomes = self.outcomes()
        usage = self.highest(names.KV_USAGE)
        return first, Sample(read_at=self.when.end, sums=sums, kv_usage=usage, outcomes=outcomes, engines=0)

    def outcomes(self, windows: slice = ALL) -> dict[tuple[str, str], float]:
        """Requests by (metric, outcome) in some windows."""
        numbers: defaultdict[tuple[str, str], float] = defaultdict(float)
        for family, label in names.OUTCOMES.items():
            for each in self.counters.get(family, ()):
                if family != names.HTTP or is_of_a_model(each.labels):
                    numbers[family, each.labels.get(label, "")] += sum(each.growth[windows])
        return dict(numbers)
