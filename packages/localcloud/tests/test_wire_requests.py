"""No request of two thousand hostile ones at the wire is a server error or takes much work, as another client sees."""

import asyncio
import sys

import pytest

from bezel_base.loopback.listeners import listen_on_loopback
from bezel_localcloud.cloud import largest_body
from bezel_localcloud.http.serving import HttpServer
from localcloud_support.in_process import Project, run
from localcloud_support.wire_requests import BUCKET, KINDS, TOKEN, wire_requests

pytestmark = pytest.mark.slow  # up to two thousand connections, each of them counted

MOST_CALLS = 600_000  # of functions in one turn of the event loop, Python's own included
LARGEST = 1 << 20  # bytes of an answer
_SECONDS = 20  # until a connection without an answer counts as one that hangs


class Turns:
    """Calls of functions in the longest turn of the event loop; `turn` is called between two turns."""

    def __init__(self):
        self.calls = self.longest = 0

    def event(self, _frame, event, _argument):
        self.calls += event in {"call", "c_call"}

    def turn(self):
        self.longest, self.calls = max(self.longest, self.calls), 0


async def between_turns(turns):
    """The other client: it gets its turn in each round of the loop, and ends the count of the one before."""
    while True:
        turns.turn()
        await asyncio.sleep(0)


async def answer_to(port, content):
    """All that comes back over one connection; a server that keeps it open is left at the request's end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(content)
        writer.write_eof()
        async with asyncio.timeout(_SECONDS):
            return await reader.read(LARGEST + 1)
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def longest_turn(port, content):
    """(answer, calls of the longest turn of the loop meanwhile)."""
    turns = Turns()
    other = asyncio.create_task(between_turns(turns))
    sys.setprofile(turns.event)
    try:
        answer = await answer_to(port, content)
    finally:
        sys.setprofile(None)
        other.cancel()
    return answer, turns.longest


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    new_project = Project(tmp_path_factory.mktemp("wire") / "cloud")
    for api in ("run", "iam", "artifactregistry", "sts"):
        new_project.cloud.store.put("api", f"{api}.googleapis.com", {"state": "ENABLED"})
    new_project.ok("POST", "/storage/v1/b", {"name": BUCKET}, project="bezel-local")
    new_project.raw("POST", f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name=a", b"content")
    yield new_project
    new_project.close()


def statuses(answer):
    return [int(line[9:12]) for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ") and line[9:12].isdigit()]


async def serve(project, requests):
    """(request, answer, calls) of each, one connection after the other."""
    listener = listen_on_loopback()
    port = listener.getsockname()[1]
    server = HttpServer(project.application, listener, largest_body)
    await server.start()
    try:
        return [
            (request, *await longest_turn(port, request.content.replace(TOKEN, project.token.encode())))
            for request in requests
        ]
    finally:
        await server.close()


@pytest.mark.parametrize("number", [500, pytest.param(2000, marks=pytest.mark.long)])
def test_hostile_requests_at_the_wire_take_a_bounded_work(project, number):
    run(serve(project, list(wire_requests(len(KINDS)))))  # tables are read and compiled once
    seen = run(serve(project, list(wire_requests(number))))
    wrong = [
        f"{request.kind} {request.content[:120]!r} -> {answer[:60]!r}, {len(answer)} bytes, {calls} calls"
        for request, answer, calls in seen
        if calls > MOST_CALLS or len(answer) > LARGEST or any(status >= 500 for status in statuses(answer))
    ]
    assert wrong == [], "\n".join(wrong)
    assert len(seen) == number
    # They are requests: most are answered, of each kind some, and some of them with success.
    assert sum(bool(statuses(answer)) for _, answer, _ in seen) > 0.9 * number
    assert {request.kind for request, answer, _ in seen if statuses(answer)} == set(KINDS)
    assert sum(200 in statuses(answer) for _, answer, _ in seen) > 0.02 * number


def test_the_calls_of_a_turn_are_counted():
    async def work(size):
        turns = Turns()
        other = asyncio.create_task(between_turns(turns))
        sys.setprofile(turns.event)
        for _ in range(10):
            await asyncio.sleep(0)
            for _ in range(size):
                len("")
        await asyncio.sleep(0)
        sys.setprofile(None)
        other.cancel()
        return turns.longest

    assert 10_000 < run(work(10_000)) < 12_000
    assert run(work(10)) < 1000
