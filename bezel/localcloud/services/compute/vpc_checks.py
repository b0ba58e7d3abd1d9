"""Checks of a network, a subnetwork, a firewall rule or a router against the other resources before it is stored."""

import ipaddress

from bezel.localcloud.core.json_types import Json
from bezel.localcloud.core.store import Store
from bezel.localcloud.services.compute.errors import in_use, not_found, wrong
from bezel.localcloud.services.compute.vpc import users
from bezel.localcloud.services.compute.vpc_kinds import Kind


def check_placed(store: Store, kind: Kind, name: str, body: Json) -> None:
    """Check a resource against those that it names and those in the same network.

    Raises:
        ApiError: 404 for a network or subnetwork that does not exist, 400 for a range that overlaps another one.
    """
    network = body.get("network")
    if network is None:
        return
    if store.get("network", network) is None:
        raise not_found(network)
    if kind.name == "subnetwork":
        own = ipaddress.IPv4Network(body["ipCidrRange"])
        for other, there in store.rows("subnetwork"):
            beside = other != name and there["network"] == network
            if beside and own.overlaps(ipaddress.IPv4Network(there["ipCidrRange"])):
                region, short = other.split("/")[3], other.rpartition("/")[2]
                why = f"Invalid IPCidrRange: {own} conflicts with existing subnetwork '{short}' in region '{region}'."
                raise wrong("resource.ipCidrRange", own, why)
    for nat in body.get("nats", []):
        for one in nat.get("subnetworks", []):
            if store.get("subnetwork", one["name"]) is None:
                raise not_found(one["name"])


def check_unused(store: Store, kind: Kind, name: str) -> None:
    """Check that no resource needs a network or a subnetwork.

    Raises:
        ApiError: 400 with the name of one that does.
    """
    if kind.name in {"network", "subnetwork"}:
        for user in users(store, name):
            raise in_use(kind.name, name, user)
