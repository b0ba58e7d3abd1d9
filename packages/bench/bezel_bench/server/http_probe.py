"""Single requests to a server outside the load: one request, one whole response, a deadline. Never timed.

Owns the connection, and the reasons why no response came. Like the load, it connects directly to the server: no proxy,
no redirect followed, certificates verified. Leaves out the bytes of a request and of its response
(`bezel_bench.server.exchange`).
"""

import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from bezel_bench.load.plan import Target, TokenSource
from bezel_bench.result.no_response import LONGEST, SPEAKS_TLS, NoResponse, NotHttpError, of_bytes, of_error
from bezel_bench.server.exchange import NotWholeError, receive_response, request_bytes

_PORTS: Final = {"http": 80, "https": 443}
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
        from bezel_base.front.refusals import refusal_of  # late: few responses are refusals

        front = refusal_of(self.status, self.text)
        return f"HTTP {self.status}" + (f": {front.cause}. {front.advice.rstrip('.')}" if front else "")

    def json(self) -> dict[str, Any]:
        """Return the JSON object of a 200, {} otherwise."""
        try:
            parsed = json.loads(self.body) if self.status == 200 else None
        except ValueError:
            return {}
        return parsed if isinstance(parsed, dict) else {}


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
    name, prefix = parts.hostname or "", parts.path.rstrip("/")
    port = parts.port or _PORTS[parts.scheme]
    shown_name = f"[{name}]" if ":" in name else (name if name.isascii() else name.encode("idna").decode())
    host = shown_name if port == _PORTS[parts.scheme] else f"{shown_name}:{port}"
    place, context = (name, port), None
    if parts.scheme == "https":
        from bezel_bench.client.tls import trusting

        context = trusting(target.ca_file)
        if target.at:
            at, _, at_port = target.at.rpartition(":")
            place = (at, int(at_port))

    def ask(path: str, body: Mapping[str, Any] | None = None) -> ProbeResponse:
        made: socket.socket | None = None
        method, data = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
        try:
            request = request_bytes(
                method, prefix + path, host, {**headers(), "Content-Type": "application/json"}, data
            )
            made = socket.create_connection(place, seconds)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if context is not None:
                made = context.wrap_socket(made, server_hostname=name)
            made.sendall(request)
            if context is None:  # of TLS no bytes can be looked at without taking them
                _check_begin(made)
            response = receive_response(made, method)
            return ProbeResponse(response.status, response.body, response.location)
        except (OSError, NotHttpError, NotWholeError) as error:
            reason = _reason(error, is_connected=made is not None, seconds=seconds)
            is_ended = isinstance(error, ConnectionResetError) or reason == of_bytes(b"")
            if is_ended and context is None and _speaks_tls(name, port, seconds):
                reason = SPEAKS_TLS
            return ProbeResponse(0, reason.reason.encode(), no_response=reason)
        finally:
            if made is not None:
                made.close()

    return ask


def _check_begin(connection: socket.socket) -> None:
    """Look at a response's first bytes: something else than HTTP may send no line end and wait.

    Raises:
        NotHttpError: They are not HTTP/1.1.
        OSError: None came.
    """
    begin = connection.recv(LONGEST, socket.MSG_PEEK)
    if not begin.startswith(_HTTP[: len(begin)]) or not begin:
        raise NotHttpError("no HTTP", begin)


def _speaks_tls(host: str, port: int, seconds: float) -> bool:
    """Whether a server that closed on plain text takes a TLS handshake; nothing is sent over it."""
    import ssl

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
        case NotWholeError():
            return NoResponse(f"the response is not whole ({error})", "look at its log.")
        case TimeoutError() if is_connected and "handshake" not in str(error):
            return NoResponse(f"the server sent no response within {seconds:g} s", "look at its log.")
        case _:
            return of_error(error)
