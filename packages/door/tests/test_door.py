"""The door with real connections: what passes it, how, and what is counted for a key."""

import asyncio
import json

import pytest

from door_support.running import CHAT, read_answer, running_door

USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
WHOLE = {"id": "c", "choices": [{"index": 0, "message": {"content": "hi"}}], "usage": USAGE}


def chunk(number, usage=None, index=0):
    document = {"id": "c", "choices": [{"index": index, "delta": {"content": f"t{number}"}}]}
    return document | ({"usage": {"prompt_tokens": 7, "completion_tokens": usage}} if usage is not None else {})


async def answer_whole(received):
    await received.answer(200, WHOLE)


async def stream_three(received):
    await received.begin_stream()
    for number in (1, 2, 3):
        await received.event(chunk(number, number))
    await received.event({"id": "c", "choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
    await received.event(b"[DONE]")
    await received.end_stream()


def run(script, steps, **limits):
    async def inside():
        async with running_door(script, **limits) as door:
            return await asyncio.wait_for(steps(door), 60)

    return asyncio.run(inside())


def test_a_request_with_a_key_passes_with_the_identity_of_the_door_alone():
    async def steps(door):
        headers = ["X-Api-Key: " + door.key, "Cookie: a=b", "X-Goog-Iap-Jwt-Assertion: x", "X-Request-Id: r1"]
        answer = await door.ask(f"{CHAT}?key={door.key}", headers=headers)
        usage = await door.usage()
        return door, answer, usage

    door, answer, usage = run(answer_whole, steps)
    received = door.received[0]
    assert (answer.status, answer.document()) == (200, WHOLE)
    assert received.line == f"POST {CHAT} HTTP/1.1"
    assert door.key not in str(received.headers) + received.body.decode()
    assert received.headers["x-serverless-authorization"] == "Bearer header.e30.1"
    assert set(received.headers) == {
        "host",
        "accept-encoding",
        "x-serverless-authorization",
        "content-type",
        "content-length",
        "x-request-id",
    }
    assert door.google.audiences == ["https://llm.example"]
    assert (usage.requests, usage.failures, usage.prompt_tokens, usage.completion_tokens) == (1, 0, 7, 5)
    line = next(line for line in door.lines if line.get("path"))
    assert (line["path"], line["status"], line["prompt_tokens"], line["team"]) == (CHAT, 200, 7, "search")
    assert door.key not in json.dumps(door.lines)


def test_a_stream_passes_as_if_the_door_had_asked_for_nothing():
    async def steps(door):
        answer = await door.ask(document={"model": "gemma", "messages": [], "stream": True})
        return door, answer, await door.usage()

    door, answer, usage = run(stream_three, steps)
    events = [chunk(1), chunk(2), chunk(3)]
    expected = "".join(f"data: {json.dumps(event, separators=(',', ':'))}\n\n" for event in events) + "data: [DONE]\n\n"
    assert answer.body.decode() == expected
    assert door.received[0].document()["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert (usage.prompt_tokens, usage.completion_tokens, usage.estimated_requests) == (7, 3, 0)


@pytest.mark.parametrize(("often", "running"), [(False, None), (True, 1)])
def test_a_stream_has_the_tokens_that_its_caller_asked_for(often, running):
    async def steps(door):
        options = {"include_usage": True, "continuous_usage_stats": often}
        return await door.ask(document={"model": "gemma", "messages": [], "stream": True, "stream_options": options})

    body = run(stream_three, steps).body.decode()
    first, *_, last, done, _ = body.split("\n\n")
    assert (json.loads(first[6:]).get("usage") or {}).get("completion_tokens") == running
    assert json.loads(last[6:])["usage"] == {"prompt_tokens": 7, "completion_tokens": 3}
    assert done == "data: [DONE]"


def test_a_caller_that_hangs_up_is_counted_to_the_last_event():
    ended = asyncio.Event()

    async def endless(received):
        await received.begin_stream()
        for number in range(1, 4):
            await received.event(chunk(number, number))
        assert await received.reader.read(1) == b""
        ended.set()

    async def steps(door):
        reader, writer = await door.connect()
        body = b'{"model": "gemma", "messages": [], "stream": true}'
        writer.write(door.head(length=len(body)) + body)
        await reader.readuntil(b"t3")
        writer.close()
        await asyncio.wait_for(ended.wait(), 60)
        return await door.usage()

    usage = run(endless, steps)
    assert (usage.requests, usage.failures, usage.prompt_tokens, usage.completion_tokens) == (1, 0, 7, 3)
    assert usage.estimated_requests == 0


def test_a_kept_connection_serves_requests_one_after_another():
    async def steps(door):
        reader, writer = await door.connect()
        body = b'{"model": "gemma"}'
        request = door.head(length=len(body)) + body
        writer.write(request * 3)
        answers = [await read_answer(reader) for _ in range(3)]
        writer.close()
        return answers, {received.writer for received in door.received}

    answers, connections = run(answer_whole, steps)
    assert [answer.status for answer in answers] == [200] * 3
    assert len(connections) == 1


def test_a_stream_that_breaks_ends_with_an_error_and_no_end():
    async def break_off(received):
        await received.begin_stream()
        await received.event(chunk(1, 1))
        received.writer.close()

    async def steps(door):
        body = b'{"model": "gemma", "stream": true}'
        return await door.raw(door.head(length=len(body)) + body), await door.usage()

    data, usage = run(break_off, steps)
    assert b'"stream_broken"' in data
    assert not data.endswith(b"0\r\n\r\n")
    assert (usage.failures, usage.completion_tokens) == (1, 1)


@pytest.mark.parametrize(
    ("status", "code", "wait", "is_counted"),
    [(429, "no_instance", "10", False), (502, "connection_lost", None, True), (403, "service_refused", None, False)],
)
def test_a_page_names_what_the_platform_did(status, code, wait, is_counted):
    async def page(received):
        await received.answer(status, b"<html></html>", b"content-type: text/html\r\n")

    async def steps(door):
        return await door.ask(), await door.usage()

    answer, usage = run(page, steps)
    assert (answer.document()["error"]["code"], answer.headers.get("retry-after")) == (code, wait)
    assert (usage.estimated_requests, usage.failures) == (is_counted, 1)


def test_a_page_of_the_platform_becomes_an_error_of_the_door():
    async def page(received):
        await received.answer(429, b"<html>no instance</html>", b"content-type: text/html\r\n")

    async def steps(door):
        answer = await door.ask("/v1/messages")
        return answer, await door.usage()

    answer, usage = run(page, steps)
    assert (answer.status, answer.document()["error"]["type"]) == (503, "overloaded_error")
    assert (answer.headers["retry-after"], usage.failures, usage.prompt_tokens) == ("10", 1, 0)


def test_a_server_that_does_not_listen_is_named_in_the_log():
    async def steps(door):
        door.upstream.close()
        return (await door.ask()).document()["error"]["code"], [line["message"] for line in door.lines]

    code, lines = run(None, steps)
    assert code == "service_unreachable"
    assert "the server cannot be reached: ConnectionRefusedError" in lines


def test_an_identity_that_is_refused_is_renewed_once():
    async def refuse_first(received):
        if received.headers["x-serverless-authorization"].endswith(".1"):
            await received.answer(401, b"<html></html>", b"content-type: text/html\r\n")
        else:
            await received.answer(200, WHOLE)

    async def steps(door):
        return (await door.ask()).status, len(door.received)

    assert run(refuse_first, steps) == (200, 2)


@pytest.mark.parametrize(
    ("limits", "code", "unit"),
    [
        ({"requests_per_minute": 2}, 429, "requests"),
        ({"tokens_per_minute": 20}, 429, "tokens"),
        ({"tokens_per_day": 20}, 429, "tokens"),
    ],
)
def test_a_limit_refuses_the_request_after_it_is_reached(limits, code, unit):
    async def steps(door):
        answers = [await door.ask() for _ in range(3)]
        return answers, await door.usage(), door.keys, next(line for line in door.lines if line.get("status") == 429)

    answers, usage, keys, line = run(answer_whole, steps, **limits)
    assert [answer.status for answer in answers] == [200, 200, code]
    assert answers[2].document()["error"]["type"] == unit
    assert int(answers[2].headers["retry-after"]) >= 1
    assert (usage.requests, usage.refused) == (2, 1)
    assert line["key"] == next(iter(keys))


def test_a_key_for_some_models_is_refused_for_others():
    async def steps(door):
        return [(await door.ask(document={"model": name})).status for name in ("gemma", "other")], len(door.received)

    assert run(answer_whole, steps, models=("gemma",)) == ([200, 403], 1)


def test_answers_of_many_requests_at_once_reach_their_own_callers():
    async def echo(received):
        await received.answer(200, {"number": received.document()["number"]})

    async def steps(door):
        async def ask(number):
            return (await door.ask(document={"model": "gemma", "number": number})).document()["number"]

        return await asyncio.gather(*map(ask, range(20)))

    assert run(echo, steps) == list(range(20))


def test_the_probe_passes_once_the_keys_were_read():
    async def steps(door):
        reader, writer = await door.connect()
        writer.write(b"GET /door HTTP/1.1\r\nHost: x\r\n\r\n")
        ready = await read_answer(reader)
        door.google.is_down = True
        door.later += 400
        writer.write(b"GET /door HTTP/1.1\r\nHost: x\r\n\r\n")
        down = await read_answer(reader)
        writer.close()
        door.google.is_down = False
        return ready.status, down.status, down.code

    assert run(answer_whole, steps) == (200, 503, "keys_unavailable")


def test_models_are_listed_without_a_body_and_count_a_request_only():
    async def steps(door):
        answer = await door.ask("/v1/models?limit=1", method="GET")
        return answer.status, door.received[0].line, await door.usage()

    status, line, usage = run(answer_whole, steps)
    assert (status, line) == (200, "GET /v1/models HTTP/1.1")
    assert (usage.requests, usage.prompt_tokens, usage.estimated_requests) == (1, 0, 0)


def test_a_chunked_body_arrives_with_its_length():
    async def steps(door):
        reader, writer = await door.connect()
        lines = ["Transfer-Encoding: chunked", "Content-Type: application/json", "Expect: 100-continue"]
        writer.write(door.head(headers=lines))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        for piece in (b'6\r\n{"mode', b"\r\n", b'a\r\nl":"gemma"\r\n1\r\n}\r', b"\n0\r\n\r", b"\n"):
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        answer = await read_answer(reader)
        writer.close()
        return answer.status, door.received[0].body, door.received[0].headers["content-length"]

    assert run(answer_whole, steps) == (200, b'{"model":"gemma"}', "17")


def test_a_caller_that_does_not_read_stops_the_server():
    sent = []

    async def endless(received):
        await received.begin_stream()
        while True:
            await received.event({"choices": [{"index": 0, "delta": {"content": "x" * 60_000}}]})
            sent.append(60_000)

    async def steps(door):
        reader, writer = await door.connect()
        body = b'{"model": "gemma", "stream": true}'
        writer.write(door.head(length=len(body)) + body)
        await reader.readuntil(b"delta")
        before, still = -1, 0
        while still < 2000:  # turns of the loop in which nothing was sent
            still = still + 1 if len(sent) == before else 0
            before = len(sent)
            await asyncio.sleep(0)
        writer.transport.abort()
        return sum(sent)

    assert run(endless, steps) < 16_000_000


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_errors_of_the_server_pass_unchanged(path):
    error = {"error": {"message": "no such model", "type": "NotFoundError", "code": 404}}

    async def refuse(received):
        await received.answer(404, error)

    async def steps(door):
        answer = await door.ask(path)
        return answer.status, answer.document(), (await door.usage()).failures

    assert run(refuse, steps) == (404, error, 1)


def test_the_end_of_the_door_lets_a_stream_finish_and_counts_it():
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(received):
        await received.begin_stream()
        await received.event(chunk(1, 1))
        begun.set()
        await go.wait()
        await received.event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}})
        await received.event(b"[DONE]")
        await received.end_stream()

    async def steps(door):
        asked = asyncio.create_task(door.ask(document={"model": "gemma", "stream": True}))
        await begun.wait()
        door.stop.set()
        await door.wait(lambda: door.google.requests[-1].startswith("POST"))
        go.set()
        return (await asked).body.endswith(b"[DONE]\n\n"), await door.usage()

    whole, usage = run(slow, steps)
    assert whole
    assert (usage.requests, usage.completion_tokens) == (1, 2)
