"""A server that a command makes: fresh for each value, ready when healthy, gone before the next."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

from bezel_base.errors import UserError
from bezel_base.loopback.listeners import bind
from bezel_bench.commands.measure.server_process import StartedServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

SERVER = """
import http.server, os, sys
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"{sys.argv[2]} {os.environ['SPEC_TOKENS']}".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
"""


@pytest.fixture
def port() -> Iterator[int]:
    # Bound here too, it is drawn by nothing else before a server listens.
    with bind("127.0.0.1") as drawn:
        yield drawn.getsockname()[1]


@pytest.fixture
def started_server(port: int, tmp_path: Path) -> Iterator[StartedServer]:
    file = tmp_path / "server.py"
    file.write_text(SERVER)
    # Through a shell that stays: the server is a child of what is started.
    command = f"{shlex.quote(sys.executable)} {shlex.quote(str(file))} {port} {{spec_tokens}}; exit 1"
    made = StartedServer(command, f"http://127.0.0.1:{port}", 30.0, lambda _: None)
    yield made
    made.end()


def answer_of(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/health", timeout=60) as answer:
        return str(answer.read().decode())


def test_each_value_has_a_server_of_its_own_that_knows_it(started_server: StartedServer, port: int) -> None:
    for value in ("0", "3"):
        started_server.restart("spec_tokens", value)
        assert answer_of(port) == f"{value} {value}"
    started_server.end()
    with pytest.raises(OSError, match="refused"):
        answer_of(port)


def test_a_command_that_ends_with_0_has_deployed_a_server_that_stays(
    started_server: StartedServer, port: int, tmp_path: Path
) -> None:
    started_server.restart("spec_tokens", "7")
    mark = tmp_path / "deployed"
    deploys = StartedServer(f"touch {shlex.quote(str(mark))}", f"http://127.0.0.1:{port}", 30.0, lambda _: None)
    deploys.restart("x", "1")
    assert mark.exists(), "an earlier answer does not count: the command has ended first"
    deploys.end()
    assert answer_of(port) == "7 7"


def test_a_server_that_does_not_become_healthy_is_ended_and_reported(port: int) -> None:
    waits = StartedServer("sleep 60 # {x}", f"http://127.0.0.1:{port}", 0.5, lambda _: None)
    with pytest.raises(UserError, match="did not return 200 within"):
        waits.restart("x", "1")


def test_a_command_that_fails_is_reported_at_once(port: int) -> None:
    with pytest.raises(UserError, match="ended with exit code 4 for x=1"):
        StartedServer("exit 4", f"http://127.0.0.1:{port}", 30.0, lambda _: None).restart("x", "1")
