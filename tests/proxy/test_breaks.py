"""Breaks between the proxy and the service: repeated where that is safe, reported to the client where it is not."""

import asyncio
import json
import time
from collections.abc import Callable

import httpx
import pytest

from bezel.proxy.request_body import KEPT
from tests.support.proxy.running import CHAT, Exchange, Proxy, running_proxy

pytestmark = pytest.mark.slow

ANSWER = b'{"id":"cmpl-1","choices":[]}'
NO_INSTANCE = b"<html><title>503</title><h1>Error</h1><h2>The service you requested is not available yet.</h2></html>"
BROKEN = b"<html><h1>Error</h1><h2>upstream connect error or disconnect/reset before headers</h2></html>"
HTML = b"content-type: text/html\r\n"


def kind_of(answer: httpx.Response) -> str:
    error = answer.json()["error"]
    assert "Repair:" in error["message"]
    return str(error["code"])


async def broken_stream(proxy: Proxy, at_each: Callable[[], None] = lambda: None) -> bytes:
    """What arrives of a stream whose connection is cut within the framing, as a client can see."""
    body = b""
    async with proxy.client.stream("POST", CHAT, content=b"{}") as answer:
        try:
            async for piece in answer.aiter_raw():
                body += piece
                at_each()
        except httpx.RemoteProtocolError:
            return body
    raise AssertionError("the stream ended as if it were complete")


@pytest.mark.parametrize(("status", "page"), [(503, NO_INSTANCE), (429, b"Rate exceeded.")])
def test_a_request_for_which_the_platform_has_no_instance_is_sent_again(status, page):
    async def run() -> None:
        async def third_time(exchange: Exchange) -> None:
            assert await exchange.body() == b"the body"
            if len(proxy.received) < 3:
                await exchange.answer(status, page, HTML)
            else:
                await exchange.answer(200, ANSWER)

        async with running_proxy(third_time) as proxy:
            answer = await proxy.post(b"the body")
        assert answer.content == ANSWER
        assert "2 repeated" in proxy.lines[0]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "page", "kind"),
    [
        (503, BROKEN, "lost"),
        (403, b"<h1>Forbidden</h1>", "rights"),
        (404, b"<h1>Page not found</h1>", "no_service"),
        (504, b"upstream request timeout", "timeout"),
        (500, b"<h1>Server Error</h1>", "internal"),
    ],
)
def test_any_other_error_page_is_reported_with_its_status_and_not_repeated(status, page, kind):
    async def run() -> None:
        async def refuse(exchange: Exchange) -> None:
            await exchange.body()
            await exchange.answer(status, page, HTML)

        async with running_proxy(refuse) as proxy:
            answer = await proxy.post()
        assert (answer.status_code, kind_of(answer), len(proxy.received)) == (status, kind, 1)

    asyncio.run(run())


def test_a_request_larger_than_what_is_kept_is_sent_once():
    async def run() -> None:
        async def refuse(exchange: Exchange) -> None:
            assert len(await exchange.body()) == KEPT + 1
            await exchange.answer(503, NO_INSTANCE, HTML)

        async with running_proxy(refuse) as proxy:
            answer = await proxy.post(b"x" * (KEPT + 1))
        assert (kind_of(answer), len(proxy.received)) == ("not_started", 1)

    asyncio.run(run())


def test_repetitions_end_and_the_client_learns_why():
    async def run() -> None:
        async def refuse(exchange: Exchange) -> None:
            await exchange.body()
            await exchange.answer(503, NO_INSTANCE, HTML)

        async with running_proxy(refuse, wait=0.2) as proxy:
            answer = await proxy.post()
        assert (answer.status_code, kind_of(answer)) == (503, "not_started")
        assert answer.headers["x-should-retry"] == "false"

    asyncio.run(run())


async def respond(exchange: Exchange) -> None:
    await exchange.body()
    await exchange.answer(200, ANSWER)


def test_a_service_that_does_not_listen_for_a_moment_fails_no_request():
    async def run() -> None:
        looks: list[float] = []  # the second one comes when the first attempt was refused
        is_refused = asyncio.Event()

        def clock() -> float:
            looks.append(time.monotonic())
            if len(looks) > 1:
                is_refused.set()
            return looks[-1]

        async with running_proxy(respond, wait=60, clock=clock) as proxy:
            await proxy.service_gone()
            waiting = asyncio.create_task(proxy.post())
            await is_refused.wait()
            await proxy.service_back()
            assert (await waiting).content == ANSWER
        assert "repeated" in proxy.lines[0]

    asyncio.run(run())


def test_a_service_that_does_not_listen_is_reported():
    async def run() -> None:
        async with running_proxy(respond, wait=0.2) as proxy:
            await proxy.service_gone()
            answer = await proxy.post()
        assert (answer.status_code, kind_of(answer)) == (503, "service_unreachable")
        assert f"http://127.0.0.1:{proxy.upstream_port}" in answer.json()["error"]["message"]

    asyncio.run(run())


def test_a_connection_that_breaks_before_the_request_was_sent_is_renewed():
    """A connection that breaks before the whole request was sent is made again."""

    async def run() -> None:
        first = asyncio.Event()

        async def upload():
            yield b"one"
            await asyncio.wait_for(first.wait(), 60)
            yield b"two" * 100_000
            yield b"end"

        async def second_time(exchange: Exchange) -> None:
            if len(proxy.received) == 1:
                await exchange.piece()
                exchange.writer.transport.abort()
                first.set()
                return
            await exchange.body()
            await exchange.answer(200, ANSWER)

        async with running_proxy(second_time) as proxy:
            answer = await proxy.post(upload())
        # Which of the two it is depends on when the reset arrives: a repetition, or the report of a lost request.
        assert answer.content == ANSWER or kind_of(answer) == "connection_lost"

    asyncio.run(run())


def test_a_connection_that_breaks_after_the_request_is_not_repeated():
    """A connection that breaks after the request was sent is reported and not repeated."""

    async def run() -> None:
        async def hang_up(exchange: Exchange) -> None:
            await exchange.body()
            exchange.writer.transport.abort()

        async with running_proxy(hang_up) as proxy:
            answer = await proxy.post()
        assert (answer.status_code, kind_of(answer), len(proxy.received)) == (502, "connection_lost", 1)

    asyncio.run(run())


@pytest.mark.parametrize("half", [b"", b'data: {"half of an ev'])
@pytest.mark.parametrize("clean", [True, False])
def test_a_stream_that_ends_early_ends_with_an_error_and_a_cut(half, clean):
    """A stream that ends before its last event ends with an error and a cut connection."""

    async def run() -> None:
        async def stream(exchange: Exchange) -> None:
            await exchange.body()
            await exchange.begin_stream()
            await exchange.chunk(b"data: {}\n\n" + half)
            if clean:
                await exchange.chunk(b"")
            else:
                exchange.writer.close()
                await exchange.writer.wait_closed()

        async with running_proxy(stream) as proxy:
            body = await broken_stream(proxy)
        first, last, _ = body.split(b"\n\n")
        assert first == b"data: {}"
        assert json.loads(last.removeprefix(b"data: "))["error"]["code"] == "stream_broken"
        assert "stream_broken" in proxy.lines[0]

    asyncio.run(run())


def test_an_answer_that_breaks_midway_is_no_complete_answer():
    async def run() -> None:
        async def half(exchange: Exchange) -> None:
            await exchange.body()
            await exchange.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{")
            await asyncio.sleep(0)
            exchange.writer.close()

        async with running_proxy(half) as proxy:
            with pytest.raises(httpx.RemoteProtocolError):
                await proxy.post()
        assert "stream_broken" in proxy.lines[0]

    asyncio.run(run())


def test_ctrl_c_tells_the_clients_of_running_streams_and_ends():
    async def run() -> None:
        async def stream(exchange: Exchange) -> None:
            await exchange.body()
            await exchange.begin_stream()
            await exchange.chunk(b"data: {}\n\n")
            await exchange.reader.read()

        async with running_proxy(stream) as proxy:
            body = await broken_stream(proxy, proxy.stop.set)
        assert b'"code": "proxy_stopped"' in body

    asyncio.run(run())
