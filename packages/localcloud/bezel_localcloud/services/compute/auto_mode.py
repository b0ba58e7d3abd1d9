"""Auto mode networks: a subnetwork in every region, and the network `default` that a new project has. Pure.

Source of the ranges: the list of a new project's subnetworks as its owner published it (`gcloud compute networks
subnets list`, March 2025, 41 regions); me-central2, which that project may not use, from another such list and from
Google's release notes of VPC (2023-09-19); asia-southeast3, which is younger, from another stand-in of Compute Engine.
Source of the rules: Google's page on firewall rules, "Pre-populated rules in the default network".
"""

import ipaddress
from collections.abc import Iterator

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.core.regions import regions
from bezel_localcloud.services.compute.vpc_kinds import FIREWALL, NETWORK, SUBNETWORK, ResourceKind, complete_resource

DEFAULT_NETWORK = f"projects/{PROJECT}/global/networks/default"
AUTO_BLOCK = ipaddress.IPv4Network("10.128.0.0/9")
"""Holds the ranges of all automatic subnetworks."""
_SECOND_NUMBERS = {  # of 10.N.0.0/20
    "africa-south1": 218, "asia-east1": 140, "asia-east2": 170, "asia-northeast1": 146, "asia-northeast2": 174,
    "asia-northeast3": 178, "asia-south1": 160, "asia-south2": 190, "asia-southeast1": 148, "asia-southeast2": 184,
    "asia-southeast3": 232,
    "australia-southeast1": 152, "australia-southeast2": 192, "europe-central2": 186, "europe-north1": 166,
    "europe-north2": 226, "europe-southwest1": 204, "europe-west1": 132, "europe-west10": 214, "europe-west12": 210,
    "europe-west2": 154, "europe-west3": 156, "europe-west4": 164, "europe-west6": 172, "europe-west8": 198,
    "europe-west9": 200, "me-central1": 212, "me-central2": 216, "me-west1": 208, "northamerica-northeast1": 162,
    "northamerica-northeast2": 188, "northamerica-south1": 224, "southamerica-east1": 158, "southamerica-west1": 194,
    "us-central1": 128, "us-east1": 142, "us-east4": 150, "us-east5": 202, "us-south1": 206, "us-west1": 138,
    "us-west2": 168, "us-west3": 180, "us-west4": 182,
}  # fmt: skip
_EVERYWHERE = "0.0.0.0/0"
_RULES: dict[str, tuple[str, list[Json]]] = {  # name -> source, allowed
    "default-allow-icmp": (_EVERYWHERE, [{"IPProtocol": "icmp"}]),
    "default-allow-internal": (
        str(AUTO_BLOCK),
        [
            {"IPProtocol": "tcp", "ports": ["0-65535"]},
            {"IPProtocol": "udp", "ports": ["0-65535"]},
            {"IPProtocol": "icmp"},
        ],
    ),
    "default-allow-rdp": (_EVERYWHERE, [{"IPProtocol": "tcp", "ports": ["3389"]}]),
    "default-allow-ssh": (_EVERYWHERE, [{"IPProtocol": "tcp", "ports": ["22"]}]),
}
_LAST_PRIORITY = 65_534


def automatic_subnetworks(network: str) -> Iterator[tuple[str, Json]]:
    """(name, body) of the subnetworks that Google makes for an auto mode network.

    Args:
        network: `projects/P/global/networks/N`.
    """
    short = network.rpartition("/")[2]
    for region in sorted(regions()):
        body = {"name": short, "network": network, "ipCidrRange": f"10.{_SECOND_NUMBERS[region]}.0.0/20"}
        yield f"projects/{PROJECT}/regions/{region}/subnetworks/{short}", complete_resource(SUBNETWORK, body)


def default_resources() -> Iterator[tuple[ResourceKind, str, Json]]:
    """(kind, name, body) of the network that a new project has, its subnetworks and its firewall rules."""
    described = {"name": "default", "description": "Default network for the project"}
    yield NETWORK, DEFAULT_NETWORK, complete_resource(NETWORK, described)
    for name, body in automatic_subnetworks(DEFAULT_NETWORK):
        yield SUBNETWORK, name, body
    for name, (source, allowed) in _RULES.items():
        body = {"name": name, "network": DEFAULT_NETWORK, "priority": _LAST_PRIORITY, "sourceRanges": [source]}
        full = f"projects/{PROJECT}/global/firewalls/{name}"
        yield FIREWALL, full, complete_resource(FIREWALL, body | {"allowed": allowed})


def is_automatic(network: Json | None, network_name: str, subnetwork_name: str) -> bool:
    """Whether Google made a subnetwork with its auto mode network, so that neither is deleted alone.

    Args:
        network: The network's row.
        network_name: Its name.
        subnetwork_name: Name of a subnetwork in it.
    """
    automatic = bool(network and network.get("autoCreateSubnetworks"))
    return automatic and subnetwork_name.rpartition("/")[2] == network_name.rpartition("/")[2]


def is_built_in(name: str) -> bool:
    """Whether a name is one of the default network and of what came with it."""
    return name == DEFAULT_NETWORK or name in _BUILT_IN


_BUILT_IN = frozenset(
    {f"projects/{PROJECT}/global/firewalls/{name}" for name in _RULES}
    | {f"projects/{PROJECT}/regions/{region}/subnetworks/default" for region in regions()}
)
