"""Request bodies of both back ends: composed from plain values without a zone, then completed for a zone.

`queued_in_zone` and `instance_in_zone` add what depends on the zone (links, subnetwork, validity of the request) and
the hash of the rest. Sources: discovery documents of tpu v2alpha1 and compute v1 (revision 20261106). Pure.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from bezel.leases.names import SPEC, plain, spec_hash

if TYPE_CHECKING:
    from collections.abc import Mapping

BackEndName = Literal["queued_resource", "flex_start_vm"]
ProvisioningModel = Literal["FLEX_START", "SPOT", "STANDARD"]
PROVISIONING_MODELS: dict[str, ProvisioningModel] = {
    "flex-start": "FLEX_START", "spot": "SPOT", "on-demand": "STANDARD"
}  # fmt: skip
"""Provisioning model in a stack file -> in Google's APIs."""
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
DISK_GB = 200
MIN_VM_WAIT_SECONDS = 90
"""Below it a VM is granted at once or not at all (Compute Engine, instance lifecycle: PENDING)."""


@dataclass(frozen=True)
class ZoneChoice:
    """A zone, and how long a request waits there for capacity."""

    zone: str
    patience_seconds: float

    @property
    def region(self) -> str:
        """The zone's region."""
        return self.zone.rpartition("-")[0]


@dataclass(frozen=True)
class LeaseSpec:
    """One lease, wherever it is granted.

    Attributes:
        project: The project's id.
        name: The lease's, in every zone.
        stack: The stack that owns it.
        back_end: Which API grants it.
        zones: Possible zones, best first.
        subnetworks: Region -> subnetwork.
        body: The request without a zone.
        former_zones: Zones of an earlier setting, where it may still be.
        equal_hashes: Hashes of earlier bodies that make the same machine of it.
    """

    project: str
    name: str
    stack: str
    back_end: BackEndName
    zones: tuple[ZoneChoice, ...]
    subnetworks: Mapping[str, str]
    body: Mapping[str, Any]
    former_zones: tuple[str, ...] = ()
    equal_hashes: tuple[str, ...] = ()

    def describes(self, hash_: str) -> bool:
        """Whether a lease whose label has this hash is one that the body asks for."""
        return hash_ == self.hash or hash_ in self.equal_hashes

    @property
    def hash(self) -> str:
        """Hash of the body."""
        return spec_hash(self.body)

    @property
    def all_zones(self) -> tuple[str, ...]:
        """Every zone in which the lease may be."""
        return tuple(dict.fromkeys((*(choice.zone for choice in self.zones), *self.former_zones)))

    def choice(self, zone: str) -> ZoneChoice:
        """The wait in a zone: none in one that is not listed."""
        return next((choice for choice in self.zones if choice.zone == zone), ZoneChoice(zone, 0.0))

    def body_in(self, choice: ZoneChoice) -> dict[str, Any]:
        """The whole body in a zone."""
        make = queued_in_zone if self.back_end == "queued_resource" else instance_in_zone
        subnetwork = self.subnetworks.get(choice.region)
        return make(self.body, choice, project=self.project, name=self.name, subnetwork=subnetwork)


def queued_body(
    name: str,
    *,
    runtime_version: str,
    labels: Mapping[str, str],
    metadata: Mapping[str, Any],
    service_account: Any,
    accelerator_type: str = "",
    topology: tuple[str, str] | None = None,
    provisioning_model: ProvisioningModel = "FLEX_START",
    run_seconds: int | None = None,
    network: Any = None,
    tags: tuple[str, ...] = (),
) -> dict[str, Any]:
    """A queued resource with one node, without an external address.

    Args:
        name: The lease's name, which is the node's id.
        runtime_version: The image of the machine, e.g. `v2-alpha-tpuv6e`.
        labels: The node's labels.
        metadata: Attributes of the machine.
        service_account: E-mail of its service account; None for the project's default account.
        accelerator_type: e.g. `v6e-4`; left out where a topology is given.
        topology: Type and topology, e.g. `("V6E", "2x2")`.
        provisioning_model: FLEX_START, SPOT or STANDARD.
        run_seconds: Its run duration.
        network: The subnetwork's network.
        tags: Network tags, for firewall rules.
    """
    hardware = (
        {"acceleratorConfig": {"type": topology[0], "topology": topology[1]}}
        if topology is not None
        else {"acceleratorType": accelerator_type}
    )
    node = {
        **hardware,
        "runtimeVersion": runtime_version,
        "networkConfig": {"enableExternalIps": False, **({"network": network} if network is not None else {})},
        **({"serviceAccount": {"email": service_account, "scope": [SCOPE]}} if service_account is not None else {}),
        "metadata": dict(metadata),
        "labels": dict(labels),
        **({"tags": list(tags)} if tags else {}),
    }
    duration = {"runDuration": {"maxRunDuration": f"{run_seconds}s"}} if run_seconds is not None else {}
    return {
        "tpu": {"nodeSpec": [{"nodeId": name, "node": node}]},
        "provisioningModel": provisioning_model,
        **duration,
    }


def instance_body(
    *,
    machine_type: str,
    source_image: str,
    labels: Mapping[str, str],
    metadata: Mapping[str, Any],
    service_account: Any,
    provisioning_model: ProvisioningModel = "FLEX_START",
    run_seconds: int | None = None,
    disk_type: str = "hyperdisk-balanced",
    disk_gb: int = DISK_GB,
    tags: tuple[str, ...] = (),
) -> dict[str, Any]:
    """A machine of Compute Engine without an external address, deleted when its run duration ends.

    Args:
        machine_type: Short name, e.g. `ct6e-standard-4t`.
        source_image: `projects/P/global/images/family/F`.
        labels: The machine's labels.
        metadata: Its attributes.
        service_account: E-mail of its service account; None for no account.
        provisioning_model: FLEX_START, SPOT or STANDARD.
        run_seconds: Its run duration.
        disk_type: Short name; v6e takes hyperdisks only.
        disk_gb: The images' own 10 GB hold no container.
        tags: Network tags, for firewall rules.
    """
    scheduling: dict[str, Any] = {
        "provisioningModel": provisioning_model,
        "automaticRestart": False,
        "onHostMaintenance": "TERMINATE",
    }
    if provisioning_model != "STANDARD" or run_seconds is not None:
        scheduling["instanceTerminationAction"] = "DELETE"
    if run_seconds is not None:
        scheduling["maxRunDuration"] = {"seconds": str(run_seconds)}
    parameters = {"sourceImage": source_image, "diskSizeGb": str(disk_gb), "diskType": disk_type}
    return {
        "machineType": machine_type,
        "scheduling": scheduling,
        "disks": [{"autoDelete": True, "boot": True, "initializeParams": parameters}],
        "metadata": {"items": [{"key": key, "value": metadata[key]} for key in sorted(metadata)]},
        **({"serviceAccounts": [{"email": service_account, "scopes": [SCOPE]}]} if service_account is not None else {}),
        "labels": dict(labels),
        "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
        **({"tags": {"items": list(tags)}} if tags else {}),
    }


def queued_in_zone(
    body: Mapping[str, Any], choice: ZoneChoice, *, project: str, name: str, subnetwork: str | None
) -> dict[str, Any]:
    """A queued resource's body in a zone; the body already contains `name`."""
    whole: dict[str, Any] = plain(copy.deepcopy(dict(body)))
    spec = whole["tpu"]["nodeSpec"][0]
    spec["parent"] = f"projects/{project}/locations/{choice.zone}"
    spec["nodeId"] = name
    node = spec["node"]
    node.setdefault("labels", {})[SPEC] = spec_hash(body)
    if subnetwork:
        node.setdefault("networkConfig", {})["subnetwork"] = subnetwork
    whole["queueingPolicy"] = {"validUntilDuration": f"{round(choice.patience_seconds)}s"}
    return whole


def instance_in_zone(
    body: Mapping[str, Any], choice: ZoneChoice, *, project: str, name: str, subnetwork: str | None
) -> dict[str, Any]:
    """A machine's body in a zone; only a flex-start one can wait for capacity."""
    whole: dict[str, Any] = plain(copy.deepcopy(dict(body)))
    zone = f"projects/{project}/zones/{choice.zone}"
    whole["name"] = name
    whole["machineType"] = f"{zone}/machineTypes/{whole['machineType']}"
    for disk in whole.get("disks", ()):
        parameters = disk.get("initializeParams", {})
        if "diskType" in parameters:
            parameters["diskType"] = f"{zone}/diskTypes/{parameters['diskType']}"
    whole["networkInterfaces"] = [{"subnetwork": subnetwork} if subnetwork else {}]
    whole.setdefault("labels", {})[SPEC] = spec_hash(body)
    flexible = whole.get("scheduling", {}).get("provisioningModel") == "FLEX_START"
    if flexible and choice.patience_seconds >= MIN_VM_WAIT_SECONDS:
        whole["params"] = {"requestValidForDuration": {"seconds": str(round(choice.patience_seconds))}}
    return whole
