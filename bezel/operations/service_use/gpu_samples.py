"""Samples of a service's GPUs and instances between two moments, over its revisions and regions together.

Owns how series of several instances become one. Leaves out the request to Cloud Monitoring (`service_metrics`). Source:
Google's list of metrics, `run.googleapis.com/container/gpu/utilizations` and `.../gpu/memory_utilizations`, November
2026: gauges whose values are distributions over the instances, sampled every 60 s. The values are shares, 0 to 1,
unless the series names the unit %.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bezel.leases.clock import unix
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedService
from bezel.operations.service_use.service_metrics import INSTANCE_COUNT, metric_series, points_of, reason
from bezel.rest import RestError

GPU = "run.googleapis.com/container/gpu/utilizations"
GPU_MEMORY = "run.googleapis.com/container/gpu/memory_utilizations"
INSTANCES = INSTANCE_COUNT


class MetricSample(NamedTuple):
    """A value at a moment, unix seconds; `weight` is the number of values that it is the mean of."""

    at: float
    value: float
    weight: float = 1.0


@dataclass(frozen=True)
class MetricSamples:
    """Samples of one metric, oldest first; `refused` is why it could not be read."""

    samples: tuple[MetricSample, ...] = ()
    refused: str = ""


def samples_between(
    context: Context, services: Iterable[DeployedService], metric: str, start: float, end: float, *, period: float
) -> MetricSamples:
    """The samples of one of this module's metrics between two moments. Never raises for Monitoring's refusals.

    Args:
        context: The context.
        services: The service in each region.
        metric: The metric's type.
        start: Begin, unix seconds.
        end: End, unix seconds.
        period: Seconds between two samples of a series.
    """
    try:
        listed = [each for service in services for each in metric_series(context, service, metric, start, end)]
    except RestError as error:
        return MetricSamples(refused=reason(error))
    is_share = metric != INSTANCES
    series = [_shares(each) if is_share else [MetricSample(*point) for point in points_of(each)] for each in listed]
    return MetricSamples(tuple(_together([one for one in series if one], period, is_share=is_share)))


def _together(series: Sequence[Sequence[MetricSample]], period: float, *, is_share: bool) -> Iterable[MetricSample]:
    """At each moment of a sample, the mean or the sum of every series' sample within half a period of it."""
    for moment in _moments(series, period):
        near = [min(one, key=lambda sample: abs(sample.at - moment)) for one in series]
        at_once = [sample for sample in near if abs(sample.at - moment) <= period / 2]
        if not is_share:
            yield MetricSample(moment, sum(sample.value for sample in at_once))
        elif weight := sum(sample.weight for sample in at_once):
            yield MetricSample(moment, sum(sample.value * sample.weight for sample in at_once) / weight, weight)


def _moments(series: Sequence[Sequence[MetricSample]], period: float) -> list[float]:
    """Moments of the samples, those once that are less than a tenth of a period apart."""
    moments: list[float] = []
    for at in sorted(sample.at for one in series for sample in one):
        if not moments or at - moments[-1] >= period / 10:
            moments.append(at)
    return moments


def _shares(series: Mapping[str, Any]) -> list[MetricSample]:
    """The mean of each distribution; Google leaves a mean of 0 out."""
    scale = 0.01 if series.get("unit") == "%" else 1.0
    samples = []
    for point in series.get("points") or ():
        spread = (point.get("value") or {}).get("distributionValue") or {}
        at, count = unix((point.get("interval") or {}).get("endTime")), float(spread.get("count") or 0)
        if at is not None and count > 0:
            samples.append(MetricSample(at, float(spread.get("mean") or 0.0) * scale, count))
    return samples
