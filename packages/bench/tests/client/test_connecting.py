"""A server that is slow to take connections: its wait is in the latencies, and is not called the client's."""

import contextlib
import socket
import ssl
import threading
from pathlib import Path
from time import monotonic_ns

import pytest

from bench_support.wire import Prompts, certificate, send, stream
from bezel_bench.load.plan import Body, Replay
from bezel_bench.metrics.metric_inputs import latencies_of
from bezel_bench.result.columns import Columns

AT_ONCE = 16  # what an open loop of no known rate has ready
REQUESTS = 40


class Reluctant:
    """Shakes hands with the first clients; with the others, and answers, once the test lets it."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context, self._listener = context, socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self._may = threading.Event()
        self.relented = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        taken = 0
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                taken += 1
                threading.Thread(target=self._serve, args=(connection, taken), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError), connection:
            if number > AT_ONCE:
                self._may.wait(20)
            with self._context.wrap_socket(connection, server_side=True) as made:
                while made.recv(65536):
                    self._may.wait(20)
                    made.sendall(b"".join(stream()))

    def relent(self) -> None:
        self.relented = monotonic_ns()
        self._may.set()

    def close(self) -> None:
        self._listener.close()


class Last(Prompts):
    """Bodies of which the last, made once all requests before it are begun, makes a server relent."""

    def __init__(self, server: Reluctant) -> None:
        super().__init__()
        self._server = server

    def body(self, index: int, turn: int = 0) -> Body:
        if index == REQUESTS - 1:
            self._server.relent()
        return super().body(index, turn)


@pytest.mark.slow
def test_wait_for_a_connection_is_latency_and_no_delay_of_the_client(tmp_path: Path) -> None:
    context, ca_file = certificate(tmp_path)
    server = Reluctant(context)
    at_once = Replay((0.0,) * REQUESTS)
    url = f"https://127.0.0.1:{server.port}"
    *before, _ = send(url, REQUESTS, at_once, ca_file=ca_file, bodies=Last(server)).samples
    server.close()
    assert {sample.failure for sample in before} == {""}
    assert all(sample.planned <= sample.begun <= server.relented for sample in before)
    waited = [sample for sample in before if sample.sent > server.relented]
    assert len(waited) >= len(before) - AT_ONCE
    spans, _ = latencies_of(Columns.of(waited), open_loop=True)
    for sample, ttft, delay in zip(waited, spans["ttft"], spans["schedule_delay"], strict=True):
        assert ttft >= sample.sent - sample.planned > delay == sample.begun - sample.planned
