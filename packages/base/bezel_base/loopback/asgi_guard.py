"""Guard of localcloud's ports: checks of the peer, the headers and the body's length before an application is called.

- The peer must be a process of the daemon's own user: another user of the machine gets 403.
- A request of a web page, or to another name than the loopback's, gets 403 (`web_pages`).
- A body that is announced as longer than the port takes gets 413 unread; one that turns out longer (chunked) as soon as
  it does.

Leaves out tokens and permissions, which are the applications'.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bezel_base.loopback.web_pages import foreign

OWN = "localcloud.own"
OTHER_USER = "localcloud serves only the user that started it: run this command as that user."
LINGER, LINGER_SECONDS = 1 << 20, 2.0  # bytes and seconds in which a client that still sends can receive the response


class Door:
    """An application behind the checks of a port."""

    def __init__(
        self, app: ASGIApp, max_body: Callable[[str], int], is_served: Callable[[str], bool] | None = None
    ) -> None:
        """Guard an application.

        Args:
            app: The guarded application.
            max_body: Path -> limit of a request's body there in bytes.
            is_served: Whether a request may have `HOST[:PORT]`; None for the names of the loopback.
        """
        self._app = Bounded(app, max_body)
        self._is_served = is_served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it; the server has set `scope[OWN]` to whether the daemon's own user sent it."""
        refusal = foreign(scope["headers"], self._is_served) if scope[OWN] else OTHER_USER
        if refusal:
            await _refuse(_Body(scope, receive, send, 0).send, 403, refusal)
            return
        await self._app(scope, receive, send)


class Bounded:
    """An application behind a limit of the body's length."""

    def __init__(self, app: ASGIApp, max_body: Callable[[str], int], *, keeps_open: bool = False) -> None:
        """As `Door`.

        Args:
            app: The guarded application.
            max_body: Path -> limit of a request's body there in bytes.
            keeps_open: Whether a connection outlives a response that comes before an announced body has been read: the
                server reads the rest of it and throws it away, as uvicorn does by itself.
        """
        self._app = app
        self._most = max_body
        self._keeps_open = keeps_open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        max_body = self._most(scope["path"])
        body = _Body(scope, receive, send, max_body)
        if body.announced > max_body:
            await _refuse(body.send, 413, _too_long(max_body))
            return
        try:
            body.keeps_open = self._keeps_open and body.announced > 0
            await self._app(scope, body.receive, body.send_unless_refused)
        finally:
            body.keeps_open = False
            if body.too_long:
                await _refuse(body.send, 413, _too_long(max_body))


async def _refuse(send: Send, status: int, text: str) -> None:
    """Send an error in Google's shape."""
    body = json.dumps({"error": {"code": status, "message": text}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class _Body:
    """Receive and send of one request, with its body limited: beyond the limit the client seems disconnected.

    A response that comes before the body has been read ends the connection, which saves reading the rest.

    Attributes:
        announced: Bytes of the body by its header, 0 without one.
        too_long: Whether it exceeded the limit and no response has been sent yet.
        keeps_open: Whether an early response leaves the connection open.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, max_body: int) -> None:
        headers = dict(scope["headers"])
        self.announced = int(headers.get(b"content-length", b"0"))
        self.too_long = False
        self.keeps_open = False
        self._ended = not self.announced and b"transfer-encoding" not in headers
        self._receive = receive
        self._send = send
        self._left = max_body
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
        if self._ended or self.keeps_open:
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
        """Read a little of what the client still sends: a close with unread bytes would lose the response."""
        read = 0
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LINGER_SECONDS):
                while read < LINGER and (more := await self._receive())["type"] == "http.request":
                    read += len(more.get("body", b""))
                    if not more.get("more_body"):
                        break


def _too_long(max_body: int) -> str:
    return f"Request payload size exceeds the limit: {max_body} bytes."
