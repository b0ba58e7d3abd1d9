"""Guard that ends a process group with the daemon, and a pipe for the output of a process."""

import asyncio
import contextlib
import os
import signal

# Beside every process a shell reads from a pipe whose other end only the daemon holds: however the daemon ends, the
# shell ends the whole process group.
_GUARD = 'read -r _; kill -s KILL -- "-$0"'


async def guard(group: int) -> asyncio.subprocess.Process:
    """Start the guard of a process group; the caller kills it once the group has ended."""
    return await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", _GUARD, str(group)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )


def signal_group(process: asyncio.subprocess.Process | None, number: signal.Signals) -> None:
    """Send a signal to a process and all that it has started, if there is one."""
    if process is not None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


class Output:
    """A pipe for the output of a process.

    asyncio's own pipe would hide the end of the process as long as a child of it holds the pipe open.

    Attributes:
        inlet: The writing end, closed once the process has inherited it.
    """

    def __init__(self) -> None:
        outlet, self.inlet = os.pipe()
        self._outlet = open(outlet, "rb", buffering=0)  # noqa: PTH123, SIM115 - a pipe that is there
        self._transport: asyncio.ReadTransport | None = None

    async def reader(self) -> asyncio.StreamReader:
        """Return the reading end, once the process has inherited the writing end."""
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._outlet)
        return reader

    def close(self) -> None:
        """Stop reading."""
        (self._transport or self._outlet).close()
