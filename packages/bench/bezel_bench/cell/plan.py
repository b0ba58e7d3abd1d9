"""Plan of a cell, and the view of the server that it is measured on. Shapes only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bezel_bench.server.drain import DEADLINE_SECONDS, DrainClock
from bezel_bench.server.sampling import EVERY_SECONDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel_bench.load.plan import Bodies, Load
    from bezel_bench.result.document import Slo
    from bezel_bench.result.records import Manifest, ServedBy
    from bezel_bench.server.http_probe import Ask


@dataclass(frozen=True)
class ServerView:
    """Access to a server outside its load.

    Attributes:
        ask: Sends it a single request.
        manifest: Its manifest.
        served: The model and engine that serve; the manifest's where there are no variants.
        kv_cache_tokens: Tokens that its cache holds; None where unknown.
        drain_seconds: The longest wait for it to become idle.
        sample_seconds: The time between two reads of its metrics during a load.
    """

    ask: Ask
    manifest: Manifest
    served: ServedBy
    kv_cache_tokens: int | None = None
    drain_seconds: float = DEADLINE_SECONDS
    sample_seconds: float = EVERY_SECONDS
    clock: DrainClock = field(default_factory=DrainClock)


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
