"""Reachability of a machine and from it, checked anew for each connection, since networks change."""

import contextlib
import ipaddress
import os
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bezel_base.loopback.peer_uid import owner_of
from bezel_localcloud.core.store import Store
from bezel_localcloud.machines.node_spec import NodeSpec
from bezel_localcloud.services.cloud_run.runtime.instance import INSTANCE_VARIABLE
from bezel_localcloud.services.compute.vpc import has_nat, is_allowed, private_google_access

NODE_VARIABLE = "LOCALCLOUD_NODE"
_MARKS = tuple(f"{name}=".encode() for name in (INSTANCE_VARIABLE, NODE_VARIABLE))
# The latest owners are checked first: a gateway makes many connections.
_recent: deque[Path] = deque(maxlen=4)


def owner(peer: tuple[str, int], here: tuple[str, int]) -> Mapping[str, str]:
    """The variables of the marked process that holds the other end of a connection.

    Args:
        peer: Its address and port, as seen by the process that accepted the connection.
        here: Address and port of this end: one port of the other side may have several connections at a time.

    Returns:
        {} if no instance and no machine of a cloud holds it.
    """
    end = owner_of(peer, here)
    if end is None or end.uid != os.geteuid():
        return {}
    for folder in (*_recent, *Path("/proc").glob("[0-9]*")):
        with contextlib.suppress(OSError):  # the process has ended, or is another user's
            entries = (folder / "environ").read_bytes().split(b"\0")
            if any(entry.startswith(_MARKS) for entry in entries) and _holds(folder, end.inode):
                if folder not in _recent:
                    _recent.appendleft(folder)
                pairs = (entry.decode(errors="replace").partition("=") for entry in entries if entry)
                return {name: value for name, _, value in pairs}
    return {}


def _holds(folder: Path, inode: int) -> bool:
    return any(_link(entry) == f"socket:[{inode}]" for entry in (folder / "fd").iterdir())


def _link(entry: Path) -> str:
    try:
        return os.readlink(entry)  # noqa: PTH115 - half as dear, and there are hundreds
    except OSError:
        return ""


# A host of the internet (RFC 5737): the address of every process that is in no network of the cloud.
_STRANGER = "203.0.113.7"


@dataclass(frozen=True)
class Ways:
    """The network around one machine.

    Attributes:
        subnetwork_of: Instance id -> subnetwork that the Cloud Run instance sends from,
            `projects/P/regions/R/subnetworks/S`, "" for one without direct VPC egress.
    """

    store: Store
    spec: NodeSpec
    subnetwork_of: Callable[[str], str]

    def internet(self) -> bool:
        """Whether the machine reaches the internet."""
        return bool(self.spec.external_address) or has_nat(self.store, self.spec.subnetwork)

    def google(self) -> bool:
        """Whether it reaches Google's APIs and registries."""
        return self.internet() or private_google_access(self.store, self.spec.subnetwork)

    def admits(self, sender: Mapping[str, str], address: str, port: int) -> bool:
        """Whether a connection from a process reaches a port of the machine.

        Args:
            sender: Variables of the process, see socket_owner.py.
            address: The machine's address that it was made to; one to the external address comes from the internet.
            port: Port of the machine.
        """
        if sender.get(NODE_VARIABLE) == self.spec.name:
            return True  # from the machine itself: no firewall is between
        source = _STRANGER if address == self.spec.external_address else self._address_of(sender)
        return source is not None and is_allowed(
            self.store,
            network=self.spec.network,
            tags=self.spec.tags,
            service_account=self.spec.service_account,
            source=source,
            port=port,
        )

    def _address_of(self, sender: Mapping[str, str]) -> str | None:
        """Address of a sender in the machine's network, None for one outside it."""
        instance = sender.get(INSTANCE_VARIABLE)
        subnetwork = self.store.get("subnetwork", self.subnetwork_of(instance)) if instance else None
        if subnetwork is None or subnetwork["network"] != self.spec.network:
            return None
        return str(ipaddress.IPv4Network(subnetwork["ipCidrRange"])[2])
