"""A token is renewed before it ends, without anybody waiting, however long the run."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest

from bezel_bench.client.auth_headers import Fetched, RenewedHeaders

if TYPE_CHECKING:
    from collections.abc import Callable


class World:
    """A clock that is set by hand, a background that works when the test lets it, a source of numbered tokens."""

    def __init__(self, life: float = 3600.0) -> None:
        self.now = 0.0
        self.life = life
        self.waiting: list[Callable[[], None]] = []
        self.ends: dict[str, float] = {}
        self.broken = False

    def fetch(self) -> Fetched:
        if self.broken:
            raise OSError("the identity provider is away")
        name = f"Bearer {len(self.ends)}"
        self.ends[name] = self.now + self.life
        return Fetched({"Authorization": name}, self.life)

    def source(self) -> RenewedHeaders:
        return RenewedHeaders(self.fetch, clock=lambda: self.now, beside=self.waiting.append)

    def work(self) -> None:
        while self.waiting:
            self.waiting.pop()()


@pytest.mark.parametrize("life", [3600.0, 600.0, 90.0])
def test_in_a_day_no_request_carries_a_token_that_has_ended(life: float) -> None:
    world = World(life)
    source = world.source()
    for second in range(0, 24 * 3600, 10):
        world.now = float(second)
        assert world.ends[source()["Authorization"]] > world.now
        world.work()
    assert len(world.ends) <= 1 + 24 * 3600 / (life - 300 if life > 600 else life / 5)


def test_a_token_that_ends_never_is_fetched_once() -> None:
    world = World(float("inf"))
    source = world.source()
    world.now = 1e9
    assert source()["Authorization"] == "Bearer 0"
    assert world.waiting == []


def test_call_during_a_renewal_gets_the_old_token_and_begins_no_other() -> None:
    world = World()
    source = world.source()
    world.now = 3400.0
    assert [source()["Authorization"] for _ in range(1000)] == ["Bearer 0"] * 1000
    assert len(world.waiting) == 1
    world.work()
    assert source()["Authorization"] == "Bearer 1"


def test_a_failed_renewal_is_counted_and_tried_again_and_the_load_goes_on() -> None:
    world = World()
    source = world.source()
    world.now, world.broken = 3301.0, True
    source()
    world.work()
    assert (source()["Authorization"], source.failures, world.waiting) == ("Bearer 0", 1, [])
    world.now, world.broken = 3330.0, False
    source()
    world.work()
    assert source()["Authorization"] == "Bearer 1"


def test_without_a_first_token_there_is_no_source() -> None:
    world = World()
    world.broken = True
    with pytest.raises(OSError, match="away"):
        world.source()


def test_a_renewal_that_takes_its_time_stalls_nobody() -> None:
    let_go, renewed = threading.Event(), threading.Event()
    tokens = iter(["a", "b"])

    def fetch() -> Fetched:
        name = next(tokens)
        if name == "b":
            let_go.wait(60)
            renewed.set()
        return Fetched({"Authorization": name}, 0.0 if name == "a" else 3600.0)

    source = RenewedHeaders(fetch)
    assert source()["Authorization"] == "a"
    assert not renewed.is_set()
    let_go.set()
    assert renewed.wait(60)
    deadline = time.monotonic() + 60
    while source()["Authorization"] == "a":
        assert time.monotonic() < deadline
