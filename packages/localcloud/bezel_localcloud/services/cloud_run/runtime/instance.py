"""Instance of a revision or task: its containers, started in their order, and what they are as one.

Owns the order of starts and stops, readiness, and the end of all containers with the first that ends. Leaves out one
container's process (container_process.py) and the number of instances (autoscaler.py).
"""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from bezel_localcloud.core.clock import InstanceTiming
from bezel_localcloud.core.logbook import Logbook, LogSource
from bezel_localcloud.services.cloud_run.containers.order import start_order
from bezel_localcloud.services.cloud_run.runtime.container_command import Command
from bezel_localcloud.services.cloud_run.runtime.containers.container_process import (
    INSTANCE_VARIABLE,
    REPORT_VARIABLE,
    ContainerProcess,
)
from bezel_localcloud.services.cloud_run.spec import ProbeSpec, RevisionSpec

__all__ = ["INSTANCE_VARIABLE", "REPORT_VARIABLE", "Instance", "Readiness", "RunningContainer"]


@dataclass(frozen=True)
class Readiness:
    """What decides whether an instance gets requests.

    Attributes:
        probe: The readiness probe.
        pause: Real seconds between two probes.
        is_reachable: Whether the instance's region answers.
    """

    probe: ProbeSpec
    pause: float
    is_reachable: Callable[[], bool]


class RunningContainer(Protocol):
    """A container of an instance: a process, or a part of the daemon in place of one.

    Attributes:
        exited: Set when it has ended.
        code: Its exit status; None while it runs.
    """

    exited: asyncio.Event
    code: int | None

    async def start(self) -> None:
        """Start it.

        Raises:
            OSError: If there is no such command.
        """

    async def wait_for_start(self, timing: InstanceTiming) -> bool:
        """Wait until it has started; False if it ends before, or does not start in time."""

    async def stop(self) -> None:
        """End it, with time for its last work."""


class Instance:
    """The containers of an instance.

    Attributes:
        id: Made-up id, in the log's labels and in the environment of its processes.
        address: Path of the socket that it listens on.
        in_flight: Requests that it handles at this moment.
        idle_since: Time of its last request's end, in the event loop's seconds.
        is_ready: Whether its readiness probe passes; true without one.
        exited: Set when all containers have ended.
        code: Exit status of the container that takes requests, minus the signal's number if a signal ended it; None
            while it runs.
        source: The revision or task, and this instance's id.
    """

    def __init__(self, source: LogSource, spec: RevisionSpec, address: str, logbook: Logbook) -> None:
        self.id = uuid.uuid4().hex
        self.address = address
        self.in_flight = 0
        self.is_ready = True
        self.idle_since = 0.0
        self._started_at = self._ended_at = 0.0
        self.exited = asyncio.Event()
        self.source = replace(source, instance=self.id)
        self._spec = spec
        self._logbook = logbook
        self._serving: ContainerProcess | None = None
        self._others: dict[str, RunningContainer] = {}
        self._running: list[str] = []
        self._following: list[asyncio.Task[None]] = []
        self._end: asyncio.Task[None] | None = None

    @property
    def code(self) -> int | None:
        """Exit status of the container that takes requests; None while it runs."""
        return None if self._serving is None else self._serving.code

    async def start(self, command: Command, reason: str) -> None:
        """Start the container that takes requests and log the reason.

        Raises:
            OSError: If there is no such command.
        """
        self._announce(reason)
        self._serving = self._serving_process(command)
        await self._start_container(self._spec.name)

    async def start_all(
        self, command: Command, others: Mapping[str, RunningContainer], reason: str, timing: InstanceTiming
    ) -> bool:
        """Start all containers, each once those that it depends on have started; False if one does not start.

        Args:
            command: Of the container that takes requests.
            others: The other containers by their names.
            reason: Why the instance starts, for the log.
            timing: Times of instances.

        Raises:
            OSError: If there is no such command.
        """
        self._announce(reason)
        self._serving, self._others = self._serving_process(command), dict(others)
        dependencies = self._dependencies()
        tasks: dict[str, asyncio.Task[bool]] = {}

        async def start_in_turn(name: str) -> bool:
            for other in dependencies[name]:
                if not await tasks[other]:
                    return False
            if self._end is not None:
                return False
            await self._start_container(name)
            return await self._container(name).wait_for_start(timing)

        for name in start_order(dependencies):
            tasks[name] = asyncio.create_task(start_in_turn(name))
        try:
            return all(await asyncio.gather(*tasks.values()))
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    def _dependencies(self) -> dict[str, tuple[str, ...]]:
        """Name of each container -> names of those that it depends on."""
        return {container.name: container.depends_on for container in (self._spec, *self._spec.sidecars)}

    def _announce(self, reason: str) -> None:
        self._logbook.platform(self.source, "INFO", f"Starting new instance. Reason: {reason}")

    def _serving_process(self, command: Command) -> ContainerProcess:
        source = replace(self.source, container=self._spec.name)
        return ContainerProcess(source, self._spec, command, self.address, self._logbook)

    def _container(self, name: str) -> RunningContainer:
        container = self._others.get(name, self._serving)
        if container is None:
            raise RuntimeError("the instance was not started")
        return container

    async def _start_container(self, name: str) -> None:
        self._running.append(name)  # before its start, which may be cancelled halfway
        await self._container(name).start()
        self._started_at = self._started_at or time.monotonic()
        self._following.append(asyncio.create_task(self._follow(name)))
        if self._end is not None:
            await self._container(name).stop()

    async def _follow(self, name: str) -> None:
        """End the instance with a container."""
        await self._container(name).exited.wait()
        self._begin_end()

    def _begin_end(self) -> asyncio.Task[None]:
        if self._end is None:
            self._end = asyncio.create_task(self._stop_all())
        return self._end

    async def _stop_all(self) -> None:
        """Stop the containers, each before those that it depends on, otherwise at the same time."""
        stops: dict[str, asyncio.Task[None]] = {}
        dependencies = self._dependencies()

        async def stop_in_turn(name: str, after: list[str]) -> None:
            await asyncio.gather(*(stops[other] for other in after))
            await self._container(name).stop()

        for name in reversed(start_order(dependencies)):
            if name in self._running:
                after = [other for other in stops if name in dependencies[other]]
                stops[name] = asyncio.create_task(stop_in_turn(name, after))
        await asyncio.gather(*stops.values())
        self._ended_at = time.monotonic()
        self.exited.set()

    async def healthy(self, probe: ProbeSpec, timing: InstanceTiming) -> bool:
        """Wait until a startup probe of the container that takes requests passes, see `ContainerProcess.healthy`."""
        return self._serving is not None and await self._serving.healthy(probe, timing)

    async def alive(self, probe: ProbeSpec) -> None:
        """Return when a liveness probe has failed as often as it may."""
        if self._serving is not None:
            await self._serving.alive(probe)

    async def follow_readiness(self, readiness: Readiness, changed: Callable[[], None]) -> None:
        """Keep `is_ready` as the readiness probe has it, until cancelled; `changed` is called at each change."""
        probe, failures = readiness.probe, 0
        await asyncio.sleep(readiness.pause * probe.initial_delay / probe.period)
        while not self.exited.is_set():
            passed = readiness.is_reachable() and await self._passes(probe)
            failures = 0 if passed else failures + 1
            if passed != self.is_ready and (passed or failures >= probe.failures):
                self.is_ready = passed
                changed()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.exited.wait(), readiness.pause)

    async def stop(self) -> None:
        """End all containers; return when all their processes have ended."""
        if self._running:
            await asyncio.shield(self._begin_end())

    async def _passes(self, probe: ProbeSpec) -> bool:
        return self._serving is not None and await self._serving.passes(probe, probe.timeout)

    @property
    def is_idle(self) -> bool:
        """Whether it has started and handles no request at this moment."""
        return self.in_flight == 0 and self.idle_since > 0.0

    @property
    def lived_seconds(self) -> float:
        """Real seconds from its start until now, or until its end."""
        if not self._started_at:
            return 0.0
        return (self._ended_at or time.monotonic()) - self._started_at

    @property
    def was_killed(self) -> bool:
        """Whether an outside signal killed it: neither its own exit nor the platform's stop."""
        return self._serving is not None and self._serving.was_killed

    @property
    def failed_sidecar(self) -> str:
        """Name of a container that ended by itself while the one that takes requests did not; "" for none."""
        if self._serving is None or self._serving.ended_itself:
            return ""
        return next((name for name, container in self._others.items() if container.code is not None), "")
