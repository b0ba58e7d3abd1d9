"""Dynamic provider of `LeaseAfterChecks`: returns a lease after the checks of a deploy that runs outside its hours.

A deploy leases a machine at any time, as it checks the server. Outside the hours it is of no use afterwards, and would
be paid for until the next end. Leaves what a destroy deletes to `TpuRequest`. A killed run leaves the lease,
which ends by itself, and the next run returns it. The class is pickled into the stack's state by reference: neither it
nor this module may be renamed, and it holds no data.
"""

from typing import Any

from pulumi.dynamic import CreateResult, DiffResult, ResourceProvider, UpdateResult

from bezel.leases.clock import clock_of
from bezel.leases.state.observation import DesiredState, Goal
from bezel_components.base.dynamic import differ
from bezel_components.providers import lease_properties as lease

_DECLARED = ("hours", "request", "checked")


class LeaseAfterChecksProvider(ResourceProvider):
    """Provider of `LeaseAfterChecks`. Inputs: project, name, stack, back_end, zones, hours, request, checked, urn."""

    serialize_as_secret_always = False
    clock = staticmethod(clock_of)
    """Clock of this process."""

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        """Report other hours, another request, and another check."""
        return DiffResult(changes=differ(_olds, _news, _DECLARED))

    def create(self, props: dict[str, Any]) -> CreateResult:
        """Return the lease, if the present time is outside its hours.

        Raises:
            LeaseDeployError: It is not gone, or not in time.
        """
        self._keep_to_hours(props)
        return CreateResult(f"{props['name']}/after-checks", lease.own_properties(props))

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        """Return the lease, if the present time is outside its hours.

        Raises:
            LeaseDeployError: It is not gone, or not in time.
        """
        self._keep_to_hours(_news)
        return UpdateResult(lease.own_properties(_news))

    def _keep_to_hours(self, props: dict[str, Any]) -> None:
        clock = self.clock()
        if not lease.is_in_hours(props, clock.now()):
            spec = lease.spec_of({**props, "subnetworks": {}, "body": {}})
            lease.reach(DesiredState(spec, Goal.GONE), clock, props.get("urn"))
