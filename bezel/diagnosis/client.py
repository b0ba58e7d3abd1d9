"""Client for a vLLM server behind a platform's identity check: sends requests with a token, parses responses.

Leaves out the expected responses (`bezel_smoke.checks`) and streams (`bezel_bench`).
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from bezel.rest import AddressError, Credentials, url_for_token
from bezel.rest.connect_to import ConnectTo
from bezel.rest.transport import new_client
from bezel_base.errors import Problem
from bezel_base.front.refusals import refusal_of
from bezel_bench.server.counters import series

if TYPE_CHECKING:
    import httpx


class Server:
    """One server; closed at the end of its `with`.

    Args:
        url: Its address, which is also the audience of the identity token.
        credentials: Credentials of the caller; None calls without a token.
        audience: Another audience, where there is one: Cloud Run accepts only the service's own address, also at the
            address of a tag (its guide on authenticating service to service).
        connect_to: Where to connect, if not to what the name in the address leads to.
    """

    def __init__(
        self, url: str, credentials: Credentials | None, *, audience: str = "", connect_to: ConnectTo | None = None
    ) -> None:
        self.url = url.rstrip("/")
        self._audience = audience.rstrip("/") or self.url
        self._credentials = credentials
        self._client = new_client(60.0) if connect_to is None else connect_to.client(60.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def headers(self, *, fresh: bool = False) -> dict[str, str]:
        """The headers that authorise a request; `fresh` mints a new token after one was refused.

        Raises:
            CredentialsError: No identity token can be obtained.
            AddressError: A token may not be sent to this address.
        """
        if not self.url:
            raise AddressError(
                Problem(
                    "service",
                    None,
                    "the service has no address, so no request can be sent.",
                    "enable its default URL (default_uri_disabled: false).",
                )
            )
        url_for_token(self.url, "the service's url")
        if self._credentials is None:
            return {}
        if fresh:
            self._credentials.forget(self._audience)
        return {"Authorization": f"Bearer {self._credentials.identity_token(self._audience)}"}

    def send(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        timeout_seconds: float = 60.0,
        anonymous: bool = False,
        key: str = "",
    ) -> "httpx.Response":
        """Send one request, and again with a new token if the token was refused as such; `key` stands for a token.

        Raises:
            httpx.HTTPError: There was no response.
            CredentialsError: No identity token can be obtained.
            AddressError: A token may not be sent to this address.
        """
        by_identity = not anonymous and not key
        headers = self.headers() if by_identity else {"Authorization": f"Bearer {key}"} if key else {}
        request = partial(self._client.request, method, self.url + path, json=json, timeout=timeout_seconds)
        response = request(headers=headers)
        if response.status_code == 401 and by_identity and self._credentials is not None:
            response = request(headers=self.headers(fresh=True))
        return response


def json_object(response: "httpx.Response") -> dict[str, Any] | str:
    """The JSON object of a response ({} for another JSON value), or a description of the body that is not JSON."""
    try:
        parsed = response.json()
    except ValueError:
        begin = " ".join(response.text[:60].split())
        return f"a body of {len(response.content)} bytes that is not JSON" + (f" and begins {begin!r}" if begin else "")
    return parsed if isinstance(parsed, dict) else {}


def error_text(response: "httpx.Response") -> str:
    """The message of an error response, in vLLM's formats (an object, a string, `detail`) or any other.

    A front end's page is said in words.
    """
    if front := refusal_of(response.status_code, response.text):
        return f"HTTP {response.status_code}: {front.cause}"
    parsed = json_object(response)
    error = parsed.get("error", parsed.get("detail")) if isinstance(parsed, dict) else ""
    text = error.get("message") if isinstance(error, Mapping) else error
    return f"HTTP {response.status_code}" + (f": {text}" if text else "")


def usage_error(usage: Any, *, max_tokens: int) -> str | None:
    """The reason why the token counts of a response cannot be true, or None.

    Args:
        usage: The response's `usage`.
        max_tokens: The limit of the request.
    """
    if not isinstance(usage, Mapping):
        return "the response has no usage"
    prompt, output = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if not isinstance(prompt, int) or prompt <= 0:
        return f"usage.prompt_tokens is {prompt!r}"
    if not isinstance(output, int) or not 0 < output <= max_tokens:
        return f"usage.completion_tokens is {output!r}, with max_tokens {max_tokens}"
    total = usage.get("total_tokens")
    if total != prompt + output:
        return f"usage.total_tokens is {total!r}, not {prompt} + {output}"
    return None


def counters(metrics: str, prefix: str) -> dict[str, float]:
    """Sums of the counters whose name starts with `prefix`, over their labels, from Prometheus' text format.

    Only names that end in `_total`: each counter has a `_created` gauge beside it, which holds a date.
    """
    sums: defaultdict[str, float] = defaultdict(float)
    for name, _, value in series(metrics):
        if name.startswith(prefix) and name.endswith("_total"):
            sums[name] += value
    return dict(sums)
