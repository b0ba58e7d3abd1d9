"""Exchange of a single request: bytes and response as of the standard library's client, whatever a server sends."""

from __future__ import annotations

import http.client
import socket
from typing import TYPE_CHECKING

import pytest

from bezel_bench.result.no_response import NotHttpError
from bezel_bench.server.exchange import NotWholeError, receive_response, request_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

JSON = {"Content-Type": "application/json"}
REQUESTS = {
    "GET": ("GET", "/v1/models", JSON, None),
    "POST": ("POST", "/tokenize", {"Authorization": "Bearer t", **JSON}, b'{"prompt": "\xc3\xbc"}'),
    "empty body": ("POST", "/x", JSON, b""),
    "own headers": ("POST", "/x?y=1", {"accept-encoding": "gzip", "X-Name": "\xfc"}, b"{}"),
}
WHOLE = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nhel\r\n2\r\nlo\r\n0\r\nX: y\r\n\r\n",
    "until the end": b"HTTP/1.1 200 OK\r\n\r\nhello",
    "of HTTP/1.0": b"HTTP/1.0 404 Not Found\r\nServer: x\r\n\r\n{}",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "interim before": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    "redirection": b"HTTP/1.1 302 Found\r\nlocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
    "more behind": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200",
    "another behind": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 404 No\r\nContent-Length: 3\r\n\r\nbad",
    "bare line ends": b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    "cut in its head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "a colon is missing": b"HTTP/1.1 200 OK\r\nServer x\r\nContent-Length: 2\r\n\r\nok",
}
BROKEN = {
    "nothing": b"",
    "no HTTP": b"SSH-2.0-Open\r\n",
    "no status": b"HTTP/1.1 abc\r\n\r\n",
    "cut in its body": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
    "cut in a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
    "no length of a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
    "a line too long": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    "unknown version": b"HTTP/3.7 200 OK\r\n\r\n",
}


def connection_with(data: bytes) -> socket.socket:
    """A connection whose other end has sent this, and closed."""
    here, there = socket.socketpair()
    here.settimeout(10)
    there.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    with there:
        there.sendall(data)
    return here


def read_by_library(data: bytes) -> tuple[int, bytes, str]:
    with connection_with(data) as connection:
        response = http.client.HTTPResponse(connection, method="GET")
        response.begin()
        return response.status, response.read(), response.headers.get("Location") or ""


@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_has_the_bytes_of_the_library_s(case: str) -> None:
    method, path, headers, body = REQUESTS[case]
    client = http.client.HTTPConnection("127.0.0.1", 8000)
    client.sock, there = socket.socketpair()
    with client.sock, there:
        client.request(method, path, body, headers)
        client.sock.shutdown(socket.SHUT_WR)
        sent = there.makefile("rb").read()
    assert request_bytes(method, path, "127.0.0.1:8000", headers, body) == sent


@pytest.mark.parametrize(
    ("path", "headers"), [("/a b", {}), ("/\xfc", {}), ("/", {"X": "y\r\nZ"}), ("/", {"X\n": "y"})]
)
def test_a_request_that_no_server_could_read_is_not_sent(path: str, headers: Mapping[str, str]) -> None:
    with pytest.raises(NotWholeError):
        request_bytes("GET", path, "127.0.0.1:8000", headers, None)


@pytest.mark.parametrize("case", WHOLE)
def test_a_response_is_read_as_by_the_library(case: str) -> None:
    with connection_with(WHOLE[case]) as connection:
        assert receive_response(connection, "GET") == read_by_library(WHOLE[case])


@pytest.mark.parametrize("case", BROKEN)
def test_a_response_that_the_library_refuses_is_refused_with_its_reason(case: str) -> None:
    with pytest.raises(http.client.HTTPException) as refusal:
        read_by_library(BROKEN[case])
    with connection_with(BROKEN[case]) as connection, pytest.raises((NotHttpError, NotWholeError)) as error:
        receive_response(connection, "GET")
    reason = error.value
    if isinstance(reason, NotWholeError):
        assert str(reason) == str(refusal.value)
    else:
        assert reason.data in (str(refusal.value).encode(), b"")
