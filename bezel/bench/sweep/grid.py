"""The cells of a sweep: contexts x users, how many requests each takes, and which of them cannot be.

Leaves out what is known of each: `surface`, `validity`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bezel.bench.result.cell_status import infeasible
from bezel.bench.sweep.cell_request import CellWanted
from bezel.bench.sweep.wording import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Literal

# What published sweeps of this family take: 13 contexts by 12 numbers of users.
CONTEXTS = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
USERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
OUTPUT_TOKENS = 128
LEAST_REQUESTS = 16
REQUESTS_PER_USER = 3  # fewer are not known to be steady (checks of a cell)

Place = tuple[int, int]
"""Row (context) and column (users) of a cell."""


@dataclass(frozen=True)
class Grid:
    """What is swept.

    Attributes:
        contexts: Prompt tokens, rising.
        users: Of a closed loop, rising.
        output_tokens: Of every answer: one table has one length.
        least_requests: Of a cell, however few its users.
        requests_per_user: Of a cell.
        seed: Of the prompts' words.
    """

    contexts: tuple[int, ...] = CONTEXTS
    users: tuple[int, ...] = USERS
    output_tokens: int = OUTPUT_TOKENS
    least_requests: int = LEAST_REQUESTS
    requests_per_user: int = REQUESTS_PER_USER
    seed: int = 1

    def places(self) -> list[Place]:
        """All cells, context by context."""
        return [(row, column) for row in range(len(self.contexts)) for column in range(len(self.users))]

    def requests(self, place: Place) -> int:
        """How many requests that cell takes."""
        return max(self.least_requests, self.requests_per_user * self.users[place[1]])

    def wanted(self, place: Place) -> CellWanted:
        """What to measure there."""
        return CellWanted(
            context_tokens=self.contexts[place[0]],
            users=self.users[place[1]],
            output_tokens=self.output_tokens,
            requests=self.requests(place),
            seed=self.seed,
        )

    def full_requests(self, without: Collection[Place] = ()) -> int:
        """What a full sweep sends: the requests of all cells but those that cannot be."""
        return sum(self.requests(place) for place in self.places() if place not in without)

    def told(self, place: Place) -> str:
        """The cell, for a reader."""
        return f"context {self.contexts[place[0]]}, {counted(self.users[place[1]], 'users')}"


@dataclass(frozen=True)
class Bounds:
    """What is known of the server before anything is asked; None is not known.

    Attributes:
        max_model_len: Tokens of prompt and answer together.
        kv_tokens: Tokens of the longest request that the KV cache holds, by the planner's rules.
        capacity: Requests that the platform lets through at once: instances x concurrency.
        unmakable: Contexts of which no prompt can be made, and why: too short for the chat's own tokens.
    """

    max_model_len: int | None = None
    kv_tokens: int | None = None
    capacity: int | None = None
    unmakable: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """Why a cell is never asked, and the state that it has in the result."""

    state: Literal["infeasible", "queueing"]
    reason: str


def refusal(grid: Grid, bounds: Bounds, place: Place) -> Refusal | None:
    """The rule that keeps a cell from being asked, with its arithmetic; None where nothing does."""
    context, users = grid.contexts[place[0]], grid.users[place[1]]
    rule = bounds.unmakable.get(context) or infeasible(
        context, grid.output_tokens, max_model_len=bounds.max_model_len, kv_cache_tokens=bounds.kv_tokens
    )
    if rule:
        return Refusal("infeasible", rule)
    if bounds.capacity is not None and users > bounds.capacity:
        reason = f"{users} users > instances x concurrency = {bounds.capacity}: the platform's queue would be measured"
        return Refusal("queueing", reason)
    return None


def refusals(grid: Grid, bounds: Bounds) -> dict[Place, Refusal]:
    """The cells that are never asked."""
    return {place: why for place in grid.places() if (why := refusal(grid, bounds, place))}
