"""Made-up grids for sweeps: throughput of closed loops by several laws, with noise, stalls and failures.

    .venv/bin/python -m tools.bench.sweeps.made_up FOLDER [--grids 50]

Writes one CSV for each grid in the columns of the measured ones (`tools.bench.sweeps.grids`), so that a reader without
these can repeat the tables of docs/sweeps.md. The seed gives everything: shape, size, server, noise. Imports nothing of
`bezel_bench.sweep`: no law, step or size here follows a constant of the method that the grids judge.

Each law is that of a closed loop: `users / (seconds alone)` while the server has time, its capacity beyond, and a
corner between that is sharp or round.
"""

from __future__ import annotations

import argparse
import csv
import math
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SHAPES = ("saturating", "client-limited at short contexts", "cache-limited at long contexts", "noisy", "stalled cells")
COLUMNS = ("context_tokens", "users", "value", "unit", "success_pct", "status")
_CONTEXTS = (
    (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
    (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16000),
    (4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 13000),
    (128, 256, 512, 1000, 2000, 4000, 8000, 16000, 32000),
    (100, 300, 1000, 3000, 10000, 30000, 100000),
)
_USERS = (
    (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048),
    (1, 8, 64, 128, 256, 512, 1024, 2048),
    (1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
    (1, 3, 10, 30, 100, 300, 1000),
    (1, 4, 8, 16, 24, 32, 48, 64, 96, 128),
)
_STALLED_SHARE, _STALLED_TO = 0.1, 0.5

Rate = dict[tuple[int, int], float]
"""Requests a second by context and users."""


@dataclass(frozen=True)
class MadeUp:
    """A made-up grid.

    Attributes:
        name: Its shape and seed.
        shape: One of SHAPES.
        noise: Standard deviation of the logarithm of one measurement.
        contexts: Prompt tokens, rising.
        users: Rising.
        truth: The rate that no measurement shows exactly.
        measured: One measurement of each cell.
        failed: Percentage of requests that succeeded, of the cells in which some fail.
    """

    name: str
    shape: str
    noise: float
    contexts: tuple[int, ...]
    users: tuple[int, ...]
    truth: Rate
    measured: Rate
    failed: dict[tuple[int, int], int]

    def rows(self) -> Iterable[dict[str, str]]:
        """Return the rows of its file."""
        for (context, users), value in self.measured.items():
            success = self.failed.get((context, users), 100)
            yield dict(
                zip(COLUMNS, (str(context), str(users), f"{value:.4g}", "req/s", str(success), "ok"), strict=True)
            )


def grid(seed: int, shape: str = "") -> MadeUp:
    """Return the grid of a seed; `shape` is one of SHAPES, by default the seed's own."""
    chances = random.Random(seed)  # noqa: S311 - no secret
    shape = shape or SHAPES[seed % len(SHAPES)]
    contexts, users = chances.choice(_CONTEXTS), chances.choice(_USERS)
    noise = chances.uniform(0.08, 0.15) if shape == "noisy" else _between(chances, 0.005, 0.05)
    rate, failing = _server(shape, chances, contexts, users)
    truth = {(context, count): rate(context, count) for context in contexts for count in users}
    stalls = _STALLED_SHARE if shape == "stalled cells" else 0.0
    measured = {
        place: value * math.exp(chances.gauss(0.0, noise)) * (_STALLED_TO if chances.random() < stalls else 1.0)
        for place, value in truth.items()
    }
    failed = {place: chances.randrange(5, 95) for place in truth if failing(*place)}
    return MadeUp(f"made-up: {shape}, {seed}", shape, noise, contexts, users, truth, measured, failed)


def _server(
    shape: str, chances: random.Random, contexts: Sequence[int], users: Sequence[int]
) -> tuple[Callable[[int, int], float], Callable[[int, int], bool]]:
    """Return the rate of a server, and in which cells its requests fail."""
    output = chances.choice((1, 16, 64, 128, 512))
    fixed, step = _between(chances, 0.005, 0.3), _between(chances, 0.004, 0.05)
    compute, attention = _between(chances, 2e-6, 3e-4), _between(chances, 1e-11, 2e-9)
    batch, each = _between(chances, 8, 400), _between(chances, 2e-4, 2e-2)
    round_corner = _between(chances, 1.5, 8)

    def prefill(context: int) -> float:
        return context * compute + context * context * attention

    def alone(context: int) -> float:
        return fixed + prefill(context) + output * step * (1 + context / 2e5)

    def capacity(context: int) -> float:
        decoding = output * step / batch * (1 + batch * context * 2e-7)
        return 1 / (each + prefill(context) + decoding)

    def closed_loop(context: int, count: int) -> float:
        return _corner(count / alone(context), capacity(context), round_corner)

    if shape.startswith("client-limited"):
        # The client's most requests a second, and how it gets worse with more connections.
        most = _between(chances, 0.15, 0.7) * capacity(contexts[0])
        many, worse = _between(chances, users[-1] / 16, users[-1]), chances.uniform(0.0, 0.5)

        def limited_rate(context: int, count: int) -> float:
            return _corner(closed_loop(context, count), most * max(1.0, count / many) ** -worse, 6.0)

        return limited_rate, lambda _context, _count: False
    if shape.startswith("cache-limited"):
        cache = _between(chances, 4, 64) * (contexts[-1] + output)
        slower = chances.uniform(0.1, 0.6)

        def preempting(context: int, count: int) -> float:
            """The cache holds so many requests; with more waiting, some are computed twice."""
            cached_requests = cache / (context + output)
            crowded = max(1.0, count / cached_requests)
            slowed: float = crowded**-slower
            return _corner(closed_loop(context, count), cached_requests / alone(context), round_corner) * slowed

        times = chances.choice((16.0, 64.0, math.inf))
        return preempting, lambda context, count: count * (context + output) > times * cache
    return closed_loop, lambda _context, _count: False


def _corner(rising: float, flat: float, roundness: float) -> float:
    """Return the lower of two rates, less where both are near; a high roundness is a sharp corner."""
    rate: float = (rising**-roundness + flat**-roundness) ** (-1 / roundness)
    return rate


def _between(chances: random.Random, low: float, high: float) -> float:
    return math.exp(chances.uniform(math.log(low), math.log(high)))


def write(made: MadeUp, folder: Path) -> Path:
    """Write a grid's file and return its path."""
    file = folder / f"{made.name.removeprefix('made-up: ').replace(', ', '_').replace(' ', '-')}.csv"
    with file.open("w", newline="", encoding="utf-8") as opened:
        table = csv.DictWriter(opened, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(made.rows())
    return file


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--grids", type=int, default=50)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for seed in range(options.grids):
        print(write(grid(seed), options.folder))
