"""Grid of a sweep: contexts x users, the requests of each cell, and the infeasible cells.

Leaves out the knowledge of each cell: `bezel_bench.sweep.inference.surface`, `bezel_bench.sweep.inference.validity`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from bezel_base.text.counting import format_count
from bezel_bench.result.cell_status import infeasible
from bezel_bench.sweep.cell_request import CellRequest

# As in published sweeps of this family: 13 contexts by 12 numbers of users.
CONTEXTS = (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
USERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
OUTPUT_TOKENS = 128
LEAST_REQUESTS = 16
REQUESTS_PER_USER = 3  # with fewer the checks of a cell cannot confirm a steady state

Place = tuple[int, int]
"""Row (context) and column (users) of a cell."""


@dataclass(frozen=True)
class Grid:
    """Cells of a sweep.

    Attributes:
        contexts: Prompt tokens, rising.
        users: Users of a closed loop, rising.
        output_tokens: Tokens of every response: one table has one length.
        least_requests: The least requests of a cell, however few its users.
        requests_per_user: The requests of a cell per user.
        seed: The seed of the prompts' words.
    """

    contexts: tuple[int, ...] = CONTEXTS
    users: tuple[int, ...] = USERS
    output_tokens: int = OUTPUT_TOKENS
    least_requests: int = LEAST_REQUESTS
    requests_per_user: int = REQUESTS_PER_USER
    seed: int = 1

    def places(self) -> list[Place]:
        """Return all cells, context by context."""
        return [(row, column) for row in range(len(self.contexts)) for column in range(len(self.users))]

    def requests(self, place: Place) -> int:
        """Return the number of requests of a cell."""
        return max(self.least_requests, self.requests_per_user * self.users[place[1]])

    def request(self, place: Place) -> CellRequest:
        """Return the load of a cell."""
        return CellRequest(
            context_tokens=self.contexts[place[0]],
            users=self.users[place[1]],
            output_tokens=self.output_tokens,
            requests=self.requests(place),
            seed=self.seed,
        )

    def full_requests(self, without: Collection[Place] = ()) -> int:
        """Return the requests of a full sweep: those of all cells except the infeasible ones."""
        return sum(self.requests(place) for place in self.places() if place not in without)

    def describe(self, place: Place) -> str:
        """Return the cell as text."""
        return f"context {self.contexts[place[0]]}, {format_count(self.users[place[1]], 'users')}"


@dataclass(frozen=True)
class Bounds:
    """Limits of the server known in advance; None is unknown.

    Attributes:
        max_model_len: Tokens of prompt and response together.
        kv_tokens: Tokens of the longest request that the KV cache holds, by the planner's rules.
        capacity: Requests that the platform admits at once: instances x concurrency.
        unmakable: Contexts for which no prompt exists, and why: they are below the chat's own tokens.
    """

    max_model_len: int | None = None
    kv_tokens: int | None = None
    capacity: int | None = None
    unmakable: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Refusal:
    """Reason why a cell is never measured, and its state in the result."""

    state: Literal["infeasible", "queueing"]
    reason: str


def refusal(grid: Grid, bounds: Bounds, place: Place) -> Refusal | None:
    """Return the rule that excludes a cell, with its arithmetic; None where no rule does."""
    context, users = grid.contexts[place[0]], grid.users[place[1]]
    rule = bounds.unmakable.get(context) or infeasible(
        context, grid.output_tokens, max_model_len=bounds.max_model_len, kv_cache_tokens=bounds.kv_tokens
    )
    if rule:
        return Refusal("infeasible", rule)
    if bounds.capacity is not None and users > bounds.capacity:
        reason = (
            f"{format_count(users, 'users')} > instances x concurrency = {bounds.capacity}: the cell would "
            "measure the platform's queue"
        )
        return Refusal("queueing", reason)
    return None


def refusals(grid: Grid, bounds: Bounds) -> dict[Place, Refusal]:
    """Return the cells that are never measured."""
    return {place: why for place in grid.places() if (why := refusal(grid, bounds, place))}
