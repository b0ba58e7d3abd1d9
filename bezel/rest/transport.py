"""HTTP transport: the construction of httpx clients, and the transport that google-auth requires.

google-auth ships transports for requests and urllib3 only; with this one the project has a single HTTP library,
one set of timeouts and one rule about proxies.
"""

import importlib
import socket
import ssl
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bezel.rest.errors import ApiError
from bezel_base.errors import Problem, UserError
from bezel_base.json_documents import read_json
from bezel_base.loopback.web_pages import is_loopback

if TYPE_CHECKING:
    import httpx

# The proxy of the environment is for the internet; the embedded cloud listens on this machine.
DIRECT = ("all://127.0.0.1", "all://localhost", "all://[::1]")


class CertificatesOnDemand(ssl.SSLContext):
    """A context whose certificates are read at the first secure connection: plain ones, as to localcloud, need none.

    Reading them takes 45 ms of CPU, of each command and of each preview.
    """

    _protocols: Sequence[str] = ()

    def set_alpn_protocols(self, alpn_protocols: Iterable[str]) -> None:
        """Keep the protocols for the real context."""
        self._protocols = list(alpn_protocols)

    def wrap_socket(self, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        """Connect by the real context."""
        return self._real().wrap_socket(*arguments, **options)

    def wrap_bio(self, *arguments: Any, **options: Any) -> ssl.SSLObject:
        """Connect by the real context, through a proxy whose own connection is a secure one."""
        return self._real().wrap_bio(*arguments, **options)

    def _real(self) -> ssl.SSLContext:
        context = certificates()
        if self._protocols:
            context.set_alpn_protocols(self._protocols)
        return context


@cache
def certificates() -> ssl.SSLContext:
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
    mounts: dict[str, Any] = dict.fromkeys(DIRECT)
    context = CertificatesOnDemand(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return httpx.Client(verify=context, timeout=timeout_seconds, limits=limits, mounts=mounts)
    except (ImportError, ValueError, httpx.InvalidURL):
        # Of a proxy that cannot be used. Requests to the embedded cloud need none.
        mounts = dict.fromkeys(DIRECT, httpx.HTTPTransport(verify=context, limits=limits))
        return httpx.Client(timeout=timeout_seconds, transport=httpx.MockTransport(_refuse_proxy), mounts=mounts)


def http_proxy(scheme: str, value: str) -> str:
    """The URL of a proxy of the environment.

    Args:
        scheme: Of the requests that it is for: http, https, or all.
        value: As the variable has it.

    Raises:
        UserError: It is not a proxy by HTTP.
    """
    url = value if "://" in value else f"http://{value}"
    try:
        parts = urlsplit(url)
        is_http = parts.scheme.lower() in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_http = False
    if not is_http:
        variable = f"{scheme.upper()}_PROXY"
        consequence = "no request can be sent to the internet by it: a proxy is an address of http:// or https://."
        raise UserError(Problem(variable, value, consequence, f"set {variable} to such a proxy, or unset it."))
    return url


def _refuse_proxy(request: "httpx.Request") -> "httpx.Response":
    from urllib.request import getproxies  # late: httpx has loaded it by now

    for scheme, value in getproxies().items():
        if scheme in {"http", "https", "all"}:
            http_proxy(scheme, value)
    raise UserError(f"{request.url.host}: no proxy of the environment can be used. Unset HTTPS_PROXY and ALL_PROXY.")


class _Response:
    """The fields of a response that google-auth reads."""

    def __init__(self, response: "httpx.Response") -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.data = response.content


class AuthRequest:
    """A `google.auth.transport.Request` on httpx."""

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
            raise exceptions.TransportError(f"{url.split('?', 1)[0]} ({type(error).__name__})") from None


def post_once(client: "httpx.Client", url: str, body: Any, headers: Mapping[str, str]) -> dict[str, Any]:
    """Send one POST without retries, for the tokens that authorise all other requests.

    Raises:
        ApiError: It was refused, or there was no response (status 0).
    """
    import httpx

    try:
        response = client.post(url, json=body, headers=dict(headers))
    except httpx.HTTPError as error:
        raise ApiError(0, "UNREACHABLE", reason_of(error), method="POST", url=url) from None
    if not response.is_success:
        raise ApiError.of(response.status_code, response.content, method="POST", url=url)
    return json_object(response, "POST", url)


def json_object(response: "httpx.Response", method: str, url: str) -> dict[str, Any]:
    """Return the JSON object of a response, {} for an empty body.

    Raises:
        ApiError: The body is not a JSON object.
    """
    if not response.content.strip():
        return {}
    try:
        parsed = read_json(response.content)
    except ValueError:
        raise ApiError(response.status_code, "", "the response is not JSON", method=method, url=url) from None
    if not isinstance(parsed, dict):
        raise ApiError(response.status_code, "", "the response is not a JSON object", method=method, url=url)
    return parsed


def is_final(error: Exception) -> bool:
    """Whether a further attempt cannot help: nothing listens at a port of this machine, or no server has that name.

    It holds for a first request. To a server that has answered before, the network is down, or it starts again.
    """
    import httpx

    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, socket.gaierror):
        return cause.errno == socket.EAI_NONAME
    is_refused = isinstance(cause, ConnectionRefusedError)
    return is_refused and isinstance(error, httpx.ConnectError) and is_loopback(error.request.url.netloc.decode())


def reason_of(error: Exception) -> str:
    """Return an error as one line: its type, and its text where it has one."""
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
