"""The process of the door: its variables, its listening socket, and its end.

| variable | value |
|---|---|
| `PORT` | port to listen at, 8080 |
| `DOOR_ADDRESS` | address to listen at, all by default; `unix@PATH` is the socket `PATH:PORT` |
| `DOOR_UPSTREAM` | URL of the server |
| `DOOR_CONNECT_TO` | `HOST:PORT` to connect to, where the name in that URL is in no DNS |
| `DOOR_AUDIENCE` | audience of the identity token that the server's platform expects |
| `DOOR_BUCKET` | bucket with the keys and their use |
| `GCE_METADATA_HOST`, `GOOGLE_STORAGE_CUSTOM_ENDPOINT` | Google's interfaces, where they are not Google's own |
"""

import asyncio
import os
import re
import secrets
import signal
import ssl
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final

from bezel_door.accounts.bucket_sync import BucketSync
from bezel_door.accounts.ledger import Ledger
from bezel_door.app import DoorApp
from bezel_door.exchange import Parts
from bezel_door.google.bucket import Bucket
from bezel_door.google.identity import Identity
from bezel_door.google.metadata import Metadata
from bezel_door.http1.client import ServerConnections, place_of
from bezel_door.http1.server import Bodies, CallerConnection
from bezel_door.request_log import RequestLog

BODIES: Final = 96 * 1024 * 1024
"""Bytes of bodies that are held at a time: with what it takes to read one of them, two thirds of 512 MiB."""
END_SECONDS: Final = 8.0
"""Time for requests under way when the instance ends: Cloud Run kills it after 10 s."""

_UNIX: Final = "unix@"
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,221}[a-z0-9]")
_BACKLOG: Final = 2048


class VariableError(ValueError):
    """Variables of the container that the door cannot start with; the text names each."""


class Door:
    """One door, with its connections."""

    def __init__(self, environ: Mapping[str, str], log: RequestLog, clock: Callable[[], float] = time.time) -> None:
        """Read the variables; listen to nothing yet.

        Args:
            environ: The variables.
            log: The log.
            clock: Seconds since 1970.

        Raises:
            VariableError: One is missing or wrong.
        """
        context, place = ssl.create_default_context(), None
        problems = []
        try:
            place = place_of(environ["DOOR_CONNECT_TO"]) if environ.get("DOOR_CONNECT_TO") else None
        except ValueError:
            problems.append("DOOR_CONNECT_TO: expected HOST:PORT")
        try:
            server = ServerConnections(environ.get("DOOR_UPSTREAM", ""), context, place)
        except ValueError:
            problems.append("DOOR_UPSTREAM: expected the https URL of the server")
        if not _BUCKET.fullmatch(environ.get("DOOR_BUCKET", "")):
            problems.append("DOOR_BUCKET: expected the name of a bucket")
        port = environ.get("PORT", "8080")
        if not port.isdecimal() or not 0 <= int(port) <= 65535:
            problems.append("PORT: expected a port")
        if problems:
            raise VariableError("; ".join(problems))
        self._log, self._port = log, port
        self._address = environ.get("DOOR_ADDRESS", "")
        self._bodies, self._connections = Bodies(BODIES), set[CallerConnection]()
        self._server, ledger, metadata = server, Ledger(), Metadata(environ)
        for_keys, for_counts = (
            Bucket(environ["DOOR_BUCKET"], metadata.access_token, environ, context) for _ in range(2)
        )
        instance = secrets.token_hex(8)
        self._sync = BucketSync(for_keys, for_counts, ledger, instance, lambda text: log.event("ERROR", text), clock)
        audience = environ.get("DOOR_AUDIENCE", "")
        identity = Identity(audience, metadata.identity_token, clock) if audience else None
        self._app = DoorApp(self._sync, Parts(ledger, self._sync.keep_up, identity, server, self._bodies, log, clock))

    async def serve(self, stop: asyncio.Event) -> None:
        """Serve until it is stopped, then end the requests under way and write the counts."""
        loop = asyncio.get_running_loop()
        listener = await self._listen(loop)
        self._log.event("INFO", f"listens at {self._address or '*'}:{self._port}")
        await stop.wait()
        self._app.is_stopping = True
        listener.close()
        for connection in list(self._connections):
            connection.stop()
        await self._sync.publish()
        under_way = [connection.ended for connection in self._connections]
        if under_way:
            await asyncio.wait(under_way, timeout=END_SECONDS)
        await self._sync.publish()
        self._server.close()

    async def _listen(self, loop: asyncio.AbstractEventLoop) -> asyncio.Server:
        def connection() -> CallerConnection:
            return CallerConnection(self._app, self._bodies, self._connections)

        if self._address.startswith(_UNIX):
            path = f"{self._address.removeprefix(_UNIX)}:{self._port}"
            return await loop.create_unix_server(connection, path, backlog=_BACKLOG)
        return await loop.create_server(connection, self._address or None, int(self._port), backlog=_BACKLOG)


async def _run(environ: Mapping[str, str]) -> None:
    log = RequestLog(lambda line: sys.stdout.write(f"{line}\n"))
    door, stop = Door(environ, log), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await door.serve(stop)


def main() -> None:
    """Run the door of this process's variables."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        asyncio.run(_run(os.environ))
    except VariableError as error:
        sys.exit(f"the door cannot start: {error}")
    except OSError as error:
        sys.exit(f"the door cannot listen: {error}")
