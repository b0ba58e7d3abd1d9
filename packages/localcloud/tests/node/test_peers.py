"""The owner of a connection is known by the mark of the process that holds the other end, and by nothing else."""

import os
import socket
import subprocess
import sys

import pytest

from bezel_localcloud.node.reachability import NODE_VARIABLE, owner
from bezel_localcloud.services.cloud_run.runtime.instance import INSTANCE_VARIABLE

pytestmark = pytest.mark.slow
CONNECT = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); sys.stdin.read()"

FROM = """
import socket, sys
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind(("127.0.0.1", int(sys.argv[1])))
s.connect(("127.0.0.1", int(sys.argv[2])))
sys.stdin.read()
"""


@pytest.fixture
def connect_process():
    """A function that lets another process, with these variables, connect: its address as it is seen here."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connections = []

        def connect(**variables):
            argv = [sys.executable, "-I", "-S", "-c", CONNECT, str(listener.getsockname()[1])]
            process = subprocess.Popen(argv, stdin=subprocess.PIPE, env=variables)
            connection, peer = listener.accept()
            connections.append((process, connection))
            return peer, connection.getsockname()

        yield connect
        for process, connection in connections:
            process.communicate(timeout=60)
            connection.close()


@pytest.mark.parametrize("variable", [INSTANCE_VARIABLE, NODE_VARIABLE])
def test_a_marked_process_is_known_each_time(connect_process, variable):
    first, second = connect_process(**{variable: "one", "OTHER": "x"}), connect_process(**{variable: "two"})
    for _ in range(2):
        assert owner(*first)[variable] == "one"
        assert owner(*second)[variable] == "two"


def test_any_other_process_is_a_stranger(connect_process):
    assert owner(*connect_process(OTHER="x")) == {}
    assert owner(("127.0.0.1", 1), ("127.0.0.1", 2)) == {}
    assert INSTANCE_VARIABLE not in os.environ


def test_one_port_that_leads_to_two_places_is_distinguished_by_the_place():
    """The kernel gives a port away again for another destination."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        port = 0
        connections = []
        for listener, variables in ((one, {INSTANCE_VARIABLE: "one"}), (other, {INSTANCE_VARIABLE: "two"})):
            argv = [sys.executable, "-I", "-S", "-c", FROM, str(port), str(listener.getsockname()[1])]
            process = subprocess.Popen(argv, stdin=subprocess.PIPE, env=variables)
            connection, peer = listener.accept()
            port = peer[1]
            connections.append((process, connection, peer))
        try:
            owners = [owner(peer, connection.getsockname())[INSTANCE_VARIABLE] for _, connection, peer in connections]
            assert connections[0][2] == connections[1][2]
            assert owners == ["one", "two"]
        finally:
            for process, connection, _ in connections:
                process.communicate(timeout=60)
                connection.close()
