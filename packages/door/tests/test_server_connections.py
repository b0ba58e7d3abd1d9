"""Connections to the server: whose answer is whose, what is reused, and what is never sent again."""

import asyncio
import ssl

import pytest

from bezel_door.http1.client import BrokenError, ServerConnections, UnreachableError, address_of, place_of
from bezel_door.main import Door, VariableError
from bezel_door.request_log import RequestLog

HEADERS = [(b"host", b"server")]


def run(answer, steps):
    """Steps with the connections to a server that answers by a function of the request's target."""

    async def accept(reader, writer):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                content = answer(head.split(b" ")[1])
                if content is None:
                    break
                writer.write(content)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def inside():
        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            return await asyncio.wait_for(steps(ServerConnections(url, ssl.create_default_context())), 60)
        finally:
            server.close()

    return asyncio.run(inside())


def with_length(body, *lines):
    return b"\r\n".join([b"HTTP/1.1 200 OK", *lines, b"content-length: %d" % len(body), b"", b""]) + body


async def body_of(answer):
    pieces = []
    await answer.relay(pieces.append)
    return b"".join(pieces)


def test_an_answer_stays_its_own_while_its_connection_serves_another():
    async def steps(connections):
        connection = await connections.connection()
        first = connection.send(b"GET", b"/first", HEADERS, b"")
        await first.ended
        again = await connections.connection()
        second = again.send(b"GET", b"/second", HEADERS, b"")
        first.abort()
        await second.ended
        return connection is again, await body_of(first), await body_of(second)

    assert run(with_length, steps) == (True, b"/first", b"/second")


@pytest.mark.parametrize(
    "make",
    [
        lambda target: with_length(target, b"connection: close"),
        lambda target: with_length(target) + b"HTTP/1.1 200 OK\r\n",
        lambda target: b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n" + target[:3] + b"\r\n0\r\n\r\nx",
    ],
)
def test_a_connection_with_more_than_its_answer_is_not_reused(make):
    async def steps(connections):
        connection = await connections.connection()
        answer = connection.send(b"GET", b"/abc", HEADERS, b"")
        body = await body_of(answer)
        return body.startswith(b"/ab"), await connections.connection() is connection

    assert run(make, steps) == (True, False)


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n",
        b"SSH-2.0\r\n\r\n",
    ],
)
def test_an_answer_that_is_not_whole_is_an_error(content):
    calls = []

    def once(target):
        calls.append(target)
        return content if len(calls) == 1 else None

    async def steps(connections):
        connection = await connections.connection()
        answer = connection.send(b"POST", b"/x", HEADERS, b"")
        if content is not None:
            asyncio.get_running_loop().call_later(0.01, lambda: connection._transport.write(b"GET / HTTP/1.1\r\n\r\n"))
        await answer.head
        await body_of(answer)

    with pytest.raises(BrokenError):
        run(once, steps)


def test_an_answer_without_a_length_ends_with_its_connection():
    def answer(target):
        return b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\nall" if target == b"/x" else None

    async def steps(connections):
        connection = await connections.connection()
        reply = connection.send(b"GET", b"/x", HEADERS, b"")
        await reply.head
        connection._transport.write(b"GET /end HTTP/1.1\r\n\r\n")
        return await body_of(reply)

    assert run(answer, steps) == b"all"


def test_a_server_that_does_not_listen_is_unreachable():
    async def steps():
        await ServerConnections("http://127.0.0.1:1", ssl.create_default_context()).connection()

    with pytest.raises(UnreachableError):
        asyncio.run(steps())


def test_a_url_is_https_or_of_this_machine():
    address = address_of("https://llm.example/lease/")
    assert (address.host, address.port, address.prefix, address.is_tls) == ("llm.example", 443, b"/lease", True)
    assert address_of("http://127.0.0.1:8000").port == 8000
    for url in ("http://llm.example", "https://user@llm.example", "https://llm.example?x", "ftp://llm.example", ""):
        with pytest.raises(ValueError, match="https URL"):
            address_of(url)


@pytest.mark.parametrize("text", ["127.250.0.2", ":443", "llm.example:", "llm.example:0", "llm.example:65536", "a:٤"])
def test_a_place_has_a_host_and_a_port(text):
    assert place_of("127.250.0.2:443") == ("127.250.0.2", 443)
    with pytest.raises(ValueError, match="HOST:PORT"):
        place_of(text)


def test_a_door_names_each_wrong_variable():
    variables = {"DOOR_UPSTREAM": "http://llm.example", "DOOR_CONNECT_TO": "llm", "DOOR_BUCKET": "acme-door"}
    with pytest.raises(VariableError, match="DOOR_CONNECT_TO: expected HOST:PORT; DOOR_UPSTREAM: expected the https"):
        Door(variables, RequestLog(print))
