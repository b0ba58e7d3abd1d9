"""Users of a gateway with a fallback, who stream without a pause, and what happened to each stream."""

import http.client
import threading
import time
from collections.abc import Mapping
from typing import NamedTuple, Self

from bezel_components.config.gateway_fallback import SERVED_BY
from tests.support.localcloud.gateway_harness import SECONDS, until


class Stream(NamedTuple):
    """One stream of a user: when it began and ended, what served it ("" for no response), and whether it was whole."""

    began: float
    ended: float
    served_by: str
    is_whole: bool


class Users:
    """Users, each on a thread of its own; a context.

    Args:
        port: Port of the gateway on this machine.
        count: How many users there are.
        target: Path that each asks by POST.
        body: Body of each request.
        headers: Its headers.
        end: Last bytes of a whole response.
    """

    def __init__(self, port: int, count: int, target: str, body: bytes, headers: Mapping[str, str], end: bytes) -> None:
        self._port, self._count, self._end = port, count, end
        self._request = (target, body, dict(headers))
        self._is_over = threading.Event()
        self.streams: list[Stream] = []
        self._threads = [threading.Thread(target=self._stream_on, daemon=True) for _ in range(count)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _stream_on(self) -> None:
        while not self._is_over.is_set():
            self.streams.append(self._stream())

    def _stream(self) -> Stream:
        began, served_by, is_whole = time.monotonic(), "", False
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=2 * SECONDS)
        target, body, headers = self._request
        try:
            connection.request("POST", target, body, headers)
            response = connection.getresponse()
            served_by = response.headers.get(SERVED_BY, "")
            is_whole = response.status == 200 and response.read().endswith(self._end)
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()
        return Stream(began, time.monotonic(), served_by, is_whole)

    def wait_for_streams(self, served_by: str, since: float, seconds: float = SECONDS) -> None:
        """Wait until as many streams as there are users, begun since then, were served by one of both alone."""
        until(lambda: self._are_served(served_by, since), f"the {served_by} serves all", self.streams[-3:], seconds)

    def _are_served(self, served_by: str, since: float) -> bool:
        last = [stream for stream in self.streams[-self._count :] if stream.began > since]
        return len(last) == self._count and all(stream.served_by == served_by for stream in last)

    def check_lost_streams(self, died: float, detection: float) -> None:
        """Check that streams were lost on a dead lease alone: in flight, or sent to it within the detection."""
        lost = [stream for stream in self.streams if not stream.is_whole]
        assert [stream for stream in lost if not (stream.began < died + detection and stream.ended > died)] == []
        assert len([stream for stream in lost if stream.began < died]) <= self._count
