"""What the networks in the store let through: look-ups for whoever runs machines, and for what checks a network.

Pure but for reading the store. Knows rules for what comes in, by the address it comes from; a rule that goes by the tag
or the account of the sender lets nobody in here.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from bezel.localcloud.services.compute.links import relative

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bezel.localcloud.core.json_types import Json
    from bezel.localcloud.core.store import Store

# The setting that tells where a cloud begins to give out addresses. They are ports of this computer in the end, and two
# clouds on it, with networks of the same ranges, would else meet at each first one.
FIRST_ADDRESS = "first address"
_RESERVED = 2  # the first two addresses of a range: the network's and the gateway's


def allowed(store: Store, *, network: str, tags: Iterable[str], service_account: str, source: str, port: int) -> bool:
    """Whether a TCP connection from an address reaches a port of a machine.

    The rule with the least number counts; of two with the same number the one that denies; without any nothing gets in.

    Args:
        store: Where the firewall rules are.
        network: `projects/P/global/networks/N` of the machine.
        tags: Of the machine.
        service_account: E-mail of the machine's account.
        source: Address in the network that it comes from, or one of the internet's.
        port: Of the machine.
    """
    own = set(tags)
    fitting = [
        rule
        for _, rule in store.rows("firewall")
        if rule["network"] == network
        and rule["direction"] == "INGRESS"
        and not rule["disabled"]
        and _targets(rule, own, service_account)
        and _comes_from(rule, source)
        and _on_port(rule, port)
    ]
    first = min(fitting, key=lambda rule: (rule["priority"], not rule.get("denied")), default=None)
    return first is not None and not first.get("denied")


def private_google_access(store: Store, subnetwork: str) -> bool:
    """Whether machines without an external address reach Google's APIs from a subnetwork."""
    found = store.get("subnetwork", subnetwork)
    return bool(found and found["privateIpGoogleAccess"])


def has_nat(store: Store, subnetwork: str) -> bool:
    """Whether machines without an external address reach the internet from a subnetwork."""
    found = store.get("subnetwork", subnetwork)
    if found is None:
        return False
    prefix = f"{subnetwork.rpartition('/subnetworks/')[0]}/routers/"
    return any(
        nat["sourceSubnetworkIpRangesToNat"] != "LIST_OF_SUBNETWORKS"
        or any(one["name"] == subnetwork for one in nat.get("subnetworks", []))
        for _, router in store.rows("router", prefix)
        if router["network"] == found["network"]
        for nat in router.get("nats", [])
    )


def loopback(address: str) -> str:
    """The address of this machine that stands for one of a network: 127.64.0.5 for 10.64.0.5."""
    return f"127.{address.partition('.')[2]}"


def free_address(store: Store, subnetwork: str) -> str | None:
    """An address of a subnetwork that no machine has (as in the network: 10.64.0.5); None if all are taken.

    The first one, or where the store names another the first from there on: see `FIRST_ADDRESS`. Machines of different
    networks may have one address on Google's side; here they all listen on one computer, so none has another's.
    """
    found = store.get("subnetwork", subnetwork)
    if found is None:
        return None
    taken = {place["address"] for _, place in machines(store)}
    ip_range = ipaddress.IPv4Network(found["ipCidrRange"])
    spare = range(_RESERVED, ip_range.num_addresses - _RESERVED)  # the last two are Google's as well
    first = int(store.setting(FIRST_ADDRESS) or 0) % len(spare)
    turned = (*spare[first:], *spare[:first])
    return next((str(ip_range[number]) for number in turned if str(ip_range[number]) not in taken), None)


def machines(store: Store) -> Iterator[tuple[str, Json]]:
    """(name, where it is: `network`, `subnetwork` and `address`) of every machine with an address."""
    for kind in ("node", "instance"):
        yield from ((name, body["place"]) for name, body in store.rows(kind) if body.get("place"))


def users(store: Store, name: str) -> Iterator[str]:
    """Names of everything that keeps a network or a subnetwork from being deleted."""
    for kind in ("subnetwork", "firewall", "router"):
        yield from (user for user, body in store.rows(kind) if body["network"] == name)
    yield from (machine for machine, place in machines(store) if name in {place["network"], place["subnetwork"]})
    for service, body in store.rows("service"):
        region = service.split("/")[3]
        access = body.get("template", {}).get("vpcAccess", {})
        for interface in access.get("networkInterfaces", []):
            if name in interface_names(interface, region):
                yield service


def interface_names(interface: Json, region: str) -> set[str]:
    """The network and the subnetwork that an interface of a Cloud Run service names.

    Args:
        interface: With a `network`, a `subnetwork` or both: links, or the last part of one.
        region: Of the service.
    """
    found = set()
    for field, place in (("network", "global"), ("subnetwork", f"regions/{region}")):
        if given := interface.get(field):
            found.add(relative(given if "/" in given else f"{place}/{field}s/{given}"))
    return found


def _targets(rule: Json, tags: set[str], service_account: str) -> bool:
    wanted, accounts = set(rule.get("targetTags", [])), rule.get("targetServiceAccounts", [])
    if not wanted and not accounts:
        return True
    return not wanted.isdisjoint(tags) or service_account in accounts


def _comes_from(rule: Json, source: str) -> bool:
    address = ipaddress.ip_address(source)
    return any(address in ipaddress.ip_network(text) for text in rule.get("sourceRanges", []))


def _on_port(rule: Json, port: int) -> bool:
    for entry in [*rule.get("allowed", []), *rule.get("denied", [])]:
        if entry["IPProtocol"] not in {"tcp", "all", "6"}:
            continue
        bounds = [text.partition("-") for text in entry.get("ports", [])]
        if not bounds or any(int(least) <= port <= int(most or least) for least, _, most in bounds):
            return True
    return False
