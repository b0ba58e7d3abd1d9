"""Another user of this machine: programs run as `nobody`, which takes root (CI gets it by sudo)."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest

_NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
# One request on one connection: `python - HOST PORT`, the bytes to send on standard input, the answer on its output.
SEND = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 10) as connection:
    connection.sendall(sys.stdin.buffer.read())
    while piece := connection.recv(65536):
        sys.stdout.buffer.write(piece)
"""


@cache
def _prefix() -> list[str] | None:
    for prefix in (_NOBODY, ["sudo", "-n", *_NOBODY]):
        if (
            shutil.which(prefix[0])
            and subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
        ):
            return prefix
    return None


def _required_prefix() -> list[str]:
    prefix = _prefix()
    if prefix is None:
        pytest.skip("takes root, or sudo without a password, to become another user")
    return prefix


def as_other_user(argv: list[str], standard_input: bytes = b"", **variables: str) -> subprocess.CompletedProcess[bytes]:
    """A program as that user, with these variables; the test is left out where nobody may become another user."""
    command = [
        *_required_prefix(),
        "env",
        "-i",
        "PATH=/usr/bin:/bin",
        *(f"{name}={value}" for name, value in variables.items()),
    ]
    return subprocess.run(
        [*command, *argv], input=standard_input, capture_output=True, timeout=60, check=False, cwd="/"
    )


def sent_by_other_user(address: str, request: bytes, **variables: str) -> str:
    """What another user hears at HOST:PORT."""
    host, _, port = address.rpartition(":")
    python = os.path.realpath(sys.executable)
    return as_other_user([python, "-I", "-S", "-c", SEND, host, port], request, **variables).stdout.decode()


# `python - PORT`: prints a port of its own, of which everything goes on to PORT, and what is said there comes back.
PASS_ON = """
import socket, sys, threading
def carry(source, target):
    try:
        while piece := source.recv(65536):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    near, _ = listener.accept()
    far = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    for ends in ((near, far), (far, near)):
        threading.Thread(target=carry, args=ends, daemon=True).start()
"""


@contextmanager
def reachable_by_other_user(port: int) -> Iterator[int]:
    """A port of 127.0.0.1 behind which another user connects to `port`: for clients that speak more than a line."""
    prefix = _required_prefix()
    python = os.path.realpath(sys.executable)
    command = [*prefix, "env", "-i", python, "-I", "-S", "-c", PASS_ON, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd="/") as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()
