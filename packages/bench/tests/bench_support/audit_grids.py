"""Clean grids in every unit, by a model of their own, with what makes honest grids look odd.

    queue      users beyond the server's places wait: rate = min(users / alone, places / (places' time))
    roofline   a step reads the weights once and each sequence's cache; it computes no faster than its arithmetic
    prefill    a prompt is computed once, at a speed of its own

Beside noise of a quarter: a first request that waits for a slow start, programs that are compiled for a context or a
batch that was not there before, prompts of a context that are computed cold. Shares nothing with the catalogue, nor
with the model that other faults are put into.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

CONTEXTS = (4, 16, 64, 128, 512, 1024, 2048, 4096, 8192, 16384)
USERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
UNITS = ("req/s", "output tok/s", "input tok/s", "prompt tok/s", "total tok/s")
HEAD = "context_tokens,users,value,unit,success_pct,status"


@dataclass(frozen=True)
class Server:
    """Seconds for reading the weights, for a thousand cached tokens, for a token's arithmetic; places; length."""

    weights: float
    cache: float
    token: float
    places: int
    answer: int
    overhead: float

    def rate(self, context: int, users: int, cold: float = 1.0) -> float:
        """Requests a second of a closed loop; prompts take `cold` times as long."""
        batch = min(users, self.places)
        step = max(self.weights + batch * self.cache * context / 1000, batch * self.token) + 0.001
        prompt = cold * context * self.token
        busy = prompt + self.answer * step / batch
        return min(users / (self.overhead + prompt + self.answer * step), 1 / busy)


@dataclass
class Cell:
    """One cell as it truly was: requests, the seconds that they took, the share that was answered."""

    context: int
    users: int
    answer: int
    requests: int
    seconds: float
    success: float = 1.0
    state: str = "ok"

    @property
    def rate(self) -> float:
        """Answered requests a second."""
        return self.success * self.requests / self.seconds


@dataclass
class Grid:
    """Cells in the order of measuring."""

    cells: list[Cell]
    digits: int
    lengths_told: bool

    def text(self, unit: str) -> str:
        """The CSV in a unit."""
        lines = [HEAD + ",output_tokens" * self.lengths_told]
        for cell in self.cells:
            first = unit.partition("/")[0].split()[0]
            each = {"req": 1, "output": cell.answer, "total": cell.context + cell.answer}.get(first, cell.context)
            value = f"{cell.rate * each:.{self.digits}f}" if cell.rate else ""
            length = f",{cell.answer}" if self.lengths_told else ""
            lines.append(f"{cell.context},{cell.users},{value},{unit},{100 * cell.success:.0f},{cell.state}{length}")
        return "\n".join(lines) + "\n"


def some_server(dice: random.Random) -> Server:
    """Any server: from a large model on slow memory to a small one on fast."""
    weights = dice.uniform(0.002, 0.06)
    return Server(
        weights=weights,
        cache=dice.uniform(0.0, 0.0005),
        token=weights / dice.uniform(50, 600),
        places=dice.choice((4, 16, 64, 256)),
        answer=dice.choice((1, 16, 64, 128, 256)),
        overhead=dice.uniform(0.01, 0.5),
    )


def _noise(dice: random.Random, share: float) -> float:
    """Even within that share, or with tails that reach beyond it."""
    return dice.choice((dice.uniform(1 - share, 1 + share), dice.lognormvariate(0, share)))


def _axes(dice: random.Random) -> tuple[list[int], list[int]]:
    return (
        sorted(dice.sample(CONTEXTS, dice.randint(3, 8))),
        sorted({1, *dice.sample(USERS, dice.randint(3, 8))}),
    )


def clean_grid(seed: int) -> Grid:
    """A grid whose cells were each measured on an idle server; the same seed gives the same."""
    dice = random.Random(seed)  # noqa: S311 - simulated
    server, (contexts, users) = some_server(dice), _axes(dice)
    noise, rounds = dice.choice((0.0, 0.02, 0.1, 0.25, 0.25)), dice.choice((1, 1, 1, 4))
    start, cold = dice.choice((0.0, 0.0, dice.uniform(5, 120))), dice.choice((1.0, 1.0, dice.uniform(2, 40)))
    by_context, by_batch = (dice.choice((0.0, 0.0, dice.uniform(3, 90))) for _ in range(2))
    patience, errors = dice.choice((60.0, 600.0, 1e9)), dice.choice((0.0, 0.0, 0.02))
    seen: set[tuple[str, int]] = set()
    cells = []
    for context, user in ((context, user) for context in contexts for user in users):
        first, batch = ("context", context) not in seen, ("batch", min(user, server.places))
        seconds = rounds * user / server.rate(context, user, cold if first else 1.0) * _noise(dice, noise)
        extra = by_context * first + by_batch * (batch not in seen) + start * (not seen)
        seen |= {("context", context), batch}
        cell = Cell(context, user, server.answer, rounds * user, seconds + extra)
        if seconds > patience * rounds:  # what was left of it was cancelled, or worked off before the next one
            cell.success, cell.seconds, cell.state = patience * rounds / seconds, patience * rounds, "timeout"
        elif user >= 100:
            cell.success -= dice.uniform(0, errors)
        cells.append(cell)
    return Grid(cells, dice.choice((1, 2, 3)), lengths_told=dice.random() < 0.3)


def overloaded_grid(seed: int, *, drained: bool) -> Grid:
    """A grid with loads that are too much: the client gives up after its timeout, and the rest of them is left over.

    Not drained, the server works that off before it looks at the next cell, by which that is late. The drained one has
    a slow start and compiles instead.
    """
    dice = random.Random(seed)  # noqa: S311 - simulated
    while True:
        server, contexts = some_server(dice), sorted(dice.sample(CONTEXTS, dice.randint(3, 8)))
        users = [1, 8, 64, dice.choice((512, 1024, 2048))]
        patience, noise = dice.uniform(20, 120), dice.choice((0.0, 0.02, 0.1, 0.25))
        compiling = dice.choice((0.0, dice.uniform(3, 90))) if drained else 0.0
        cells: list[Cell] = []
        left, late = 0.0, 0
        for context, user in ((context, user) for context in contexts for user in users):
            alone = user / server.rate(context, user) * _noise(dice, noise)
            waiting = compiling * (user == users[0]) if drained else left
            late += left > 4 * alone and user == users[0]
            cell = Cell(context, user, server.answer, user, waiting + alone)
            left = max(0.0, alone - patience)
            if left:
                cell.success, cell.seconds = patience / alone, patience
            cells.append(cell)
        if late > 1 and all(cell.success < 1 or cell.seconds <= patience for cell in cells):
            return Grid(cells, dice.choice((2, 3)), lengths_told=dice.random() < 0.3)
