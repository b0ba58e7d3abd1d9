"""Dynamic provider of `TpuRequest`: stores the request for a lease, finds it again, deletes it.

Returns as soon as Google has stored the request; `TpuNode` waits, because the process that runs both has four threads
and no time limit. Deleting removes everything of the lease in every zone, also in those that the node's wait moved on
to. The class is pickled into the stack's state by reference: neither it nor this module may be renamed, and it holds no
data.
"""

from collections.abc import Mapping
from typing import Any

from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    CreateResult,
    DiffResult,
    ReadResult,
    ResourceProvider,
    UpdateResult,
)

from bezel.leases.clock import PlatformClock, clock_of, rfc3339
from bezel.leases.inputs import problems_of
from bezel.leases.names import plain
from bezel.leases.state.observation import DesiredState, Goal
from bezel_components.providers import lease_properties as lease

_IDENTITY = ("project", "name", "stack", "back_end")
_SETTINGS = ("zones", "subnetworks", "run_seconds", "provisioning_deadline_seconds", "boot_deadline_seconds", "hours")


class TpuRequestProvider(ResourceProvider):
    """Provider of `TpuRequest`. Properties: see `lease_properties`; asked, state."""

    serialize_as_secret_always = False
    clock = staticmethod(clock_of)
    """Clock of this process."""

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        """Report settings that cannot work, in previews already; values not known yet pass."""
        return CheckResult(news, [CheckFailure(key, text) for key, text in problems_of(news)])

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Replace the lease for another body, as Google updates none; new zones or waits apply to the next lease.

        A startup script that does the same is no other body.
        """
        replaces = [key for key in _IDENTITY if _olds.get(key) != _news.get(key)]
        replaces += lease.differing_body_paths(_olds, _news)
        old, new = _olds.get("subnetworks"), _news.get("subnetworks")
        if not (isinstance(old, dict) and isinstance(new, dict)):
            replaces += ["subnetworks"]
        else:
            replaces += [f"subnetworks.{region}" for region in old if region in new and old[region] != new[region]]
        changed = any(plain(_olds.get(key)) != plain(_news.get(key)) for key in _SETTINGS)
        return DiffResult(changes=bool(replaces) or changed, replaces=replaces, delete_before_replace=True)

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Request the lease, or adopt an interrupted run's request.

        Raises:
            LeaseDeployError: No zone accepted the request, or it could not be sent.
        """
        clock = self.clock()
        desired, optional = DesiredState(lease.spec_of(props), Goal.STORED), bool(props.get("optional"))
        lease.reach_optional(desired, clock, props.get("request_urn"), optional=optional)
        return CreateResult(
            f"projects/{props['project']}/leases/{props['name']}",
            {**lease.own_properties(props), "asked": _identity(props, clock), "state": "asked", "former_zones": []},
        )

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Keep the lease where it is; record the zones beside the listed ones that may hold it."""
        before = {key: _olds.get(key) for key in ("asked", "state")}
        former = lease.former_zones(_olds, _news)
        return UpdateResult({**lease.own_properties(_news), **before, "former_zones": former})

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        """Record at a refresh whether the lease still exists; an ended one stays, so that it is not bought again.

        A request whose run was killed before it was recorded counts only if a zone has it. With hours, and with
        a fallback, a lease that is not there is no difference.

        Raises:
            LeaseDeployError: The lease could not be read.
        """
        if props.get("asked") and (lease.windows_of(props) or props.get("optional")):
            return ReadResult(id_, {**props, "state": "asked"})
        clock = self.clock()
        leases = lease.observe_all_zones(props, clock)
        if not props.get("asked"):
            if not leases:
                return ReadResult("", {})
            props = {**props, "asked": _identity(props, clock), "former_zones": []}
        live = any(each.is_live for each in leases)
        return ReadResult(id_, {**props, "state": "asked" if live else lease.state_of(leases, props, clock.now())})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        """Delete what is left of the lease in every zone, and wait until it is gone.

        Raises:
            LeaseDeployError: Something is left, or the lease could not be read.
        """
        lease.reach(DesiredState(lease.spec_of(_props), Goal.GONE), self.clock(), _props.get("request_urn"))


def _identity(props: Mapping[str, Any], clock: PlatformClock) -> str:
    return f"{lease.spec_of(props).hash}@{rfc3339(clock.now())}"
