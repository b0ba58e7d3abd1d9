"""Private network of machines with accelerators: only a gateway can reach them.

Owns one network without automatic subnetworks, a subnetwork with private Google access in each region where a node may
run, one for the gateway (Cloud Run sends from it, by direct VPC egress), and one firewall rule: from the gateway's
range to the served port of machines with the tag. The network's own default denies all other incoming traffic, ssh too.

Compute's default allows outgoing traffic, but it reaches only Google's APIs: a node has no external address, and
without `nat` there is no translation, so only private Google access is left. With `nat` each node region gets a router
with NAT, for downloads from the internet at boot (the model hub, packages).

Leaves out the nodes (`TpuLease`), the gateway (`IdentityGateway`) and the ranges (`config/subnet_ranges.py`).

The resources are declared by their tokens: `pulumi_gcp.compute` has 288 modules, which cost each preview seconds.

Example:
    ```python
    network = NodeNetwork(
        "nodes",
        NodeNetworkArgs(project="acme-llm", network="bezel-v6e4-moe", regions=("us-east5", "europe-west4"),
                        gateway_region="us-east5"),
    )
    pulumi.export("subnetworks", network.subnetworks)
    ```
"""

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pulumi
from pydantic import Field, field_validator

from bezel_components.base.arguments import ComponentArgs, child_options
from bezel_components.config.subnet_ranges import (
    MOST_MACHINES,
    gateway_range,
    node_range,
    small_range,
    usable_addresses,
)

TAG = "bezel-node"
_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
# Of the 63 allowed characters, 24 are for the dash and the longest region's name.
_MAX_LENGTH = 39


class NodeNetworkArgs(ComponentArgs):
    """Arguments of `NodeNetwork`."""

    project: str
    network: str
    """Name of the network and prefix of the names of all its parts: at most 39 characters."""
    regions: tuple[str, ...] = Field(min_length=1)
    """Regions where nodes may run."""
    gateway_region: str
    port: int = Field(default=8000, ge=1, le=65535)
    """Port that the nodes serve on."""
    tag: str = TAG
    """Network tag of the nodes."""
    nat: bool = False
    """Whether nodes reach the internet."""
    machines: int | None = Field(default=None, ge=1, le=MOST_MACHINES)
    """Most machines of a region at a time, to keep `addresses` few; None for as many as a region's range holds."""

    @field_validator("network")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if len(name) > _MAX_LENGTH or not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a valid name of a network: it must be a letter, then lower-case letters, digits and "
                f"dashes, at most {_MAX_LENGTH} characters, as subnetworks add a suffix. Choose another name."
            )
        return name

    @field_validator("regions", "gateway_region")
    @classmethod
    def _have_ranges(cls, regions: Any) -> Any:
        for region in (regions,) if isinstance(regions, str) else regions:
            node_range(region)
        return regions


class NodeNetwork(pulumi.ComponentResource):
    """A network for nodes without external addresses; make everything in it depend on this component.

    Attributes:
        network: `projects/P/global/networks/N`, known in every preview.
        subnetworks: Region -> `projects/P/regions/R/subnetworks/S` of its nodes, known in every preview.
        addresses: Region -> every address that a node may get there; empty where `machines` is None.
        gateway_subnetwork: The same of the gateway's subnetwork.
        gateway_range: The addresses that the gateway sends from.
        tag: The network tag that a node must have to be reached.
    """

    def __init__(self, name: str, args: NodeNetworkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:network:NodeNetwork", name, None, opts)
        self._project, self._opts, self._prefix = args.project, opts, name
        regions = tuple(dict.fromkeys(args.regions))
        self.network = f"projects/{args.project}/global/networks/{args.network}"
        ranges = {
            region: small_range(region, args.machines) if args.machines else node_range(region) for region in regions
        }
        self.addresses: Mapping[str, tuple[str, ...]] = {
            region: usable_addresses(ranges[region]) if args.machines else () for region in regions
        }
        # Another subnetwork, not another range of the same one: it is made before the other is deleted.
        roles = {region: f"{len(self.addresses[region])}-addresses" if args.machines else region for region in regions}
        names = {region: f"{args.network}-{role}" for region, role in roles.items()}
        self.subnetworks: Mapping[str, str] = {
            region: self._path(region, "subnetworks", names[region]) for region in regions
        }
        self.gateway_subnetwork = self._path(args.gateway_region, "subnetworks", f"{args.network}-gateway")
        self.gateway_range = gateway_range(args.gateway_region)
        self.tag = args.tag
        network = self._make(
            "network:Network", "network", {"name": args.network, "autoCreateSubnetworks": False}, wait=None
        )
        for region in regions:
            subnetwork = {"ipCidrRange": ranges[region], "privateIpGoogleAccess": True}
            role = f"{roles[region]}-{region}" if args.machines else region
            self._in_network(role, names[region], region, subnetwork, network)
            if args.nat:
                self._translate(f"{args.network}-{region}", region, network)
        gateway = {"ipCidrRange": self.gateway_range}
        self._in_network("gateway", f"{args.network}-gateway", args.gateway_region, gateway, network)
        rule = {
            "name": f"{args.network}-gateway",
            "network": self.network,
            "description": "The gateway to the nodes' served port, and nothing else",
            "allows": [{"protocol": "tcp", "ports": [str(args.port)]}],
            "sourceRanges": [self.gateway_range],
            "targetTags": [args.tag],
        }
        self._make("firewall:Firewall", "from-gateway", rule, wait=network)
        self.register_outputs(
            {
                "network": self.network,
                "subnetworks": dict(self.subnetworks),
                "gateway_subnetwork": self.gateway_subnetwork,
                "gateway_range": self.gateway_range,
                "tag": self.tag,
            }
        )

    def _path(self, region: str, kind: str, name: str) -> str:
        return f"projects/{self._project}/regions/{region}/{kind}/{name}"

    def _in_network(self, role: str, name: str, region: str, more: Mapping[str, Any], network: pulumi.Resource) -> None:
        inputs = {"name": name, "region": region, "network": self.network, **more}
        self._make("subnetwork:Subnetwork", role, inputs, wait=network)

    def _translate(self, name: str, region: str, network: pulumi.Resource) -> None:
        inputs = {"name": name, "region": region, "network": self.network}
        router = self._make("router:Router", f"router-{region}", inputs, wait=network)
        translation = {
            "name": name,
            "router": name,
            "region": region,
            "natIpAllocateOption": "AUTO_ONLY",
            "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
        }
        self._make("routerNat:RouterNat", f"nat-{region}", translation, wait=router)

    def _make(self, token: str, role: str, inputs: Mapping[str, Any], wait: pulumi.Resource | None) -> pulumi.Resource:
        options = child_options(self, self._opts, depends_on=[wait] if wait else [], version=version("pulumi-gcp"))
        props = {"project": self._project, **inputs}
        return pulumi.CustomResource(f"gcp:compute/{token}", f"{self._prefix}-{role}", props, options)
