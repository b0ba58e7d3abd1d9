"""A cell's plan, and the server that it is measured on. Shapes only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bezel.bench.server.drain import DEADLINE_SECONDS, DrainClock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bezel.bench.load.plan import Bodies, Load
    from bezel.bench.result.document import Slo
    from bezel.bench.result.manifest_schema import Manifest, ServedBy
    from bezel.bench.server.http_probe import Ask


@dataclass(frozen=True)
class ServerView:
    """A server beside its load.

    Attributes:
        ask: Asks it.
        manifest: What is known of it.
        served: What answers; the manifest's where there are no variants.
        kv_cache_tokens: That its cache holds; None where that is not known.
        drain_seconds: How long it may take to become idle.
    """

    ask: Ask
    manifest: Manifest
    served: ServedBy
    kv_cache_tokens: int | None = None
    drain_seconds: float = DEADLINE_SECONDS
    clock: DrainClock = field(default_factory=DrainClock)


@dataclass(frozen=True)
class CellPlan:
    """What a cell is to be.

    Attributes:
        id: Unique in its document.
        slos: What a request must keep to count for goodput.
    """

    id: str
    load: Load
    bodies: Bodies
    variant: str = ""
    repeat: int = 0
    slos: Sequence[Slo] = ()
