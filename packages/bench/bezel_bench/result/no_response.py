"""Reasons why a server gave no HTTP response, each with its repair. Pure.

The reason is read off the error of the system, TLS or HTTP, and off the first bytes of what came instead. Facts: the
verify codes are OpenSSL's (x509_vfy.h); a frame of HTTP/2 is 3 bytes of length, its type and flags, and its stream (RFC
9113, section 4.1), and a server that knows nothing else begins with SETTINGS or GOAWAY, as node's http2 does; a record
of TLS is its type, version and length (RFC 8446, section 5.1), and a server answers plain text with an alert (21).
"""

import re
import socket
import sys
from typing import TYPE_CHECKING, Final, NamedTuple, TypeGuard

if TYPE_CHECKING:
    import ssl

LONGEST: Final = 64
"""Bytes of a response that is not HTTP that are enough to name it."""
_HTTP2_HEAD: Final = 9
_HTTP2_FIRST: Final = (4, 7)  # SETTINGS, GOAWAY
_TLS_RECORDS: Final = (21, 22)  # alert, handshake
_ADDRESS: Final = "start the server, or correct the address."
_AUTHORITY: Final = "give the PEM file of its authority with --ca-file."
_NAME: Final = "use an address with a name of the certificate, or give the server a certificate of this name."
_VERIFY: Final = {
    9: ("is not valid yet", "correct this machine's clock, or wait until the certificate is valid."),
    10: ("has expired", "renew it on the server, or correct this machine's clock."),
    62: ("is of another name", _NAME),
    64: ("is of another address", _NAME),
}
_OLD_TLS: Final = ("the server speaks no version of TLS that this client does", "allow TLS 1.2 or 1.3 on the server.")
# By OpenSSL's words: Python names not every reason.
_TLS: Final = {
    "wrong version number": ("the server does not speak TLS on this port", "write http:// instead of https://."),
    "http request": ("the server does not speak TLS on this port", "write http:// instead of https://."),
    "no application protocol": (
        "the server speaks HTTP/2 only, and this client speaks HTTP/1.1",
        "allow HTTP/1.1 on the server, or give the address of the server behind it.",
    ),
    "certificate required": (
        "the server demands a certificate of the client, and this client sends none",
        "give an address that demands none, e.g. that of the server behind it.",
    ),
    "unsupported protocol": _OLD_TLS,
    "alert protocol version": _OLD_TLS,
}
# What nginx, Go and Apache say of plain text on a port of TLS.
_ON_TLS_PORT: Final = re.compile(r"HTTPS (port|server)|SSL-enabled server port")


class NotHttpError(Exception):
    """The server sent bytes that are not HTTP/1.1.

    Attributes:
        data: Its bytes that the parser refused, the first of them.
    """

    def __init__(self, reason: str, data: bytes) -> None:
        super().__init__(reason)
        self.data = data


class NoResponse(NamedTuple):
    """Reason why no response came.

    Attributes:
        reason: A clause without a final stop, e.g. "the server does not speak TLS on this port".
        repair: A sentence.
        reached: Whether something at the address took the connection.
    """

    reason: str
    repair: str
    reached: bool = True

    def __str__(self) -> str:
        """Return reason and repair as one text."""
        return f"{self.reason}: {self.repair.rstrip('.')}"


SPEAKS_TLS: Final = NoResponse("the server speaks TLS on this port", "write https:// instead of http://.")


def is_tls_error(error: object) -> "TypeGuard[ssl.SSLError]":
    """Whether an error is of TLS, whose module is loaded where a connection has it, and only there."""
    tls = sys.modules.get("ssl")
    return tls is not None and isinstance(error, tls.SSLError)


def of_error(error: Exception) -> NoResponse:
    """Return the reason that an error of the system or of TLS shows."""
    if is_tls_error(error):
        import ssl

        if isinstance(error, ssl.SSLCertVerificationError):
            what, repair = _VERIFY.get(error.verify_code, ("is not trusted", _AUTHORITY))
            return NoResponse(f"the certificate {what}: {error.verify_message}", repair)
        explanation = next((row for phrase, row in _TLS.items() if phrase in str(error)), None)
        if explanation:
            return NoResponse(*explanation)
        return NoResponse(f"the TLS handshake failed ({error.reason or error})", "look at the server's TLS settings.")
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    if isinstance(error, socket.gaierror):
        return NoResponse(f"the name cannot be resolved ({text})", "correct the address.", reached=False)
    if isinstance(error, TimeoutError) and "handshake" in str(error):
        return NoResponse(
            "the server took the connection and did not begin TLS in time",
            "write http:// instead of https:// if it does not speak TLS, else look at its log.",
        )
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return NoResponse(
            f"the server broke the connection off ({text})", "look at its log, and at what stands in front."
        )
    if isinstance(error, TimeoutError):
        return NoResponse("nothing took the connection in time", "check the address and the firewall.", reached=False)
    return NoResponse(text, _ADDRESS, reached=False)


def of_refusal(status: int, text: str) -> NoResponse | None:
    """Return the reason of a refusal by HTTP that a server of TLS gives to plain text; None for any other response."""
    return SPEAKS_TLS if status == 400 and _ON_TLS_PORT.search(text) else None


def of_bytes(data: bytes) -> NoResponse:
    """Return the reason that the first bytes show of what is no HTTP/1.1; b"" where the server just closed."""
    if not data:
        return NoResponse(
            "the server closed the connection without a response",
            "write https:// instead of http:// if it speaks TLS, else look at its log.",
        )
    if len(data) >= _HTTP2_HEAD and data[3] in _HTTP2_FIRST and not any(data[5:_HTTP2_HEAD]):
        return NoResponse(
            "the server speaks HTTP/2 only (without TLS: h2c), and this client speaks HTTP/1.1",
            "allow HTTP/1.1 on the server, or give the address of the server behind it.",
        )
    if len(data) >= 3 and data[0] in _TLS_RECORDS and data[1] == 3:
        return SPEAKS_TLS
    begin = "".join(char if char.isprintable() else "." for char in data[:LONGEST].decode("latin-1")).strip()
    return NoResponse(f"what responds there is not HTTP: it begins with {begin!r}", "correct the port of the address.")
