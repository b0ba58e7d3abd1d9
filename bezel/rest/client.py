"""HTTP client for Google APIs: authorised requests, repeated where that is safe, with a deadline.

Leaves out the meaning of the responses. Clock, sleep and dice are passed in, so that the caller decides how to wait.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

from bezel.rest.credentials import Credentials
from bezel.rest.errors import ApiError, UnreachableError
from bezel.rest.retry import IDEMPOTENT, Backoff, is_retryable, retry_delay
from bezel.rest.transport import json_object, new_client, reason_of

if TYPE_CHECKING:
    import httpx


class GoogleClient:
    """An authorised client; usable from several threads, closed by ``close`` or as a context manager.

    Args:
        credentials: The identity that sends the requests; the environment's by default.
        timeout_seconds: For connecting, and between two reads, of one attempt.
        min_timeout_seconds: The lower bound of that timeout, however little of the deadline is left.
        deadline_seconds: For one request with all its attempts.
        backoff: The waits between attempts.
        clock: A monotonic clock, in seconds.
        sleep: Waits that many seconds.
        dice: Numbers in [0, 1).
    """

    def __init__(
        self,
        credentials: Credentials | None = None,
        *,
        timeout_seconds: float = 30.0,
        min_timeout_seconds: float = 0.1,
        deadline_seconds: float = 120.0,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        dice: Callable[[], float] = random.random,
    ) -> None:
        self.credentials = credentials or Credentials()
        self._timeout = timeout_seconds
        self._min_timeout = min_timeout_seconds
        self._deadline = deadline_seconds
        self._backoff = backoff or Backoff()
        self._clock = clock
        self._sleep = sleep
        self._dice = dice
        self._client: httpx.Client | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def get(self, url: str, **options: Any) -> dict[str, Any]:
        """``request("GET", ...)``."""
        return self.request("GET", url, **options)

    def post(self, url: str, json: Any = None, **options: Any) -> dict[str, Any]:
        """``request("POST", ...)``; repeated after a server error only with ``idempotent=True``."""
        return self.request("POST", url, json=json, **options)

    def request(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        params: Mapping[str, str | int] | None = None,
        idempotent: bool | None = None,
    ) -> dict[str, Any]:
        """Sends a request with its retries and returns the response's JSON object ({} for an empty body).

        Args:
            method: The HTTP method.
            url: The whole address, made from ``endpoint(...)``.
            json: The body.
            params: The query.
            idempotent: Whether it may be sent again when it is unknown if the server acted on it; by default that
                follows from the method.

        Raises:
            ApiError: The server refused it.
            UnreachableError: No response came within the deadline.
            CredentialsError: There is no token to send.
        """
        safe = method in IDEMPOTENT if idempotent is None else idempotent
        end = self._clock() + self._deadline
        renewed = False
        for delay in self._backoff.delays(self._dice):
            failure, retry_after = self._attempt(method, url, json, params, safe=safe, end=end)
            if isinstance(failure, dict):
                return failure
            if isinstance(failure, ApiError) and failure.status == 401 and not renewed:
                # The clocks differ, or the token was revoked early: one new token, no wait.
                renewed = True
                self.credentials.forget()
                continue
            wait = max(delay, retry_after or 0.0)
            if retry_after is None or self._clock() + wait >= end:
                raise failure
            self._sleep(wait)
        raise AssertionError("the waits never end")

    def _attempt(
        self, method: str, url: str, json: Any, params: Any, *, safe: bool, end: float
    ) -> tuple[dict[str, Any] | ApiError | UnreachableError, float | None]:
        """One attempt: the response or the failure, and the least wait before the next attempt (None: no retry)."""
        import httpx

        if self._client is None:
            self._client = new_client(self._timeout)
        limit = max(self._min_timeout, min(self._timeout, end - self._clock()))
        headers = self.credentials.headers()
        try:
            response = self._client.request(method, url, json=json, params=params, headers=headers, timeout=limit)
        except httpx.HTTPError as error:
            never_sent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
            failure = UnreachableError(f"{method} {url.split('?', 1)[0]}: no response ({reason_of(error)})")
            return failure, 0.0 if safe or never_sent else None
        if response.is_success:
            return json_object(response, method, url), None
        failed = ApiError.of(response.status_code, response.content, method=method, url=url)
        again = is_retryable(response.status_code, idempotent=safe)
        return failed, retry_delay(response.headers.get("retry-after")) if again else None

    def pages(self, url: str, items: str, *, params: Mapping[str, str | int] | None = None) -> Iterator[dict[str, Any]]:
        """Yields each object under the key ``items`` of each page of a list, in order."""
        token = ""
        while True:
            response = self.get(url, params={**(params or {}), **({"pageToken": token} if token else {})})
            yield from response.get(items) or ()
            token = str(response.get("nextPageToken") or "")
            if not token:
                return
