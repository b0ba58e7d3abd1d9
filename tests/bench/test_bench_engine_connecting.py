"""A server that is slow to take connections: its wait is in the latencies, and nobody calls it the client's."""

import contextlib
import socket
import ssl
import threading
from pathlib import Path
from time import monotonic_ns

from bench_wire import certificate, send, stream

from bezel.bench.columns import Columns
from bezel.bench.facts import latencies_of
from bezel.bench.plan import Replay

AT_ONCE = 16  # what an open loop of no known rate has ready
REQUESTS = 40


class Reluctant:
    """Shakes hands with the first clients; with the others, and answers, once all have come."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context, self._listener = context, socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self._listener.getsockname()[1]
        self._all_there = threading.Event()
        self.relented = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        taken = 0
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                taken += 1
                threading.Thread(target=self._serve, args=(connection, taken), daemon=True).start()
                if taken == REQUESTS:
                    self.relented = monotonic_ns()
                    self._all_there.set()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with contextlib.suppress(OSError), connection:
            if number > AT_ONCE:
                self._all_there.wait(20)
            with self._context.wrap_socket(connection, server_side=True) as made:
                if made.recv(65536):
                    self._all_there.wait(20)
                    made.sendall(b"".join(stream()))
                    made.recv(65536)

    def close(self) -> None:
        self._listener.close()


def test_a_wait_for_a_connection_is_in_the_latency_and_in_no_delay_of_the_client(tmp_path: Path) -> None:
    context, ca_file = certificate(tmp_path)
    server = Reluctant(context)
    measured = send(f"https://127.0.0.1:{server.port}", REQUESTS, Replay((0.0,) * REQUESTS), ca_file=ca_file)
    server.close()
    assert {sample.failure for sample in measured.samples} == {""}
    waited = [sample for sample in measured.samples if sample.sent > server.relented]
    assert len(waited) >= REQUESTS - AT_ONCE
    assert all(sample.planned <= sample.begun <= server.relented for sample in measured.samples)
    spans, _ = latencies_of(Columns.of(waited), open_loop=True)
    for sample, ttft, delay in zip(waited, spans["ttft"], spans["schedule_delay"], strict=True):
        assert ttft >= sample.sent - sample.planned > delay == sample.begun - sample.planned
