"""Requests for Compute Engine instances with accelerators: parsing and checks. Pure.

Leaves out instances from templates and machine images, several interfaces, further disks, and instances that are
stopped instead of deleted when their time is over.
"""

import re

from bezel_localcloud.core.errors import refuse_unserved, unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.machines.capacity import FLEXIBLE, Goods, goods, goods_of_machine_type, limits, zones
from bezel_localcloud.services.compute.errors import missing, wrong
from bezel_localcloud.services.compute.links import full_name, last, relative
from bezel_localcloud.services.compute.vpc_kinds import check_name
from bezel_localcloud.services.machines.requests import MODELS, MachineRequest

_UNSERVED = (
    "guestAccelerators", "sourceMachineImage", "resourcePolicies", "confidentialInstanceConfig", "hostname",
    "advancedMachineFeatures", "networkPerformanceConfig", "canIpForward", "deletionProtection",
    "instanceEncryptionKey", "minCpuPlatform",
)  # fmt: skip
# Families of machine types that Google has. Source: the page on machine families, November 2026.
_GOOGLES = re.compile(
    r"(a2|a3|a4|a4x|c2|c2d|c3|c3d|c4|c4a|c4d|ct5l|ct5lp|ct5p|ct6e|e2|f1|g1|g2|g4|h3|h4d|m1|m2|m3|m4|n1|n2|n2d|n4|n4a"
    r"|n4d|t2a|t2d|tpu7x|x4|z3)-[a-z][a-z0-9-]*|custom-[0-9]+-[0-9]+"
)


def parse(body: Json, zone: str) -> MachineRequest:
    """Parse a request.

    Args:
        body: Body without nulls.
        zone: Requested zone.

    Raises:
        ApiError: For an invalid request, and for features that localcloud does not support.
    """
    name, machine = check_name(body.get("name")), _goods(body.get("machineType", ""), zone)
    refuse_unserved(body, _UNSERVED, "instances")
    _check_disks(body.get("disks", []))
    model = _model(body.get("scheduling", {}))
    run_seconds = _run_seconds(body.get("scheduling", {}), model)
    interfaces, accounts = body.get("networkInterfaces", []), body.get("serviceAccounts", [])
    if len(interfaces) != 1:
        raise wrong("resource.networkInterfaces", len(interfaces), "Give one network interface")
    if len(accounts) > 1:
        raise wrong("resource.serviceAccounts", len(accounts), "Give at most one service account")
    interface, metadata = interfaces[0], body.get("metadata", {}).get("items", [])
    return MachineRequest(
        name=f"projects/{PROJECT}/zones/{zone}/instances/{name}",
        zone=zone,
        goods=machine,
        model=model,
        run_seconds=run_seconds,
        valid_seconds=_valid_seconds(body.get("params", {}), model),
        network=full_name(interface.get("network", ""), "global/networks"),
        subnetwork=full_name(interface.get("subnetwork", ""), f"regions/{zone.rpartition('-')[0]}/subnetworks"),
        external=bool(interface.get("accessConfigs")),
        service_account=accounts[0].get("email", "default") if accounts else "",
        metadata={item["key"]: item.get("value", "") for item in metadata if item.get("key")},
        tags=body.get("tags", {}).get("items", []),
    )


def _goods(machine_type: str, zone: str) -> Goods:
    if not machine_type:
        raise missing("resource.machineType")
    path, goods = relative(machine_type), goods_of_machine_type(last(machine_type))
    if "/" in path and f"/zones/{zone}/" not in path:
        raise wrong("resource.machineType", machine_type, f"It is not of zone {zone}")
    if goods is None:
        check_sold(last(machine_type))
    if goods is None or zone not in zones() or goods.name not in zones()[zone].stock:
        text = f"Machine type with name '{last(machine_type)}' does not exist in zone '{zone}'."
        raise wrong("resource.machineType", machine_type, text)
    return goods


def check_sold(machine_type: str) -> None:
    """Refuse a machine type that Google has and localcloud does not.

    Raises:
        NotServedError: Localcloud has none of its type.
    """
    if _GOOGLES.fullmatch(machine_type):
        sold = ", ".join(sorted(kind.machine_type for kind in goods().values()))
        raise unserved_error(f"machines of the type {machine_type}", f"it has machines with accelerators: {sold}")


def _model(scheduling: Json) -> str:
    model = scheduling.get("provisioningModel", "SPOT" if scheduling.get("preemptible") else "STANDARD")
    if model not in MODELS:
        raise unserved_error(f"the provisioning model {model}", "use FLEX_START, SPOT or STANDARD")
    if scheduling.get("onHostMaintenance") != "TERMINATE":
        why = "Machines with accelerators are terminated for maintenance: set TERMINATE"
        raise wrong("resource.scheduling.onHostMaintenance", scheduling.get("onHostMaintenance", ""), why)
    if model != "STANDARD" and scheduling.get("automaticRestart", False):
        raise wrong("resource.scheduling.automaticRestart", "true", f"{model} machines cannot restart by themselves")
    return str(model)


def _run_seconds(scheduling: Json, model: str) -> float | None:
    action, duration = scheduling.get("instanceTerminationAction", ""), scheduling.get("maxRunDuration", {})
    if "terminationTime" in scheduling:
        raise unserved_error("terminationTime of instances", "use maxRunDuration")
    if not duration:
        if model == FLEXIBLE:
            raise missing("resource.scheduling.maxRunDuration")
        return None
    if action != "DELETE":
        raise unserved_error(f"instanceTerminationAction {action or 'STOP'}", "use DELETE")
    seconds, bounds = int(duration.get("seconds", 0)), limits()
    if not bounds["least_run"] <= seconds <= bounds["most_run"]:
        why = f"Must be from {bounds['least_run']} to {bounds['most_run']}"
        raise wrong("resource.scheduling.maxRunDuration.seconds", seconds, why)
    return float(seconds)


def _valid_seconds(params: Json, model: str) -> float:
    seconds, bounds = int(params.get("requestValidForDuration", {}).get("seconds", 0)), limits()
    if seconds and model != FLEXIBLE:
        raise wrong("resource.params.requestValidForDuration", seconds, f"{model} machines do not wait for capacity")
    if seconds and not bounds["least_wait"] <= seconds <= bounds["most_wait"]:
        why = f"Must be 0 or from {bounds['least_wait']} to {bounds['most_wait']}"
        raise wrong("resource.params.requestValidForDuration.seconds", seconds, why)
    return float(seconds)


def _check_disks(disks: list[Json]) -> None:
    if len(disks) != 1 or not disks[0].get("boot"):
        raise wrong("resource.disks", len(disks), "Give one disk, to boot from")
    if not disks[0].get("initializeParams", {}).get("sourceImage"):
        raise missing("resource.disks[0].initializeParams.sourceImage")
