"""Connections of callers who ask for no body, do not read, announce much, or send their bodies in crumbs."""

import asyncio
import gzip
import json
import socket
import tracemalloc

import pytest

from door_support.running import CHAT, read_answer, running_door

BODY = b'{"model":"gemma","messages":[]}'
MODELS = "/v1/models"


async def answer(received):
    await received.answer(200, {"usage": {"prompt_tokens": 2, "completion_tokens": 1}})


def run(steps, script=answer, **limits):
    async def inside():
        async with running_door(script, **limits) as door:
            return await asyncio.wait_for(steps(door), 60)

    return asyncio.run(inside())


async def turns_without(progress):
    """Let the loop turn until a number has not changed for a while; that number."""
    before, idle = progress(), 0
    while idle < 500:
        await asyncio.sleep(0)
        now = progress()
        before, idle = now, idle + 1 if now == before else 0
    return before


def test_a_response_to_head_has_no_body_that_is_read_as_the_next_response():
    async def steps(door):
        statuses = []
        for path in ("/door", MODELS, "/x", CHAT):
            reader, writer = await door.connect()
            writer.write(door.head(path, method="HEAD") + door.head(MODELS, method="GET"))
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
            statuses.append((int(head.split()[1]), (await read_answer(reader)).status))
            writer.close()
        return statuses

    assert run(steps) == [(200, 200), (405, 200), (404, 200), (405, 200)]


def test_requests_of_a_caller_who_does_not_read_wait_and_none_is_lost():
    async def large(received):
        await received.answer(200, b"x" * 120_000)

    async def steps(door):
        await door.ask(MODELS, method="GET")  # reads keys, and obtains the identity
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", door.port))
        reader, writer = await asyncio.open_connection(sock=sock, limit=2**16)
        writer.transport.pause_reading()
        writer.write(door.head(MODELS, method="GET") * 150)
        served = await turns_without(lambda: len(door.received))
        writer.transport.resume_reading()
        lengths = [len((await read_answer(reader)).body) for _ in range(150)]
        writer.close()
        return served, lengths

    served, lengths = run(steps, large)
    assert 1 < served < 100
    assert lengths == [120_000] * 150


@pytest.mark.parametrize(("events", "estimated"), [(1, 0), (200, 1)])
def test_a_stream_that_its_caller_does_not_read_is_estimated(events, estimated):
    async def stream(received):
        await received.begin_stream()
        usage = {"prompt_tokens": 3, "completion_tokens": 1}
        for _ in range(events):
            await received.event({"choices": [{"index": 0, "text": "x" * 60_000}], "usage": usage})
        await received.reader.read()

    async def steps(door):
        reader, writer = await door.connect()
        body = b'{"model":"gemma","messages":[],"stream":true}'
        writer.write(door.head(length=len(body)) + body)
        await reader.readuntil(b"choices")
        await (turns_without(lambda: 0) if estimated else reader.readuntil(b"}]}"))
        writer.transport.abort()
        await door.wait(lambda: door.count_of_lines(CHAT))
        return (await door.usage()).estimated_requests

    assert run(steps, stream) == estimated


def test_bodies_that_are_only_announced_take_no_memory_from_others():
    async def steps(door):
        announced = [await door.connect() for _ in range(4)]
        for _, writer in announced:
            writer.write(door.head(length=2**25))
        reader, writer = await door.connect()
        writer.write(door.head(length=len(BODY), headers=["Expect: 100-continue"]))
        waits = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        writer.write(BODY)
        status = (await read_answer(reader)).status
        for _, each in (*announced, (reader, writer)):
            each.close()
        return waits, status

    assert run(steps) == (b"HTTP/1.1 100 Continue\r\n\r\n", 200)


def test_a_body_in_small_chunks_takes_the_memory_of_its_content():
    async def steps(door):
        content = json.dumps({"model": "gemma", "messages": [{"content": "x" * 99_951}]}).encode()
        reader, writer = await door.connect()
        writer.write(door.head(headers=["Content-Type: application/json", "Transfer-Encoding: chunked"]))
        chunks = b"".join(b"2\r\n%b\r\n" % content[at : at + 2] for at in range(0, len(content), 2))
        tracemalloc.start()
        for at in range(0, len(chunks), 30_000):
            writer.write(chunks[at : at + 30_000])
            await writer.drain()
        await turns_without(lambda: 0)
        memory, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        writer.write(b"0\r\n\r\n")
        status = (await read_answer(reader)).status
        writer.close()
        return memory, status, len(content)

    memory, status, length = run(steps)
    assert memory < 700_000
    assert (status, length) == (200, 100_000)


def test_a_stream_that_is_packed_passes_byte_for_byte_and_is_estimated():
    packed = gzip.compress(b"data: {}\r\n\r\n" * 50, mtime=0) + b"\r\n\n\n"

    async def stream(received):
        await received.answer(200, packed, b"content-type: text/event-stream\r\ncontent-encoding: gzip\r\n")

    async def steps(door):
        passed = await door.ask(document={"messages": [{"content": "x" * 40}], "stream": True})
        return passed.body, await door.usage()

    passed, usage = run(steps, stream)
    assert passed == packed
    assert (usage.prompt_tokens, usage.estimated_requests) == (10, 1)
