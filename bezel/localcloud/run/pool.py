"""The instances of one revision: as many as load demands, none for long without requests.

Owns starting, handing out and ending instances. Leaves out what an instance is (instance.py) and which revision gets a
request (controller.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel.localcloud.run.failures import RevisionFailureError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bezel.localcloud.run.instance import Instance
    from bezel.localcloud.run.spec import Probe

log = logging.getLogger(__name__)


class NoInstanceError(Exception):
    """No instance for a request: 429 where all are busy, 503 where none comes up."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True)
class Scaling:
    """Bounds of a pool.

    Attributes:
        concurrency: Requests that an instance gets at once.
        idle_seconds: How long an instance without requests is kept beyond the least number.
        queue_seconds: How long a request waits for room where no further instance may start.
    """

    concurrency: int
    least: int
    most: int
    idle_seconds: float
    queue_seconds: float
    liveness: Probe | None = None


class Pool:
    """Instances that are ready, that are starting, and the requests that wait for them.

    Attributes:
        scaling: Its bounds; a new value counts from the next decision on.
    """

    def __init__(self, start: Callable[[], Awaitable[Instance]], scaling: Scaling) -> None:
        self._start = start
        self.scaling = scaling
        self._ready: list[Instance] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._waiting: deque[asyncio.Future[Instance]] = deque()
        self._background: set[asyncio.Task[None]] = set()
        self._closed = False

    async def first(self) -> None:
        """Start the first instance and wait until it is healthy.

        Raises:
            RevisionFailureError: If it does not become healthy.
        """
        self._add(await self._start())

    def keep_least(self) -> None:
        """Start what is missing to the least number of instances."""
        while not self._closed and len(self._ready) + len(self._starting) < self.scaling.least:
            self._grow()

    async def acquire(self) -> Instance:
        """An instance with room for one more request; started if need be.

        Raises:
            NoInstanceError: If there is none in time.
        """
        if free := self._free():
            free.in_flight += 1
            return free
        if len(self._ready) + len(self._starting) < self.scaling.most and not self._closed:
            self._grow()
        future: asyncio.Future[Instance] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        try:
            while True:
                done, _ = await asyncio.wait([future], timeout=self.scaling.queue_seconds)
                if done:
                    return future.result()
                if not self._starting:
                    raise NoInstanceError(429, "The request was aborted because there was no available instance.")
        except asyncio.CancelledError:
            # Given an instance in the very moment its request went away: it goes to the next one.
            if future.done() and not future.cancelled() and future.exception() is None:
                self.release(future.result())
            raise
        finally:
            if future in self._waiting:
                self._waiting.remove(future)

    def release(self, instance: Instance) -> None:
        """Give an instance back after a request."""
        instance.in_flight -= 1
        self._serve_waiting()
        if instance.in_flight == 0:
            self._consider_end(instance)

    def discard(self, instance: Instance) -> None:
        """Hand an instance out no more, and end it."""
        if instance in self._ready:
            self._ready.remove(instance)
            self._spawn(instance.stop())
            self.keep_least()

    async def close(self, patience: float = 0.0) -> None:
        """End all instances; requests under way and in the queue get up to `patience` real seconds."""
        self._closed = True
        for task in list(self._starting):
            task.cancel()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience
        try:
            while self._is_busy() and loop.time() < deadline:  # noqa: ASYNC110 - of many instances, until the last
                await asyncio.sleep(0.05)
        finally:
            self._refuse_waiting("The revision takes no more requests.")
            ending, self._ready = self._ready, []
            await asyncio.gather(*self._starting, *(instance.stop() for instance in ending), return_exceptions=True)
            for task in list(self._background):
                task.cancel()

    def _is_busy(self) -> bool:
        return bool(self._ready) and (bool(self._waiting) or any(instance.in_flight for instance in self._ready))

    def _free(self) -> Instance | None:
        room = [instance for instance in self._ready if instance.in_flight < self.scaling.concurrency]
        return min(room, key=lambda instance: instance.in_flight, default=None)

    def _grow(self) -> None:
        task = asyncio.create_task(self._grown())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _grown(self) -> None:
        try:
            instance = await self._start()
        except Exception as error:
            # The log of the service tells why; anything unforeseen must not leave requests waiting either.
            log.warning("instance did not start: %s", error, exc_info=not isinstance(error, RevisionFailureError))
            if not self._ready and len(self._starting) == 1:
                self._refuse_waiting("The request failed because the instance could not start successfully.")
            return
        self._add(instance)

    def _add(self, instance: Instance) -> None:
        self._ready.append(instance)
        self._spawn(self._until_exit(instance))
        if self.scaling.liveness:
            self._spawn(self._until_dead(instance, self.scaling.liveness))
        self._serve_waiting()
        if instance.in_flight == 0:
            self._consider_end(instance)

    async def _until_exit(self, instance: Instance) -> None:
        await instance.exited.wait()
        if instance in self._ready:
            self._ready.remove(instance)
        self.keep_least()
        if self._waiting and not self._ready and not self._starting and not self._closed:
            self._grow()

    async def _until_dead(self, instance: Instance, probe: Probe) -> None:
        dead = asyncio.ensure_future(instance.alive(probe))
        exited = asyncio.ensure_future(instance.exited.wait())
        await asyncio.wait([dead, exited], return_when=asyncio.FIRST_COMPLETED)
        for task in (dead, exited):
            task.cancel()
        self.discard(instance)

    def _consider_end(self, instance: Instance) -> None:
        def end_if_idle() -> None:
            surplus = len(self._ready) > self.scaling.least
            if instance.in_flight == 0 and surplus and instance.idle_since == idle_since:
                self.discard(instance)

        loop = asyncio.get_running_loop()
        idle_since = instance.idle_since = loop.time()
        loop.call_later(self.scaling.idle_seconds, end_if_idle)

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

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
