"""Commands of gcloud that ask for the same machine as a request of a lease. Pure.

Sources: references of `gcloud alpha compute tpus queued-resources create` and `gcloud compute instances create`,
2026-11. Attributes of the machine are long and full of commas, so the commands read each from a file of its name.
"""

from collections.abc import Mapping
from typing import Any

from bezel.operations.config.flags import Flags, list_value, pairs


def queued_command(body: Mapping[str, Any], *, project: str, zone: str) -> tuple[str, tuple[str, ...]]:
    """The command of a queued resource, and the paths that none of its flags sets.

    Args:
        body: A queued resource with one node.
        project: The project.
        zone: The zone.
    """
    flags = Flags(body)
    spec = ("tpu", "nodeSpec", 0)
    node = (*spec, "node")
    flags.add("--project", project)
    flags.add("--zone", zone)
    flags.take(*spec, "parent")
    name = str(flags.take(*spec, "nodeId"))
    flags.add("--node-id", name)
    flags.move("--accelerator-type", *node, "acceleratorType")
    flags.move("--type", *node, "acceleratorConfig", "type")
    flags.move("--topology", *node, "acceleratorConfig", "topology")
    flags.move("--runtime-version", *node, "runtimeVersion")
    if (model := flags.take("provisioningModel")) is not None:
        flags.add("--provisioning-model", str(model).lower().replace("_", "-"))
    flags.move("--max-run-duration", "runDuration", "maxRunDuration")
    flags.move("--valid-until-duration", "queueingPolicy", "validUntilDuration")
    if flags.take(*node, "networkConfig", "enableExternalIps") is False:
        flags.add("--internal-ips")
    flags.move("--network", *node, "networkConfig", "network")
    flags.move("--subnetwork", *node, "networkConfig", "subnetwork")
    flags.move("--service-account", *node, "serviceAccount", "email")
    if scopes := flags.take(*node, "serviceAccount", "scope"):
        flags.add("--scopes", list_value(scopes))
    _add_descriptions(flags, flags.take(*node, "metadata"), flags.take(*node, "labels"), flags.take(*node, "tags"))
    command = ("gcloud", "alpha", "compute", "tpus", "queued-resources", "create", name)
    return flags.command(*command), flags.leftover_paths()


def instance_command(body: Mapping[str, Any], *, project: str, zone: str) -> tuple[str, tuple[str, ...]]:
    """The command of a machine of Compute Engine, and the paths that none of its flags sets.

    Args:
        body: A machine with one disk and one interface.
        project: The project.
        zone: The zone.
    """
    flags = Flags(body)
    name = str(flags.take("name"))
    flags.add("--project", project)
    flags.add("--zone", zone)
    flags.add("--machine-type", _last(flags.take("machineType")))
    disk = ("disks", 0)
    flags.take(*disk, "boot")
    flags.switch("boot-disk-auto-delete", *disk, "autoDelete")
    flags.move("--image", *disk, "initializeParams", "sourceImage")
    if (size := flags.take(*disk, "initializeParams", "diskSizeGb")) is not None:
        flags.add("--boot-disk-size", f"{size}GB")
    if (kind := flags.take(*disk, "initializeParams", "diskType")) is not None:
        flags.add("--boot-disk-type", _last(kind))
    scheduling = "scheduling"
    flags.move("--provisioning-model", scheduling, "provisioningModel")
    flags.switch("restart-on-failure", scheduling, "automaticRestart")
    flags.move("--maintenance-policy", scheduling, "onHostMaintenance")
    flags.move("--instance-termination-action", scheduling, "instanceTerminationAction")
    for flag, path in (
        ("--max-run-duration", (scheduling, "maxRunDuration", "seconds")),
        ("--request-valid-for-duration", ("params", "requestValidForDuration", "seconds")),
    ):
        if (seconds := flags.take(*path)) is not None:
            flags.add(flag, f"{seconds}s")
    flags.move("--subnet", "networkInterfaces", 0, "subnetwork")
    flags.add("--no-address")  # an interface without accessConfigs
    flags.move("--service-account", "serviceAccounts", 0, "email")
    if scopes := flags.take("serviceAccounts", 0, "scopes"):
        flags.add("--scopes", list_value(scopes))
    if (reservation := flags.take("reservationAffinity", "consumeReservationType")) is not None:
        flags.add("--reservation-affinity", {"NO_RESERVATION": "none"}.get(reservation, str(reservation).lower()))
    items = {item["key"]: item["value"] for item in flags.take("metadata", "items") or ()}
    _add_descriptions(flags, items, flags.take("labels"), flags.take("tags", "items"))
    return flags.command("gcloud", "compute", "instances", "create", name), flags.leftover_paths()


def _add_descriptions(flags: Flags, metadata: Mapping[str, str] | None, labels: Any, tags: Any) -> None:
    if metadata:
        flags.add("--metadata-from-file", pairs({key: key for key in metadata}))
    if labels:
        flags.add("--labels", pairs(labels))
    if tags:
        flags.add("--tags", list_value(tags))


def _last(name: object) -> str:
    return str(name).rpartition("/")[2]
