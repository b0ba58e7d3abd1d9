"""A program of a machine is what the machine's daemon makes of its command line, and fails where that refuses it."""

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from bezel_localcloud.node import shims

KEY = "the machine's own"


class Daemon(BaseHTTPRequestHandler):
    """Repeats the command on standard error for a caller that has the key."""

    def do_POST(self) -> None:
        command = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.headers["Authorization"] != f"Bearer {KEY}":
            self.send_error(403)
            return
        self.send_response(200)
        self.end_headers()
        answer = {"out": f"done at {self.path}", "err": json.dumps(command), "code": 7}
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_parts: object) -> None:
        """Nothing: the tests' output is for failures."""


@pytest.fixture
def address() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Daemon) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/machine/commands"
        server.shutdown()
        thread.join()


def run(address: str, key: str, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run `docker ARGUMENTS` as on a machine."""
    program = f"{shims.__path__[0]}/command.py"
    return subprocess.run(
        [sys.executable, "-I", "-S", program, "docker", *arguments],
        env={"HOME": "/root", "LOCALCLOUD_MACHINE": address, "LOCALCLOUD_MACHINE_KEY": key},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize(("arguments", "read"), [(("login", "--password-stdin"), "secret"), (("ps", "-a"), "")])
def test_a_command_line_is_sent_and_its_outcome_is_the_programs(
    address: str, arguments: tuple[str, ...], read: str
) -> None:
    ended = run(address, KEY, *arguments, stdin="secret")
    assert (ended.returncode, ended.stdout) == (7, "done at /machine/commands\n")
    sent = {"program": "docker", "argv": [*arguments], "stdin": read, "config": "/root/.docker"}
    assert json.loads(ended.stderr) == sent


@pytest.mark.slow
def test_a_refused_command_line_fails_with_the_daemons_status(address: str) -> None:
    ended = run(address, "another machine's", "ps")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith(f"{address}: HTTP/1.0 403 ")
