"""Request for a cell: one load to be measured, and the type of its measure. Sends nothing. Pure."""

from collections.abc import Callable
from dataclasses import dataclass

from bezel_bench.result.document import Cell


@dataclass(frozen=True)
class CellRequest:
    """The requested load of one cell.

    Attributes:
        context_tokens: Tokens of each prompt.
        output_tokens: Tokens of each response.
        requests: The number of requests.
        users: Users of a closed loop; None where `rate` is set.
        rate: Requests per second of an open loop.
        evenly: Whether they are evenly spaced; else each is independent of the others (Poisson).
        variant: The name of one of several servers; "" where there is one.
        repeat: 0 for the first measurement of this load.
        seed: The seed of the prompts' words, and of the gaps of a rate.
        run: The same value and the same load give the same prompts; another value, prompts that no cache holds.
        deadline_seconds: The time after which the cell ends in any case; None leaves it to the measure.
    """

    context_tokens: int
    output_tokens: int
    requests: int
    users: int | None = None
    rate: float | None = None
    variant: str = ""
    repeat: int = 0
    seed: int = 0
    run: str = ""
    deadline_seconds: float | None = None
    evenly: bool = False

    @property
    def id(self) -> str:
        """Return an id that is unique among the cells of one document."""
        load = f"u{self.users}" if self.rate is None else f"q{self.rate:g}"
        parts = [*([self.variant] if self.variant else []), f"c{self.context_tokens}", load]
        return "-".join([*parts, *([f"r{self.repeat}"] if self.repeat else [])])


Measure = Callable[[CellRequest], Cell]
"""Sends the load once the server is idle, and returns its cell.

A failing server gives a cell in the state failed; an exception (a mistake of the caller's, an interrupt) ends
everything.
"""
