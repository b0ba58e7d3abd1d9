"""Samples of Cloud Run services: number of instances, billable time, and requests by the status of their response.

Owns the history of three metrics. Leaves out the instances themselves (cloud_run/runtime) and the response (api.py).

As Google's list of metrics documents for `container/instance_count`, `container/billable_instance_time` and
`request_count`: a sample every 60 seconds of the platform's time, readable after up to 120. A request counts when it
ends, and only where it reached an instance: one that was refused before, such as a 429, is in the request log alone.
A revision that never had an instance has no series;
an interval without billable time has no point. Instances that are billed by request have no billable time here, as
localcloud does not measure the time of their requests. A daemon that starts knows the billable time and the requests of
those before it, in fewer samples, and no earlier sample of instances.
"""

import random
import sqlite3
from collections import Counter

from bezel_localcloud.core.store import Store, is_full
from bezel_localcloud.routing.context import Context, RevisionSeries, RevisionUse, Sample
from bezel_localcloud.services.cloud_run.containers.order import serving_container
from bezel_localcloud.services.monitoring.sampler import Sampler

INSTANCES = "run.googleapis.com/container/instance_count"
BILLABLE = "run.googleapis.com/container/billable_instance_time"
REQUESTS = "run.googleapis.com/request_count"
_LATEST = 120.0  # seconds of the platform's time
_MOST_SAMPLES = 4096  # of a series; older ones are merged
_MOST_STORED = 64  # of a revision's billable time or requests: their row is written with each sample
_BILLED, _REQUESTED = "billedTime", "requestCount"


class ServiceUseSampler(Sampler):
    """The samples since the daemon's start; billable time and requests since the project's."""

    subject = "the instances of services"

    def __init__(self, cloud: Context) -> None:
        super().__init__(cloud)
        self._samples: dict[RevisionSeries, list[Sample]] = {}
        self._billed: dict[str, float] = {}
        self._stored: dict[tuple[str, str], list[Sample]] = {}
        self._unwritten: set[tuple[str, str]] = set()
        self._requests = Counter[tuple[str, int]]()
        self._since = cloud.pace.now()

    def resume(self) -> None:
        """Read the billable time and the requests of earlier daemons, and start sampling."""
        for table in (_BILLED, _REQUESTED):
            for name, row in self._cloud.store.rows(table):
                samples = self._stored[table, name] = [Sample(*each) for each in row["samples"]]
                revision, _, status = name.partition(" ")
                metric = BILLABLE if table == _BILLED else REQUESTS
                self._samples[_key(metric, revision, response_code=status)] = [*samples]
        self._since = self._cloud.pace.now()
        super().resume()

    async def close(self) -> None:
        """Stop sampling, with a last sample of what still runs."""
        await super().close()
        self.try_to_sample()

    def sample(self) -> None:
        """Add a sample to each series of every service."""
        store, start, now = self._cloud.store, self._since, self._cloud.pace.now()
        self._since = now
        for service, _ in store.rows("service"):
            for revision, use in self._cloud.services.use(service).items():
                self._count(revision, use, now)
                if is_billed_by_instance(store, revision):
                    self._bill(revision, use.seconds, start, now)
        requests, self._requests = self._requests, Counter()
        for (revision, status), number in requests.items():
            sample = Sample(start, now, number)
            self._add(_key(REQUESTS, revision, response_code=str(status)), sample)
            self._keep((_REQUESTED, f"{revision} {status}"), sample)
        self._write()

    def add_request(self, revision: str, status: int) -> None:
        """Count a request that an instance of a revision (`.../services/S/revisions/R`) answered."""
        self._requests[revision, status] += 1

    def series(self) -> dict[RevisionSeries, list[Sample]]:
        """The samples that can be read by now, oldest first."""
        now = self._cloud.pace.now()
        readable = {
            series: [sample for sample in samples if sample.end + self.delay(series, sample) <= now]
            for series, samples in self._samples.items()
        }
        return {series: samples for series, samples in readable.items() if samples}

    def delay(self, series: RevisionSeries, sample: Sample) -> float:
        """Real seconds until a sample can be read."""
        dice = random.Random(f"{' '.join(series)} {sample.end:.3f}")  # noqa: S311 - no secret
        return self._cloud.pace.seconds(dice.uniform(0.0, _LATEST))

    def _count(self, revision: str, use: RevisionUse, now: float) -> None:
        for state, number in (("active", use.active), ("idle", use.idle)):
            series = _key(INSTANCES, revision, state)
            samples = self._samples.setdefault(series, [])
            samples.append(Sample(now, now, number))
            del samples[:-_MOST_SAMPLES]

    def _bill(self, revision: str, seconds: float, start: float, now: float) -> None:
        if (more := seconds - self._billed.get(revision, 0.0)) <= 0.0:
            return
        self._billed[revision] = seconds
        sample = Sample(start, now, more)
        self._add(_key(BILLABLE, revision), sample)
        self._keep((_BILLED, revision), sample)

    def _keep(self, row: tuple[str, str], sample: Sample) -> None:
        """Add a sample to a row of the file, by its table and its key."""
        self._stored[row] = _with(self._stored.get(row, []), sample, _MOST_STORED)
        self._unwritten.add(row)

    def _write(self) -> None:
        """Store billable time and requests; on a full disk with a later sample."""
        try:
            for table, key in sorted(self._unwritten):
                self._cloud.store.put(table, key, {"samples": self._stored[table, key]})
                self._unwritten.discard((table, key))
        except sqlite3.Error as error:
            if not is_full(error):
                raise

    def _add(self, series: RevisionSeries, sample: Sample) -> None:
        self._samples[series] = _with(self._samples.get(series, []), sample, _MOST_SAMPLES)


def is_billed_by_instance(store: Store, revision: str) -> bool:
    """Whether a revision's instances are billed for their whole life: stated resources without `cpuIdle` mean so."""
    row = store.get("revision", revision) or {}
    resources = serving_container(row).get("resources") or {}
    return bool(resources) and not resources.get("cpuIdle")


def _key(metric: str, revision: str, state: str = "", response_code: str = "") -> RevisionSeries:
    _, _, _, location, _, service, _, name = revision.split("/")
    return RevisionSeries(metric, location, service, name, state, response_code)


def _with(samples: list[Sample], sample: Sample, most: int) -> list[Sample]:
    """The samples with a further one, older ones merged where they are more than `most`."""
    samples.append(sample)
    return _merge_older(samples) if len(samples) > most else samples


def _merge_older(samples: list[Sample]) -> list[Sample]:
    """The samples, the older half of them merged in pairs: their sum stays."""
    half = len(samples) // 4 * 2
    pairs = zip(samples[:half:2], samples[1:half:2], strict=True)
    return [*(Sample(one.start, two.end, one.value + two.value) for one, two in pairs), *samples[half:]]
