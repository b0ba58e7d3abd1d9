"""Plain requests are read and answered as h11 does it; whatever is not plain is left to h11."""

import re
import socket
from urllib.parse import unquote

import h11
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bezel_localcloud.http.plain_requests import plain_request
from bezel_localcloud.http.serving import well_formed
from localcloud_support.malformed_requests import MALFORMED, WELL_FORMED
from localcloud_support.served_port import ServedPort

PLAIN = b"GET /storage/v1/b/x/o/a%2Fb?alt=media HTTP/1.1\r\nHost: 127.0.0.1:80\r\n"
CLOSE = b"Connection: close\r\n"
_DATE = re.compile(rb"date: [^\r]*\r\n")
CLIENTS = {
    "curl": PLAIN + b"User-Agent: curl/8.9\r\nAccept: */*\r\n\r\n",
    "requests": PLAIN + b"Connection: keep-alive\r\nAccept-Encoding: gzip, deflate\r\nx-goog-api-client: a/1\r\n\r\n",
    "Go": b"POST /token HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\nContent-Type: a/b\r\n\r\na=b",
    "node": b"PUT /b/o HTTP/1.1\r\ncontent-length: 0\r\nHost: localhost:1\r\nConnection: Keep-Alive\r\n\r\n",
}
_POST = PLAIN.replace(b"GET", b"POST", 1)
OTHERS = {
    "a head without its end": PLAIN,
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": PLAIN + b"Host: localhost\r\n\r\n",
    "a host around a name": b"GET / HTTP/1.1\r\nHost: user@localhost\r\n\r\n",
    "the end of the connection": PLAIN + CLOSE + b"\r\n",
    "two wishes for the connection": PLAIN + b"Connection: keep-alive\r\nConnection: close\r\n\r\n",
    "an upgrade": PLAIN + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    "a body that waits": _POST + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n",
    "chunks": _POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": _POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc",
    "a signed length": _POST + b"Content-Length: +2\r\n\r\nab",
    "a length of many digits": _POST + b"Content-Length: " + b"9" * 19 + b"\r\n\r\n",
    "an older version": b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n",
    "a whole URL": b"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "another method": b"OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a folded line": PLAIN + b"X-Folded: a\r\n b\r\n\r\n",
    "line feeds alone": PLAIN.replace(b"\r\n", b"\n") + b"\n",
    "a broken escape": b"GET /%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long head": PLAIN + b"X: " + b"x" * (16 << 10) + b"\r\n\r\n",
    "a byte of control": PLAIN + b"X: a\x00b\r\n\r\n",
    "a blank before the colon": PLAIN + b"X : a\r\n\r\n",
}


def of_h11(data):
    """(method, path, query, headers) of a request as h11 and the check behind it read it; None for a refused one."""
    connection = h11.Connection(h11.SERVER, 64 << 10)
    connection.receive_data(data)
    try:
        event = connection.next_event()
    except h11.RemoteProtocolError:
        return None
    if not isinstance(event, h11.Request):
        return None
    path, _, query = event.target.partition(b"?")
    scope = {"headers": [(name.lower(), value) for name, value in event.headers], "raw_path": path}
    scope |= {"http_version": event.http_version.decode(), "method": event.method.decode(), "query_string": query}
    scope |= {"path": unquote(path.decode())}
    checked = well_formed(scope)
    return checked and (checked["method"], checked["raw_path"], checked["query_string"], checked["headers"])


@pytest.mark.parametrize("client", CLIENTS)
def test_a_request_of_a_client_is_plain(client):
    data = CLIENTS[client]
    request = plain_request(data)
    assert (request.method, request.path, request.query, request.headers) == of_h11(data)
    assert data[request.end :] == {"Go": b"a=b"}.get(client, b"")
    assert request.length == len(data) - request.end


@pytest.mark.parametrize("kind", OTHERS)
def test_another_request_is_left_to_h11(kind):
    assert plain_request(OTHERS[kind]) is None


_heads = st.one_of(*MALFORMED.values(), WELL_FORMED).map(lambda data: data.replace(CLOSE, b""))
_changed = st.tuples(st.sampled_from(sorted(CLIENTS.values())), st.integers(0, 200), st.binary(max_size=3)).map(
    lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] :]
)


@pytest.mark.slow
@settings(max_examples=400, suppress_health_check=[HealthCheck.too_slow])
@given(_heads | _changed)
@example(PLAIN + b"X: \t a \xff \t\r\n\r\n")
@example(PLAIN + b"X:\r\nx: b\r\n\r\n")
def test_what_is_plain_is_read_as_h11_reads_it(data):
    request = plain_request(data)
    if request is not None:
        assert (request.method, request.path, request.query, request.headers) == of_h11(data)


class Answering(ServedPort):
    """A port whose application sends what a test sets."""

    def __init__(self):
        self.messages = []
        super().__init__()

    async def app(self, _scope, receive, send):
        while (await receive()).get("more_body"):
            pass
        for message in self.messages:
            if isinstance(message, Exception):
                raise message
            await send(message)


@pytest.fixture(scope="module")
def answering():
    port = Answering()
    yield port
    port.close()


def start(status, *headers):
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(content=b"", *, more=False):
    return {"type": "http.response.body", "body": content, "more_body": more}


def answer(port, content):
    """All that comes back until the connection ends, without the times."""
    with socket.create_connection(("127.0.0.1", port), 20) as connection:
        connection.sendall(content)
        response = b""
        while piece := connection.recv(65536):
            response += piece
        return _DATE.sub(b"", response)


LENGTH = (b"content-length", b"5")
ANSWERS = {
    "a body of a length": [start(200, LENGTH), body(b"hello")],
    "a body in pieces": [start(200, LENGTH), body(b"hel", more=True), body(b"lo")],
    "a large body": [start(200, (b"content-length", b"300000")), body(b"x" * 300_000)],
    "a stream": [start(200), body(b"hello", more=True), body(b"", more=True), body(b"you", more=True), body()],
    "a response passed on": [start(200, (b"Transfer-Encoding", b"chunked"), LENGTH), body(b"hello")],
    "nothing": [start(204, (b"x-empty", b"")), body()],
    "not modified": [start(304), body()],
    "an empty body": [start(404, (b"content-length", b"0")), body()],
    "another case": [start(200, (b"Content-Length", b"5"), (b"X-Name", b"\xc3\xa9 b")), body(b"hello")],
}


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("method", [b"GET", b"HEAD"])
def test_a_plain_request_is_answered_as_h11_does_it(answering, method, kind):
    answering.messages = ANSWERS[kind]
    plain = PLAIN.replace(b"GET", method, 1) + b"\r\n"
    last = PLAIN.replace(b"GET", method, 1) + CLOSE + b"\r\n"  # read by h11
    assert plain_request(plain) is not None
    assert plain_request(last) is None
    once = answer(answering.port, last)
    assert answer(answering.port, plain + plain + last) == once.replace(CLOSE, b"") * 2 + once


FAILURES = {
    "too little": [start(200, LENGTH), body(b"hell")],
    "too much": [start(200, LENGTH), body(b"hello you")],
    "too much in pieces": [start(200, LENGTH), body(b"hel", more=True), body(b"lo you")],
    "no body": [start(200, LENGTH)],
    "no end": [start(200), body(b"hello", more=True)],
    "a failure after the head": [start(200, LENGTH), OSError("gone")],
    "a failure within a body": [start(200, LENGTH), body(b"hel", more=True), OSError("gone")],
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_plain_response_that_fails_is_cut_off_as_h11_does_it(answering, kind):
    answering.messages = FAILURES[kind]
    response = answer(answering.port, PLAIN + b"\r\n")
    assert response == answer(answering.port, PLAIN + CLOSE + b"\r\n").replace(CLOSE, b"")
    assert response.startswith(b"HTTP/1.1 200 OK\r\n")


BROKEN = {
    "a line break in a header": [start(200, LENGTH, (b"x-name", b"a\r\nb: c")), body(b"hello")],
    "a header's name": [start(200, LENGTH, (b"a b", b"c")), body(b"hello")],
    "a blank around a value": [start(200, LENGTH, (b"x-name", b" a")), body(b"hello")],
    "no answer": [],
    "a body without a head": [body(b"hello")],
    "a failure before the head": [OSError("gone")],
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_response_becomes_an_error(answering, kind):
    answering.messages = BROKEN[kind]
    response = answer(answering.port, PLAIN + b"\r\n")
    assert response.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert b"b: c" not in response


def test_a_response_may_end_its_connection(answering):
    answering.messages = [start(200, LENGTH, (b"connection", b"close")), body(b"hello")]
    response = answer(answering.port, (PLAIN + b"\r\n") * 2)
    assert response.count(b"HTTP/1.1 200 OK") == 1
    assert response.endswith(b"\r\n\r\nhello")


def test_a_body_that_comes_after_its_head_is_read_whole(served_port):
    served_port.seen.clear()
    content = bytes(range(256)) * 4000
    head = b"POST /a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n" % len(content)
    with socket.create_connection(("127.0.0.1", served_port.port), 20) as connection:
        connection.sendall(head)
        for begin in range(0, len(content), 100_000):
            connection.sendall(content[begin : begin + 100_000])
        connection.sendall(PLAIN + CLOSE + b"\r\n")
        response = b""
        while piece := connection.recv(65536):
            response += piece
    assert response.count(b"HTTP/1.1 200 OK\r\n") == 2
    assert [seen[5] for seen in served_port.seen] == [content, b""]
    assert served_port.errors == []


@pytest.mark.slow
def test_a_client_that_goes_within_a_body_is_seen_as_gone(served_port):
    served_port.seen.clear()
    with socket.create_connection(("127.0.0.1", served_port.port), 20) as connection:
        connection.sendall(b"POST /a HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\nab")
    assert answer(served_port.port, PLAIN + CLOSE + b"\r\n").startswith(b"HTTP/1.1 200 OK")
    assert [seen[0] for seen in served_port.seen] == ["GET"]
    assert served_port.errors == []
