"""One answer over a socket to the engine's connection, piece by piece, each piece read alone."""

import select
import socket
from typing import cast

from bezel_bench.client.connection import Connection, Owner
from bezel_bench.client.loop import Loop
from bezel_bench.client.response_buffer import Backlog, ResponseBuffer
from bezel_bench.client.route import Route
from bezel_bench.load.plan import Target
from bezel_bench.result.sample import Sample


class Turned:
    """Owner of one connection on a loop that a test turns.

    Attributes:
        loop: The loop.
        answer: What came of it.
        ended: Whether it was said to have ended.
    """

    def __init__(self) -> None:
        # A request that the kernel does not stamp: a stamp wakes the socket, too.
        self.answer = ResponseBuffer(Sample(1024), b"")
        self.ended = False
        self.backlog = Backlog()
        self.loop = Loop(self.backlog.read_one)

    def on_open(self, connection: Connection) -> None:
        connection.ask(b"-", self.answer)

    def more(self, answer: ResponseBuffer) -> None:
        self.backlog.add(answer)

    def on_response(self, connection: Connection, answer: ResponseBuffer, *, kept: bool) -> None:
        if kept:
            connection.close()
        self._end(answer)

    def on_break(self, answer: ResponseBuffer, *, begun: bool, error: Exception | None) -> None:
        answer.cut = error is None
        answer.failure = ("bad_json", "no HTTP") if error else ("", "") if begun else ("reset", "")
        self._end(answer)

    def _end(self, answer: ResponseBuffer) -> None:
        self.ended = True
        self.backlog.add(answer)

    def turn(self, writable: bool = False) -> None:
        """Wait until the socket is ready, and serve it once."""
        files = [*self.loop._watched]
        assert any(select.select([] if writable else files, files if writable else [], [], 10))
        rounds = iter((False, True))
        self.loop.run(lambda: next(rounds))


def hear(*pieces: bytes, close: bool) -> Sample:
    """The sample of an answer; `close` is whether the server has to close so that it ends."""
    turned = Turned()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        target = Target(f"http://127.0.0.1:{listening.getsockname()[1]}", "mock", public=True)
        connection = Connection(turned.loop, Route(target), cast("Owner", turned))
        connection.open()
        turned.turn(writable=True)
        peer = listening.accept()[0]
    with peer:
        assert peer.recv(9) == b"-"
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            if turned.ended:
                break
            peer.sendall(piece)
            turned.turn()
    if close and not turned.ended:
        turned.turn()
    assert turned.ended
    turned.backlog.read_all()
    connection.close()
    turned.loop.close()
    return turned.answer.sample
