"""Process on a machine: a process group that ends with the daemon, its output read line by line."""

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bezel_localcloud.processes.process_guard import Output, guard, signal_group
from bezel_localcloud.services.cloud_run.runtime.container_command import Command

_LONGEST_LINE = 64 * 1024
_LAST_WORDS = 2.0  # seconds to read the rest of an ended process's output


class Process:
    """One process and everything that it starts.

    Attributes:
        exited: Set when it has ended and its output is read.
        code: Its exit status as a shell reports it (128 + the signal's number), None while it runs.
    """

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self.exited = asyncio.Event()
        self.code: int | None = None
        self._on_line = on_line
        self._process: asyncio.subprocess.Process | None = None
        self._end: asyncio.Task[None] | None = None

    async def start(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        """Start it; each line of its output goes to `on_line` from now on.

        Raises:
            OSError: If there is no such program.
        """
        output = Output()
        try:
            self._process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output.inlet,
                stderr=output.inlet,
                env=dict(environment),
                start_new_session=True,
            )
        except OSError:
            output.close()
            raise
        finally:
            os.close(output.inlet)
        watcher = await guard(self._process.pid)
        pump = asyncio.create_task(self._pump(await output.reader()))
        self._end = asyncio.create_task(self._watch(self._process, watcher, pump, output))

    async def stop(self, grace: float = 0.0) -> None:
        """End it, with SIGTERM first if `grace` is positive; return when all its processes have ended."""
        if self._process is None or self._end is None:
            return
        if grace:
            signal_group(self._process, signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.exited.wait(), grace)
        signal_group(self._process, signal.SIGKILL)
        await asyncio.gather(self._end, return_exceptions=True)

    async def _watch(
        self,
        process: asyncio.subprocess.Process,
        watcher: asyncio.subprocess.Process,
        pump: asyncio.Task[None],
        output: Output,
    ) -> None:
        code = await process.wait()
        signal_group(self._process, signal.SIGKILL)  # a child of it may hold the pipe open
        _, deaf = await asyncio.wait([pump], timeout=_LAST_WORDS)
        for task in deaf:
            task.cancel()
        output.close()
        with contextlib.suppress(ProcessLookupError):
            watcher.kill()
        await watcher.wait()
        self.code = code if code >= 0 else 128 - code
        self.exited.set()

    async def _pump(self, stream: asyncio.StreamReader) -> None:
        rest = b""
        while chunk := await stream.read(_LONGEST_LINE):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _LONGEST_LINE:
                lines, rest = [*lines, rest], b""
            for line in lines:
                self._on_line(line.decode(errors="replace").rstrip("\r"))
        if rest:
            self._on_line(rest.decode(errors="replace"))


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
        """Start it, or start it again after its end; it then has all its restarts again.

        Raises:
            OSError: If its program cannot be started.
        """
        self.restarts = 0
        self._process = await self._start_process()
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

    async def _start_process(self) -> Process:
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
            self._process = process = await self._start_process()
