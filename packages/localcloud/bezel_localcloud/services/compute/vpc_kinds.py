"""Kinds of network resources, each with its checks and defaults: networks, subnetworks, firewall rules, routers. Pure.

Owns the checks of one resource by itself. Leaves out checks against other resources
(packages/localcloud/bezel_localcloud/services/compute/vpc_api.py) and the network's effect
(packages/localcloud/bezel_localcloud/services/compute/vpc.py).
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bezel_localcloud.core.errors import refuse_unserved, unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.services.compute.errors import missing, wrong
from bezel_localcloud.services.compute.links import full_name, relative

_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_RANGES = ("sourceRanges", "destinationRanges")


@dataclass(frozen=True)
class ResourceKind:
    """One kind of resource.

    Attributes:
        name: "network", as in its row and in Compute Engine's `kind`.
        plural: Plural, as in the path.
        regional: Whether it is in a region; else it is global.
        fixed: Fields that cannot be changed.
        unserved: Fields that localcloud does not support.
        completed: Adds the defaults to a caller's body.
    """

    name: str
    plural: str
    regional: bool
    fixed: frozenset[str]
    unserved: frozenset[str]
    completed: Callable[[Json], Json]


def check_name(name: Any) -> str:
    """Return a valid name of a resource.

    Raises:
        ApiError: 400.
    """
    if not name:
        raise missing("resource.name")
    if not _NAME.fullmatch(name):
        raise wrong("resource.name", name, "Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'")
    return str(name)


def complete_resource(kind: ResourceKind, body: Json) -> Json:
    """Return a resource with all its defaults.

    Raises:
        ApiError: For an invalid resource, and for features that localcloud does not support.
    """
    check_name(body.get("name"))
    refuse_unserved(body, kind.unserved, kind.plural)
    return kind.completed(body)


def _network(body: Json) -> Json:
    routing = {"routingMode": "REGIONAL", "bgpBestPathSelectionMode": "LEGACY"} | body.get("routingConfig", {})
    if routing.pop("deleteBgpAlwaysCompareMed", False):  # an instruction, which no answer shows
        routing.pop("bgpAlwaysCompareMed", None)
    order = {"networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL"}
    return order | body | {"routingConfig": routing, "autoCreateSubnetworks": body.get("autoCreateSubnetworks", True)}


def _subnetwork(body: Json) -> Json:
    network = _in_network(body)
    try:
        ip_range = ipaddress.IPv4Network(body.get("ipCidrRange", ""))
    except ValueError:
        why = "Must be a CIDR range such as 10.0.0.0/24"
        raise wrong("resource.ipCidrRange", body.get("ipCidrRange"), why) from None
    if ip_range.prefixlen > 29 or ip_range.prefixlen < 8 or not ip_range.is_private:
        raise wrong("resource.ipCidrRange", ip_range, "Must be a private range of /8 to /29")
    if body.get("purpose", "PRIVATE") != "PRIVATE" or body.get("stackType", "IPV4_ONLY") != "IPV4_ONLY":
        raise unserved_error("subnetworks of other purposes or stacks", "leave purpose and stackType out")
    fields = {"privateIpGoogleAccess": False, "logConfig": {"enable": False}, "purpose": "PRIVATE"} | body
    fixed = {"gatewayAddress": str(ip_range[1]), "stackType": "IPV4_ONLY"}
    return fields | {"network": network, "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS"} | fixed


def _firewall(body: Json) -> Json:
    network = _in_network(body)
    for field in _RANGES:
        for text in body.get(field, []):
            _check_range(f"resource.{field}", text)
    rules = [rule for field in ("allowed", "denied") for rule in body.get(field, [])]
    if bool(body.get("allowed")) == bool(body.get("denied")):
        raise wrong("resource.allowed", body.get("allowed"), "Give either allowed or denied")
    for rule in rules:
        if not rule.get("IPProtocol"):
            raise missing("resource.allowed[].IPProtocol")
        for text in rule.get("ports", []):
            _check_ports(text)
    priority = body.get("priority", 1000)
    if not 0 <= priority <= 65535:
        raise wrong("resource.priority", priority, "Must be from 0 to 65535")
    if body.get("direction", "INGRESS") == "INGRESS" and body.get("destinationRanges"):
        raise unserved_error("destinationRanges of ingress rules", "leave them out")
    rule = {"direction": "INGRESS", "disabled": False, "logConfig": {"enable": False}} | body
    sources = ("sourceRanges", "sourceTags", "sourceServiceAccounts")
    if rule["direction"] == "INGRESS" and not any(body.get(field) for field in sources):
        rule["sourceRanges"] = ["0.0.0.0/0"]
    return rule | {"network": network, "priority": priority}


def _router(body: Json) -> Json:
    network, names = _in_network(body), set()
    nats = []
    for nat in body.get("nats", []):
        name = check_name(nat.get("name"))
        if name in names:
            raise wrong("resource.nats[].name", name, "Names of a router's NATs must be unique")
        names.add(name)
        if nat.get("natIpAllocateOption", "AUTO_ONLY") != "AUTO_ONLY" or nat.get("type", "PUBLIC") != "PUBLIC":
            raise unserved_error(
                "NATs with reserved addresses and private NATs", "set natIpAllocateOption to AUTO_ONLY"
            )
        if not nat.get("sourceSubnetworkIpRangesToNat"):
            raise missing("resource.nats[].sourceSubnetworkIpRangesToNat")
        subnetworks = [entry | {"name": relative(entry.get("name", ""))} for entry in nat.get("subnetworks", [])]
        if (nat["sourceSubnetworkIpRangesToNat"] == "LIST_OF_SUBNETWORKS") != bool(subnetworks):
            raise wrong("resource.nats[].subnetworks", subnetworks, "Required with, and only with, LIST_OF_SUBNETWORKS")
        defaults = {"natIpAllocateOption": "AUTO_ONLY", "type": "PUBLIC", "endpointTypes": ["ENDPOINT_TYPE_VM"]}
        nats.append(defaults | nat | ({"subnetworks": subnetworks} if subnetworks else {}))
    return body | {"network": network} | ({"nats": nats} if nats else {})


def _in_network(body: Json) -> str:
    if not body.get("network"):
        raise missing("resource.network")
    return full_name(body["network"], "global/networks")


def _check_range(field: str, text: str) -> None:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        raise wrong(field, text, "Must be a CIDR address range") from None


def _check_ports(text: str) -> None:
    match = _PORTS.fullmatch(text)
    if match is None or not int(match[1]) <= int(match[2] or match[1]) <= 65535:
        raise wrong("resource.allowed[].ports", text, "Must be a port or a range such as 8000-8010")


_OF_ALL = frozenset({"name"})
NETWORK = ResourceKind(
    "network", "networks", False, _OF_ALL | {"autoCreateSubnetworks"},
    frozenset({"IPv4Range", "enableUlaInternalIpv6", "internalIpv6Range", "networkProfile", "firewallPolicy",
               "peerings"}), _network,
)  # fmt: skip
SUBNETWORK = ResourceKind(
    "subnetwork", "subnetworks", True, _OF_ALL | {"network", "ipCidrRange", "privateIpGoogleAccess"},
    frozenset({"secondaryIpRanges", "reservedInternalRange", "ipv6AccessType", "role", "externalIpv6Prefix",
               "ipCollection"}), _subnetwork,
)  # fmt: skip
FIREWALL = ResourceKind("firewall", "firewalls", False, _OF_ALL | {"network", "direction"}, frozenset(), _firewall)
ROUTER = ResourceKind(
    "router", "routers", True, _OF_ALL | {"network"},
    frozenset({"bgp", "bgpPeers", "interfaces", "md5AuthenticationKeys", "nccGateway", "encryptedInterconnectRouter"}),
    _router,
)  # fmt: skip
KINDS = (NETWORK, SUBNETWORK, FIREWALL, ROUTER)
