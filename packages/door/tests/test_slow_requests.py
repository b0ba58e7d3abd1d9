"""Requests that do not arrive in time, on a loop whose clock runs faster."""

import asyncio
import selectors
import socket
import time

from door_support.running import CHAT, running_door

SPEED = 2000


class FastSelector(selectors.DefaultSelector):
    """A selector that waits a part of the time."""

    def select(self, timeout=None):
        return super().select(timeout / SPEED if timeout else timeout)


class FastLoop(asyncio.SelectorEventLoop):
    """A loop on which a second takes half a millisecond."""

    def __init__(self):
        super().__init__(FastSelector())

    def time(self):
        return time.monotonic() * SPEED


def run(data, *more):
    """What the door answers to a request of which nothing follows."""

    async def script(received):
        raise AssertionError(received.line)

    async def inside():
        async with running_door(script) as door:
            # Sent before the loop sees the connection: a stall between the two would be a caller without a request.
            sock = socket.create_connection(("127.0.0.1", door.port))
            sock.sendall(data(door) + b"".join(more))
            reader, writer = await asyncio.open_connection(sock=sock)
            answer = await reader.read()
            writer.close()
            return answer, len(door.received)

    with asyncio.Runner(loop_factory=FastLoop) as runner:
        return runner.run(inside())


def test_a_head_that_does_not_end_is_refused_after_its_time():
    answer, received = run(lambda _: f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nX-A: ".encode())
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert (b"connection: close" in answer, received) == (True, 0)


def test_a_body_that_does_not_end_is_refused_after_its_time():
    answer, received = run(lambda door: door.head(length=100), b'{"model"')
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert received == 0


def test_a_connection_without_a_request_is_closed_after_its_time():
    assert run(lambda _: b"") == (b"", 0)
