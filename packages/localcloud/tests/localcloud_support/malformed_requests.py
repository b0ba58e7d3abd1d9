"""Requests at the wire: what is not HTTP/1.1 by RFC 9112, of every kind, and what is, however odd it looks."""

from __future__ import annotations

import socket

from hypothesis import strategies as st

HOST = b"Host: 127.0.0.1\r\n"
CLOSE = b"Connection: close\r\n"
TARGET = b"/v1/models"
_TOKEN = b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_IN_TARGETS = b"!$&'()*+,-./0123456789:;=@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz~"
_CHUNKED = b"Transfer-Encoding: chunked\r\n"


def request(
    line: bytes = b"GET " + TARGET + b" HTTP/1.1", lines: bytes = b"", body: bytes = b"", host: bytes = HOST
) -> bytes:
    """A request that ends its connection."""
    return line + b"\r\n" + host + CLOSE + lines + b"\r\n" + body


def answer(port: int, *requests: bytes) -> bytes:
    """All that comes back for some requests, sent at once over one connection."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(b"".join(requests))
        content = b""
        while piece := connection.recv(65536):
            content += piece
        return content


def _with_insertion(text: bytes, bytes_: bytes, first: int = 0) -> st.SearchStrategy[bytes]:
    """A text with one of some bytes somewhere in it."""
    places = st.tuples(st.sampled_from(list(bytes_)), st.integers(first, len(text)))
    return places.map(
        lambda place_and_byte: text[: place_and_byte[1]] + bytes([place_and_byte[0]]) + text[place_and_byte[1] :]
    )


def _all_but(allowed: bytes) -> bytes:
    return bytes(byte for byte in range(256) if byte not in allowed)


def _post(lines: bytes, body: bytes = b"") -> bytes:
    return request(b"POST " + TARGET + b" HTTP/1.1", lines, body)


def _chunks(body: bytes) -> bytes:
    return _post(_CHUNKED, body)


_LINES = [
    b"hello there",
    b"GET " + TARGET,
    b"GET  " + TARGET + b" HTTP/1.1",
    b"GET " + TARGET + b" HTTP/1.1 ",
    b"GET v1/models HTTP/1.1",
    b"GET 127.0.0.1:80 HTTP/1.1",
    b"GET ftp://127.0.0.1/v1/models HTTP/1.1",
    b"GET http:///v1/models HTTP/1.1",
    b"GET http://user@127.0.0.1/v1/models HTTP/1.1",
    b"GET * HTTP/1.1",
    b"GET /v1/models?x=%zz HTTP/1.1",
    b"CONNECT 127.0.0.1:80 HTTP/1.1",
    b"CONNECT / HTTP/1.1",
    b"G@T / HTTP/1.1",
    *(b"GET " + TARGET + b" " + version for version in b"HTTP/0.9 HTTP/2.0 HTTP/1.x HTTP/1 http/1.1 HTTP/11".split()),
]
_HOSTS = [b"", HOST + HOST, b"Host: a b\r\n", b"Host: user@127.0.0.1\r\n", b"Host: 127.0.0.1/x\r\n", b"Host: [::1\r\n"]
_FRAMINGS = [
    b"Content-Length: 1\r\nContent-Length: 2\r\n",
    b"Content-Length: 1, 2\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: +2\r\n",
    b"Content-Length: 0x2\r\n",
    b"Content-Length: 2\r\n" + _CHUNKED,
    b"Transfer-Encoding: gzip\r\n",
    b"Transfer-Encoding: chunked, chunked\r\n",
    b"Transfer-Encoding: gzip, chunked\r\n",
]
_BAD_CHUNKS = [
    b"zz\r\nab\r\n0\r\n\r\n",
    b"-2\r\nab\r\n0\r\n\r\n",
    b"2\r\nabcd\r\n0\r\n\r\n",
    b"2\r\nab\r\n0\r\na b: c\r\n\r\n",
]
_HEADER_LINES = [
    b"no colon\r\n",
    b": no name\r\n",
    b"space : before\r\n",
    b"X-Long: " + b"x" * 65536 + b"\r\n",
    b"a:\r\n" * 16384,
]

MALFORMED: dict[str, st.SearchStrategy[bytes]] = {
    "not a word of HTTP": st.binary(max_size=80).map(lambda rest: b"\x16\x03\x01" + rest + b"\r\n\r\n"),
    "another protocol": st.just(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "a first line": st.sampled_from(_LINES).map(request),
    "a byte in the target": _with_insertion(TARGET, _all_but(_IN_TARGETS + b"?%\n"), 1).map(
        lambda target: request(b"GET " + target + b" HTTP/1.1")
    ),
    "a byte in the query": _with_insertion(b"?x=1", _all_but(_IN_TARGETS + b"?%\n"), 1).map(
        lambda query: request(b"GET " + TARGET + query + b" HTTP/1.1")
    ),
    "a host": st.sampled_from(_HOSTS).map(lambda host: request(host=host)),
    "a byte in a header's name": _with_insertion(b"X-Name", _all_but(_TOKEN + b":\r\n"), 1).map(
        lambda name: request(lines=name + b": x\r\n")
    ),
    "a byte in a header's value": _with_insertion(b"value", bytes({*range(32), 127} - {*b"\t\r\n"})).map(
        lambda value: request(lines=b"X-Name: " + value + b"\r\n")
    ),
    "a header": st.sampled_from(_HEADER_LINES).map(lambda lines: request(lines=lines)),
    "the framing": st.sampled_from(_FRAMINGS).map(lambda lines: _post(lines, b"2\r\nab\r\n0\r\n\r\n")),
    "chunks in HTTP/1.0": st.just(request(b"POST " + TARGET + b" HTTP/1.0", _CHUNKED, b"0\r\n\r\n")),
    "a chunk": st.sampled_from(_BAD_CHUNKS).map(_chunks),
}
"""What is wrong -> requests in which it is."""

_escapes = st.binary(min_size=1, max_size=3).map(lambda text: b"".join(b"%%%02x" % byte for byte in text))
_plain = st.lists(st.sampled_from(list(_IN_TARGETS)), max_size=12).map(bytes)
_tokens = st.lists(st.sampled_from(list(_TOKEN)), min_size=1, max_size=8).map(bytes)
_values = st.lists(st.sampled_from([*b"\t", *range(32, 127), *range(128, 256)]), max_size=12).map(bytes)
_targets = st.tuples(st.sampled_from([b"", b"http://127.0.0.1", b"HTTP://localhost:1"]), _plain, _escapes, _plain).map(
    lambda parts: parts[0] + b"/" + parts[1] + parts[2] + b"?" + parts[3]
)
_odd = st.tuples(st.sampled_from([b"GET", b"POST", b"PUT"]) | _tokens, _targets, _tokens, _values)
WELL_FORMED = st.one_of(
    _odd.filter(lambda parts: parts[0] not in {b"CONNECT", b"HEAD"}).map(
        lambda parts: request(parts[0] + b" " + parts[1] + b" HTTP/1.1", b"X-" + parts[2] + b": " + parts[3] + b"\r\n")
    ),
    st.sampled_from(
        [
            request(b"OPTIONS * HTTP/1.1"),
            request(lines=b"X-Folded: a\r\n b\r\n"),
            _post(b"Content-Length: 2\r\nContent-Length: 2\r\n", b"ab"),
            _chunks(b"2;name=value\r\nab\r\n0\r\nX-Trailer: x\r\n\r\n"),
            request(lines=b"X-Long: " + b"x" * 60_000 + b"\r\n"),
            request(lines=b"a:\r\n" * 13_000),
            request().replace(b"\r\n", b"\n"),
        ]
    ),
)
"""Requests that are HTTP/1.1, most of them for nothing that is served."""
