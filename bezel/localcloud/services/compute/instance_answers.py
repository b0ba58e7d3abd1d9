"""Compute Engine's JSON of instances. Pure."""

import base64
import hashlib
import json
from typing import Any

from bezel.localcloud.core.json_types import Json, timestamp
from bezel.localcloud.machines.lifecycle import Life
from bezel.localcloud.services.compute.vpc import loopback

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
    answer: Json = {
        "kind": "compute#instance",
        "id": row["number"],
        "creationTimestamp": timestamp(life.created),
        "selfLink": name,
        "zone": zone,
        "status": _STATUSES.get(life.state, "PENDING" if life.valid_until else "PROVISIONING"),
        "cpuPlatform": "AMD Genoa" if row["topology"] else "Intel Cascade Lake",
        "fingerprint": _mark(row["request"]),
        "labelFingerprint": _mark(request.get("labels", {})),
        "startRestricted": False,
        "deletionProtection": False,
        "canIpForward": False,
    } | request
    answer["machineType"] = f"{zone}/machineTypes/{row['goods_type']}"
    answer["scheduling"] = scheduling | {"provisioningModel": row["model"]} | request.get("scheduling", {})
    answer["disks"] = [_disk(disk, zone, name) for disk in request.get("disks", [])]
    answer["networkInterfaces"] = [_interface(request["networkInterfaces"][0], row, external)]
    metadata = request.get("metadata", {})
    answer["metadata"] = metadata | {"kind": "compute#metadata", "fingerprint": _mark(metadata)}
    answer["tags"] = request.get("tags", {}) | {"fingerprint": _mark(request.get("tags", {}))}
    if life.state == "ACTIVE":
        answer["lastStartTimestamp"] = timestamp(life.since)
    if life.ends_at is not None:
        answer["resourceStatus"] = {"scheduling": {"terminationTimestamp": timestamp(life.ends_at)}}
    return answer


def _disk(disk: Json, zone: str, name: str) -> Json:
    parameters = disk.get("initializeParams", {})
    made = {
        "kind": "compute#attachedDisk",
        "index": 0,
        "type": "PERSISTENT",
        "mode": "READ_WRITE",
        "source": f"{zone}/disks/{name.rpartition('/')[2]}",
        "deviceName": "persistent-disk-0",
        "interface": "NVME",
        "diskSizeGb": parameters.get("diskSizeGb", "10"),
    }
    return made | {key: value for key, value in disk.items() if key != "initializeParams"}


def _interface(asked: Json, row: Json, external: str) -> Json:
    made = {"kind": "compute#networkInterface", "name": "nic0", "stackType": "IPV4_ONLY", "fingerprint": _mark(asked)}
    made["subnetwork"] = row["machine"]["subnetwork"]
    if place := row.get("place"):
        made |= {"network": place["network"], "networkIP": loopback(place["address"])}
    if row["machine"]["external"]:
        outside = {"kind": "compute#accessConfig", "type": "ONE_TO_ONE_NAT", "name": "external-nat"}
        outside |= {"natIP": external} if external else {}
        return asked | made | {"accessConfigs": [asked["accessConfigs"][0] | outside | {"networkTier": "PREMIUM"}]}
    return asked | made


def _mark(value: Any) -> str:
    return base64.b64encode(hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()[:8]).decode()
