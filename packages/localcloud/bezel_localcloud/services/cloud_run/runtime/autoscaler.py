"""Autoscaler of one revision: starts instances on demand, and ends them after a time without requests.

Owns starting, assigning and ending instances. Leaves out an instance itself (instance.py) and the choice of a request's
revision (controller.py).
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from bezel_localcloud.core.background import BackgroundTasks
from bezel_localcloud.core.logbook import LogSource
from bezel_localcloud.services.cloud_run.failures import NoCapacityError, RevisionFailureError
from bezel_localcloud.services.cloud_run.runtime.instance import Instance, Readiness
from bezel_localcloud.services.cloud_run.spec import ProbeSpec, RevisionSpec

log = logging.getLogger(__name__)
# Reasons for the start of an instance, in the words of the platform's log.
ROLLOUT = (
    "DEPLOYMENT_ROLLOUT - Instance started due to traffic shifting between revisions due to deployment, traffic split "
    "adjustment, or deployment health check."
)
MINIMUM = (
    "MANUAL_OR_CUSTOMER_MIN_INSTANCE - Instance started because of customer-configured min-instances or manual scaling."
)
DEMAND = (
    "AUTOSCALING - Instance started due to configured scaling factors (e.g. CPU utilization, request throughput, etc.) "
    "or no existing capacity for current traffic."
)
# A request waits for this many average starts, if that is longer than `queue_seconds`.
_STARTS = 3.5
NO_INSTANCE = (
    "The request was aborted because there was no available instance. Additional troubleshooting documentation can be "
    "found at: https://cloud.google.com/run/docs/troubleshooting#abort-request"
)
_DISABLED = "The service is disabled: manual scaling leaves this revision no instance."
# The first lost instance is replaced at once, further ones after growing delays; after this many quiet seconds the
# delay starts again at 0.
_QUIET = 60.0


class NoInstanceError(Exception):
    """No instance for a request: 429 where all are busy, 429 or 500 without capacity, 503 where none starts."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True)
class Scaling:
    """Bounds of a pool.

    Attributes:
        concurrency: Concurrent requests of an instance.
        minimum: Instances that keep running without requests.
        maximum: Instances at most; 0 where the service is switched off by manual scaling.
        idle_seconds: Time that an instance beyond the minimum runs without requests.
        queue_seconds: Shortest time that a request waits for a free slot where no further instance starts.
    """

    concurrency: int
    minimum: int
    maximum: int
    idle_seconds: float
    queue_seconds: float
    liveness: ProbeSpec | None = None
    readiness: Readiness | None = None


class Autoscaler:
    """Ready instances, starting instances, and the requests that wait for them.

    Attributes:
        scaling: Its bounds; a new value applies from the next decision on.
    """

    def __init__(self, start: Callable[[str], Awaitable[Instance]], scaling: Scaling) -> None:
        self._start = start
        self.scaling = scaling
        self._ready: list[Instance] = []
        self._starting, self._ending, self._background = BackgroundTasks(), BackgroundTasks(), BackgroundTasks()
        self._waiting: deque[asyncio.Future[Instance]] = deque()
        self._start_seconds: deque[float] = deque(maxlen=20)
        self._busy_status = 429
        self._losses = 0
        self._lost_at = float("-inf")
        self._closed = False

    async def first(self) -> None:
        """Start the first instance and wait until it is healthy.

        Raises:
            RevisionFailureError: If it does not become healthy.
        """
        self._add(await self._start_and_measure(ROLLOUT))

    @property
    def ready_share(self) -> float | None:
        """Share of the instances that pass their readiness probe; None without one, or without minimum instances."""
        if self.scaling.readiness is None or not self.scaling.minimum:
            return None
        return fmean(instance.is_ready for instance in self._ready) if self._ready else 0.0

    def fit(self) -> None:
        """Start instances up to the minimum, and end starting or idle ones beyond the maximum."""
        while not self._closed and len(self._ready) + len(self._starting) < self.scaling.minimum:
            self._grow(MINIMUM)
        beyond = len(self._ready) + len(self._starting) - self.scaling.maximum
        for task in list(self._starting)[: max(0, beyond)]:
            self._starting.discard(task)
            self._ending.keep(task)
            task.cancel()
        if not self.scaling.maximum:
            self._refuse_waiting(_DISABLED)
        idle = [instance for instance in self._ready if instance.in_flight == 0]
        for instance in idle[: max(0, len(self._ready) - self.scaling.maximum)]:
            self._end(instance)

    async def acquire(self) -> Instance:
        """Return an instance with a free slot; start one if necessary.

        Raises:
            NoInstanceError: If none has a free slot in time, or the bounds allow no instance.
        """
        if not self.scaling.maximum:
            raise NoInstanceError(503, _DISABLED)
        if free := self._free():
            free.in_flight += 1
            return free
        if len(self._ready) + len(self._starting) < self.scaling.maximum and not self._closed:
            self._grow(DEMAND)
        future: asyncio.Future[Instance] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            await asyncio.wait([future], timeout=self._queue_seconds())
            while not future.done() and self._starting:
                either: list[asyncio.Future[Any]] = [future, *self._starting]
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not future.done():
                raise NoInstanceError(self._busy_status, NO_INSTANCE)
            return future.result()
        except asyncio.CancelledError:
            # The request got an instance and was cancelled at the same moment: the slot goes to the next request.
            if future.done() and not future.cancelled() and future.exception() is None:
                self.release(future.result())
            raise
        finally:
            if future in self._waiting:
                self._waiting.remove(future)

    def release(self, instance: Instance) -> None:
        """Free the slot of an instance after a request."""
        instance.in_flight -= 1
        self._serve_waiting()
        if instance.in_flight == 0:
            self._consider_end(instance)

    def discard(self, instance: Instance) -> None:
        """End an instance that stopped serving, and replace it."""
        if instance in self._ready:
            self._end(instance)
            self._replace_lost()

    async def close(self, patience: float = 0.0) -> None:
        """End all instances; requests under way and in the queue get up to `patience` real seconds."""
        self._closed = True
        self._starting.cancel()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        try:
            while self._is_busy() and loop.time() < deadline:  # noqa: ASYNC110 - of many instances, until the last
                await asyncio.sleep(0.05)
        finally:
            self._refuse_waiting("The revision takes no more requests.")
            ending, self._ready = self._ready, []
            stops = (instance.stop() for instance in ending)
            await asyncio.gather(*self._starting, *self._ending, *stops, return_exceptions=True)
            self._background.cancel()

    def _is_busy(self) -> bool:
        return bool(self._ready) and (bool(self._waiting) or any(instance.in_flight for instance in self._ready))

    def _free(self) -> Instance | None:
        most = self.scaling.concurrency
        room = [instance for instance in self._ready if instance.is_ready and instance.in_flight < most]
        return min(room, key=lambda instance: instance.in_flight, default=None)

    def _end(self, instance: Instance) -> None:
        self._ready.remove(instance)
        self._ending.keep(asyncio.create_task(instance.stop()))

    def _replace_lost(self) -> None:
        """Replace lost instances up to the minimum, with growing delays after repeated losses."""
        now = asyncio.get_running_loop().time()
        if now - self._lost_at > _QUIET:
            self._losses = 0
        delay = min(2.0 ** (self._losses - 1), _QUIET) if self._losses else 0.0
        self._losses, self._lost_at = self._losses + 1, now + delay
        asyncio.get_running_loop().call_later(delay, self.fit)

    def _queue_seconds(self) -> float:
        """Time that a request waits while no instance is starting."""
        starts = fmean(self._start_seconds) if self._start_seconds else 0.0
        return max(self.scaling.queue_seconds, _STARTS * starts)

    async def _start_and_measure(self, reason: str) -> Instance:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        instance = await self._start(reason)
        self._start_seconds.append(loop.time() - begun)
        return instance

    def _grow(self, reason: str) -> None:
        self._starting.keep(asyncio.create_task(self._start_and_add(reason)))

    async def _start_and_add(self, reason: str) -> None:
        try:
            instance = await self._start_and_measure(reason)
        except NoCapacityError as error:
            # Requests wait as long as where all instances are busy.
            self._busy_status = error.status
            self._replace_lost()
            return
        except Exception as error:
            # The service's log has the reason; an unforeseen error must not leave requests waiting either.
            log.warning("instance did not start: %s", error, exc_info=not isinstance(error, RevisionFailureError))
            if not self._ready and len(self._starting) == 1:
                self._refuse_waiting("The request failed because the instance failed the readiness check.")
            self._replace_lost()
            return
        self._add(instance)

    def _add(self, instance: Instance) -> None:
        self._busy_status = 429
        self._ready.append(instance)
        self._background.keep(asyncio.create_task(self._until_exit(instance)))
        if self.scaling.liveness:
            self._background.keep(asyncio.create_task(self._until_dead(instance, self.scaling.liveness)))
        if readiness := self.scaling.readiness:
            self._background.keep(asyncio.create_task(instance.follow_readiness(readiness, self._serve_waiting)))
        self._serve_waiting()
        if instance.in_flight == 0:
            self._consider_end(instance)

    async def _until_exit(self, instance: Instance) -> None:
        await instance.exited.wait()
        if instance in self._ready:
            self._ready.remove(instance)
            self._replace_lost()
        if self._waiting and not self._ready and not self._starting and not self._closed:
            self._grow(DEMAND)

    async def _until_dead(self, instance: Instance, probe: ProbeSpec) -> None:
        dead = asyncio.ensure_future(instance.alive(probe))
        exited = asyncio.ensure_future(instance.exited.wait())
        await asyncio.wait([dead, exited], return_when=asyncio.FIRST_COMPLETED)
        for task in (dead, exited):
            task.cancel()
        self.discard(instance)

    def _consider_end(self, instance: Instance) -> None:
        def end_if_idle() -> None:
            surplus = instance in self._ready and len(self._ready) > self.scaling.minimum
            if instance.in_flight == 0 and surplus and instance.idle_since == idle_since:
                self._end(instance)

        loop = asyncio.get_running_loop()
        idle_since = instance.idle_since = loop.time()
        beyond = len(self._ready) > self.scaling.maximum
        loop.call_later(0.0 if beyond else self.scaling.idle_seconds, end_if_idle)

    def _serve_waiting(self) -> None:
        while self._waiting and (free := self._free()):
            future = self._waiting.popleft()
            if not future.done():
                free.in_flight += 1
                future.set_result(free)

    def _refuse_waiting(self, message: str) -> None:
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_exception(NoInstanceError(503, message))


@dataclass(frozen=True)
class RevisionRoute:
    """Route of a request: the instances of one revision."""

    pool: Autoscaler
    spec: RevisionSpec
    source: LogSource
