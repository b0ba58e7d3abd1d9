"""HTTP transport: the construction of httpx clients, and the transport that google-auth requires.

google-auth ships transports for requests and urllib3 only; with this one the project has a single HTTP library,
one set of timeouts and one rule about proxies.
"""

import importlib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

    import httpx

# The proxy of the environment is for the internet; the embedded cloud listens on this machine.
DIRECT = ("all://127.0.0.1", "all://localhost", "all://[::1]")


@cache
def certificates() -> "ssl.SSLContext":
    """Return the trusted certificates: httpx's default, or SSL_CERT_FILE; read once, as that takes a while."""
    import httpx

    return httpx.create_ssl_context()


def new_client(timeout_seconds: float, *, connections: int = 20) -> "httpx.Client":
    """Return a synchronous client: explicit limits, certificates verified, no redirect followed.

    Args:
        timeout_seconds: For connecting, and between two reads.
        connections: How many may be open at once.
    """
    import httpx

    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    mounts = dict.fromkeys(DIRECT)
    return httpx.Client(verify=certificates(), timeout=timeout_seconds, limits=limits, mounts=mounts)


class _Response:
    """The fields of a response that google-auth reads."""

    def __init__(self, answer: "httpx.Response") -> None:
        self.status = answer.status_code
        self.headers = answer.headers
        self.data = answer.content


class AuthRequest:
    """A ``google.auth.transport.Request`` on httpx."""

    def __init__(self, client: "httpx.Client") -> None:
        self._client = client

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **_: Any,
    ) -> _Response:
        """Sends one request.

        Raises:
            google.auth.exceptions.TransportError: There was no response; google-auth decides whether to retry.
        """
        import httpx

        exceptions: Any = importlib.import_module("google.auth.exceptions")  # it has no types
        limit = httpx.USE_CLIENT_DEFAULT if timeout is None else httpx.Timeout(timeout)
        try:
            return _Response(self._client.request(method, url, content=body, headers=headers, timeout=limit))
        except httpx.HTTPError as error:
            raise exceptions.TransportError(f"{url.split('?', 1)[0]}: {type(error).__name__}") from None
