"""Resource types of Compute Engine's networks, subnetworks and firewall rules, for machines without external addresses.

Properties that such a program does not need are refused in Check by name; in the state they are the same as with the
published provider.
"""

import ipaddress
from collections.abc import Collection, Mapping
from typing import Any

from bezel.standin_providers.google.errors import GoogleError, ProviderError
from bezel.standin_providers.lifecycle.fields import (
    COMPUTED,
    CREATE_ONLY,
    LOCAL,
    NEW,
    OUTPUT,
    PROJECT,
    REFUSED,
    REQUIRED,
    SET,
    SHORT,
    UNSENT,
    ZERO,
    Fields,
    big,
    block,
    blocks,
    flag,
    items,
    real,
    same_letters,
    table,
    text,
    whole,
)
from bezel.standin_providers.lifecycle.resource import ResourceType
from bezel.standin_providers.lifecycle.values import Properties
from bezel.standin_providers.resources.compute import ComputeOperations, same_link

WAITS = frozenset({"create", "update", "delete"})
PARAMS = block("params", table("resourceManagerTags"), marks=NEW | UNSENT | REFUSED)
_NETWORK = "projects/{project}/global/networks/{name}"
_SUBNETWORK = "projects/{project}/regions/{region}/subnetworks/{name}"
_FIREWALL = "projects/{project}/global/firewalls/{name}"
_CHANGED_BY_VERB = {"ipCidrRange": "expandIpCidrRange", "privateIpGoogleAccess": "setPrivateIpGoogleAccess"}


def shrinks(old: object, new: object) -> bool:
    """Whether the new range does not contain the whole old one, which requires a new subnetwork."""
    try:
        return not ipaddress.ip_network(str(old)).subnet_of(ipaddress.ip_network(str(new)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return True


_NETWORK_FIELDS: Fields = (
    text("name", REQUIRED | NEW),
    text("project", NEW | LOCAL | PROJECT | COMPUTED),
    flag("autoCreateSubnetworks", NEW | ZERO, default=True),
    text("description", NEW),
    text("deletionPolicy", LOCAL, default="DELETE"),
    text("networkFirewallPolicyEnforcementOrder", REFUSED, default="AFTER_CLASSIC_FIREWALL"),
    flag("bgpAlwaysCompareMed", COMPUTED | UNSENT | REFUSED, wire="routingConfig.bgpAlwaysCompareMed"),
    text("bgpBestPathSelectionMode", COMPUTED | UNSENT | REFUSED, wire="routingConfig.bgpBestPathSelectionMode"),
    text("bgpInterRegionCost", COMPUTED | UNSENT | REFUSED, wire="routingConfig.bgpInterRegionCost"),
    text("routingMode", COMPUTED | UNSENT | REFUSED, wire="routingConfig.routingMode"),
    flag("deleteBgpAlwaysCompareMed", LOCAL | REFUSED, default=False),
    flag("deleteDefaultRoutesOnCreate", LOCAL | REFUSED, default=False),
    flag("enableUlaInternalIpv6", REFUSED),
    text("internalIpv6Range", COMPUTED | NEW | REFUSED),
    whole("mtu", COMPUTED | REFUSED),
    text("networkProfile", NEW | REFUSED),
    PARAMS,
    text("gatewayIpv4", OUTPUT, wire="gatewayIPv4"),
    text("networkId", OUTPUT, wire="id"),
    text("numericId", OUTPUT, wire="id"),
    text("selfLink", OUTPUT),
)

_SUBNETWORK_FIELDS: Fields = (
    text("name", REQUIRED | NEW),
    text("network", REQUIRED | NEW, same=same_link),
    text("project", NEW | LOCAL | PROJECT | COMPUTED),
    text("region", NEW | COMPUTED | SHORT, same=same_link),
    text("ipCidrRange", COMPUTED, renews=shrinks),
    flag("privateIpGoogleAccess", COMPUTED),
    text("description", NEW),
    text("deletionPolicy", LOCAL, default="DELETE"),
    flag("allowSubnetCidrRoutesOverlap", COMPUTED | REFUSED),
    text("externalIpv6Prefix", COMPUTED | NEW | REFUSED),
    text("internalIpv6Prefix", COMPUTED | NEW | REFUSED),
    text("ipCollection", REFUSED),
    text("ipv6AccessType", REFUSED),
    block(
        "logConfig",
        text("aggregationInterval"),
        text("filterExpr"),
        real("flowSampling"),
        text("metadata"),
        items("metadataFields"),
        marks=REFUSED,
    ),
    PARAMS,
    text("privateIpv6GoogleAccess", COMPUTED | REFUSED),
    text("purpose", COMPUTED | REFUSED),
    text("reservedInternalRange", NEW | REFUSED),
    text("resolveSubnetMask", NEW | REFUSED),
    text("role", REFUSED),
    blocks(
        "secondaryIpRanges",
        text("rangeName"),
        text("ipCidrRange"),
        text("ipCollection"),
        text("ipVersion"),
        text("reservedInternalRange"),
        marks=COMPUTED | REFUSED,
    ),
    flag("sendSecondaryIpRangeIfEmpty", LOCAL | REFUSED),
    text("stackType", COMPUTED | REFUSED),
    text("creationTimestamp", OUTPUT),
    text("fingerprint", OUTPUT | LOCAL),  # in the response, and never in the provider's state
    text("gatewayAddress", OUTPUT),
    text("ipv6CidrRange", OUTPUT),
    text("ipv6GceEndpoint", OUTPUT),
    text("selfLink", OUTPUT),
    text("state", OUTPUT),
    big("subnetworkId", OUTPUT, wire="id"),
)

_RULE = (text("protocol", REQUIRED, wire="IPProtocol", same=same_letters), items("ports"))
_FIREWALL_FIELDS: Fields = (
    text("name", REQUIRED | NEW | CREATE_ONLY),
    text("network", REQUIRED, same=same_link),
    text("project", NEW | LOCAL | PROJECT | COMPUTED),
    blocks("allows", *_RULE, wire="allowed", marks=SET),
    text("description"),
    whole("priority", ZERO, default=1000),
    items("sourceRanges", COMPUTED | SET),
    items("targetTags", SET),
    text("deletionPolicy", LOCAL, default="DELETE"),
    blocks("denies", *_RULE, wire="denied", marks=REFUSED),
    items("destinationRanges", COMPUTED | REFUSED),
    text("direction", COMPUTED | NEW | CREATE_ONLY | REFUSED),
    flag("disabled", REFUSED),
    flag("enableLogging", COMPUTED | LOCAL | REFUSED),
    block("logConfig", text("metadata"), marks=REFUSED),
    PARAMS,
    items("sourceServiceAccounts", REFUSED),
    items("sourceTags", REFUSED),
    items("targetServiceAccounts", REFUSED),
    text("creationTimestamp", OUTPUT),
    text("selfLink", OUTPUT),
)


class Subnetwork(ComputeOperations):
    """Operations of a subnetwork: every body disables logging, and each property is changed by its own verb."""

    def body(self, planned: Mapping[str, Any], *, updating: bool = False) -> Properties:
        """Return the JSON of the subnetwork."""
        return {**super().body(planned, updating=updating), "logConfig": {"enable": False}}

    def update(
        self, resource_id: str, planned: Mapping[str, Any], known: Mapping[str, Any], changed: Collection[str]
    ) -> Properties:
        """Expand the range, and switch private Google access."""
        del known
        for name, verb in _CHANGED_BY_VERB.items():
            if name in changed:
                try:
                    answer = self.call("POST", f"{resource_id}/{verb}", self.kind.query, {name: planned[name]})
                except GoogleError as error:
                    raise ProviderError(f"Error updating {self.kind.title} {resource_id!r}: {error}") from None
                self.finished(answer)
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


def _row(
    pulumi_type: str, title: str, template: str, fields: Fields, operations: type[ComputeOperations]
) -> ResourceType:
    return ResourceType(
        pulumi_type=pulumi_type,
        title=title,
        api="COMPUTE",
        id=template,
        collection=template.rpartition("/")[0],
        fields=fields,
        autoname="name",
        waits=WAITS,
        partial=operations is Subnetwork,
        operations=operations,
    )


ROWS: tuple[ResourceType, ...] = (
    _row("gcp:compute/network:Network", "Network", _NETWORK, _NETWORK_FIELDS, ComputeOperations),
    _row("gcp:compute/subnetwork:Subnetwork", "Subnetwork", _SUBNETWORK, _SUBNETWORK_FIELDS, Subnetwork),
    _row("gcp:compute/firewall:Firewall", "Firewall", _FIREWALL, _FIREWALL_FIELDS, Firewall),
)
