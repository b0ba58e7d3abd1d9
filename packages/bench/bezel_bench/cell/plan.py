"""Plan of a cell, and the view of the server that it is measured on. Shapes only."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from bezel_bench.server.drain import DEADLINE_SECONDS, DrainClock
from bezel_bench.server.sampling import EVERY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bezel_bench.load.plan import Bodies, Load
    from bezel_bench.result.document import Slo
    from bezel_bench.result.records import Manifest
    from bezel_bench.server.http_probe import Ask


@dataclass(frozen=True)
class ServerView:
    """Access to a server outside its load.

    Attributes:
        ask: Sends it a single request.
        describe: Returns its manifest; called after the load, which begins before the models of a result are imported.
        max_model_len: The most tokens of a prompt and its response; None where unknown.
        kv_cache_tokens: Tokens that its cache holds; None where unknown.
        drain_seconds: The longest wait for it to become idle.
        sample_seconds: The time between two reads of its metrics during a load.
    """

    ask: Ask
    describe: Callable[[], Manifest]
    max_model_len: int | None = None
    kv_cache_tokens: int | None = None
    drain_seconds: float = DEADLINE_SECONDS
    sample_seconds: float = EVERY_SECONDS
    clock: DrainClock = field(default_factory=DrainClock)

    @cached_property
    def manifest(self) -> Manifest:
        """Its manifest."""
        return self.describe()


@dataclass(frozen=True)
class CellPlan:
    """Plan of one cell.

    Attributes:
        id: Unique in its document.
        slos: Limits that a request must meet to count for goodput.
    """

    id: str
    load: Load
    bodies: Bodies
    variant: str = ""
    repeat: int = 0
    slos: Sequence[Slo] = ()
