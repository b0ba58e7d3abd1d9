"""The difference of a TTFT to the server's log is split at the packets, which a capture of the loopback has."""

import os
import socket
from time import monotonic_ns

import numpy as np
import pytest

from bench_support.runs import BEGAN, MS, good_sample
from bezel_bench.result.columns import Columns
from tools.bench.truth.capture import Capture, Exchange, Packet, pair_packets
from tools.bench.truth.split import arrivals, split
from tools.bench.truth.truth_server import Record

PORT = 8000
ASKED, ANSWER = b"POST /v1/chat/completions", b"HTTP/1.1 200"


def packet(at: int, client: int, begins: bytes) -> Packet:
    """A packet of the client at that port, or of the server to it."""
    return Packet(at, client, PORT, begins) if begins != ANSWER else Packet(at, PORT, client, begins)


def test_requests_are_paired_with_the_response_on_their_connection() -> None:
    packets = [
        *(packet(1, 50, ASKED), packet(2, 51, ASKED), packet(3, 50, b"the rest of its body")),
        *(packet(7, 51, ANSWER), packet(8, 50, ANSWER), packet(9, 50, ANSWER)),
        *(packet(4, 52, b"GET /metrics"), packet(5, 52, ANSWER)),
        *(packet(20, 50, ASKED), packet(21, 53, ASKED), packet(30, 50, ANSWER)),
    ]
    paired = [Exchange(1, 8), Exchange(2, 7), Exchange(20, 30), Exchange(21, 0)]
    assert pair_packets(packets, PORT) == paired
    assert pair_packets(reversed(packets), PORT) == paired


def test_each_span_of_a_difference_has_its_owner() -> None:
    """A request is sent, 1 ms later its packet leaves, 5 ms later the log begins; its token is read 2 ms late."""
    rows = [good_sample(index, BEGAN + index * 20 * MS, ttft=108 * MS + (2 - index) * 30 * MS) for index in range(3)]
    exchanges = [Exchange(one.sent + MS, one.first - 2 * MS) for one in rows]
    truth = [
        Record(number, one.sent + 6 * MS, 0, one.first - 2 * MS, one.last, one.done, 11, "ok")
        for number, one in enumerate(rows)
    ]
    # The server answers in another order than it was asked, and its log has failures that no TTFT counts.
    failed = Record(9, BEGAN, 0, 0, 0, BEGAN + MS, 0, "error")
    parts = split(Columns.of(rows), [*truth[::-1], failed], exchanges)
    assert (parts.total.tolist(), parts.client.tolist(), parts.queue.tolist()) == ([8.0] * 3, [3.0] * 3, [5.0] * 3)
    assert np.allclose(parts.total, parts.client + parts.queue)
    assert sorted(one.arrival for one in arrivals(truth, exchanges)) == [one.request for one in exchanges]
    with pytest.raises(ValueError, match="3 requests of the client, 3 of the server, 2 captured"):
        split(Columns.of(rows), truth, exchanges[:2])


@pytest.mark.skipif(os.geteuid() != 0, reason="a raw socket needs root")
def test_a_capture_has_the_packets_of_its_port_between_both_ends() -> None:
    seen = []
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_server(("127.0.0.1", 0)) as other,
        Capture(listening.getsockname()[1]) as capture,
    ):
        for server in (listening, other):
            with socket.create_connection(server.getsockname()) as client, server.accept()[0] as peer:
                sent = monotonic_ns()
                client.sendall(ASKED)
                assert peer.recv(99) == ASKED
                arrived = monotonic_ns()
                peer.sendall(ANSWER)
                assert client.recv(99) == ANSWER
                seen.append((sent, arrived, monotonic_ns()))
        (exchange,) = capture.exchanges()
    sent, arrived, answered = seen[0]
    assert sent <= exchange.request <= arrived <= exchange.response <= answered
