"""Heads of HTTP/1.1 messages, read strictly: a head that two programs could read in two ways is refused. Pure.

Sources: RFC 9112 (November 2026 unchanged since 2022), sections 2.2, 3, 5 and 6; RFC 9110, section 5.6.2 (tokens).
"""

import re
from dataclasses import dataclass
from typing import Final

LONGEST_HEAD: Final = 64 * 1024
"""Bytes of a request's head: the most that Google's front end forwards."""
MOST_HEADERS: Final = 256
END: Final = b"\r\n\r\n"

Headers = list[tuple[bytes, bytes]]

_REQUEST_LINE = re.compile(rb"([A-Z]{1,16}) ([!-~]{1,16384}) HTTP/1\.([01])")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5]\d\d)(?: [\t\x20-\x7e\x80-\xff]*)?")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")
_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_LENGTH = re.compile(rb"\d{1,15}")
_SINGLE = frozenset(
    b"host content-length transfer-encoding content-type expect authorization x-api-key api-key".split()
)


class HeadError(ValueError):
    """A head that is refused.

    Attributes:
        status: The HTTP status of the refusal.
    """

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Framing:
    """Extent of a message's body.

    Attributes:
        length: Bytes of the body; None where its chunks or the connection's end delimit it.
        is_chunked: Whether chunks delimit it.
    """

    length: int | None
    is_chunked: bool

    @property
    def is_empty(self) -> bool:
        """Whether there is no body."""
        return self.length == 0


@dataclass(frozen=True, slots=True)
class RequestHead:
    """Head of a request.

    Attributes:
        method: Its method, in capitals.
        target: Its target, as sent.
        headers: Names in lower case, and values without the spaces around them.
        framing: Extent of its body.
    """

    method: bytes
    target: bytes
    headers: Headers
    framing: Framing

    def header(self, name: bytes) -> bytes | None:
        """The value of a header, None without it."""
        return next((value for key, value in self.headers if key == name), None)


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """Head of a response.

    Attributes:
        status: Its HTTP status.
        headers: Names in lower case, and values.
        framing: Extent of its body.
        is_kept: Whether the connection may serve another request.
    """

    status: int
    headers: Headers
    framing: Framing
    is_kept: bool

    def header(self, name: bytes) -> bytes:
        """The value of a header, b"" without it."""
        return next((value for key, value in self.headers if key == name), b"")


def read_request_head(head: bytes) -> RequestHead:
    """Read the head of a request, without the empty line at its end.

    Raises:
        HeadError: It is not plain HTTP/1.1.
    """
    line, *lines = head.split(b"\r\n")
    match = _REQUEST_LINE.fullmatch(line)
    if match is None:
        raise HeadError("The first line is not that of an HTTP/1.1 request.")
    if match[3] != b"1":
        raise HeadError("The door accepts HTTP/1.1.", 505)
    headers = _read_headers(lines)
    names = [name for name, _ in headers]
    for name in _SINGLE:
        if names.count(name) > 1:
            raise HeadError(f"The request has several {name.decode()} headers.")
    if b"host" not in names:
        raise HeadError("The request has no Host header.")
    return RequestHead(match[1], match[2], headers, _request_framing(dict(headers)))


def read_response_head(head: bytes, method: bytes) -> ResponseHead:
    """Read the head of a response to a request with this method, without the empty line at its end.

    Raises:
        HeadError: It is no HTTP/1.1.
    """
    line, *lines = head.split(b"\r\n")
    match = _STATUS_LINE.fullmatch(line)
    if match is None:
        raise HeadError("The first line is not that of an HTTP/1.1 response.")
    status, headers = int(match[2]), _read_headers(lines)
    values: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in (b"content-length", b"transfer-encoding") and values.get(name, value) != value:
            raise HeadError(f"The response has several {name.decode()} headers.")
        values[name] = value
    is_kept = match[1] == b"1" and b"close" not in values.get(b"connection", b"").lower()
    if method == b"HEAD" or status in (204, 304) or status < 200:
        return ResponseHead(status, headers, Framing(0, is_chunked=False), is_kept)
    coding, length = values.get(b"transfer-encoding", b"").lower(), values.get(b"content-length")
    if coding:
        if coding != b"chunked" or length is not None:
            raise HeadError("The response's Transfer-Encoding is not plain chunks.")
        return ResponseHead(status, headers, Framing(None, is_chunked=True), is_kept)
    if length is None:
        return ResponseHead(status, headers, Framing(None, is_chunked=False), is_kept=False)
    return ResponseHead(status, headers, Framing(_length(length), is_chunked=False), is_kept)


def _read_headers(lines: list[bytes]) -> Headers:
    if len(lines) > MOST_HEADERS:
        raise HeadError(f"The message has more than {MOST_HEADERS} headers.", 431)
    headers = []
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise HeadError("A header is not a name, a colon and a value on one line.")
        headers.append((name.lower(), value.strip(b" \t")))
    return headers


def _request_framing(values: dict[bytes, bytes]) -> Framing:
    coding, length = values.get(b"transfer-encoding"), values.get(b"content-length")
    if coding is not None:
        if length is not None:
            raise HeadError("The request has both Content-Length and Transfer-Encoding.")
        if coding.lower() != b"chunked":
            raise HeadError("The door accepts no Transfer-Encoding but chunked.", 501)
        return Framing(None, is_chunked=True)
    return Framing(0 if length is None else _length(length), is_chunked=False)


def _length(text: bytes) -> int:
    if not _LENGTH.fullmatch(text):
        raise HeadError("The Content-Length is not a number.")
    return int(text)
