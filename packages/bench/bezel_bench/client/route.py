"""Route to one server: its addresses, its certificate's authority and the head of every request to it."""

import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from bezel_base.errors import Problem, UserError
from bezel_bench.load.plan import Target

_LINE_ENDS: Final = frozenset("\r\n")
# A longer word in a header's value counts as a secret: "Bearer" does not.
_WORD: Final = 7


class Route:
    """Route to one target, resolved once.

    Attributes:
        addresses: Family and address of each result of the name, in the system's order.
        tls: Returns TLS for a new connection; None for plain HTTP.
    """

    def __init__(self, target: Target) -> None:
        """Resolve the name.

        Raises:
            UserError: The name is unknown, or the CA file holds no certificate.
        """
        parts = urlsplit(target.url)
        self._host = parts.hostname or ""
        host, port = self._host, parts.port or {"http": 80, "https": 443}[parts.scheme]
        if target.at:
            host, _, text = target.at.rpartition(":")
            port = int(text)
        self.tls: Callable[[], Any] = lambda: None
        if parts.scheme == "https":
            from bezel_bench.client.tls import Tls, trusting  # late: plain HTTP begins without TLS

            self.tls = partial(Tls, trusting(target.ca_file), self._host)
        try:
            results = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            consequence = f"the name {host} cannot be resolved ({error}), so nothing can be sent."
            raise UserError(Problem("--url", target.url, consequence, "correct the address.")) from None
        self.addresses: list[tuple[int, Any]] = [(family, address) for family, _, _, _, address in results]
        self._head = (
            f"POST {parts.path.rstrip('/')}{target.path} HTTP/1.1\r\n"
            f"Host: {parts.netloc}\r\n"
            "User-Agent: bezel-bench\r\n"
            "Accept: */*\r\n"
            "Content-Type: application/json\r\n"
        )
        self._headers: Mapping[str, str] | None = None
        self._made = b""
        self._secrets: set[str] = set()

    def request(self, headers: Mapping[str, str], body: bytes) -> bytes:
        """Return the bytes of a request.

        Raises:
            UserError: A header contains a line end.
        """
        if headers != self._headers:
            for name, value in headers.items():
                if _LINE_ENDS.intersection(name + value):
                    consequence = "the value contains a line end, so another header would begin there."
                    raise UserError(Problem(f"header {name}", None, consequence, "give one line."))
            self._secrets.update(part for value in headers.values() for part in value.split() if len(part) > _WORD)
            lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            self._headers, self._made = dict(headers), f"{self._head}{lines}Content-Length: ".encode()
        return b"%b%d\r\n\r\n%b" % (self._made, len(body), body)

    def without_secrets(self, text: str) -> str:
        """Return a text from the server without the values of headers that it may have repeated."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text
