"""Calls of google-cloud-compute, which is REST only: networks, instances, operations, errors."""

from collections.abc import Callable
from typing import Any

from google.api_core import exceptions
from google.cloud import compute_v1 as gce
from google_calls import PROJECT, Report, options

ZONE, REGION = "us-east4-a", "us-east4"
report = Report("google-cloud-compute")
common = {"client_options": options("COMPUTE")}
networks = gce.NetworksClient(**common)
subnetworks = gce.SubnetworksClient(**common)
firewalls = gce.FirewallsClient(**common)
routers = gce.RoutersClient(**common)
instances = gce.InstancesClient(**common)
machine_types = gce.MachineTypesClient(**common)
global_operations = gce.GlobalOperationsClient(**common)
region_operations = gce.RegionOperationsClient(**common)
zone_operations = gce.ZoneOperationsClient(**common)
GLOBAL: dict[str, Any] = {"project": PROJECT}
REGIONAL: dict[str, Any] = GLOBAL | {"region": REGION}
ZONAL: dict[str, Any] = GLOBAL | {"zone": ZONE}


def await_operation(action: Callable[[], gce.Operation]) -> Callable[[], gce.Operation]:
    """A call whose operation is awaited; its result is the ended operation.

    The calls are those named `..._unary`, and the wait is a client's of its own: `operation.result()` of the others
    calls compute.googleapis.com, whatever endpoint their client has.
    """

    def run() -> gce.Operation:
        operation = action()
        while operation.status != gce.Operation.Status.DONE:
            named = GLOBAL | {"operation": operation.name}
            if operation.zone:
                operation = zone_operations.wait(named | {"zone": operation.zone.rpartition("/")[2]})
            elif operation.region:
                operation = region_operations.wait(named | {"region": operation.region.rpartition("/")[2]})
            else:
                operation = global_operations.wait(named)
        return operation

    return run


def has_ended(operation: gce.Operation) -> bool:
    """Whether an operation has ended without an error."""
    return operation.progress == 100 and not operation.error.errors


def places() -> None:
    """Project, regions, zones, machine types."""
    report.call(
        "projects.get", lambda: gce.ProjectsClient(**common).get(project=PROJECT), lambda got: got.name == PROJECT
    )
    regions, zones = gce.RegionsClient(**common), gce.ZonesClient(**common)
    report.call("regions.get", lambda: regions.get(REGIONAL), lambda got: got.name == REGION)
    report.call(
        "regions.list, pages of 3",
        lambda: list(regions.list(GLOBAL | {"max_results": 3})),
        lambda answer: len({one.name for one in answer}) == len(answer) > 3,
    )
    report.call("zones.get", lambda: zones.get(ZONAL), lambda got: got.region.endswith(REGION))
    report.call("zones.list", lambda: list(zones.list(project=PROJECT)), lambda answer: len(answer) > 3)
    report.call(
        "machineTypes.list",
        lambda: list(machine_types.list(ZONAL)),
        lambda answer: [one.name for one in answer] == ["g2-standard-96"],
    )
    report.call(
        "machineTypes.get",
        lambda: machine_types.get(ZONAL | {"machine_type": "g2-standard-96"}),
        lambda got: got.accelerators[0].guest_accelerator_count == 8,
    )
    report.call(
        "machineTypes.get without accelerators", lambda: machine_types.get(ZONAL | {"machine_type": "e2-small"})
    )
    report.raises(
        "machineTypes.get of no type", "NOT_FOUND", lambda: machine_types.get(ZONAL | {"machine_type": "nosuch-1"})
    )
    report.raises("zones.get of no zone", "NOT_FOUND", lambda: zones.get(GLOBAL | {"zone": "mars1-a"}))


def network() -> None:
    """A network with a subnetwork, a rule, a router."""
    body = gce.Network(name="tried", auto_create_subnetworks=False, description="one")
    operation = report.call(
        "networks.insert",
        await_operation(lambda: networks.insert_unary(GLOBAL | {"network_resource": body})),
        has_ended,
    )
    named = GLOBAL | {"operation": operation.name}
    report.call(
        "globalOperations.get",
        lambda: global_operations.get(named),
        lambda got: got.status == gce.Operation.Status.DONE,
    )
    report.call("globalOperations.wait", lambda: global_operations.wait(named), lambda got: got.progress == 100)
    report.raises(
        "networks.insert again", "ALREADY_EXISTS", lambda: networks.insert_unary(GLOBAL | {"network_resource": body})
    )
    report.call("networks.get", lambda: networks.get(GLOBAL | {"network": "tried"}), lambda got: got.name == "tried")
    report.call(
        "networks.list",
        lambda: list(networks.list(project=PROJECT)),
        lambda answer: "tried" in {n.name for n in answer},
    )
    patch = gce.Network(routing_config=gce.NetworkRoutingConfig(routing_mode="GLOBAL"))
    report.call(
        "networks.patch",
        await_operation(lambda: networks.patch_unary(GLOBAL | {"network": "tried", "network_resource": patch})),
        has_ended,
    )
    subnetwork()
    rules()
    router()


def subnetwork() -> None:
    """A subnetwork."""
    body = gce.Subnetwork(name="tried", network="global/networks/tried", ip_cidr_range="10.7.0.0/24")
    one = REGIONAL | {"subnetwork": "tried"}
    operation = report.call(
        "subnetworks.insert",
        await_operation(lambda: subnetworks.insert_unary(REGIONAL | {"subnetwork_resource": body})),
        has_ended,
    )
    named = REGIONAL | {"operation": operation.name}
    report.call("regionOperations.get", lambda: region_operations.get(named), lambda got: got.progress == 100)
    report.call("regionOperations.wait", lambda: region_operations.wait(named))
    present = report.call(
        "subnetworks.get", lambda: subnetworks.get(one), lambda got: got.ip_cidr_range == "10.7.0.0/24"
    )
    report.call("subnetworks.list", lambda: list(subnetworks.list(REGIONAL)), lambda all_: len(all_) > 0)
    body = gce.Subnetwork(description="two", fingerprint=present.fingerprint)
    report.call(
        "subnetworks.patch",
        await_operation(lambda: subnetworks.patch_unary(one | {"subnetwork_resource": body})),
        has_ended,
    )
    access = gce.SubnetworksSetPrivateIpGoogleAccessRequest(private_ip_google_access=True)
    name = "subnetworks_set_private_ip_google_access_request_resource"
    report.call(
        "subnetworks.setPrivateIpGoogleAccess",
        await_operation(lambda: subnetworks.set_private_ip_google_access_unary(one | {name: access})),
        has_ended,
    )


def rules() -> None:
    """A firewall rule."""
    allowed = gce.Allowed(I_p_protocol="tcp", ports=["22", "8000-8010"])
    body = gce.Firewall(name="tried", network="global/networks/tried", allowed=[allowed], source_ranges=["10.0.0.0/8"])
    one = GLOBAL | {"firewall": "tried"}
    report.call(
        "firewalls.insert",
        await_operation(lambda: firewalls.insert_unary(GLOBAL | {"firewall_resource": body})),
        has_ended,
    )
    report.call("firewalls.get", lambda: firewalls.get(one), lambda got: got.allowed[0].ports == ["22", "8000-8010"])
    report.call("firewalls.list", lambda: list(firewalls.list(project=PROJECT)), lambda answer: len(answer) == 5)
    change = gce.Firewall(priority=7)
    report.call(
        "firewalls.patch",
        await_operation(lambda: firewalls.patch_unary(one | {"firewall_resource": change})),
        has_ended,
    )
    report.call(
        "firewalls.update",
        await_operation(lambda: firewalls.update_unary(one | {"firewall_resource": body})),
        has_ended,
    )
    report.call("firewalls.delete", await_operation(lambda: firewalls.delete_unary(one)), has_ended)


def router() -> None:
    """A router with a NAT."""
    nat = gce.RouterNat(
        name="nat",
        nat_ip_allocate_option="AUTO_ONLY",
        source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
    )
    body = gce.Router(name="tried", network="global/networks/tried", nats=[nat])
    one = REGIONAL | {"router": "tried"}
    report.call(
        "routers.insert", await_operation(lambda: routers.insert_unary(REGIONAL | {"router_resource": body})), has_ended
    )
    report.call("routers.get", lambda: routers.get(one), lambda got: got.nats[0].name == "nat")
    report.call("routers.list", lambda: list(routers.list(REGIONAL)), lambda answer: len(answer) == 1)
    change = gce.Router(description="two")
    report.call(
        "routers.patch", await_operation(lambda: routers.patch_unary(one | {"router_resource": change})), has_ended
    )
    report.call(
        "routers.update", await_operation(lambda: routers.update_unary(one | {"router_resource": body})), has_ended
    )
    report.call("routers.delete", await_operation(lambda: routers.delete_unary(one)), has_ended)


def machine(name: str, kind: str = "g2-standard-96", **more: Any) -> dict[str, Any]:
    """A request for an instance."""
    disk = gce.AttachedDisk(
        boot=True,
        auto_delete=True,
        initialize_params=gce.AttachedDiskInitializeParams(
            source_image="projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e",
            disk_size_gb=200,
        ),
    )
    body: dict[str, Any] = {
        "name": name,
        "machine_type": f"zones/{ZONE}/machineTypes/{kind}",
        "disks": [disk],
        "network_interfaces": [gce.NetworkInterface(subnetwork=f"regions/{REGION}/subnetworks/tried")],
        "scheduling": gce.Scheduling(on_host_maintenance="TERMINATE", automatic_restart=True),
        "labels": {"tried": "yes"},
    }
    return ZONAL | {"instance_resource": gce.Instance(body | more)}


def machines() -> None:
    """Instances: create, read, filter, delete."""
    one = ZONAL | {"instance": "tried"}
    operation = report.call(
        "instances.insert", await_operation(lambda: instances.insert_unary(machine("tried"))), has_ended
    )
    named = ZONAL | {"operation": operation.name}
    report.call("zoneOperations.get", lambda: zone_operations.get(named), lambda got: got.operation_type == "insert")
    report.call("zoneOperations.wait", lambda: zone_operations.wait(named), lambda got: got.progress == 100)
    report.call(
        "instances.get",
        lambda: instances.get(one),
        lambda got: got.status == "RUNNING" and got.labels["tried"] == "yes" and got.disks[0].disk_size_gb == 200,
    )
    report.call(
        "instances.list", lambda: list(instances.list(ZONAL)), lambda answer: [i.name for i in answer] == ["tried"]
    )
    report.call(
        "instances.list, with a filter",
        lambda: list(instances.list(ZONAL | {"filter": "labels.tried = no"})),
        lambda answer: not answer,
    )
    report.call(
        "instances.aggregatedList",
        lambda: dict(instances.aggregated_list(project=PROJECT)),
        lambda answer: answer[f"zones/{ZONE}"].instances[0].name == "tried",
    )
    report.call("instances.getSerialPortOutput", lambda: instances.get_serial_port_output(one))
    attributes = one | {"query_path": "nothing/"}
    report.raises(
        "instances.getGuestAttributes of none", "NOT_FOUND", lambda: instances.get_guest_attributes(attributes)
    )
    report.raises("instances.insert again", "ALREADY_EXISTS", lambda: instances.insert_unary(machine("tried")))
    report.call("instances.stop", lambda: instances.stop_unary(one))
    report.call(
        "instances.insert without accelerators",
        lambda: instances.insert_unary(machine("small", "e2-small", scheduling=None)),
    )
    report.raises(
        "instances.insert of no machine type",
        "INVALID_ARGUMENT",
        lambda: instances.insert_unary(machine("odd", "nosuch-1", scheduling=None)),
    )
    report.call("instances.insert over a quota: Forbidden", over_quota, lambda text: "Quota" in text)
    report.call("instances.delete", await_operation(lambda: instances.delete_unary(one)), has_ended)
    report.raises("instances.get of a deleted one", "NOT_FOUND", lambda: instances.get(one))


def over_quota() -> str:
    """Request a second machine of eight GPUs, where eight are allowed; the text of the error."""
    try:
        operation = await_operation(lambda: instances.insert_unary(machine("second")))()
    except exceptions.Forbidden as error:
        return str(error.message)
    return ", ".join(error.message for error in operation.error.errors)


def delete_network() -> None:
    """Delete the network."""
    report.raises(
        "networks.delete of one in use",
        "INVALID_ARGUMENT",
        lambda: networks.delete_unary(GLOBAL | {"network": "tried"}),
    )
    report.call(
        "subnetworks.delete",
        await_operation(lambda: subnetworks.delete_unary(REGIONAL | {"subnetwork": "tried"})),
        has_ended,
    )
    report.call(
        "networks.delete", await_operation(lambda: networks.delete_unary(GLOBAL | {"network": "tried"})), has_ended
    )
    report.raises("networks.get of a deleted one", "NOT_FOUND", lambda: networks.get(GLOBAL | {"network": "tried"}))


if __name__ == "__main__":
    places()
    network()
    machines()
    delete_network()
