"""Resource types of Compute Engine's networks, subnetworks and firewall rules, for machines without external addresses.

Properties that such a program does not need are refused in Check by name; in the state they are the same as with the
published provider.
"""

from collections.abc import Collection, Mapping
from typing import Any

from bezel_pulumi_offline.google.errors import failing
from bezel_pulumi_offline.lifecycle.resource import go_quote
from bezel_pulumi_offline.lifecycle.values import Properties
from bezel_pulumi_offline.resources.compute import ComputeOperations

_CHANGED_BY_VERB = {"ipCidrRange": "expandIpCidrRange", "privateIpGoogleAccess": "setPrivateIpGoogleAccess"}


class Subnetwork(ComputeOperations):
    """Operations of a subnetwork: every body disables logging, and each property is changed by its own verb."""

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the subnetwork."""
        return {**super().body(planned, updating=updating), "logConfig": {"enable": False}}

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Expand the range, and switch private Google access."""
        del prior
        for name, verb in _CHANGED_BY_VERB.items():
            if name in changed:
                with failing(f"Error updating {self.kind.title} {go_quote(resource_id)}"):
                    content = {name: planned[name]} if planned[name] else {}  # a false is left out, as everywhere
                    answer = self.call("POST", f"{resource_id}/{verb}", self.kind.query, content)
                self.wait_for_operation(answer, f"Updating {self.kind.title}")
        return self.expect(resource_id, planned)


class Firewall(ComputeOperations):
    """Operations of a firewall rule: an update sends every part of it, empty ones too."""

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the rule."""
        sent = {**super().body(planned, updating=updating), "logConfig": {"enable": False}}
        if not updating:
            return sent
        silent = ("denied", "destinationRanges", "sourceServiceAccounts", "sourceTags", "targetServiceAccounts")
        ranges: Properties = {"allowed": [], "sourceRanges": [], "targetTags": []}
        return {**{name: [] for name in silent}, "description": "", "disabled": False, **ranges, **sent}
