"""Compute Engine's JSON of instances. Pure."""

from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.machines.lifecycle import Life
from bezel_localcloud.services.compute.links import fingerprint
from bezel_localcloud.services.compute.vpc import loopback

# State of a request -> status of an instance; the status before a machine is made depends on whether the request waits.
_STATUSES = {"PROVISIONING": "STAGING", "ACTIVE": "RUNNING", "SUSPENDING": "STOPPING", "DELETING": "STOPPING"}


def instance(name: str, row: Json, external: str) -> Json:
    """An instance as requested, with the platform's fields; links are names.

    Args:
        name: `projects/P/zones/Z/instances/I`.
        row: Its row.
        external: Its external address, "" for none.
    """
    life, request = Life(**row["life"]), dict(row["request"])
    request.pop("params", None)
    zone = name.rpartition("/instances/")[0]
    scheduling = {"preemptible": row["model"] == "SPOT", "automaticRestart": row["model"] == "STANDARD"}
    response: Json = {
        "kind": "compute#instance",
        "id": row["number"],
        "creationTimestamp": timestamp(life.created),
        "selfLink": name,
        "zone": zone,
        "status": _STATUSES.get(life.state, "PENDING" if life.valid_until else "PROVISIONING"),
        "cpuPlatform": "AMD Genoa" if row["topology"] else "Intel Cascade Lake",
        "fingerprint": fingerprint(row["request"]),
        "labelFingerprint": fingerprint(request.get("labels", {})),
        "startRestricted": False,
        "deletionProtection": False,
        "canIpForward": False,
    } | request
    response["machineType"] = f"{zone}/machineTypes/{row['goods_type']}"
    response["scheduling"] = scheduling | {"provisioningModel": row["model"]} | request.get("scheduling", {})
    response["disks"] = [_disk(disk, zone, name) for disk in request.get("disks", [])]
    response["networkInterfaces"] = [_interface(request["networkInterfaces"][0], row, external)]
    metadata = request.get("metadata", {})
    response["metadata"] = metadata | {"kind": "compute#metadata", "fingerprint": fingerprint(metadata)}
    response["tags"] = request.get("tags", {}) | {"fingerprint": fingerprint(request.get("tags", {}))}
    if life.state == "ACTIVE":
        response["lastStartTimestamp"] = timestamp(life.since)
    if life.ends_at is not None:
        response["resourceStatus"] = {"scheduling": {"terminationTimestamp": timestamp(life.ends_at)}}
    return response


def _disk(disk: Json, zone: str, name: str) -> Json:
    parameters = disk.get("initializeParams", {})
    attached = {
        "kind": "compute#attachedDisk",
        "index": 0,
        "type": "PERSISTENT",
        "mode": "READ_WRITE",
        "source": f"{zone}/disks/{name.rpartition('/')[2]}",
        "deviceName": "persistent-disk-0",
        "interface": "NVME",
        "diskSizeGb": parameters.get("diskSizeGb", "10"),
    }
    return attached | {key: value for key, value in disk.items() if key != "initializeParams"}


def _interface(requested: Json, row: Json, external: str) -> Json:
    fields = {"kind": "compute#networkInterface", "name": "nic0", "stackType": "IPV4_ONLY"}
    fields |= {"fingerprint": fingerprint(requested), "subnetwork": row["machine"]["subnetwork"]}
    if place := row.get("place"):
        fields |= {"network": place["network"], "networkIP": loopback(place["address"])}
    if not row["machine"]["external"]:
        return requested | fields
    outside = {"kind": "compute#accessConfig", "type": "ONE_TO_ONE_NAT", "name": "external-nat"}
    outside |= {"networkTier": "PREMIUM"} | ({"natIP": external} if external else {})
    return requested | fields | {"accessConfigs": [outside | requested["accessConfigs"][0]]}
