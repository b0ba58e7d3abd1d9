"""HTTP client for Google APIs: authorised requests, repeated where that is safe, with a deadline.

Leaves out the meaning of the responses. Clock, sleep and dice are passed in, so that the caller decides how to wait.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Self

from bezel.rest.credentials import Credentials
from bezel.rest.errors import ApiError, RestError, UnreachableError
from bezel.rest.transport import is_final, json_object, new_client, reason_of
from bezel_base.text.printable import encodable_values

if TYPE_CHECKING:
    import httpx

IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})

# The server did not act on these requests, whatever their method.
_REFUSED = frozenset({429})
_SERVER_FAULTS = frozenset({500, 502, 503, 504})


@dataclass(frozen=True)
class Backoff:
    """Exponential waits with jitter, in seconds: many clients that failed together do not retry together."""

    first: float = 0.5
    factor: float = 2.0
    longest: float = 16.0

    def delays(self, dice: Callable[[], float]) -> Iterator[float]:
        """Endless waits, each between half and the whole of its step; `dice` yields numbers in [0, 1)."""
        step = self.first
        while True:
            yield step * (0.5 + dice() / 2)
            step = min(step * self.factor, self.longest)


def is_retryable(status: int, *, idempotent: bool) -> bool:
    """Whether the same request may succeed later and may safely be sent again."""
    return status in _REFUSED or (idempotent and status in _SERVER_FAULTS)


def retry_delay(retry_after: str | None) -> float:
    """Return the seconds of a `Retry-After` header; 0 where there is none, or it names a date."""
    if retry_after is None or not retry_after.strip().isdecimal():
        return 0.0
    return float(retry_after)


@dataclass(eq=False)
class GoogleClient:
    """An authorised client; usable from several threads, closed by `close` or as a context manager.

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

    credentials: Credentials = field(default_factory=Credentials)
    _: KW_ONLY
    timeout_seconds: float = 30.0
    min_timeout_seconds: float = 0.1
    deadline_seconds: float = 120.0
    backoff: Backoff = field(default_factory=Backoff)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    dice: Callable[[], float] = random.random
    _client: "httpx.Client | None" = field(default=None, init=False)
    _has_answer: bool = field(default=False, init=False)  # of any server

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
        """`request("GET", ...)`."""
        return self.request("GET", url, **options)

    def post(self, url: str, json: Any = None, **options: Any) -> dict[str, Any]:
        """`request("POST", ...)`; repeated after a server error only with `idempotent=True`."""
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
            url: The whole address, made from `endpoint(...)`.
            json: The body.
            params: The query.
            idempotent: Whether it may be sent again when it is unknown if the server acted on it; by default that
                follows from the method.

        Raises:
            ApiError: The server refused it.
            UnreachableError: No response came within the deadline.
            CredentialsError: There is no token to send.
        """
        return json_object(self.send(method, url, json=json, params=params, idempotent=idempotent), method, url)

    def send(
        self,
        method: str,
        url: str,
        *,
        json: Any = None,
        content: bytes | None = None,
        content_type: str = "application/octet-stream",
        params: Mapping[str, str | int] | None = None,
        idempotent: bool | None = None,
        byte_range: tuple[int, int] | None = None,
    ) -> "httpx.Response":
        """Sends a request with its retries and returns the whole response: for bytes, and for headers.

        Args:
            method: The HTTP method.
            url: The whole address, made from `endpoint(...)`.
            json: The body, if it is JSON.
            content: The body, if it is bytes.
            content_type: The kind of `content`.
            params: The query.
            idempotent: As of `request`.
            byte_range: First byte of the content to return, and the one behind the last; None for all.

        Raises:
            ApiError: The server refused it.
            UnreachableError: No response came within the deadline.
            CredentialsError: There is no token to send.
        """
        safe = method in IDEMPOTENT if idempotent is None else idempotent
        body: dict[str, Any] = (
            {"json": encodable_values(json)}
            if content is None
            else {"content": content, "headers": {"content-type": content_type}}
        )
        if byte_range is not None:
            body["headers"] = {**body.get("headers", {}), "range": f"bytes={byte_range[0]}-{byte_range[1] - 1}"}
        end = self.clock() + self.deadline_seconds
        renewed = False
        for delay in self.backoff.delays(self.dice):
            failure, retry_after = self._attempt(method, url, body, params, safe=safe, end=end)
            if not isinstance(failure, RestError):
                return failure
            if isinstance(failure, ApiError) and failure.status == 401 and not renewed:
                # The clocks differ, or the token was revoked early: one new token, no wait.
                renewed = True
                self.credentials.forget()
                continue
            wait = max(delay, retry_after or 0.0)
            if retry_after is None or self.clock() + wait >= end:
                raise failure
            self.sleep(wait)
        raise AssertionError("the waits never end")

    def _attempt(
        self, method: str, url: str, body: Mapping[str, Any], params: Any, *, safe: bool, end: float
    ) -> "tuple[httpx.Response | ApiError | UnreachableError, float | None]":
        """One attempt: the response or the failure, and the least wait before the next attempt (None: no retry)."""
        import httpx

        if self._client is None:
            self._client = new_client(self.timeout_seconds)
        limit = max(self.min_timeout_seconds, min(self.timeout_seconds, end - self.clock()))
        sent = {**body, "headers": {**body.get("headers", {}), **self.credentials.headers()}}
        try:
            response = self._client.request(method, url, params=params, timeout=limit, **sent)
        except httpx.HTTPError as error:
            failure = UnreachableError(f"{method} {url.split('?', 1)[0]}: no response ({reason_of(error)})")
            never_sent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
            again = (safe or never_sent) and (self._has_answer or not is_final(error))
            return failure, 0.0 if again else None
        self._has_answer = True
        if response.is_success:
            return response, None
        failed = ApiError.of(response.status_code, response.content, method=method, url=url)
        again = is_retryable(response.status_code, idempotent=safe)
        return failed, retry_delay(response.headers.get("retry-after")) if again else None

    def pages(self, url: str, items: str, *, params: Mapping[str, str | int] | None = None) -> Iterator[dict[str, Any]]:
        """Yields each object under the key `items` of each page of a list, in order."""
        token = ""
        while True:
            response = self.get(url, params={**(params or {}), **({"pageToken": token} if token else {})})
            yield from response.get(items) or ()
            token = str(response.get("nextPageToken") or "")
            if not token:
                return
