"""Use of quotas, and its samples that Cloud Monitoring shows.

Owns the counting of running things (instances of services, tasks of jobs, machines) and the history of the last day.
Leaves out the quotas' values (cloud_quotas/api.py) and the response (monitoring/api.py).

As Google's list of metrics documents for quota/allocation/usage: at most one point a minute of the platform's time,
when the value has changed, and again at least every day; a quota that was never used has no series. Google does not
publish the delay until a point can be read: here it is between half a minute and three minutes, seeded by the point
itself. A daemon that starts knows no earlier sample.
"""

import random
from collections import Counter
from collections.abc import Iterator

from bezel_localcloud.machines import capacity
from bezel_localcloud.routing.context import Context, Point, Series
from bezel_localcloud.services.cloud_run.quotas import amounts
from bezel_localcloud.services.cloud_run.spec import RevisionSpec, revision_spec
from bezel_localcloud.services.monitoring.sampler import Sampler

_REPEATED, _KEPT = 86_400.0, 100_000.0  # seconds
_SOONEST, _LATEST = 30.0, 180.0  # until a point can be read, of the platform's time


def use_of(cloud: Context) -> Counter[Series]:
    """Count the current use of every quota in use."""
    used: Counter[Series] = Counter()
    for location, spec, instances in _containers(cloud):
        for metric, amount in amounts(spec):
            used[Series(metric, location)] += amount * instances
    for machine in cloud.machines.held_machines():
        for quota in capacity.quota_ids(machine.api, machine.goods, machine.model):
            if capacity.is_counted(quota):
                used[Series(capacity.metric_of(quota), capacity.place_of(machine))] += capacity.goods()[
                    machine.goods
                ].units
    return used


def _containers(cloud: Context) -> Iterator[tuple[str, RevisionSpec, int]]:
    """(region, spec, number) of the running containers, including those of older revisions and of jobs."""
    store = cloud.store
    for name, service in store.rows("service"):
        for revision, instances in cloud.services.instance_counts(name).items():
            if (row := store.get("revision", revision)) is not None:
                yield name.split("/")[3], revision_spec(row, service.get("scaling") or {}), instances
    for name, _ in store.rows("jobRun"):
        if (execution := store.get("execution", name)) is not None:
            yield name.split("/")[3], revision_spec(execution["template"], {}), execution.get("runningCount", 0)


class QuotaUseSampler(Sampler):
    """The samples of the last day."""

    subject = "the use of quotas"

    def __init__(self, cloud: Context) -> None:
        super().__init__(cloud)
        self._points: dict[Series, list[Point]] = {}

    def sample(self) -> None:
        """Add a point with the current use to each series whose value is new."""
        now, used = self._cloud.pace.now(), use_of(self._cloud)
        for series in [*self._points, *(used.keys() - self._points.keys())]:
            points = self._points.setdefault(series, [])
            if not points or points[-1].used != used[series] or now - points[-1].time >= _REPEATED:
                points.append(Point(now, used[series]))
            self._points[series] = [point for point in points if now - point.time <= _KEPT]

    def series(self) -> dict[Series, list[Point]]:
        """The points that can be read by now, oldest first."""
        now = self._cloud.pace.now()
        readable = {
            series: [point for point in points if point.time + self.delay(series, point) <= now]
            for series, points in self._points.items()
        }
        return {series: points for series, points in readable.items() if points}

    def delay(self, series: Series, point: Point) -> float:
        """Real seconds until a point can be read."""
        dice = random.Random(f"{series.metric} {series.location} {point.time:.3f}")  # noqa: S311 - no secret
        return self._cloud.pace.seconds(dice.uniform(_SOONEST, _LATEST))
