"""Specification of a machine with accelerators, and the protocol of a host that runs it.

Owns the shapes between the APIs that sell machines (TPU, Compute) and the machines themselves. Leaves out both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class NodeSpec:
    """One machine as requested.

    Attributes:
        name: Full resource name: `projects/P/locations/Z/nodes/N` or `projects/P/zones/Z/instances/N`.
        hardware: A TPU slice ("v6e-4") or a machine type ("g2-standard-96").
        metadata: Its attributes, the startup script among them.
        service_account: E-mail of its tokens' account, "" for none.
        network: `projects/P/global/networks/N`.
        subnetwork: `projects/P/regions/R/subnetworks/S`.
        address: Internal address, one of this machine's loopback.
        external_address: "" where it has none.
        tags: Network tags, for firewall rules.
    """

    name: str
    hardware: str
    metadata: Mapping[str, str] = field(repr=False)
    service_account: str
    network: str
    subnetwork: str
    address: str
    external_address: str = ""
    tags: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The last part of the name."""
        return self.name.rpartition("/")[2]


class NodeHost(Protocol):
    """Runs machines; every call returns at once."""

    def boot(self, spec: NodeSpec) -> None:
        """Start a machine; do nothing if one of that name runs."""

    def end(self, name: str) -> None:
        """End a machine and all that runs on it; do nothing if there is none."""

    def set_metadata(self, name: str, metadata: Mapping[str, str]) -> None:
        """Replace the attributes that a running machine reads; do nothing if there is none of that name."""

    def guest_attributes(self, name: str) -> Mapping[str, str]:
        """Guest attributes that it wrote, by `namespace/key`; {} if there is no such machine."""

    def serial_output(self, name: str) -> str:
        """Output of its serial console; "" if there is no such machine."""

    async def close(self) -> None:
        """End all machines; returns when nothing of them is left."""
