"""HTTP server of localcloud's ports: a strict reading of HTTP/1.1, and the guard of each port."""

import asyncio
import re
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.h11_impl import H11Protocol

from bezel_base.loopback.asgi_guard import LINGER, LINGER_SECONDS, OWN, Door
from bezel_base.loopback.peer_uid import is_own
from bezel_base.web_server import ServerOptions, WebServer
from bezel_localcloud.http.http2_refusal import PREFACE, Http2Refusal
from bezel_localcloud.http.plain_requests import PlainCycle, plain_request

LONGEST_HEAD = 64 * 1024
_PAGE = """\
<!DOCTYPE html>
<html lang=en><meta charset=utf-8><title>Error 400 (Bad Request)!!1</title>
<p><b>400.</b> That's an error.<p>Your client has issued a malformed or illegal request.
"""
REFUSAL = (
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/html; charset=UTF-8\r\n"
    f"Content-Length: {len(_PAGE)}\r\nConnection: close\r\n\r\n{_PAGE}"
).encode()
"""The whole response to a malformed request; the connection ends with it."""

_ESCAPED = rb"%[0-9A-Fa-f]{2}"
_NAME = rb"(?:\[[0-9A-Fa-f:.]+\]|(?:[\w.~!$&'()*+,;=-]|" + _ESCAPED + rb")*)(?::[0-9]*)?"
_PATH = rb"/(?:[\w.~!$&'()*+,;=:@/-]|" + _ESCAPED + rb")*"
_HOST = re.compile(_NAME)
_ORIGIN = re.compile(_PATH)
_QUERY = re.compile(rb"(?:[\w.~!$&'()*+,;=:@/?-]|" + _ESCAPED + rb")*")
_WHOLE = re.compile(rb"(?i:https?)://(?P<host>(?!:|/|$)" + _NAME + rb")(?P<path>" + _PATH + rb")?")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_IN_A_LINE, _IN_THE_FIRST = 4, 12  # ": " and the end of a line; two spaces, the version and the end


def well_formed(scope: Scope) -> Scope | None:
    """Return a request with a path as its target; None if it is not HTTP/1.1.

    Args:
        scope: uvicorn's scope of a request that h11 accepted.
    """
    names = [name for name, _ in scope["headers"]]
    framed_twice = b"transfer-encoding" in names and (b"content-length" in names or scope["http_version"] == "1.0")
    hosts = [value for name, value in scope["headers"] if name == b"host"]
    if (
        not scope["http_version"].startswith("1.")
        or framed_twice
        or not all(map(_HOST.fullmatch, hosts))
        or not all(_VALUE.fullmatch(value) for _, value in scope["headers"])
        or not _QUERY.fullmatch(scope["query_string"])
        or _length(scope) > LONGEST_HEAD
    ):
        return None
    target: bytes = scope["raw_path"]
    if _ORIGIN.fullmatch(target):
        return scope if scope["method"] != "CONNECT" else None
    if target == b"*":
        return scope if scope["method"] == "OPTIONS" and not scope["query_string"] else None
    if not (whole := _WHOLE.fullmatch(target)) or scope["method"] == "CONNECT":
        return None
    path = whole["path"] or b"/"
    headers = [(b"host", whole["host"]), *((name, value) for name, value in scope["headers"] if name != b"host")]
    return {**scope, "raw_path": path, "path": unquote(path.decode()), "headers": headers}


def _length(scope: Scope) -> int:
    """Length of the head as it is sent to the application behind."""
    lines = sum(len(name) + len(value) + _IN_A_LINE for name, value in scope["headers"])
    return lines + len(scope["method"]) + len(scope["raw_path"]) + len(scope["query_string"]) + _IN_THE_FIRST


_HANG_UP = "localcloud.hang_up"


async def hang_up(scope: Scope, receive: Receive) -> None:
    """Close the connection of a request, whatever has been sent so far; return when it is closed."""
    scope[_HANG_UP]()
    while (await receive())["type"] != "http.disconnect":
        pass


class _Protocol(H11Protocol):
    """A connection that knows its peer's user, and that an application may close: ASGI itself supports neither.

    A request that is not HTTP/1.1 gets one response here and ends the connection; the application does not see it.
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._first: bytes | None = b""
        self._http2: Http2Refusal | None = None
        self._refused = False
        self._discarded = 0
        self._plain: PlainCycle | None = None
        self._only_plain = True  # so far: from its first other request on, h11 reads the whole connection
        self._behind = b""  # what the client sent before the response to its last plain request was complete
        self._application = app = self.app

        async def with_both(scope: Scope, receive: Receive, send: Send) -> None:
            request = well_formed(scope)
            if request is None:
                self._refuse()
                return
            request[_HANG_UP] = self.transport.close
            request[OWN] = self._own
            await app(request, receive, send)

        self.app = with_both

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Look up the peer's user at once: it is unknown once the client has gone."""
        super().connection_made(transport)
        self._own = is_own(transport.get_extra_info("peername"), transport.get_extra_info("sockname"))

    def data_received(self, data: bytes) -> None:
        """Pass the data to the parser; of a client that was refused, read and discard a little instead.

        A close over unread bytes would reset the connection, and the client might never see the response.
        """
        if self._first is not None:
            self._begin(self._first + data)
            return
        if not self._refused:
            if self._http2:
                self._http2.receive(data)
            elif self._only_plain:
                self._receive_plain(data)
            else:
                super().data_received(data)
            return
        self._discarded += len(data)
        if self._discarded > LINGER:
            self.transport.close()

    def _receive_plain(self, data: bytes) -> None:
        """Take bytes of a connection that has had plain requests only."""
        if self._plain is not None:
            self._behind += self._plain.take(data)
            if self._behind or len(self._plain.body) > HIGH_WATER_LIMIT:
                self.flow.pause_reading()
            return
        request = plain_request(data)
        if request is None:
            self._only_plain = False
            super().data_received(data)
            return
        self._unset_keepalive_if_required()
        scope: Scope = {
            "type": "http",
            "asgi": {"version": self.asgi_version, "spec_version": "2.3"},
            "http_version": "1.1",
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "method": request.method,
            "root_path": "",
            "path": unquote(request.path.decode("ascii")),
            "raw_path": request.path,
            "query_string": request.query,
            "headers": request.headers,
            "state": {},
            _HANG_UP: self.transport.close,
            OWN: self._own,
        }
        self.cycle = self._plain = PlainCycle(
            scope=scope,  # type: ignore[arg-type]
            conn=self.conn,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            on_response=self._complete_plain,
        )
        self._plain.missing_bytes = request.length
        task = self.loop.create_task(self._plain.run_asgi(self._application))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)
        self._receive_plain(data[request.end :])

    def _complete_plain(self) -> None:
        """Take what the client has sent meanwhile."""
        self._plain = None
        self.on_response_complete()
        behind, self._behind = self._behind, b""
        if behind and not self.transport.is_closing():
            self.data_received(behind)

    def _begin(self, data: bytes) -> None:
        """Take a connection's first bytes: they show whether the client speaks HTTP/2."""
        if len(data) < len(PREFACE) and PREFACE.startswith(data):
            self._first = data
            return
        self._first = None
        if data.startswith(PREFACE):
            self._http2 = Http2Refusal(self.transport.write, self._hang_up)
            data = data[len(PREFACE) :]
        self.data_received(data)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's text for input that it refuses
        """Respond to input that the parser refuses."""
        self._refuse()

    def _refuse(self) -> None:
        begun = self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}
        if self.cycle is not None:  # the error may be in the body of a request that an application already handles
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if begun or self.transport.is_closing():
            self._refused = True
            self.transport.close()
            return
        self.transport.write(REFUSAL)
        self._hang_up()

    def _hang_up(self) -> None:
        """Close the connection once the client has had time to read what was written."""
        self._refused = True
        if self.transport.can_write_eof():  # not over TLS
            self.transport.write_eof()
        self.flow.resume_reading()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)


class HttpServer:
    """One listening socket and the application behind its guard.

    Attributes:
        address: HOST:PORT of the socket.
    """

    def __init__(
        self,
        app: ASGIApp,
        listener: socket.socket,
        max_body: Callable[[str], int],
        certificate: tuple[Path, Path] | None = None,
        *,
        context: ssl.SSLContext | None = None,
        is_served: Callable[[str], bool] | None = None,
    ) -> None:
        """Serve an application on a socket.

        Args:
            app: The served application.
            listener: Bound and listening.
            max_body: Path -> limit of a request's body there in bytes.
            certificate: Files of the certificate and its key for https; None for http.
            context: Of https, in place of a certificate.
            is_served: Whether a request may have `HOST[:PORT]`; None for the names of the loopback.
        """
        options = ServerOptions(
            protocol=_Protocol,
            longest_head=LONGEST_HEAD,
            keep_alive_seconds=60,
            certificate=certificate,
            context=context,
            # Clients that know both get HTTP/1.1; one that knows HTTP/2 alone, as gRPC does, is refused in its words.
            alpn=("http/1.1", "h2"),
        )
        self.address = "{}:{}".format(*listener.getsockname())
        self._server = WebServer(Door(app, max_body, is_served), [listener], options)

    async def start(self) -> None:
        """Start serving; return when connections are accepted."""
        await self._server.start()

    async def close(self) -> None:
        """Stop accepting and cut off running requests."""
        await self._server.close()
