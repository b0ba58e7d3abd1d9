"""Client that asks a service at a constant rate while something is done to it, and keeps what it got and when.

A second thread ticks beside it: where its ticks are late, this process had no time, and an answer waited for that.
"""

from __future__ import annotations

import ssl
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PERIOD_SECONDS = 0.1
GAP_SECONDS = 5.0
_STALL_SECONDS = 0.5  # between two ticks: a machine that is busy makes shorter ones


@dataclass
class SteadyClient:
    """Asks at a constant rate, each request in a connection of its own thread's.

    Attributes:
        url: Where it asks.
        token: Its identity token.
        body: Body of an inference; None to ask for the models alone.
        domain: Name of the address that it asks for, where `url` is that of a load balancer; "" for none.
        authority: File of the authority of that name's certificate. Each request makes a connection then.
        statuses: Status of each answer, or the error in its place.
        answered: Time of each.
        ticks: Times of the thread that only ticks.
    """

    url: str
    token: str
    body: dict[str, Any] | None
    domain: str = ""
    authority: str = ""
    statuses: list[int | str] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)
    ticks: list[float] = field(default_factory=list)

    def run(self, ended: threading.Event) -> None:
        """Ask until the event is set."""
        with self._client() as http:
            due = time.monotonic()
            while not ended.is_set():
                self.statuses.append(self._ask(http))
                self.answered.append(time.monotonic())
                due = max(due + PERIOD_SECONDS, time.monotonic())
                ended.wait(due - time.monotonic())

    def tick(self, ended: threading.Event) -> None:
        """Note the time at the same rate, and ask nothing, until the event is set."""
        while not ended.is_set():
            self.ticks.append(time.monotonic())
            ended.wait(PERIOD_SECONDS)
        self.ticks.append(time.monotonic())

    def ask_once(self) -> int | str:
        """Status of one answer, which is not kept."""
        with self._client() as http:
            return self._ask(http)

    def _client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token}"} | ({"Host": self.domain} if self.domain else {})
        more: dict[str, Any] = {}
        if self.authority:
            more["verify"] = ssl.create_default_context(cafile=self.authority)
            more["limits"] = httpx.Limits(max_keepalive_connections=0)
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, trust_env=False, **more)

    def _ask(self, http: httpx.Client) -> int | str:
        named = {"sni_hostname": self.domain} if self.domain else {}
        try:
            if self.body is None:
                return http.get("/v1/models", extensions=named).status_code
            return http.post("/v1/completions", json=self.body, extensions=named).status_code
        except httpx.HTTPError as error:
            return repr(error)

    def saw_nothing(self) -> None:
        """Every request was answered, and none had to wait for long while this process had time to ask."""
        assert set(self.statuses) == {200}, self.statuses
        assert len(self.statuses) > 10
        assert longest_gap(self.answered, self.ticks) < GAP_SECONDS


def longest_gap(answered: Sequence[float], ticks: Sequence[float]) -> float:
    """The longest time between two answers, less the stalls of this process in it."""
    stalls = [(earlier, later) for earlier, later in pairwise(ticks) if later - earlier > _STALL_SECONDS]
    return max(
        later - earlier - sum(max(0.0, min(end, later) - max(begin, earlier)) for begin, end in stalls)
        for earlier, later in pairwise(answered)
    )


@contextmanager
def asking(client: SteadyClient) -> Iterator[SteadyClient]:
    """Let a client ask while the context lasts."""
    ended = threading.Event()
    threads = [threading.Thread(target=run, args=(ended,), daemon=True) for run in (client.tick, client.run)]
    for thread in threads:
        thread.start()
    try:
        yield client
    finally:
        ended.set()
        for thread in threads:
            thread.join(60)
