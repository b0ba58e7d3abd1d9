"""Processes that end with the daemon: a guard for a process group, and a pipe for what a process writes."""

from __future__ import annotations

import asyncio
import os

# Beside every process waits a shell at a pipe whose other end only the daemon holds: however the daemon ends, the whole
# process group ends with it.
_GUARD = 'read -r _; kill -s KILL -- "-$0"'


async def guard(group: int) -> asyncio.subprocess.Process:
    """Start the guard of a process group; it is to be killed once the group has ended."""
    return await asyncio.create_subprocess_exec(
        *("/bin/sh", "-c", _GUARD, str(group)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )


class Output:
    """A pipe for what a process writes.

    One of asyncio's own would hide that the process has ended for as long as a child of it holds the pipe open.

    Attributes:
        inlet: The writing end, to be closed once the process has it.
    """

    def __init__(self) -> None:
        outlet, self.inlet = os.pipe()
        self._outlet = open(outlet, "rb", buffering=0)  # noqa: PTH123, SIM115 - a pipe that is there
        self._transport: asyncio.ReadTransport | None = None

    async def reader(self) -> asyncio.StreamReader:
        """The reading end, once the process has the writing end."""
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        self._transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self._outlet)
        return reader

    def close(self) -> None:
        """Read no more."""
        (self._transport or self._outlet).close()
