"""HTTP client of the provider processes: JSON over kept-alive connections, the provider's retries, a deadline.

Uses http.client and not httpx, because a plugin is started anew for every command and httpx costs it 0.15 s.
Plain http only: the stand-in sends requests to localcloud, and a token is sent nowhere else. A broken connection has
the consequences and the words that it has with Go's client; the rules of retries are in retries.py.
"""

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from bezel_pulumi_offline.google.errors import GoogleError, NoResponseError, ProviderError, timeout_text
from bezel_pulumi_offline.google.retries import REQUEST_SECONDS, TRANSPORT_SECONDS, Answer, Clock, repeat

_FRESH = 2.0  # seconds that an idle connection is trusted: servers close theirs after a few
_PER_CALL = TRANSPORT_SECONDS  # seconds for the response to one request
_READ = frozenset({"GET", "HEAD"})
_LATE = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"


class PlainClock:
    """The clock of a thread: its waits pass as fast as the platform's do, its requests take the time that they take.

    Were a request's own time multiplied as well, a busy machine would end the retries after fewer of them.
    """

    def __init__(self, pause: Callable[[float], None], speed: float = 1.0) -> None:
        """Make a clock.

        Args:
            pause: Waits a number of real seconds, and raises when the engine has cancelled.
            speed: The provider's seconds in one second of waiting.
        """
        self._pause, self._speed = pause, speed
        self._own = threading.local()

    def now(self) -> float:
        """Return the provider's seconds since an arbitrary moment."""
        return time.monotonic() + self._skipped_seconds()

    def wait(self, seconds: float) -> None:
        """Wait a number of the provider's seconds."""
        ends = self.now() + seconds
        self._pause(seconds / self._speed)
        self._own.skipped = self._skipped_seconds() + max(ends - self.now(), 0.0)

    def _skipped_seconds(self) -> float:
        """Return the seconds that this thread's waits were shorter than asked for."""
        return float(getattr(self._own, "skipped", 0.0))


class Rest:
    """Requests to one host or several, from any thread."""

    def __init__(self, token: Callable[[], str], clock: Clock) -> None:
        """Make a client.

        Args:
            token: Returns the access token; called each time that a request is sent.
            clock: Measures retries.
        """
        self._token = token
        self._clock = clock
        self._own = threading.local()

    def call(
        self,
        method: str,
        url: str,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        data: bytes | None = None,
        content_type: str = "application/json",
        until: float,
        limit: float | None = None,
    ) -> Any:
        """Send a request and return the JSON of its response (None where it has no body).

        Args:
            method: GET, POST, ...
            url: The address without its query.
            query: Query parameters; `alt=json` is added. `prettyPrint` shows a request of Google's Go client.
            body: Sent as JSON, unless `data` holds the bytes to send.
            data: Bytes to send unchanged.
            content_type: The content type of `data`.
            until: The operation's deadline, on time.monotonic's clock: a change is tried again until then.
            limit: The request's own limit in the provider's seconds, instead of that of its method.

        Raises:
            GoogleError: The response is an error (after the retries).
            NoResponseError: There is none.
        """
        target = f"{url}?{urlencode(sorted({'alt': 'json', **(query or {})}.items()))}"
        payload = data if data is not None else None if body is None else json.dumps(body).encode()
        if limit is None and "prettyPrint" not in (query or {}):
            limit = REQUEST_SECONDS if method in _READ else max(until - time.monotonic(), 0.0)
        answer = repeat(lambda: self._send(method, target, payload, content_type), self._clock, limit)
        if answer is None:
            raise ProviderError(timeout_text("success", limit or 0.0))
        if answer.status == 0:
            raise NoResponseError(method, target, answer.text)
        if answer.status >= 400:
            raise GoogleError(answer.status, answer.text)
        return _json(url, answer.text)

    def _send(self, method: str, target: str, payload: bytes | None, content_type: str) -> Answer:
        parts = urlsplit(target)
        if parts.scheme != "http":
            raise ProviderError(f"{target} is not an address of localcloud: the stand-in sends plain HTTP only.")
        headers = {"Authorization": f"Bearer {self._token()}", "User-Agent": "bezel-standin"}
        if payload is not None:
            headers["Content-Type"] = content_type
        connection, reused = self._connection(parts.netloc)
        try:
            connection.request(method, f"{parts.path}?{parts.query}", body=payload, headers=headers)
            response = connection.getresponse()
            answer = Answer(response.status, response.read().decode("utf-8", "replace"))
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            if reused and method in _READ and not isinstance(error, (TimeoutError, http.client.IncompleteRead)):
                # The server may have closed an idle connection: Go's client repeats a read on another one.
                return self._send(method, target, payload, content_type)
            return _broken_answer(error, parts.netloc)
        self._own.used = time.monotonic()
        return answer

    def _connection(self, host: str) -> tuple[http.client.HTTPConnection, bool]:
        """Return a connection, and whether it has been used."""
        connection: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if (
            connection is not None
            and connection.sock is not None
            and self._own.host == host
            and time.monotonic() - self._own.used < _FRESH
        ):
            return connection, True
        if connection is not None:
            connection.close()
        self._own.host, self._own.used = host, time.monotonic()
        self._own.connection = http.client.HTTPConnection(host, timeout=_PER_CALL)
        return self._own.connection, False


def _broken_answer(error: Exception, host: str) -> Answer:
    """Return the outcome of a broken connection in the words of Go's client."""
    if isinstance(error, (http.client.RemoteDisconnected, BrokenPipeError)):
        return Answer(0, "EOF")
    if isinstance(error, ConnectionResetError):
        return Answer(0, f"read tcp {host}: read: connection reset by peer", again=True)
    if isinstance(error, TimeoutError):
        return Answer(0, _LATE, late=True)
    if isinstance(error, http.client.BadStatusLine):
        return Answer(0, "unexpected EOF", again=True)
    if isinstance(error, http.client.IncompleteRead):
        return Answer(0, "unexpected EOF")
    if isinstance(error, ConnectionRefusedError):
        return Answer(0, f"dial tcp {host}: connect: connection refused")
    if isinstance(error, socket.gaierror):
        return Answer(0, f"dial tcp: lookup {host.partition(':')[0]}: no such host")
    return Answer(0, f"dial tcp {host}: {type(error).__name__}")


def _json(url: str, answer: str) -> Any:
    try:
        return json.loads(answer) if answer.strip() else None
    except ValueError:
        raise ProviderError(f"The response of {url} is not JSON. Is the endpoint that of a Google API?") from None
