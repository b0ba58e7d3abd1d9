"""Process of a container: its process group, its output in the log, its startup probe, its end.

Owns the process from start to the last byte of its output. Leaves out what an instance is beside it (instance.py).
"""

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from pathlib import Path

from bezel_localcloud.core.clock import InstanceTiming
from bezel_localcloud.core.logbook import Logbook, LogSource
from bezel_localcloud.processes.process_guard import Output, guard, signal_group
from bezel_localcloud.services.cloud_run.runtime.container_command import Command
from bezel_localcloud.services.cloud_run.runtime.upstream import passes
from bezel_localcloud.services.cloud_run.spec import ContainerSpec, ProbeSpec

INSTANCE_VARIABLE = "LOCALCLOUD_INSTANCE"
REPORT_VARIABLE = "LOCALCLOUD_START_REPORT"
_LONGEST_LINE = 64 * 1024
_GRACE = 5.0  # seconds between SIGTERM and SIGKILL, for a busy machine too; ten on Cloud Run
_OUTPUT = 2.0  # seconds for what an ended process has written to be read
_OUT_OF_MEMORY = 137  # a simulated server's exit status where the kernel would have killed a real one
_INTERPRETER = 60.0  # real seconds for a process to print its first output


class ContainerProcess:
    """A running container.

    Attributes:
        exited: Set when the process has ended.
        code: Its exit status, minus the signal's number if a signal ended it; None while it runs.
        was_stopped: Whether the platform has stopped it.
    """

    def __init__(
        self, source: LogSource, spec: ContainerSpec, command: Command, address: str, logbook: Logbook
    ) -> None:
        """Create a container that is not started yet.

        Args:
            source: The instance's, or for a named container its own.
            spec: Its part of the revision.
            command: What is executed.
            address: Path of the socket that it listens on.
            logbook: Gets its output.
        """
        self.exited = asyncio.Event()
        self.code: int | None = None
        self._source = source
        self._spec = spec
        self._command = command
        self._address = address
        self._socket = Path(address)
        self._logbook = logbook
        self._has_output = asyncio.Event()
        self.was_stopped = False
        self._tasks: list[asyncio.Task[None]] = []
        # A simulated server writes the duration of its start here, in seconds of the platform.
        self._report = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - as long as the process
        self._process: asyncio.subprocess.Process | None = None
        self._guard: asyncio.subprocess.Process | None = None
        self._output: dict[str, Output] = {}

    async def start(self) -> None:
        """Start the process; its output goes to the log from now on.

        Raises:
            OSError: If there is no such command.
        """
        for note in self._command.notes:
            self._logbook.platform(self._source, "NOTICE", note)
        self._output = {name: Output() for name in ("stdout", "stderr")}
        try:
            self._process = await self._spawn()
            self._guard = await guard(self._process.pid)
        except OSError:
            signal_group(self._process, signal.SIGKILL)
            self._close_output()
            self._remove_folders()
            raise
        pumps = [asyncio.create_task(self._pump(name, await pipe.reader())) for name, pipe in self._output.items()]
        self._tasks = [*pumps, asyncio.create_task(self._watch(pumps))]

    async def wait_for_start(self, timing: InstanceTiming) -> bool:
        """Wait until it has started: its startup probe passes, or without one its process runs."""
        return await self.healthy(self._spec.startup, timing) if self._spec.startup else True

    async def healthy(self, probe: ProbeSpec, timing: InstanceTiming) -> bool:
        """Wait until a startup probe passes; False if the process ends or the probe's window does.

        The window is in the platform's time. For a simulated server the start time that it reports counts: the time
        that this machine needs to run a process would be hours on a fast clock. Any other process has the window from
        its first output on. The result is logged.
        """
        attempts = await self._attempts(probe, timing)
        kind = _kind("STARTUP", probe)
        if attempts:
            if reported := self._start_seconds():
                attempts = 1 + int(max(0.0, reported - probe.initial_delay) / probe.period)
            text = f"{kind} probe succeeded after {_times(attempts, 'attempt')} for {self._where(probe)}."
            self._logbook.platform(self._source, "INFO", text)
        else:
            # A probe whose container ended was cut off; one that gave up has failed as often as it may.
            cut_off = self.exited.is_set()
            failed = _times(1 if cut_off else probe.failures, "time")
            text = f"{kind} probe failed {failed} consecutively for {self._where(probe)}. The instance was not started."
            how = "CANCELLED" if cut_off else "ERROR_CONNECTION_FAILED"
            self._logbook.platform(self._source, "ERROR", f"{text}\nConnection failed with status {how}.")
        return attempts > 0

    async def alive(self, probe: ProbeSpec) -> None:
        """Return when a liveness probe has failed as often as it may; its times are never sped up, as for traffic."""
        failures = 0
        await asyncio.sleep(probe.initial_delay)
        while failures < probe.failures:
            await asyncio.sleep(probe.period)
            failures = 0 if await self.passes(probe, probe.timeout) else failures + 1
        failed = _times(failures, "time")
        text = f"{_kind('LIVENESS', probe)} probe failed {failed} consecutively for {self._where(probe)}."
        self._logbook.platform(self._source, "ERROR", f"{text} The instance has been shut down.")

    async def passes(self, probe: ProbeSpec, timeout: float) -> bool:  # noqa: ASYNC109 - the probe's own limit
        """Whether a probe passes at this moment."""
        # Only the port that takes requests exists here, as a socket; a probe of another port fails.
        return probe.port in {0, self._port()} and await passes(probe, self._address, timeout)

    async def stop(self) -> None:
        """End the whole process group, with SIGTERM first; return when all its processes have ended."""
        if self._process is None or self.exited.is_set():
            return
        self.was_stopped = True
        signal_group(self._process, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.exited.wait(), _GRACE)
        signal_group(self._process, signal.SIGKILL)
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def ended_itself(self) -> bool:
        """Whether it has ended without the platform's stop."""
        return self.code is not None and not self.was_stopped

    @property
    def was_killed(self) -> bool:
        """Whether an outside signal killed it: neither its own exit nor the platform's stop."""
        return self.ended_itself and self.code == -signal.SIGKILL

    async def _spawn(self) -> asyncio.subprocess.Process:
        environment = {INSTANCE_VARIABLE: self._source.instance, REPORT_VARIABLE: str(self._report.fileno())}
        try:
            return await asyncio.create_subprocess_exec(
                *self._command.argv,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=self._output["stdout"].inlet,
                stderr=self._output["stderr"].inlet,
                env=dict(self._command.environment) | environment,
                pass_fds=(self._report.fileno(),),
                start_new_session=True,
            )
        finally:
            for pipe in self._output.values():
                os.close(pipe.inlet)

    def _close_output(self) -> None:
        for pipe in self._output.values():
            pipe.close()

    def _remove_folders(self) -> None:
        for folder in self._command.folders:
            shutil.rmtree(folder, ignore_errors=True)

    async def _attempts(self, probe: ProbeSpec, timing: InstanceTiming) -> int:
        """Number of tries until the probe passed; 0 if it did not pass in time."""
        tried = 0
        loop, speed = asyncio.get_running_loop(), timing.startup_speed
        first_output_by, pause = loop.time() + _INTERPRETER, min(max(probe.period / speed, 0.02), 1.0)
        ready_at, deadline = loop.time() + probe.initial_delay / speed, float("inf")
        while not self.exited.is_set() and loop.time() < deadline:
            if deadline == float("inf") and (self._has_output.is_set() or loop.time() > first_output_by):
                ready_at = loop.time() + probe.initial_delay / speed
                deadline = loop.time() + probe.window / speed + timing.machine_seconds
            if loop.time() >= ready_at:
                tried += 1
                if await self.passes(probe, max(probe.timeout / speed, 1.0)):
                    return 0 if self.exited.is_set() or self._start_seconds() > probe.window else tried
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.exited.wait(), pause)
        return 0

    def _start_seconds(self) -> float:
        """Duration of a simulated server's start in the platform's seconds; 0 while it starts or for others."""
        if self._report.closed:
            return 0.0
        self._report.seek(0)
        return float(self._report.read() or 0)

    async def _pump(self, name: str, stream: asyncio.StreamReader) -> None:
        rest = b""
        while chunk := await stream.read(_LONGEST_LINE):
            self._has_output.set()
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > _LONGEST_LINE:
                lines, rest = [*lines, rest], b""
            if texts := [line.decode(errors="replace").rstrip("\r") for line in lines if line.strip()]:
                self._logbook.output(self._source, name, texts)
        if rest.strip():
            self._logbook.output(self._source, name, [rest.decode(errors="replace")])

    async def _watch(self, pumps: list[asyncio.Task[None]]) -> None:
        if self._process is None:
            return
        code = await self._process.wait()
        # A grandchild may hold the pipes open: it is killed with the group.
        signal_group(self._process, signal.SIGKILL)
        _, deaf = await asyncio.wait(pumps, timeout=_OUTPUT)
        for pump in deaf:  # a process that left the group holds the pipes open
            pump.cancel()
        self._close_output()
        # A process that the platform stopped ends by the signal; one that had ended by itself is logged all the same.
        if not self.was_stopped or code not in {0, -signal.SIGTERM, -signal.SIGKILL, 128 + signal.SIGTERM}:
            self._logbook.platform(self._source, *self._last_words(code))
        self._report.close()
        self._socket.unlink(missing_ok=True)
        self._remove_folders()
        if self._guard is not None:
            with contextlib.suppress(ProcessLookupError):
                self._guard.kill()
            await self._guard.wait()
        self.code = code
        self.exited.set()

    def _last_words(self, code: int) -> tuple[str, str]:
        # The memory of a simulated server is simulated as well: it reports by its exit status that it used too much. No
        # other container has a memory limit here, so a killed one did not run out of memory.
        if code == _OUT_OF_MEMORY:
            page = "https://cloud.google.com/run/docs/configuring/memory-limits"
            text = f"Memory limit of {self._spec.memory // 1024**2} MiB exceeded."
            return "ERROR", f"{text} Consider increasing the memory limit, see {page}"
        if code < 0:
            return "ERROR", f"Container terminated on signal {-code}."
        return "WARNING" if code else "INFO", f"Container called exit({code})."

    def _port(self) -> int:
        return int(self._address.rpartition(":")[2])

    def _where(self, probe: ProbeSpec) -> str:
        path = f' path "{probe.path}"' if probe.path is not None else ""
        name = self._spec.name or f"{self._source.service}-1"
        return f'container "{name}" on port {probe.port or self._port()}{path}'


def _kind(role: str, probe: ProbeSpec) -> str:
    """Name of a probe in the platform's log."""
    return f"{role} HTTP" if probe.path is not None else f"Default {role} TCP" if role == "STARTUP" else f"{role} TCP"


def _times(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
