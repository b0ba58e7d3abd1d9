"""Single requests to a server outside the load: one request, one whole response, a deadline. Never timed.

Uses the standard library, so that a run begins without the import of a larger client. Like the load, it connects
directly to the server: no proxy, no redirect followed, certificates verified.
"""

import http.client
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from bezel.bench.load.plan import Target, TokenSource
from bezel.front.refusals import refusal_of


@dataclass(frozen=True)
class ProbeResponse:
    """Response to a single request.

    Attributes:
        status: The HTTP status, 0 where no response came.
        body: The bytes of the response, or the reason why there is none.
    """

    status: int
    body: bytes

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
        from bezel.bench.client.tls import trusting

        connect = partial(http.client.HTTPSConnection, context=trusting(target.ca_file))

    def ask(path: str, body: Mapping[str, Any] | None = None) -> ProbeResponse:
        connection = connect(host, parts.port, timeout=seconds)
        method, data = ("GET", None) if body is None else ("POST", json.dumps(body).encode())
        try:
            connection.request(method, prefix + path, data, {**headers(), "Content-Type": "application/json"})
            response = connection.getresponse()
            return ProbeResponse(response.status, response.read())
        except (OSError, http.client.HTTPException) as error:
            return ProbeResponse(0, (str(error) or type(error).__name__).encode())
        finally:
            connection.close()

    return ask
