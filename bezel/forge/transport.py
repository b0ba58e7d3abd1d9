"""HTTP requests to the forge: authorised, repeated where that is safe, with a deadline, page by page.

Shares the rules of retries with `bezel.rest`. The token goes to the forge's own address alone: no redirect is followed,
and of a link to the next page only its existence is read. Clock, sleep and dice are passed in.
"""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from bezel.forge.environment import Facts
from bezel.forge.errors import ForgeError, no_token, response_error, unreachable
from bezel.rest import AddressError, Backoff, url_for_token
from bezel.rest.client import IDEMPOTENT, is_retryable, retry_delay
from bezel.rest.transport import is_final, new_client, reason_of
from bezel_base.json_documents import read_json
from bezel_base.text.printable import encodable_values

if TYPE_CHECKING:
    import httpx

MAX_PAGES = 200
_REPEATABLE = IDEMPOTENT | {"PATCH"}  # each PATCH here replaces whole values
_MAX_BYTES = 64 * 2**20
_PAGE_SIZE: dict[str, Mapping[str, str | int]] = {"github": {"per_page": 100}, "gitea": {"limit": 50}}
_MEDIA_TYPES = {"github": "application/vnd.github+json", "gitea": "application/json"}


@dataclass(eq=False)
class Transport:
    """Requests to one forge.

    Args:
        facts: address and token.
        timeout_seconds: for connecting, and between two reads.
        deadline_seconds: for one request with all its attempts.
        backoff: waits between attempts.
        clock: a monotonic clock, in seconds.
        wall_clock: seconds since 1970: GitHub names the time when a rate limit ends.
        sleep: waits that many seconds.
        dice: numbers in [0, 1).
    """

    facts: Facts
    _: KW_ONLY
    timeout_seconds: float = 20.0
    deadline_seconds: float = 90.0
    backoff: Backoff = field(default_factory=Backoff)
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    dice: Callable[[], float] = random.random
    _client: "httpx.Client | None" = field(default=None, init=False)
    _has_answer: bool = field(default=False, init=False)

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def request(
        self,
        method: str,
        path: str,
        *,
        needs: str,
        body: object = None,
        params: Mapping[str, str | int] | None = None,
        url: str = "",
    ) -> Any:
        """Send a request and return the JSON of its response; None for an empty body.

        Args:
            method: HTTP method. A POST is repeated only where the forge did not act on it.
            path: below the API's base address.
            needs: permission of a workflow that the request needs, e.g. `issues: write`.
            body: JSON.
            params: query.
            url: whole address in place of `path`, on the same server.

        Raises:
            ForgeError: the forge refused it, or did not answer within the deadline.
        """
        return self._send(method, path, needs=needs, body=body, params=params, url=url)[0]

    def pages(self, path: str, *, needs: str, params: Mapping[str, str | int] | None = None) -> Iterator[Any]:
        """Yield each entry of a list, of all its pages.

        Raises:
            ForgeError: a request failed, or the list is longer than 200 pages.
        """
        for page in range(1, MAX_PAGES + 1):
            query = {**(params or {}), **_PAGE_SIZE[self.facts.kind], "page": page}
            entries, has_next = self._send("GET", path, needs=needs, params=query)
            if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
                raise unreachable("GET", f"{self.facts.api_url}{path}", "its response is not a list of objects")
            yield from entries
            if not has_next:
                return
        raise unreachable("GET", f"{self.facts.api_url}{path}", f"its list has more than {MAX_PAGES} pages")

    def _send(
        self,
        method: str,
        path: str,
        *,
        needs: str,
        body: object = None,
        params: Mapping[str, str | int] | None = None,
        url: str = "",
    ) -> tuple[Any, bool]:
        try:
            address = url_for_token(url or f"{self.facts.api_url}{path}", "GITHUB_API_URL")
        except AddressError as error:
            raise ForgeError(*error.problems) from None
        if not self.facts.token and method != "GET":
            raise no_token(f"use `{needs}`")
        end = self.clock() + self.deadline_seconds
        for delay in self.backoff.delays(self.dice):
            result, wait = self._attempt(method, address, body, params, needs=needs, end=end)
            if not isinstance(result, ForgeError):
                return result
            pause = max(delay, wait or 0.0)
            if wait is None or self.clock() + pause >= end:
                raise result
            self.sleep(pause)
        raise AssertionError("the waits never end")

    def _attempt(
        self, method: str, url: str, body: object, params: Mapping[str, str | int] | None, *, needs: str, end: float
    ) -> tuple[tuple[Any, bool] | ForgeError, float | None]:
        """One attempt: the content and whether a page follows, or the failure and the least wait (None: no retry)."""
        import httpx

        if self._client is None:
            self._client = new_client(self.timeout_seconds)
        limit = max(0.1, min(self.timeout_seconds, end - self.clock()))
        try:
            request = self._client.build_request(
                method,
                url,
                json=encodable_values(body),
                params=dict(params) if params else None,
                headers=self._headers(),
                timeout=limit,
            )
            response = self._client.send(request, stream=True)
            try:
                content = self._read(response, end)
            finally:
                response.close()
        except (httpx.HTTPError, TimeoutError) as error:
            never_sent = isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout))
            again = (method in _REPEATABLE or never_sent) and (self._has_answer or not is_final(error))
            return unreachable(method, url, reason_of(error)), 0.0 if again else None
        self._has_answer = True
        if response.is_success:
            if not content.strip():
                return (None, False), None
            try:
                return (read_json(content), 'rel="next"' in response.headers.get("link", "")), None
            except ValueError:
                return unreachable(method, url, "its response is not JSON"), None
        failed = response_error(
            response.status_code, content, method=method, url=url, needs=needs, token=self.facts.token
        )
        return failed, self._retry_wait(response, method)

    def _headers(self) -> dict[str, str]:
        headers = {"Accept": _MEDIA_TYPES[self.facts.kind], "User-Agent": "bezel"}
        if self.facts.kind == "github":
            headers["X-GitHub-Api-Version"] = "2022-11-28"
        if self.facts.token:
            headers["Authorization"] = f"token {self.facts.token}"
        return headers

    def _read(self, response: "httpx.Response", end: float) -> bytes:
        """The body; a server that sends a byte now and then is stopped by the deadline."""
        content = bytearray()
        for chunk in response.iter_bytes():
            content += chunk
            if len(content) > _MAX_BYTES or self.clock() > end:
                raise TimeoutError("the response does not end")
        return bytes(content)

    def _retry_wait(self, response: "httpx.Response", method: str) -> float | None:
        """The least wait before the next attempt; None where it would be of no use, or not safe."""
        headers, status = response.headers, response.status_code
        # GitHub refuses a token above its rate with 403 too, before it acts.
        limited = status == 403 and (headers.get("retry-after") or headers.get("x-ratelimit-remaining") == "0")
        if not limited and not is_retryable(status, idempotent=method in _REPEATABLE):
            return None
        reset = headers.get("x-ratelimit-reset", "")
        until_reset = float(reset) - self.wall_clock() if reset.isdecimal() and limited else 0.0
        return max(retry_delay(headers.get("retry-after")), until_reset, 0.0)
