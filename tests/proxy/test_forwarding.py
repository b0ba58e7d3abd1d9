"""Forwarding of requests and answers: nothing is held back, changed or invented, and no secret of the caller passes."""

import asyncio
import json

import pytest

from tests.support.proxy.running import CHAT, Exchange, running_proxy

pytestmark = pytest.mark.slow

ANSWER = b'{"id":"cmpl-1","choices":[]}'


async def respond(exchange: Exchange) -> None:
    await exchange.body()
    await exchange.answer(200, ANSWER)


def test_a_request_reaches_the_service_as_it_is_and_the_answer_comes_back():
    async def run() -> None:
        async def check(exchange: Exchange) -> None:
            assert exchange.line == f"POST {CHAT}?a=b%20c HTTP/1.1"
            assert await exchange.body() == b'{"prompt":"secret of the user"}'
            await exchange.answer(201, ANSWER, b"content-type: application/json\r\nx-request-id: 7\r\n")

        async with running_proxy(check) as proxy:
            url = f"{CHAT}?a=b%20c"
            answer = await proxy.client.post(url, content=b'{"prompt":"secret of the user"}', headers={"x-own": "1"})
        assert (answer.status_code, answer.content, answer.headers["x-request-id"]) == (201, ANSWER, "7")
        assert proxy.received[0].headers["x-own"] == "1"
        assert proxy.received[0].headers["host"] == f"127.0.0.1:{proxy.upstream_port}"
        (line,) = proxy.lines
        assert line.startswith(f"POST {CHAT} 201 ")
        assert "secret" not in line
        assert "a=b" not in line

    asyncio.run(run())


def test_what_a_caller_authorizes_itself_with_is_not_passed_on():
    async def run() -> None:
        names = (
            *("Authorization", "X-Serverless-Authorization", "Proxy-Authorization", "Cookie", "Api-Key", "X-Api-Key"),
            *("X-Goog-Api-Key", "X-Goog-IAP-JWT-Assertion", "X-Forwarded-Authorization", "X-Amz-Security-Token"),
        )
        async with running_proxy(respond) as proxy:
            await proxy.post(headers=dict.fromkeys(names, "Bearer sk-callers-own"))
        headers = proxy.received[0].headers
        assert "sk-callers-own" not in json.dumps(headers)
        assert headers["authorization"] == f"Bearer {proxy.tokens.made[0]}"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("sent", "passed"),
    [
        ("key=k", ""),
        ("access_token=k&stream=true", "?stream=true"),
        ("limit=2&api_key=k&order=asc", "?limit=2&order=asc"),
        ("api%5Fkey=k&api-key=k&API_KEY=k&apiKey", ""),
        ("X-Amz-Signature=k&X-Amz-Date=k&X-Goog-Credential=k&sig=k&token=k", ""),
        ("model=a%26key%3Dk&q=key&&x=1;y=2&empty=&flag", "?model=a%26key%3Dk&q=key&&x=1;y=2&empty=&flag"),
        ("", ""),
    ],
)
def test_a_callers_credentials_in_a_query_stay_here(sent: str, passed: str) -> None:
    async def run() -> None:
        async with running_proxy(respond) as proxy:
            head = f"GET /v1/models?{sent} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            assert (await proxy.raw(head.encode())).startswith(b"HTTP/1.1 200")
        assert proxy.received[0].line == f"GET /v1/models{passed} HTTP/1.1"

    asyncio.run(run())


def test_a_public_service_gets_no_token_at_all():
    async def run() -> None:
        async with running_proxy(respond, token=False) as proxy:
            await proxy.post(headers={"Authorization": "Bearer sk-callers-own"})
        assert "authorization" not in proxy.received[0].headers

    asyncio.run(run())


def test_an_error_of_the_server_is_passed_on_as_it_is():
    async def run() -> None:
        error = b'{"error":{"message":"The model `nope` does not exist.","type":"NotFoundError","code":404}}'

        async def refuse(exchange: Exchange) -> None:
            await exchange.body()
            await exchange.answer(404, error)

        async with running_proxy(refuse) as proxy:
            answer = await proxy.post()
        assert (answer.status_code, answer.content) == (404, error)
        assert len(proxy.received) == 1

    asyncio.run(run())


def test_each_event_of_a_stream_arrives_before_the_next_is_sent():
    """The server sends one only when the client has the one before it: any buffer in between would wait forever."""

    async def run() -> None:
        arrived = asyncio.Event()

        async def stream(exchange: Exchange) -> None:
            await exchange.body()
            await exchange.begin_stream()
            for number in range(3):
                await exchange.chunk(b'data: {"n":%d}\n\n' % number)
                await asyncio.wait_for(arrived.wait(), 60)
                arrived.clear()
            await exchange.chunk(b"data: [DONE]\n\n")
            await exchange.chunk(b"")

        async with running_proxy(stream) as proxy, proxy.client.stream("POST", CHAT, content=b"{}") as answer:
            pieces = []
            async for piece in answer.aiter_raw():
                pieces.append(piece)
                arrived.set()
        assert pieces == [b'data: {"n":0}\n\n', b'data: {"n":1}\n\n', b'data: {"n":2}\n\n', b"data: [DONE]\n\n"]

    asyncio.run(run())


def test_each_piece_of_an_upload_is_passed_on_before_the_next():
    """Each piece of an upload reaches the service before the next is sent."""

    async def run() -> None:
        arrived = asyncio.Event()

        async def upload():
            for number in range(3):
                yield b"piece %d" % number
                await asyncio.wait_for(arrived.wait(), 60)
                arrived.clear()

        async def collect(exchange: Exchange) -> None:
            pieces = []
            while piece := await exchange.piece():
                pieces.append(piece)
                arrived.set()
            await exchange.answer(200, json.dumps([piece.decode() for piece in pieces]).encode())

        async with running_proxy(collect) as proxy:
            answer = await proxy.post(upload())
        assert answer.json() == ["piece 0", "piece 1", "piece 2"]

    asyncio.run(run())


def test_a_client_that_leaves_ends_the_request_at_the_service():
    async def run() -> None:
        left = asyncio.Event()

        async def stream(exchange: Exchange) -> None:
            await exchange.body()
            await exchange.begin_stream()
            await exchange.chunk(b"data: {}\n\n")
            assert await exchange.reader.read() == b""
            left.set()

        async with running_proxy(stream) as proxy:
            async with proxy.client.stream("POST", CHAT, content=b"{}") as answer:
                await anext(answer.aiter_raw())
            await asyncio.wait_for(left.wait(), 60)
        assert "the client closed its connection" in proxy.lines[0]

    asyncio.run(run())


def test_connections_to_the_service_are_used_again():
    async def run() -> None:
        async with running_proxy(respond) as proxy:
            for _ in range(5):
                assert (await proxy.post()).status_code == 200
        assert len({id(exchange.writer) for exchange in proxy.received}) == 1

    asyncio.run(run())
