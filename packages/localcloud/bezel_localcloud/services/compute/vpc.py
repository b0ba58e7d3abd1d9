"""Effect of the stored networks: look-ups for the code that runs machines and for the checks of networks.

Pure but for reading the store. Supports ingress rules by source address; a rule by the sender's tag or account admits
no connection here.
"""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from itertools import chain

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.store import Store
from bezel_localcloud.services.compute.links import full_name

# The setting with the first address that a cloud assigns. Addresses are bound on this computer in the end, and two
# clouds on it, with networks of the same ranges, would otherwise collide at each first one.
FIRST_ADDRESS = "first address"
_ADDRESS = re.compile(r"(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9.])")
_RESERVED = 2  # the first two addresses of a range: the network's and the gateway's


def is_allowed(
    store: Store, *, network: str, tags: Iterable[str], service_account: str, source: str, port: int
) -> bool:
    """Whether a TCP connection from an address reaches a port of a machine.

    The rule with the lowest priority number decides; of two with the same number the one that denies; without any rule
    the connection is denied.

    Args:
        store: Store of the firewall rules.
        network: `projects/P/global/networks/N` of the machine.
        tags: Network tags of the machine.
        service_account: E-mail of the machine's account.
        source: Source address in the network, or on the internet.
        port: Port of the machine.
    """
    tag_set = set(tags)
    fitting = [
        rule
        for _, rule in store.rows("firewall")
        if rule["network"] == network
        and rule["direction"] == "INGRESS"
        and not rule["disabled"]
        and _targets(rule, tag_set, service_account)
        and _comes_from(rule, source)
        and _on_port(rule, port)
    ]
    first = min(fitting, key=lambda rule: (rule["priority"], not rule.get("denied")), default=None)
    return first is not None and not first.get("denied")


def private_google_access(store: Store, subnetwork: str) -> bool:
    """Whether machines without an external address reach Google's APIs from a subnetwork."""
    return bool((store.get("subnetwork", subnetwork) or {}).get("privateIpGoogleAccess"))


def has_nat(store: Store, subnetwork: str) -> bool:
    """Whether machines without an external address reach the internet from a subnetwork."""
    row = store.get("subnetwork", subnetwork)
    if row is None:
        return False
    prefix = f"{subnetwork.rpartition('/subnetworks/')[0]}/routers/"
    return any(
        nat["sourceSubnetworkIpRangesToNat"] != "LIST_OF_SUBNETWORKS"
        or any(entry["name"] == subnetwork for entry in nat.get("subnetworks", []))
        for _, router in store.rows("router", prefix)
        if router["network"] == row["network"]
        for nat in router.get("nats", [])
    )


def loopback(address: str) -> str:
    """The loopback address that stands for an address of a network: 127.64.0.5 for 10.64.0.5."""
    return f"127.{address.partition('.')[2]}"


def with_loopback(store: Store, text: str) -> str:
    """A text in which each address of a subnetwork is the loopback address that stands for it."""
    ranges = [ipaddress.IPv4Network(row["ipCidrRange"]) for _, row in store.rows("subnetwork")]

    def stands_for(match: re.Match[str]) -> str:
        try:
            address = ipaddress.IPv4Address(match[0])
        except ValueError:
            return match[0]
        return loopback(match[0]) if any(address in each for each in ranges) else match[0]

    return _ADDRESS.sub(stands_for, text)


def free_address(store: Store, subnetwork: str) -> str | None:
    """Return a free address of a subnetwork (as in the network: 10.64.0.5); None if all are taken.

    The search starts at the first address, or at the one that the store names: see `FIRST_ADDRESS`. Machines of
    different networks may share an address on Google; here they all listen on one computer, so addresses are unique.
    """
    row = store.get("subnetwork", subnetwork)
    if row is None:
        return None
    taken = {place["address"] for _, place in machines(store)}
    ip_range = ipaddress.IPv4Network(row["ipCidrRange"])
    spare = range(_RESERVED, ip_range.num_addresses - _RESERVED)  # Google reserves the last two as well
    first = int(store.setting(FIRST_ADDRESS) or 0) % len(spare)
    turned = chain(spare[first:], spare[:first])  # not as a list: a range has up to 16 million addresses
    return next((str(ip_range[number]) for number in turned if str(ip_range[number]) not in taken), None)


def machines(store: Store) -> Iterator[tuple[str, Json]]:
    """(name, place: `network`, `subnetwork` and `address`) of every machine with an address."""
    for kind in ("node", "instance"):
        yield from ((name, body["place"]) for name, body in store.rows(kind) if body.get("place"))


def users(store: Store, name: str) -> Iterator[str]:
    """Names of all resources that keep a network or a subnetwork from being deleted."""
    for kind in ("subnetwork", "firewall", "router"):
        yield from (user for user, body in store.rows(kind) if body["network"] == name)
    yield from (machine for machine, place in machines(store) if name in {place["network"], place["subnetwork"]})
    for service, body in store.rows("service"):
        interfaces = body.get("template", {}).get("vpcAccess", {}).get("networkInterfaces", [])
        yield from (service for interface in interfaces if name in interface_names(interface, service.split("/")[3]))


def interface_names(interface: Json, region: str) -> set[str]:
    """The network and the subnetwork that an interface of a Cloud Run service names.

    Args:
        interface: JSON with a `network`, a `subnetwork` or both: links, or the last part of one.
        region: Region of the service.
    """
    collections = {"network": "global/networks", "subnetwork": f"regions/{region}/subnetworks"}
    return {full_name(interface.get(field, ""), collection) for field, collection in collections.items()} - {""}


def _targets(rule: Json, tags: set[str], service_account: str) -> bool:
    target_tags, accounts = set(rule.get("targetTags", [])), rule.get("targetServiceAccounts", [])
    if not target_tags and not accounts:
        return True
    return not target_tags.isdisjoint(tags) or service_account in accounts


def _comes_from(rule: Json, source: str) -> bool:
    address = ipaddress.ip_address(source)
    return any(address in ipaddress.ip_network(text) for text in rule.get("sourceRanges", []))


def _on_port(rule: Json, port: int) -> bool:
    for entry in [*rule.get("allowed", []), *rule.get("denied", [])]:
        if entry["IPProtocol"] not in {"tcp", "all", "6"}:
            continue
        bounds = [text.partition("-") for text in entry.get("ports", [])]
        if not bounds or any(int(low) <= port <= int(high or low) for low, _, high in bounds):
            return True
    return False
