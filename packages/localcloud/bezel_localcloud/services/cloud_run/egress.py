"""Direct VPC egress of a service: its validation, and the subnetwork that its instances send from.

Supports one interface. Leaves out which firewall rules admit this traffic: see compute/vpc.py.
"""

from collections.abc import Iterator

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.store import Store
from bezel_localcloud.services.cloud_run.containers.checks import Violation
from bezel_localcloud.services.compute.links import full_name, last

_FIELD = "service.template.vpc_access"
_LONGEST_PREFIX = 26  # Cloud Run takes blocks of sixteen addresses, twice as many as instances (its documentation)


def subnetwork_of(template: Json, region: str) -> str:
    """Full name of the subnetwork that instances of a template (or revision) send from, "" for none.

    Source: the discovery document of run v2; with a network alone it is the subnetwork of the same name.
    """
    for interface in (template.get("vpcAccess") or {}).get("networkInterfaces") or []:
        if name := interface.get("subnetwork") or last(interface.get("network") or ""):
            return full_name(name, f"regions/{region}/subnetworks")
    return ""


def egress_violations(store: Store, template: Json, region: str) -> Iterator[Violation]:
    """(field, text) of every violation of a template's `vpcAccess`."""
    access = template.get("vpcAccess") or {}
    interfaces = access.get("networkInterfaces") or []
    if access.get("connector"):
        yield f"{_FIELD}.connector", "localcloud has no Serverless VPC Access connectors: use network_interfaces"
    if len(interfaces) > 1:
        yield f"{_FIELD}.network_interfaces", "only one network interface is supported"
    for interface in interfaces:
        yield from _interface_violations(store, interface, subnetwork_of(template, region), region)


def _interface_violations(store: Store, interface: Json, subnetwork: str, region: str) -> Iterator[Violation]:
    field, network = f"{_FIELD}.network_interfaces", full_name(interface.get("network") or "", "global/networks")
    if not subnetwork:
        yield field, "at least one of network and subnetwork must be specified"
        return
    if network and store.get("network", network) is None:
        yield f"{field}.network", f"network '{network}' does not exist"
        return
    row = store.get("subnetwork", subnetwork)
    if row is None or f"/regions/{region}/" not in subnetwork:
        yield f"{field}.subnetwork", f"subnetwork '{subnetwork}' does not exist in region {region}"
    elif network and row["network"] != network:
        yield f"{field}.subnetwork", f"subnetwork '{subnetwork}' does not belong to network '{network}'"
    elif (length := int(row["ipCidrRange"].rpartition("/")[2])) > _LONGEST_PREFIX:
        yield f"{field}.subnetwork", f"the range of subnetwork '{subnetwork}' is a /{length}, less than /26"
