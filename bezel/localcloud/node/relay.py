"""A TCP port that passes connections on, or cuts them off where a rule does not let them through."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_PIECE = 64 * 1024
_RESET = struct.pack("ii", 1, 0)  # linger no second: the other end sees a reset


class Relay:
    """One listening port in front of one port of 127.0.0.1."""

    def __init__(self, target: int, admits: Callable[[tuple[str, int]], Awaitable[bool]]) -> None:
        self._target = target
        self._admits = admits
        self._server: asyncio.Server | None = None
        self._running: set[asyncio.Task[None]] = set()

    async def listen(self, host: str, port: int = 0) -> int:
        """Take connections; the port.

        Raises:
            OSError: If the port is taken or the address is none of this machine.
        """
        self._server = await asyncio.start_server(self._accepted, host, port, backlog=1024)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Take no more and cut off those that are there."""
        if self._server is not None:
            self._server.close()
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not await self._admits(writer.get_extra_info("peername")[:2]):
                return
            behind, before = await asyncio.open_connection("127.0.0.1", self._target)
            try:
                ways = [asyncio.create_task(_pass(*way)) for way in ((reader, before), (behind, writer))]
                # An error of one way is the end of both; the end of one way only is what it is.
                done, left = await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
                for way in left:
                    way.cancel()
                if not left and all(way.exception() is None for way in done):
                    writer.close()
            finally:
                before.close()
        except OSError:
            pass  # nobody listens behind: reset, as a host does whose port is closed
        finally:
            if not writer.is_closing():
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                writer.transport.abort()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Everything from one end to the other, piece by piece, and then the end."""
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
