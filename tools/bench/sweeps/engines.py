"""Grids of made-up engines that decode in steps: a second generator, written after the method and looked at once.

An engine runs as many sequences as its slots and its cache hold. A step
reads weights and caches, prompts are computed between steps, and each request costs the CPU some time. Besides, by
kind: a cliff where sequences are evicted, a client that is the limit at short contexts, steps of captured batch sizes,
noise with heavy tails, or noise that grows with the users. Imports nothing of `bezel_bench.sweep` and nothing of the
first generator; the seed gives everything.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

KINDS = ("eviction cliff", "client limit", "captured batches", "heavy tails", "noise with users")
_CONTEXTS = (
    (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
    (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 12000),
    (64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192),
    (256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536),
)
_USERS = (
    (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024),
    (1, 2, 4, 8, 16, 32, 64, 128, 256),
    (1, 4, 16, 32, 64, 128, 256, 512),
    (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000),
)
_COLUMNS = ("context_tokens", "users", "value", "unit", "success_pct", "status")
Noise = Callable[[random.Random, int], float]


@dataclass(frozen=True)
class Engine:
    """One engine and its client: seconds, tokens and sequences."""

    slots: int
    cache: float
    output: int
    weights: float
    read_token: float
    prompt_token: float
    attention: float
    request: float
    evicted: float
    graphs: tuple[int, ...]
    client: float
    connection: float

    def rate(self, context: int, users: int) -> float:
        """Requests a second of a closed loop."""
        cached_requests = max(1.0, self.cache / (context + self.output))
        running = min(users, self.slots, cached_requests)
        shape = next((size for size in self.graphs if size >= running), running)
        step = self.weights + running * (context + self.output / 2) * self.read_token + shape * 2e-5
        prompt = context * self.prompt_token + context * context * self.attention
        lost = self.evicted if users > cached_requests and self.slots > cached_requests else 0.0
        # A round of all running sequences: their prompts one after another, then the steps.
        seconds = self.output * step + running * (prompt * (1 + lost) + self.request) / (1 - lost)
        served = running / seconds
        return 1 / (1 / served + (1 + users * self.connection) / self.client)


@dataclass(frozen=True)
class Grid:
    """A grid: one noisy measurement of each cell."""

    name: str
    kind: str
    contexts: tuple[int, ...]
    users: tuple[int, ...]
    engine: Engine
    measured: dict[tuple[int, int], float]
    timeout: float

    def rows(self) -> Iterable[dict[str, str]]:
        """Return the rows of its file; requests that wait longer than the timeout fail."""
        for (context, users), value in self.measured.items():
            waits = users / self.engine.rate(context, users)
            success = 100 if waits <= self.timeout else max(1, round(100 * self.timeout / waits))
            cells = (str(context), str(users), f"{value:.4g}", "req/s", str(success), "ok")
            yield dict(zip(_COLUMNS, cells, strict=True))


def grid(seed: int, kind: str = "") -> Grid:
    """Return the grid of a seed; `kind` is one of KINDS, by default the seed's own."""
    kind = kind or KINDS[seed % len(KINDS)]
    dice = random.Random(f"engine {kind} {seed}")  # noqa: S311 - no secret
    contexts, users = dice.choice(_CONTEXTS), dice.choice(_USERS)
    engine = _engine(dice, kind, contexts, users)
    noise = _noise(dice, kind)
    measured = {
        (context, count): engine.rate(context, count) * math.exp(noise(dice, count))
        for context in contexts
        for count in users
    }
    timeout = dice.choice((120.0, 600.0, math.inf))
    return Grid(f"engine: {kind}, {seed}", kind, contexts, users, engine, measured, timeout)


def _engine(dice: random.Random, kind: str, contexts: tuple[int, ...], users: tuple[int, ...]) -> Engine:
    slots = dice.choice((16, 32, 64, 128, 256, 512))
    output = dice.choice((1, 32, 128, 256))
    cliff = kind == "eviction cliff"
    engine = Engine(
        slots=slots,
        cache=_between(dice, 3, 30) * (contexts[-1] + output) * (1 if cliff else 8),
        output=output,
        weights=_between(dice, 0.004, 0.06),
        read_token=_between(dice, 2e-8, 1e-6),
        prompt_token=_between(dice, 3e-6, 4e-4),
        attention=_between(dice, 1e-11, 3e-9),
        request=_between(dice, 2e-4, 1e-2),
        evicted=dice.uniform(0.2, 0.6) if cliff else dice.uniform(0.0, 0.1),
        graphs=tuple(2**power for power in range(11)) if kind == "captured batches" else (),
        client=math.inf,
        connection=0.0,
    )
    if kind != "client limit":
        return engine
    most = max(engine.rate(contexts[0], count) for count in users)
    return replace(engine, client=dice.uniform(0.2, 0.9) * most, connection=dice.choice((0.0, 0.3, 1.0)) / users[-1])


def _noise(dice: random.Random, kind: str) -> Noise:
    scale = _between(dice, 0.01, 0.05)
    if kind == "heavy tails":
        freedom = dice.choice((2.0, 2.5, 3.0))
        return lambda chances, _users: max(-2.0, min(2.0, scale * _student(chances, freedom)))
    if kind == "noise with users":
        power = dice.uniform(0.15, 0.35)
        return lambda chances, users: chances.gauss(0.0, 0.5 * scale * users**power)
    return lambda chances, _users: chances.gauss(0.0, scale)


def _student(dice: random.Random, freedom: float) -> float:
    """Draw from Student's distribution: a normal one over the root of a mean of squares."""
    return dice.gauss(0.0, 1.0) / math.sqrt(dice.gammavariate(freedom / 2, 2.0) / freedom)


def _between(dice: random.Random, low: float, high: float) -> float:
    return math.exp(dice.uniform(math.log(low), math.log(high)))
