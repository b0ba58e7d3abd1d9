"""Whom a port of localcloud answers, and how much it reads: before an application sees anything of a request.

- Who connects must be a process of the daemon's own user: another user of the machine gets 403.
- `Host` must be an address of the loopback, or localhost: a page whose own name leads here (DNS rebinding) gets 403.
- `Origin`, which only browsers send, must be one of the loopback too: a page of the internet gets 403.
- A body that is announced as longer than the port takes gets 413 unread; one that turns out longer (chunked) as soon as
  it does.

Leaves out tokens and permissions, which are the applications'.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

OWN = "localcloud.own"
OTHER_USER = "localcloud answers processes of the user that started it only: run this as that user."
LINGER, LINGER_SECONDS = 1 << 20, 2.0  # bytes and seconds for a client that still sends to hear the answer


class Door:
    """An application behind the checks of a port."""

    def __init__(self, app: ASGIApp, most: Callable[[str], int]) -> None:
        """Stand before an application.

        Args:
            app: What answers.
            most: Path -> how many bytes a request's body may have there.
        """
        self._app = Bounded(app, most)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or refuse it; the server has said in `scope[OWN]` whether the daemon's own user sent it."""
        refusal = foreign(scope) if scope[OWN] else OTHER_USER
        if refusal:
            await _refuse(_Body(scope, receive, send, 0).send, 403, refusal)
            return
        await self._app(scope, receive, send)


class Bounded:
    """An application that is given no longer body than it may be."""

    def __init__(self, app: ASGIApp, most: Callable[[str], int]) -> None:
        """As `Door`."""
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        most = self._most(scope["path"])
        body = _Body(scope, receive, send, most)
        if body.announced > most:
            await _refuse(body.send, 413, _too_long(most))
            return
        try:
            await self._app(scope, body.receive, body.send_unless_refused)
        finally:
            if body.too_long:
                await _refuse(body.send, 413, _too_long(most))


def foreign(scope: Scope) -> str:
    """What shows that a request was not meant for this machine, "" for nothing."""
    headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
    host = headers.get(b"host", "")
    if not _is_loopback(host):
        return f"Host {host!r} is not this machine's loopback: ask 127.0.0.1 or localhost."
    origin = headers.get(b"origin")
    if origin is not None and not _is_loopback(urlsplit(origin).netloc):
        return f"Origin {origin!r} is not this machine's loopback: a page from elsewhere may ask nothing here."
    return ""


async def _refuse(send: Send, status: int, text: str) -> None:
    """Answer with an error in the shape of Google's."""
    body = json.dumps({"error": {"code": status, "message": text}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class _Body:
    """The two ways of a request, its body held to a length: beyond it the client seems to be gone.

    An answer that comes before the body has been read ends the connection: the rest would have to be read for nothing.

    Attributes:
        announced: Bytes that the body has by its header, 0 where that says nothing.
        too_long: Whether it was longer than it may be, and the client has not been answered yet.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, most: int) -> None:
        headers = dict(scope["headers"])
        self.announced = int(headers.get(b"content-length", b"0"))
        self.too_long = False
        self._ended = not self.announced and b"transfer-encoding" not in headers
        self._receive = receive
        self._send = send
        self._left = most
        self._answered = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._ended = self._ended or not message.get("more_body")
        self._left -= len(message.get("body", b""))
        if self._left >= 0:
            return message
        self.too_long = not self._answered
        return {"type": "http.disconnect"}

    async def send_unless_refused(self, message: Message) -> None:
        if not self.too_long:
            await self.send(message)

    async def send(self, message: Message) -> None:
        self._answered = True
        if self._ended:
            await self._send(message)
        elif message["type"] == "http.response.start":
            await self._send({**message, "headers": [*message["headers"], (b"connection", b"close")]})
        elif message.get("more_body"):
            await self._send(message)
        else:
            await self._send({**message, "more_body": True})
            await self._linger()
            await self._send({"type": "http.response.body", "body": b""})

    async def _linger(self) -> None:
        """Read a little of what the client still sends: closed over unread bytes, the answer would be lost."""
        read = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while read < LINGER and (more := await self._receive())["type"] == "http.request":
                    read += len(more.get("body", b""))
                    if not more.get("more_body"):
                        break


def _is_loopback(host: str) -> bool:
    """Whether the host of `HOST[:PORT]` can only be this machine: a name could lead anywhere tomorrow."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _too_long(most: int) -> str:
    return f"Request payload size exceeds the limit: {most} bytes."
