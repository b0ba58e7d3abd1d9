"""Requests that try to get past the door: none reaches the server, or only as what was judged; each has its answer."""

import asyncio
import json

import pytest

from bezel_door.accounts import guesses
from bezel_door.key_file import create_key_text
from door_support.running import CHAT, read_answer, running_door

BODY = b'{"model":"gemma","messages":[]}'
FOREIGN = create_key_text()
HOST = "Host: door"
JSON = "Content-Type: application/json"


def request(*lines, line=f"POST {CHAT} HTTP/1.1", body=BODY, length=True):
    framing = [f"Content-Length: {len(body)}"] if length else []
    return "\r\n".join([line, *lines, *framing, "", ""]).encode("latin-1") + body


def bearer(key):
    return f"Authorization: Bearer {key}"


def path(target, method="POST"):
    return lambda key: request(HOST, JSON, bearer(key), line=f"{method} {target} HTTP/1.1")


def lines(*more, **named):
    return lambda key: request(HOST, JSON, *(each.replace("KEY", key) for each in more), **named)


KEYS = {
    "no key": (lines(), 401),
    "an empty key": (lines("Authorization: Bearer "), 401),
    "an unknown key": (lines(bearer(FOREIGN)), 401),
    "another key's secret": (lambda key: request(HOST, JSON, bearer(key[:15] + FOREIGN[15:])), 401),
    "another key's id": (lambda key: request(HOST, JSON, bearer(FOREIGN[:15] + key[15:])), 401),
    "a part of the key": (lambda key: request(HOST, JSON, bearer(key[:-1])), 401),
    "the key twice in one header": (lines("Authorization: Bearer KEY, Bearer KEY"), 401),
    "the key with a space inside": (lines("Authorization: Bearer KEY x"), 401),
    "the key in capitals": (lambda key: request(HOST, JSON, bearer(key.upper())), 401),
    "another scheme": (lines("Authorization: Basic KEY"), 401),
    "a key in bytes beyond ASCII": (lines("Authorization: Bearer KEY\xe9"), 401),
    "two lines of Authorization": (lines("Authorization: Bearer KEY", "Authorization: Bearer KEY"), 400),
    "two lines that differ": (lines("Authorization: Bearer KEY", f"authorization: Bearer {FOREIGN}"), 400),
    "two lines of x-api-key": (lines("x-api-key: KEY", "X-Api-Key: KEY"), 400),
    "two headers that differ": (lines("Authorization: Bearer KEY", f"x-api-key: {FOREIGN}"), 400),
    "a right one beside an empty one": (lines("x-api-key: KEY", "api-key:"), 400),
    "X-Serverless-Authorization alone": (lines("X-Serverless-Authorization: Bearer KEY"), 401),
    "Proxy-Authorization alone": (lines("Proxy-Authorization: Bearer KEY"), 401),
    "a cookie": (lines("Cookie: key=KEY"), 401),
    "the key in the query": (
        lambda key: request(HOST, JSON, line=f"POST {CHAT}?key={key}&api_key={key} HTTP/1.1"),
        401,
    ),
    "the key in the body": (lambda key: request(HOST, JSON, body=json.dumps({"api_key": key}).encode()), 401),
    "an identity of Google's": (lines("Authorization: Bearer eyJhbGciOiJSUzI1NiJ9.e30.sig"), 401),
    "an underscore for a hyphen": (lines("x_api_key: KEY"), 401),
}
PATHS = {
    f"path {target}": (path(target), 404)
    for target in (
        "/", "/v1", "/v1/", f"{CHAT}/", f"/{CHAT}", "/v1//chat/completions", "/v1/./chat/completions",
        "/v1/models/../chat/completions", "/v1/chat%2fcompletions", "/v1/chat/completions%00", f"{CHAT};x",
        "/V1/chat/completions", "/metrics", "/load", "/version", "/health", "/invocations", "/openapi.json", "/docs",
        "/v1/load_lora_adapter", "/v1/unload_lora_adapter", "/v1/responses/resp_1", "/v1/chat/completions/batch",
        "/reset_prefix_cache", "/sleep", "/collective_rpc", "/scale_elastic_ep", "/v1/audio/transcriptions",
        "http://llm.example/v1/chat/completions", "*", f"{CHAT}#x", "/door/..",
    )
}  # fmt: skip
PATHS |= {
    "GET of a path for POST": (path(CHAT, "GET"), 405),
    "POST of a path for GET": (path("/v1/models"), 405),
    "DELETE": (path("/v1/models", "DELETE"), 405),
    "CONNECT": (lambda _: request(HOST, line="CONNECT llm.example:443 HTTP/1.1"), 404),
    "a probe's path with more": (path("/door/x"), 404),
}
SMUGGLED = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"
FRAMING = {
    "two lengths": (lines("Authorization: Bearer KEY", "Content-Length: 0"), 400),
    "the same length twice": (lines("Authorization: Bearer KEY", f"Content-Length: {len(BODY)}"), 400),
    "a list of lengths": (lines("Authorization: Bearer KEY", "Content-Length: 5, 5", length=False), 400),
    "a length with a sign": (lines("Authorization: Bearer KEY", "Content-Length: +5", length=False), 400),
    "a negative length": (lines("Authorization: Bearer KEY", "Content-Length: -5", length=False), 400),
    "a length in hexadecimal": (lines("Authorization: Bearer KEY", "Content-Length: 0x5", length=False), 400),
    "length and chunks": (lines("Authorization: Bearer KEY", "Transfer-Encoding: chunked"), 400),
    "chunks twice": (lines("Authorization: Bearer KEY", "Transfer-Encoding: chunked, chunked", length=False), 501),
    "another coding": (lines("Authorization: Bearer KEY", "Transfer-Encoding: gzip, chunked", length=False), 501),
    "a coding in disguise": (lines("Authorization: Bearer KEY", "Transfer-Encoding: xchunked", length=False), 501),
    "two codings": (
        lines("Authorization: Bearer KEY", "Transfer-Encoding: chunked", "Transfer-Encoding: x", length=False),
        400,
    ),
    "a space before the colon": (lines("Authorization: Bearer KEY", "Content-Length : 5", length=False), 400),
    "a folded line": (lines("Authorization: Bearer KEY", "X-A: b\r\n folded"), 400),
    "a bare LF in a header": (lines("Authorization: Bearer KEY", "X-A: b\nTransfer-Encoding: chunked"), 400),
    "a bare CR in a header": (lines("Authorization: Bearer KEY", "X-A: b\rX-B: c"), 400),
    "a NUL in a header": (lines("Authorization: Bearer KEY", "X-A: b\0c"), 400),
    "a header without a name": (lines("Authorization: Bearer KEY", ": b"), 400),
    "a header without a colon": (lines("Authorization: Bearer KEY", "X-A"), 400),
    "no Host": (lambda key: request(JSON, bearer(key)), 400),
    "two Hosts": (lines("Host: other", "Authorization: Bearer KEY"), 400),
    "HTTP/1.0": (lambda key: request(HOST, bearer(key), line=f"POST {CHAT} HTTP/1.0"), 505),
    "HTTP/0.9": (lambda _: b"GET /v1/models\r\n\r\n", 400),
    "HTTP/2's preface": (lambda _: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "TLS": (lambda _: b"\x16\x03\x01\x02\x00\r\n\r\n", 400),
    "lines that end with LF": (lambda key: request(HOST, bearer(key)).replace(b"\r\n", b"\n"), 400),
    "a tab in the first line": (lambda key: request(HOST, bearer(key), line=f"POST\t{CHAT} HTTP/1.1"), 400),
    "a space in the path": (lambda key: request(HOST, bearer(key), line=f"POST {CHAT} x HTTP/1.1"), 400),
    "a head of more than 64 KiB": (lines("Authorization: Bearer KEY", "X-A: " + "a" * 66_000), 431),
    "too many headers": (lines("Authorization: Bearer KEY", *["X-A: b"] * 300), 431),
    "a body of more than 32 MiB": (
        lines("Authorization: Bearer KEY", f"Content-Length: {2**25 + 1}", length=False),
        413,
    ),
    "a body to GET": (path("/v1/models", "GET"), 400),
}
CHUNKED = {
    "a size with an extension": b"5;a=b\r\nhello\r\n0\r\n\r\n",
    "a size with a sign": b"+5\r\nhello\r\n0\r\n\r\n",
    "a size with 0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "a size with a space": b"5 \r\nhello\r\n0\r\n\r\n",
    "no size": b"\r\nhello\r\n0\r\n\r\n",
    "a size too large": b"fffffffff\r\nhello\r\n0\r\n\r\n",
    "a chunk longer than its size": b"2\r\nhello\r\n0\r\n\r\n",
    "a size that ends with LF": b"5\nhello\r\n0\r\n\r\n",
    "trailers": b"1f\r\n" + BODY + b"\r\n0\r\nAuthorization: Bearer x\r\n\r\n",
}
FRAMING |= {
    f"chunks with {name}": (
        lines("Authorization: Bearer KEY", "Transfer-Encoding: chunked", length=False, body=content), 400
    )
    for name, content in CHUNKED.items()
}  # fmt: skip
DOCUMENTS = {
    name: (lines("Authorization: Bearer KEY", body=content), 400)
    for name, content in {
        "no JSON": b"{",
        "an empty body": b"",
        "a list": b"[1]",
        "a text": b'"gemma"',
        "JSON that nests deeply": b'{"a":' + b"[" * 100_000,
        "a number of many digits": b'{"a":' + b"1" * 5000 + b"}",
        "too many values": b'{"a":[' + b"0," * 1_000_001 + b"0]}",
        "a number for stream": b'{"model":"gemma","stream":1}',
        "a text for stream": b'{"model":"gemma","stream":"yes"}',
        "bytes that are no UTF-8": b'{"a":"\xff\xfe\xfd"}',
    }.items()
}
DOCUMENTS |= {
    "a form": (lambda key: request(HOST, bearer(key), "Content-Type: application/x-www-form-urlencoded"), 415),
    "no media type": (lambda key: request(HOST, bearer(key)), 415),
    "two media types": (lines("Authorization: Bearer KEY", "Content-Type: text/plain"), 400),
}
ATTACKS = KEYS | PATHS | FRAMING | DOCUMENTS


async def refuse(received):
    await received.answer(200, {"reached": received.line})


def run(steps, **limits):
    async def inside():
        async with running_door(refuse, **limits) as door:
            return await asyncio.wait_for(steps(door), 60)

    return asyncio.run(inside())


async def status(door, data):
    reader, writer = await door.connect()
    writer.write(data)
    try:
        return (await read_answer(reader)).status
    finally:
        writer.close()


def test_no_attack_reaches_the_server_and_each_has_its_answer():
    async def steps(door):
        statuses = {name: await status(door, make(door.key)) for name, (make, _) in ATTACKS.items()}
        reached = [received.line for received in door.received]
        usage = await door.usage()
        return statuses, reached, usage.requests

    assert len(ATTACKS) >= 100
    statuses, reached, requests = run(steps)
    assert {name: each for name, each in statuses.items() if each != ATTACKS[name][1]} == {}
    assert (reached, requests) == ([], 0)


@pytest.mark.parametrize(
    "head",
    [
        f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
    ],
)
def test_nothing_is_read_as_a_request_behind_a_malformed_one(head):
    async def steps(door):
        data = await door.raw(head.encode() + door.head("/v1/models", method="GET"))
        return data.count(b"HTTP/1.1 "), door.received

    assert run(steps) == (1, [])


def test_a_request_within_a_body_is_a_body():
    async def steps(door):
        inner = door.head("/v1/models", method="GET")
        data = await door.raw(door.head(length=len(inner), headers=["Connection: close"]) + inner)
        return data.count(b"HTTP/1.1 "), b" 400 " in data, door.received

    assert run(steps) == (1, True, [])


def test_the_server_reads_the_document_that_was_judged():
    async def steps(door):
        body = b'{"model":"other","model":"gemma","messages":[],"x":1e400,"stream":false}'
        lines = door.head(length=len(body))
        await status(door, lines + body)
        refused = await status(door, door.head(length=33) + b'{"model":"gemma","model":"other"}')
        return refused, door.received[0].body, len(door.received)

    refused, body, received = run(steps, models=("gemma",))
    assert (refused, received) == (403, 1)
    assert body.count(b'"model"') == 1
    assert b'"gemma"' in body


def test_a_key_that_was_revoked_is_refused_and_replays_with_it():
    async def steps(door):
        request_bytes = door.head(length=len(BODY)) + BODY
        before = await status(door, request_bytes)
        door.set_keys(revoked=door.keys[door.key[6:14]].created)
        door.later += 6
        first = await status(door, request_bytes)  # admitted by keys of 6 s ago, which are read again beside it
        await asyncio.sleep(0)
        door.later += 10
        later = await status(door, request_bytes)
        return before, first in (200, 401), later, len(door.received) <= 2

    assert run(steps) == (200, True, 401, True)


def test_many_wrong_keys_of_one_address_are_refused_and_a_right_one_not():
    async def steps(door):
        wrong = [await door.ask(key=FOREIGN) for _ in range(guesses.MOST_A_MINUTE + 3)]
        right = await door.ask()
        lines = [line for line in door.lines if line.get("status") in (401, 429)]
        return [answer.status for answer in wrong], wrong[-1].headers, right.status, len(lines)

    statuses, headers, right, lines = run(steps)
    assert statuses == [401] * guesses.MOST_A_MINUTE + [429] * 3
    assert 1 <= int(headers["retry-after"]) <= 60
    assert (right, lines) == (200, guesses.MOST_A_MINUTE + 3)


def test_streams_dropped_at_once_are_counted_and_reach_the_limit():
    async def silent(received):
        await received.answer(200, b"", b"") if received.line.startswith("GET") else await received.reader.read(1)

    async def steps(door):
        body = json.dumps({"model": "gemma", "messages": [{"content": "x" * 400}], "stream": True}).encode()
        for number in range(1, 4):
            _, writer = await door.connect()
            writer.write(door.head(length=len(body)) + body)
            await door.wait(lambda number=number: len(door.received) == number)
            writer.close()
            await door.wait(lambda number=number: door.count_of_lines(CHAT) == number)
        refused = await door.ask()
        return refused.status, await door.usage()

    async def inside():
        async with running_door(silent, tokens_per_day=300) as door:
            return await asyncio.wait_for(steps(door), 60)

    refused, usage = asyncio.run(inside())
    assert refused == 429
    assert (usage.requests, usage.estimated_requests, usage.prompt_tokens) == (3, 3, 300)
