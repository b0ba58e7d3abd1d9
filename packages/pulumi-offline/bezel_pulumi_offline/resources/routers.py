"""Resource types of Compute Engine's routers, and of the address translation (NAT), a part of a router's body.

There is no recording of these. Their rows follow the provider's published source (services/compute), where
`resource_compute_router_nat.go` reads the router, changes its list of `nats` and writes that list back with PATCH.
"""

import threading
from collections.abc import Collection, Mapping
from typing import Any

from bezel_pulumi_offline.google.errors import (
    ExistsError,
    ProviderError,
    RequestError,
    failing,
    not_created,
    prefix_error,
)
from bezel_pulumi_offline.lifecycle.resource import LOCAL, fill, go_quote
from bezel_pulumi_offline.lifecycle.values import Properties
from bezel_pulumi_offline.resources.compute import ComputeOperations, version_one

_ITS_ROUTER = "projects/{project}/regions/{region}/routers/{router}"
# Lists that the provider sends although they are empty.
_EMPTY_LISTS = ("natIps", "drainNatIps", "subnetworks", "nat64Subnetworks", "rules")
# The engine creates two gateways of one router at the same time, and each create writes the whole list.
_LOCK = threading.Lock()


class Router(ComputeOperations):
    """Operations of a router: every body names its BGP settings, null where it has none."""

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the router."""
        return {"bgp": None, **super().body(planned, updating=updating)}


class Nat(ComputeOperations):
    """Operations of a router's address translation: one entry of the router's list."""

    def create(self, planned: Mapping[str, Any]) -> tuple[str, Properties]:
        """Add the entry to the router's list."""
        title = self.kind.title
        with _LOCK:
            entries = self._entries(planned)
            if any(entry.get("name") == planned["name"] for entry in entries):
                raise ExistsError(f"Unable to create {title}, existing object already found: {planned['name']}. ")
            try:
                answer = self._write(planned, [*entries, self.body(planned)])
            except RequestError as error:
                raise not_created(f"Error creating {title}", error) from None
            try:
                self.wait_for_operation(answer, f"Creating {title}")
            except ProviderError as error:
                raise prefix_error(f"Error waiting to create {title}", error) from None
        resource_id = fill(self.kind.id, planned)
        return self.read_created(resource_id, planned)

    def read(self, resource_id: str, values: Mapping[str, Any]) -> Properties | None:
        """Read the entry from its router; None where the entry or the router is gone."""
        router = super().read(resource_id, values)
        for entry in (router or {}).get("nats", []):
            if entry.get("name") == resource_id.rpartition("/")[2]:
                return {name: version_one(value) for name, value in entry.items()}
        return None

    def update(
        self, resource_id: str, planned: Mapping[str, Any], prior: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Write the list with the planned entry; values of it that the program does not set are unchanged."""
        del prior
        if set(changed) - LOCAL:
            with _LOCK:
                entries = self._entries(planned)
                places = [index for index, entry in enumerate(entries) if entry.get("name") == planned["name"]]
                if not places:
                    raise ProviderError(f'Unable to update {self.kind.title} "{resource_id}" - not found in list')
                entries[places[0]] = {**entries[places[0]], **self.body(planned, updating=True)}
                with failing(f"Error updating {self.kind.title} {go_quote(resource_id)}"):
                    answer = self._write(planned, entries)
                self.wait_for_operation(answer, f"Updating {self.kind.title}")
        return self.expect(resource_id, planned)

    def delete(self, resource_id: str, prior: Mapping[str, Any]) -> None:
        """Remove the entry from the router's list, if it is there."""
        del resource_id
        with _LOCK, failing(f"Error when reading or editing {self.kind.title}", unless_absent=True):
            entries = self._entries(prior)
            left = [entry for entry in entries if entry.get("name") != prior["name"]]
            if left != entries:
                self.wait_for_operation(self._write(prior, left), f"Deleting {self.kind.title}")

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the entry."""
        return {**{name: [] for name in _EMPTY_LISTS}, **super().body(planned, updating=updating)}

    def _entries(self, values: Mapping[str, Any]) -> list[Properties]:
        router = self.call("GET", fill(_ITS_ROUTER, values), self.kind.query)
        return list(router.get("nats", []))

    def _write(self, values: Mapping[str, Any], entries: list[Properties]) -> Any:
        return self.call("PATCH", fill(_ITS_ROUTER, values), self.kind.query, {"nats": entries})
