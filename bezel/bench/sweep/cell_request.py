"""One load that is to be measured, and what measures it. Nothing here sends anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bezel.bench.result.document import Cell


@dataclass(frozen=True)
class CellWanted:
    """What a cell shall be.

    Attributes:
        context_tokens: Of each prompt.
        output_tokens: Of each answer.
        requests: How many are sent.
        users: Of a closed loop; None where `rate` says how many requests a second are sent.
        rate: Of an open loop, requests a second.
        variant: Which of several servers; "" where there is one.
        repeat: 0 for the first time that this load is measured.
        seed: Of the prompts' words.
        run: The same one and the same load give the same prompts; another one, prompts that no cache holds.
        deadline_seconds: The cell ends after that long, whatever it has; None leaves it to the measure.
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

    @property
    def id(self) -> str:
        """Unique among the cells of one document."""
        load = f"u{self.users}" if self.rate is None else f"q{self.rate:g}"
        parts = [*([self.variant] if self.variant else []), f"c{self.context_tokens}", load]
        return "-".join([*parts, *([f"r{self.repeat}"] if self.repeat else [])])


Measure = Callable[[CellWanted], "Cell"]
"""Sends the load once the server is idle, and tells what came of it.

A server that fails gives a cell in the state failed; what it raises ends everything (a mistake of the caller's, an
interrupt).
"""
