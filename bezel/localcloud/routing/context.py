"""The context that handlers, controllers and machines get: the project's state, and what reconciles it.

Owns the shapes. Leaves putting it together to `bezel.localcloud.cloud`; so nothing that uses it imports what it is
made of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Mapping, Sequence

    from bezel.localcloud.access.permissions import Access
    from bezel.localcloud.access.tokens import Tokens
    from bezel.localcloud.core.clock import PlatformClock
    from bezel.localcloud.core.json_types import Json
    from bezel.localcloud.core.logbook import Logbook
    from bezel.localcloud.core.objects import ObjectFiles
    from bezel.localcloud.core.operations import Operations
    from bezel.localcloud.core.paths import Paths
    from bezel.localcloud.core.store import Store
    from bezel.localcloud.core.usage_series import Point, Series
    from bezel.localcloud.faults.registry import Faults
    from bezel.localcloud.http.breakpoints import Breakpoints
    from bezel.localcloud.machines.capacity import Held
    from bezel.localcloud.machines.lifecycle import Life
    from bezel.localcloud.machines.node_spec import NodeHost
    from bezel.localcloud.processes.sockets import Sockets


class Services(Protocol):
    """Reconciles Cloud Run services with the store; every call returns at once."""

    def open_front(self, name: str, tag: str = "") -> str:
        """The address of a service's ingress, which is there from now on."""

    def routing(self, service: Json) -> Json:
        """What of a service follows from its revisions: traffic, tags, URLs."""

    def deploy(self, name: str, operation: str, revision: str) -> None:
        """Begin to start a revision."""

    def superseded(self, name: str) -> None:
        """End the deployment that is under way, if any."""

    def rescaled(self, service: Json) -> None:
        """Apply changed bounds to what runs."""

    def removed(self, name: str) -> None:
        """End everything that runs of a service."""

    def held(self, name: str) -> Counter[str]:
        """Instances of a service by their revision."""


class Jobs(Protocol):
    """Runs the executions of Cloud Run jobs."""

    def start(self, name: str) -> None:
        """Run an execution that the store holds."""

    def cancel(self, name: str) -> None:
        """End the tasks of an execution."""

    def removed(self, prefix: str) -> None:
        """End what runs of executions that were deleted."""


class Machines(Protocol):
    """Reconciles requests for machines with the clock."""

    def advance(self) -> None:
        """Bring every request to where it is by now; every handler calls this before it looks."""

    def begin(self, kind: str, name: str, row: Json) -> None:
        """Keep a request that has just come in."""

    def begin_late(self, kind: str, name: str, row: Json) -> None:
        """Let a request come in when its life begins, unless its name is taken then."""

    def move(self, kind: str, name: str, row: Json, life: Life) -> None:
        """Put a request into another state now."""

    def end_all(self, *, lost: bool) -> list[str]:
        """End every machine that runs; their names."""

    def held(self) -> list[Held]:
        """What is counted in stock and quotas."""

    def quotas(self) -> dict[str, int]:
        """What the project may have of each quota."""

    def takes_flex_start(self, zone: str) -> bool:
        """Whether a zone takes requests of that provisioning model."""


class QuotaUse(Protocol):
    """Samples what is used of each quota."""

    def series(self) -> Mapping[Series, Sequence[Point]]:
        """The points of the last day of each series, oldest first."""


class Context(Protocol):
    """One project of the embedded cloud.

    Attributes:
        base: Address of the APIs, set once the daemon listens.
        faults: Injected failures.
        sockets: Where instances listen.
        nodes: Runs the machines that TPU and Compute Engine sell.
    """

    base: str
    layout: Paths
    pace: PlatformClock
    store: Store
    faults: Faults
    access: Access
    operations: Operations
    logbook: Logbook
    objects: ObjectFiles
    tokens: Tokens
    sockets: Sockets
    holds: Breakpoints

    @property
    def services(self) -> Services:
        """Cloud Run services."""

    @property
    def jobs(self) -> Jobs:
        """Cloud Run jobs."""

    @property
    def machines(self) -> Machines:
        """Requests for machines."""

    @property
    def quota_use(self) -> QuotaUse:
        """Samples of the use of quotas."""

    @property
    def nodes(self) -> NodeHost:
        """What runs the machines."""

    def is_enabled(self, api: str) -> bool:
        """Whether the project has enabled an API."""

    @staticmethod
    def shown(service: Json) -> Json:
        """A service as the API shows it."""
