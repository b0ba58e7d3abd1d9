"""What the engine does with the two resources of a lease, and what it keeps of them: as little as a kill leaves it."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bezel_components.providers.lease_hours import LeaseAfterChecksProvider
from bezel_components.providers.tpu_node import TpuNodeProvider
from bezel_components.providers.tpu_request import TpuRequestProvider
from tests.support.leases.harness import NAME, PATIENCE, RUN, STACK, SUBNETWORKS, ZONES, body_of

if TYPE_CHECKING:
    from tests.support.leases.fake_lease_api import FakeLeaseApi

Props = dict[str, Any]


class KilledError(Exception):
    """The process is dead: whatever it found is not recorded."""


@dataclass
class Stack:
    """A stack with one lease, on a world.

    Attributes:
        request: Recorded outputs of the request, None without one.
        node: Recorded outputs of the node, None without one.
        after_checks: Recorded outputs of what returns a lease outside its hours, None without one.
        did: What was done, in order.
    """

    world: FakeLeaseApi
    kind: str
    token: str = "planted-token-0"
    request: Props | None = None
    node: Props | None = None
    after_checks: Props | None = None
    did: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        clock = {"clock": staticmethod(lambda: self.world.clock)}
        self.requests: TpuRequestProvider = type("Requests", (TpuRequestProvider,), clock)()
        self.nodes: TpuNodeProvider = type("Nodes", (TpuNodeProvider,), clock)()
        self.afters: LeaseAfterChecksProvider = type("Afters", (LeaseAfterChecksProvider,), clock)()

    def inputs(self, *, image: str = "vllm@sha256:1", zones: tuple[str, ...] = ZONES, **more: Any) -> Props:
        fields = {
            "project": "acme",
            "name": NAME,
            "stack": STACK,
            "back_end": self.kind,
            "zones": [{"zone": zone, "patience_seconds": PATIENCE} for zone in zones],
            "subnetworks": SUBNETWORKS,
            "body": body_of(self.kind, image=image),
            "run_seconds": RUN,
            "provisioning_deadline_seconds": 1800,
            "boot_deadline_seconds": 3600,
        }
        return with_floats(fields | more)

    def up(self, *, renew: bool = False, checked: str = "", **inputs: Any) -> None:
        """Deploy; with hours, `checked` stands for what makes the checks run, and the lease is kept to its hours."""
        shared = self.inputs(**inputs)
        assert self.requests.check({}, shared).failures == []
        self._request(shared)
        assert self.request is not None
        props = {
            "request": self.request["asked"],
            "former_zones": self.request["former_zones"],
            "renew": renew,
            "hourly_usd": {"us-east5-a": 5.4},
            "port": 8000.0,
            **({"checked": checked} if "hours" in shared else {}),
        }
        news = shared | props
        if self.node is None:
            self.node = self._keep("node create", self.nodes.create(news).outs)
        elif self._keep("node diff", self.nodes.diff("n", self.node, news)).changes:
            self.node = self._keep("node update", self.nodes.update("n", self.node, news).outs)
        if "hours" in shared:
            self._after_checks({**shared, "request": self.request["asked"], "checked": checked})

    def _after_checks(self, news: Props) -> None:
        if self.after_checks is None:
            self.after_checks = self._keep("after checks create", self.afters.create(news).outs)
        elif self._keep("after checks diff", self.afters.diff("a", self.after_checks, news)).changes:
            self.after_checks = self._keep("after checks update", self.afters.update("a", self.after_checks, news).outs)

    def _request(self, news: Props) -> None:
        if self.request is not None:
            diff = self.requests.diff("r", self.request, news)
            if diff.replaces:
                assert diff.delete_before_replace
                self._keep("request delete", self.requests.delete("r", self.request))
                self.request = None
            elif diff.changes:
                self.request = self._keep("request update", self.requests.update("r", self.request, news).outs)
        if self.request is None:
            self.request = self._keep("request create", self.requests.create(news).outs)

    def down(self) -> None:
        """Destroy."""
        self.node = self.after_checks = None
        if self.request is not None:
            self._keep("request delete", self.requests.delete("r", self.request))
            self.request = None

    def refresh(self) -> None:
        """Read both."""
        assert self.request is not None
        assert self.node is not None
        self.request = self._keep("request read", self.requests.read("r", self.request).outs)
        self.node = self._keep("node read", self.nodes.read("n", self.node).outs)

    def _keep(self, what: str, value: Any) -> Any:
        if self.token in self.world.dead:
            raise KilledError(what)
        self.did.append(what)
        return with_floats(value) if isinstance(value, dict) else value


def with_floats(value: Any) -> Any:
    """As the engine hands it on: through JSON, every number a float, nulls dropped."""
    value = json.loads(json.dumps(copy.deepcopy(value)), parse_int=float)
    return _without_nulls(value)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
