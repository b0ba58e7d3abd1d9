"""HTTP client of the provider processes: JSON over kept-alive connections, the provider's retries, a deadline.

Uses http.client and not httpx, because a plugin is started anew for every command and httpx costs it 0.15 s.
Plain http only: the stand-in sends requests to localcloud, and a token is sent nowhere else.
"""

import http.client
import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from bezel.standin_providers.google.errors import GoogleError, ProviderError

_BROKEN = 599  # not an HTTP status: the connection broke before there was a response
RETRIED = frozenset({429, 500, 502, 503, _BROKEN})
PAUSES = (0.5, 1.0, 2.0, 4.0)  # seconds before the second, third, ... attempt
_FRESH = 2.0  # seconds that an idle connection is trusted: servers close theirs after a few
_PER_CALL = 60.0  # seconds for the response to one request

Wait = Callable[[float], None]


class Rest:
    """Requests to one host or several, from any thread."""

    def __init__(self, token: Callable[[], str], wait: Wait) -> None:
        """Make a client.

        Args:
            token: Returns the access token; called once per request.
            wait: Sleeps for that many seconds, and raises when the engine has cancelled.
        """
        self._token = token
        self._wait = wait
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
    ) -> Any:
        """Send a request and return the JSON of its response (None where it has no body).

        Args:
            method: GET, POST, ...
            url: The address without its query.
            query: Query parameters; `alt=json` is added.
            body: Sent as JSON, unless `data` holds the bytes to send.
            data: Bytes to send unchanged.
            content_type: The content type of `data`.
            until: The deadline, on time.monotonic's clock.

        Raises:
            GoogleError: The response is an error (after retries for 429, 500, 502, 503 and broken connections).
            ProviderError: There is no response.
        """
        target = f"{url}?{urlencode({'alt': 'json', **(query or {})})}"
        payload = data if data is not None else None if body is None else json.dumps(body).encode()
        for pause in (*PAUSES, None):
            status, answer = self._send(method, target, payload, content_type)
            if status < 400:
                return _json(url, answer)
            if status not in RETRIED or pause is None or time.monotonic() + pause > until:
                break
            self._wait(pause)
        if status == _BROKEN:
            raise _silent(urlsplit(url).netloc, "the connection breaks")
        raise GoogleError(status, answer)

    def _send(self, method: str, target: str, payload: bytes | None, content_type: str) -> tuple[int, str]:
        parts = urlsplit(target)
        if parts.scheme != "http":
            raise ProviderError(f"{target} is not an address of localcloud: the stand-in sends plain HTTP only.")
        headers = {"Authorization": f"Bearer {self._token()}", "User-Agent": "bezel-standin"}
        if payload is not None:
            headers["Content-Type"] = content_type
        connection = self._connection(parts.netloc)
        try:
            connection.request(method, f"{parts.path}?{parts.query}", body=payload, headers=headers)
            response = connection.getresponse()
            answer = response.read().decode("utf-8", "replace")
        except (ConnectionResetError, BrokenPipeError, http.client.BadStatusLine, http.client.IncompleteRead):
            connection.close()
            return _BROKEN, ""
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _silent(parts.netloc, type(error).__name__) from None
        self._own.used = time.monotonic()
        return response.status, answer

    def _connection(self, host: str) -> http.client.HTTPConnection:
        held: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if held is not None and self._own.host == host and time.monotonic() - self._own.used < _FRESH:
            return held
        if held is not None:
            held.close()
        self._own.host, self._own.used = host, time.monotonic()
        self._own.connection = http.client.HTTPConnection(host, timeout=_PER_CALL)
        return self._own.connection  # type: ignore[no-any-return]


def _json(url: str, answer: str) -> Any:
    try:
        return json.loads(answer) if answer.strip() else None
    except ValueError:
        raise ProviderError(f"The response of {url} is not JSON. Is the endpoint that of a Google API?") from None


def _silent(host: str, how: str) -> ProviderError:
    return ProviderError(
        f"http://{host} does not answer ({how}): nothing can be deployed. Is localcloud running? `make up` starts it."
    )
