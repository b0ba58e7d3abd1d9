"""Single requests to a server outside the load: one request, one whole response, a deadline. Never timed.

Uses the standard library, so that a run begins without the import of a larger client. Like the load, it connects
directly to the server: no proxy, no redirect followed, certificates verified.
"""

import http.client
import json
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from bezel_base.front.refusals import refusal_of
from bezel_bench.load.plan import Target, TokenSource
from bezel_bench.result.no_response import LONGEST, SPEAKS_TLS, NoResponse, NotHttpError, of_bytes, of_error

_HTTP: Final = b"HTTP/1."


@dataclass(frozen=True)
class ProbeResponse:
    """Response to a single request.

    Attributes:
        status: The HTTP status, 0 where no response came.
        body: The bytes of the response, or the reason why there is none.
        location: Where a redirection leads; "" for any other response.
        no_response: Why there is no response; None where there is one.
    """

    status: int
    body: bytes
    location: str = ""
    no_response: NoResponse | None = None

    @property
    def text(self) -> str:
        """Return the body as text."""
        return self.body.decode("utf-8", "replace")

    def refusal(self) -> str:
        """Return what is wrong with the response, in words: the reason, or the status and whose refusal it is."""
        if not self.status:
            return self.text
        front = refusal_of(self.status, self.text)
        return f"HTTP {self.status}" + (f": {front.cause}. {front.advice.rstrip('.')}" if front else "")

    def json(self) -> dict[str, Any]:
        """Return the JSON object of a 200, {} otherwise."""
        try:
            parsed = json.loads(self.body) if self.status == 200 else None
        except ValueError:
            return {}
        return parsed if isinstance(parsed, dict) else {}


class _ConnectionTo(http.client.HTTPConnection):
    """A secure connection to another place than the name leads to, whose certificate is the name's."""

    default_port = http.client.HTTPS_PORT

    def __init__(self, at: str, context: ssl.SSLContext, host: str, port: int | None, *, timeout: float) -> None:
        super().__init__(host, port, timeout=timeout)
        self._at, self._context = at, context

    def connect(self) -> None:
        """Connect to the place."""
        host, _, port = self._at.rpartition(":")
        plain = socket.create_connection((host, int(port)), self.timeout)
        self.sock = self._context.wrap_socket(plain, server_hostname=self.host)


Ask = Callable[[str, Mapping[str, Any] | None], ProbeResponse]
"""Sends a request to a path: POST with a JSON body, GET without one."""


def asker(target: Target, headers: TokenSource, *, seconds: float = 60.0) -> Ask:
    """Return a function that sends single requests to a server, with the headers of the load.

    Args:
        target: The server.
        headers: Source of the headers that authorise each request.
        seconds: The timeout for connecting, and for each read.

    Raises:
        UserError: The target's CA file holds no certificate.
    """
    parts = urlsplit(target.url)
    host, prefix = parts.hostname or "", parts.path.rstrip("/")
    connect: Callable[..., http.client.HTTPConnection] = http.client.HTTPConnection
    if parts.scheme == "https":
        from bezel_bench.client.tls import trusting

        context = trusting(target.ca_file)
        connect = partial(http.client.HTTPSConnection, context=context)
        if target.at:
            connect = partial(_ConnectionTo, target.at, context)

    def ask(path: str, body: Mapping[str, Any] | None = None) -> ProbeResponse:
        connection = connect(host, parts.port, timeout=seconds)
        method, data = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
        try:
            connection.request(method, prefix + path, data, {**headers(), "Content-Type": "application/json"})
            _check_begin(connection)
            response = connection.getresponse()
            return ProbeResponse(response.status, response.read(), response.headers.get("Location") or "")
        except (OSError, http.client.HTTPException, NotHttpError) as error:
            reason = _reason(error, is_connected=connection.sock is not None, seconds=seconds)
            is_ended = isinstance(error, ConnectionResetError) or reason == of_bytes(b"")
            if is_ended and parts.scheme == "http" and _speaks_tls(host, parts.port or 80, seconds):
                reason = SPEAKS_TLS
            return ProbeResponse(0, reason.reason.encode(), no_response=reason)
        finally:
            connection.close()

    return ask


def _check_begin(connection: http.client.HTTPConnection) -> None:
    """Look at a response's first bytes: something else than HTTP may send no line end and wait.

    Raises:
        NotHttpError: They are not HTTP/1.1.
        OSError: None came.
    """
    made = connection.sock
    if made is None or isinstance(made, ssl.SSLSocket):  # of TLS no bytes can be looked at without taking them
        return
    begin = made.recv(LONGEST, socket.MSG_PEEK)
    if not begin.startswith(_HTTP[: len(begin)]) or not begin:
        raise NotHttpError("no HTTP", begin)


def _speaks_tls(host: str, port: int, seconds: float) -> bool:
    """Whether a server that closed on plain text takes a TLS handshake; nothing is sent over it."""
    try:
        with socket.create_connection((host, port), seconds) as made:
            ssl.create_default_context().wrap_socket(made, server_hostname=host).close()
    except ssl.SSLCertVerificationError:
        return True
    except OSError:
        return False
    return True


def _reason(error: Exception, *, is_connected: bool, seconds: float) -> NoResponse:
    match error:
        case NotHttpError():
            return of_bytes(error.data)
        case http.client.RemoteDisconnected():
            return of_bytes(b"")
        case http.client.BadStatusLine() | http.client.UnknownProtocol():
            return of_bytes(str(error).encode("latin-1", "replace"))
        case TimeoutError() if is_connected and "handshake" not in str(error):
            return NoResponse(f"the server sent no response within {seconds:g} s", "look at its log.")
        case http.client.HTTPException():
            return NoResponse(f"the response is not whole ({error or type(error).__name__})", "look at its log.")
        case _:
            return of_error(error)
