"""Container on a machine: one process, restarted after a failure as often as its policy allows."""

import asyncio
from collections import deque
from pathlib import Path

from bezel.localcloud.node.process import Process
from bezel.localcloud.services.cloud_run.runtime.container_command import Command

_LOG_LINES = 2000
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 60.0  # seconds of the platform between two starts, doubled each time
_GRACE = 2.0  # seconds between SIGTERM and SIGKILL; ten in docker


class Container:
    """One container.

    Attributes:
        status: created, running, restarting or exited.
        restarts: Number of restarts.
        code: Exit status of its last process.
        log: The last lines of all its processes.
    """

    def __init__(self, command: Command, address: str, most_restarts: int, speed: float) -> None:
        """Create a container that is not started yet; `address` is the path of the socket that it listens on."""
        self.status = "created"
        self.restarts = 0
        self.code = 0
        self.log: deque[str] = deque(maxlen=_LOG_LINES)
        self._command = command
        self._socket = Path(address)
        self._most = most_restarts
        self._speed = speed
        self._process: Process | None = None
        self._life: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start it.

        Raises:
            OSError: If its program cannot be started.
        """
        self._process = await self._started()
        self._life = asyncio.create_task(self._live(self._process))

    async def stop(self) -> None:
        """End it without a restart."""
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)
        if self._process is not None:
            await self._process.stop(_GRACE)
            self.code = self._process.code or 0
        self._socket.unlink(missing_ok=True)
        self.status = "exited"

    async def _started(self) -> Process:
        self._socket.unlink(missing_ok=True)  # a killed process leaves it behind
        process = Process(self.log.append)
        await process.start(self._command.argv, self._command.environment)
        self.status = "running"
        return process

    async def _live(self, process: Process) -> None:
        pause = _FIRST_PAUSE
        while True:
            await process.exited.wait()
            self.code = process.code or 0
            if self.code == 0 or self.restarts >= self._most:
                self.status = "exited"
                return
            self.status = "restarting"
            await asyncio.sleep(pause / self._speed)
            pause = min(pause * 2, _LONGEST_PAUSE)
            self.restarts += 1
            self._process = process = await self._started()
