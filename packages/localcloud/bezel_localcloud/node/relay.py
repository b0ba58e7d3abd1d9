"""TCP relay: passes connections on, or cuts them off where a rule denies them.

The server behind sees all connections as the daemon's. Therefore another user of this computer gets a 403 here, in
HTTP, which every relayed connection uses.
"""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable

from bezel_base.loopback.asgi_guard import OTHER_USER
from bezel_base.loopback.async_server import close_server
from bezel_base.loopback.listeners import listen
from bezel_base.loopback.peer_uid import is_own
from bezel_localcloud.core.background import BackgroundTasks

_FOREIGN = (
    f"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Type: text/plain\r\n"
    f"Content-Length: {len(OTHER_USER)}\r\n\r\n{OTHER_USER}"
).encode()
_PIECE = 64 * 1024
_ASKS_WITHIN = 5.0  # seconds in which a refused client may send, unread
_RESET = struct.pack("ii", 1, 0)  # linger 0 seconds: the other end sees a reset


class Relay:
    """One listening port in front of a socket file or of a port of 127.0.0.1."""

    def __init__(self, target: int | str, admits: Callable[[tuple[str, int]], Awaitable[bool]]) -> None:
        self._target = target
        self._admits = admits
        self._server: asyncio.Server | None = None
        self._running = BackgroundTasks()

    async def listen(self, host: str, port: int = 0) -> int:
        """Accept connections and return the port.

        Raises:
            OSError: If the port is taken or the address is not one of this machine.
        """
        self._server = await asyncio.start_server(self._accept, sock=listen(host, port), backlog=1024)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop accepting and cut off open connections."""
        if self._server is not None:
            await close_server(self._server)
        await self._running.end()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.create_task(self._serve(reader, writer))
        # Not at the end of `_serve`: a task that is cancelled before its first step never gets there.
        serving.add_done_callback(lambda _: _reset(writer))
        self._running.keep(serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve a connection; one that is not closed by then is reset, as a host does with a closed port."""
        try:
            peer, here = (writer.get_extra_info(end) for end in ("peername", "sockname"))
            if not is_own(peer, here):
                await _refuse(reader, writer)
                return
            if not await self._admits(peer):
                return
            behind, before = await self._connect()
            try:
                # An error in one direction ends both; the end of one direction leaves the other open.
                async with asyncio.TaskGroup() as ways:
                    ways.create_task(_pass(reader, before))
                    ways.create_task(_pass(behind, writer))
                writer.close()
            finally:
                before.close()
        except* OSError:
            pass

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._target, str):
            return await asyncio.open_unix_connection(self._target)
        return await asyncio.open_connection("127.0.0.1", self._target)


def _reset(writer: asyncio.StreamWriter) -> None:
    if not writer.is_closing():
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        writer.transport.abort()


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send the refusal after some input, and nothing else: a close over unread bytes would lose the response."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(reader.read(_PIECE), _ASKS_WITHIN)
    writer.write(_FOREIGN)
    await writer.drain()
    writer.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy everything from one end to the other, piece by piece, and then the end of the stream."""
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
