"""Simulated requests of one load: what every client saw, before any of them made statistics of it."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Request:
    """One request: seconds, and tokens as client and server count them."""

    due: float
    start: float
    ttft: float
    tpot: float
    prompt: int
    tokens: int

    @property
    def e2e(self) -> float:
        """Seconds from sending to the last token."""
        return self.ttft + self.tpot * (self.tokens - 1)

    @property
    def end(self) -> float:
        """When the last token arrived."""
        return self.start + self.e2e

    def gaps(self, dice: random.Random) -> list[float]:
        """Gaps between its chunks: a tenth of the tokens come with the one before."""
        chunks = max(1, sum(dice.random() > 0.1 for _ in range(self.tokens - 1)))
        return [self.tpot * (self.tokens - 1) / chunks] * chunks if self.tokens > 1 else []


@dataclass(frozen=True)
class Load:
    """The requests of a load, of users of a closed loop or at a rate."""

    requests: tuple[Request, ...]
    users: int | None
    rate: float | None
    seed: int

    @property
    def seconds(self) -> float:
        """From the first start to the last end."""
        return max(one.end for one in self.requests) - min(one.start for one in self.requests)

    def column(self, name: str) -> np.ndarray:
        """A value of every request."""
        return np.array([float(getattr(one, name)) for one in self.requests])

    def dice(self) -> random.Random:
        """Dice of the seed of the load, for what a writer adds."""
        return random.Random(self.seed)  # noqa: S311 - simulated


def closed_load(seed: int, *, users: int = 8, rounds: int = 12, varied: bool = False) -> Load:
    """Users who each send the next request after the last one."""
    dice = random.Random(seed)  # noqa: S311 - simulated
    pace = dice.uniform(0.008, 0.04)
    requests = []
    for _ in range(users):
        clock = 0.0
        for _ in range(rounds):
            one = _request(dice, clock, pace, varied=varied)
            requests.append(one)
            clock = one.end + 0.0005
    return Load(tuple(sorted(requests, key=lambda one: one.start)), users, None, seed)


def open_load(seed: int, *, rate: float = 5.0, count: int = 400, late: float = 0.0003, varied: bool = False) -> Load:
    """Requests in random order at a rate; `late` is the mean wait in the client, in seconds."""
    dice = random.Random(seed)  # noqa: S311 - simulated
    pace, due = dice.uniform(0.008, 0.04), 0.0
    requests = []
    for _ in range(count):
        requests.append(_request(dice, due, pace, late=dice.expovariate(1 / late), varied=varied))
        due += dice.expovariate(rate)
    return Load(tuple(requests), None, rate, seed)


def _request(dice: random.Random, due: float, pace: float, *, late: float = 0.0, varied: bool) -> Request:
    return Request(
        due=due,
        start=due + late,
        ttft=0.1 * dice.lognormvariate(0, 0.4),
        tpot=pace * dice.lognormvariate(0, 0.08),
        prompt=round(dice.uniform(200, 800)) if varied else 512,
        tokens=max(2, round(128 * dice.lognormvariate(0, 0.6))) if varied else 128,
    )
