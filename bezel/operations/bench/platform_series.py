"""Series of a stack's service over loads, as Cloud Monitoring has them: use of its GPUs and their memory, instances.

Owns the wait for the samples and their place on the load's time. Leaves out how samples are read and added
(bezel.operations.service_use.gpu_samples). A sample is taken every 60 s and can be read up to 120 s later (Google's
list of metrics, November 2026), so a shorter load may have none and is not waited for.
"""

from collections.abc import Callable, Mapping, Sequence

from bezel.leases.clock import format_duration
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import DeployedService, Deployment
from bezel.operations.service_use.gpu_samples import GPU, GPU_MEMORY, INSTANCES, MetricSamples, samples_between
from bezel_bench.result.document import Cell
from bezel_bench.result.platform_series import PlatformSeries, Subject

_SOURCE = "Cloud Monitoring"
_METRICS: Mapping[Subject, str] = {"gpu": GPU, "gpu_memory": GPU_MEMORY, "instances": INSTANCES}
_PERIOD, _LATEST = 60.0, 120.0  # platform seconds between two samples, and until one can be read
_STEP = 5.0
Read = Mapping[Subject, MetricSamples]


def platform_series(
    context: Context, deployment: Deployment, url: str, cells: Sequence[Cell], show: Callable[[str], None]
) -> dict[str, list[PlatformSeries]]:
    """The series of each load, by the cell's id; none where leased machines serve, of which Cloud Run knows nothing.

    An interrupt ends the wait, and what can be read then is read. Never raises for Monitoring's refusals.

    Args:
        context: The context.
        deployment: The stack that was measured.
        url: The measured address: a region's own, or one that leads to all of them.
        cells: The loads, which have ended.
        show: Receives what is waited for.
    """
    services = _services_at(deployment, url)
    sent = [cell for cell in cells if cell.started_at is not None and cell.seconds]
    if not services or not sent:
        return {}
    long = [cell for cell in sent if (cell.seconds or 0.0) * context.clock.speed >= _PERIOD]
    reads: dict[str, Read] = {}
    if long:
        last = max(long, key=_end)
        first_read = _read(context, services, last)
        # Where nothing may be read, waiting changes nothing, nor do the other loads.
        if all(samples.refused for samples in first_read.values()):
            reads = {cell.id: first_read for cell in long}
        else:
            _wait(context, _end(last), show)
            for number, cell in enumerate(long, 1):
                show(f"reads Cloud Monitoring's samples: load {number} of {len(long)}")
                reads[cell.id] = _read(context, services, cell)
    return {cell.id: _series(cell, reads.get(cell.id)) for cell in sent}


def _services_at(deployment: Deployment, url: str) -> list[DeployedService]:
    services = [service for service in deployment.region_services if service.has_gpu]
    at = {region for region, region_url in deployment.urls.items() if region_url and region_url == url.rstrip("/")}
    return [service for service in services if service.location in at] or services


def _begin(cell: Cell) -> float:
    return cell.started_at.timestamp() if cell.started_at else 0.0


def _end(cell: Cell) -> float:
    return _begin(cell) + (cell.seconds or 0.0)


def _wait(context: Context, end: float, show: Callable[[str], None]) -> None:
    """Wait until every sample of a load can be read that ended at a moment, unix seconds; an interrupt ends it."""
    try:
        while (left := _LATEST - context.clock.since(end)) > 0 and not context.cancelled.is_set():
            show(f"waits for Cloud Monitoring's samples of the load, {format_duration(left)} at most (Ctrl-C: no more)")
            context.clock.sleep(min(left, _STEP))
    except KeyboardInterrupt:
        show("reads the samples that Cloud Monitoring has by now")


def _read(context: Context, services: Sequence[DeployedService], cell: Cell) -> Read:
    period = _PERIOD / context.clock.speed
    return {
        of: samples_between(context, services, metric, _begin(cell), _end(cell), period=period)
        for of, metric in _METRICS.items()
    }


def _series(cell: Cell, read: Read | None) -> list[PlatformSeries]:
    series = []
    for of, metric in _METRICS.items():
        samples = read[of].samples if read else ()
        series.append(
            PlatformSeries(
                of=of,
                metric=metric,
                source=_SOURCE,
                at_seconds=[max(0.0, round(sample.at - _begin(cell), 3)) for sample in samples],
                values=[max(0.0, sample.value) for sample in samples],
                why="" if samples else _why(cell, read[of] if read else None),
            )
        )
    return series


def _why(cell: Cell, samples: MetricSamples | None) -> str:
    if samples is None:
        return f"a sample is taken every {_PERIOD:.0f} s, and the load took {cell.seconds:.1f} s"
    return samples.refused.removeprefix(f"{_SOURCE}: ") or f"no sample is from the {cell.seconds:.0f} s of the load"
