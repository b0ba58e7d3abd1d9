"""Host of all machines: boots and ends them for the APIs, and reads their guest attributes and consoles."""

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Callable, Mapping

from bezel.localcloud.core.clock import InstanceTiming
from bezel.localcloud.machines.node_spec import NodeSpec
from bezel.localcloud.node.machine import Machine, folder_of_all
from bezel.localcloud.node.reachability import Ways
from bezel.localcloud.routing.context import Context
from bezel.localcloud.services.cloud_run.runtime.container_command import Command, Container

log = logging.getLogger(__name__)


class Nodes:
    """The machines of one cloud; a `NodeHost`."""

    def __init__(
        self,
        cloud: Context,
        launcher: Callable[[Container], Command],
        timing: InstanceTiming,
        subnetwork_of: Callable[[str], str],
    ) -> None:
        self._cloud = cloud
        self._launcher = launcher
        self._speed = timing.startup_speed
        self._subnetwork_of = subnetwork_of
        self._machines: dict[str, Machine] = {}
        # Changes of a machine happen in order: its end waits for its start, its next start for its end.
        self._last: dict[str, asyncio.Task[None]] = {}
        shutil.rmtree(folder_of_all(cloud), ignore_errors=True)  # leftovers of a killed daemon

    def boot(self, spec: NodeSpec) -> None:
        """Start a machine; do nothing if one of that name runs."""
        if spec.name in self._machines:
            return
        ways = Ways(self._cloud.store, spec, self._subnetwork_of)
        machine = Machine(self._cloud, spec, ways, self._launcher, self._speed)
        self._machines[spec.name] = machine
        self._then(spec.name, lambda: self._start(spec, machine))

    def end(self, name: str) -> None:
        """End a machine and all that runs on it; do nothing if there is none."""
        if machine := self._machines.pop(name, None):
            self._then(name, machine.stop)

    def guest_attributes(self, name: str) -> Mapping[str, str]:
        """Guest attributes that a machine wrote, by `namespace/key`; {} if there is none of that name."""
        machine = self._machines.get(name)
        return dict(machine.guest) if machine else {}

    def serial_output(self, name: str) -> str:
        """Output of its serial console; "" if there is none of that name."""
        machine = self._machines.get(name)
        return "".join(f"{line}\n" for line in machine.console) if machine else ""

    async def close(self) -> None:
        """End all machines; the APIs keep the record of those that should run."""
        for name in list(self._machines):
            self.end(name)
        await asyncio.gather(*self._last.values(), return_exceptions=True)

    async def _start(self, spec: NodeSpec, machine: Machine) -> None:
        try:
            await machine.start()
        except OSError as error:
            machine.console.append(f"localcloud: the machine cannot start at {spec.address}: {error}")
            raise

    def _then(self, name: str, work: Callable[[], object]) -> None:
        before = self._last.get(name)

        async def in_order() -> None:
            if before is not None:
                await asyncio.wait([before])
            with contextlib.suppress(asyncio.CancelledError):
                try:
                    await work()  # type: ignore[misc]
                except Exception:
                    log.exception("machine %s", name)

        task = asyncio.create_task(in_order())
        self._last[name] = task
        task.add_done_callback(lambda done: self._last.pop(name) if self._last.get(name) is done else None)
