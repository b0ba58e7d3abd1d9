"""Requests that a container holds until the test lets go of them, and requests that wait behind those.

The test knows where each request is, so that it needs no time in which another process has to get somewhere.
"""

import contextlib
import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor

from localcloud_support.client import until


@contextlib.contextmanager
def opened_by_reader(pipe):
    """A context that begins once another process reads a named pipe, and at whose end that reader continues."""

    def open_writer():
        with contextlib.suppress(OSError):  # it has no reader yet
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        return None

    writer = until(open_writer)
    try:
        yield
    finally:
        os.close(writer)


@contextlib.contextmanager
def held_request(front, pipe):
    """A request that is in a container, which answers it at the end of the context; its response as a future.

    Args:
        front: A client of the service.
        pipe: Path of a named pipe, which is made.
    """
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        response = pool.submit(front.get, f"/read={pipe}")
        with opened_by_reader(pipe):  # the container
            yield response


class SentRequest:
    """A request for a path that the service has got, and that may wait there.

    Args:
        cloud: The deployer's client.
        front: A client of the service.
        path: The path.
    """

    def __init__(self, cloud, front, path="/"):
        url = front.base_url
        self._connection = socket.create_connection((url.host, url.port), 60)
        head = f"GET {path} HTTP/1.1\r\nHost: {url.host}:{url.port}\r\nConnection: close\r\n"
        self._connection.sendall(f"{head}Authorization: {front.headers['authorization']}\r\n\r\n".encode())
        for _ in range(3):  # the daemon reads what comes to its ports in turn
            assert cloud.get("/localcloud/resources").is_success

    def response(self):
        """The container's JSON; waits for it."""
        with self._connection, self._connection.makefile("rb") as reader:
            head, _, body = reader.read().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 "), head
        return json.loads(body)

    def is_answered(self):
        """Whether a part of the response has come."""
        self._connection.setblocking(False)
        try:
            return bool(self._connection.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self._connection.settimeout(60)
