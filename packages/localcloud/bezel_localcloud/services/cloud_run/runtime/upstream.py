"""HTTP/1.1 exchange with an instance: the request in one write, the response piece by piece; and its health probes.

A connection serves one exchange: a reused one could be closed by the instance at the wrong moment, which would fail a
request.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from typing import Self
from urllib.parse import quote

import h11

from bezel_localcloud.services.cloud_run.spec import ProbeSpec

Headers = list[tuple[bytes, bytes]]

_READ = 64 * 1024
_IN_URLS = "%/?:@!$&'()*+,;=[]~"  # characters that a URL's path and query may contain, and escapes


class UpstreamError(Exception):
    """The connection to the instance could not be made, or broke before the response was complete."""


class NotListeningError(UpstreamError):
    """No process listens on the socket; nothing was sent, so another instance may get the request."""


class Upstream:
    """A connection to the socket of an instance, as an asynchronous context."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._http = h11.Connection(h11.CLIENT)

    async def __aenter__(self) -> Self:
        """Connect.

        Raises:
            NotListeningError: If no process listens.
        """
        try:
            self._reader, self._writer = await asyncio.open_unix_connection(self._address)
        except OSError as error:
            raise NotListeningError(type(error).__name__) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close at once, so that an instance notices that its caller has gone."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def send(self, method: str, target: str, headers: Headers, body: bytes) -> tuple[int, Headers]:
        """Send a request and return the status and the headers of its response.

        Raises:
            UpstreamError: If the connection breaks before them.
        """
        sent = [(key, value) for key, value in headers if key != b"content-length"]
        if body or method in {"POST", "PUT", "PATCH"}:
            sent.append((b"content-length", str(len(body)).encode()))
        try:
            request = h11.Request(method=method, target=target, headers=[*sent, (b"connection", b"close")])
            parts = [self._http.send(request), self._http.send(h11.Data(data=body)) if body else b""]
            self._writer.write(b"".join([part or b"" for part in [*parts, self._http.send(h11.EndOfMessage())]]))
            await self._writer.drain()
            while not isinstance(event := await self._next(), h11.Response):
                pass  # skip 1xx responses
        except (OSError, h11.ProtocolError) as error:
            raise UpstreamError(type(error).__name__) from None
        return event.status_code, list(event.headers)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the response's body as it arrives.

        Raises:
            UpstreamError: If it ends before it is complete.
        """
        try:
            while isinstance(event := await self._next(), h11.Data):
                yield bytes(event.data)
        except (OSError, h11.ProtocolError) as error:
            raise UpstreamError(type(error).__name__) from None

    async def _next(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            self._http.receive_data(await self._reader.read(_READ))
        return event


async def passes(probe: ProbeSpec, address: str, timeout: float) -> bool:  # noqa: ASYNC109 - the probe's own limit
    """Whether an instance responds on its socket: to HTTP with a status from 200 to 399, to TCP with a connection."""
    try:
        async with asyncio.timeout(timeout), Upstream(address) as upstream:
            if probe.path is None:
                return True
            headers = [(b"host", b"127.0.0.1"), (b"user-agent", b"GoogleHC/1.0")]
            status, _ = await upstream.send("GET", _target(probe.path), headers, b"")
            return 200 <= status < 400
    except (UpstreamError, TimeoutError):
        return False


def _target(path: str) -> str:
    """The request target of a probe's path: percent-encoded, as Google's prober (an HTTP client of Go) sends it."""
    escaped = re.sub("%(?![0-9A-Fa-f]{2})", "%25", path.partition("#")[0])
    return quote(escaped, safe=_IN_URLS, errors="surrogatepass")
