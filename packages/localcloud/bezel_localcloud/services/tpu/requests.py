"""Requests to the TPU API: parsing and checks of a queued resource with one node of one host. Pure.

Leaves out several nodes or slices, reservations, and times of day instead of durations.
"""

import re

from bezel_localcloud.core.errors import ApiError, NotServedError, invalid, refuse_unserved, unserved_error
from bezel_localcloud.core.json_types import Json, seconds_of
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.machines.capacity import FLEXIBLE, Goods, goods, limits
from bezel_localcloud.services.compute.links import full_name, last
from bezel_localcloud.services.machines.requests import MODELS, MachineRequest

ID = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
RUNTIMES = ("v2-alpha-tpuv6e", "tpu-ubuntu2204-base")
_UNSERVED = ("reservationName", "guaranteed", "bestEffort")
_UNSERVED_OF_NODE = (
    "dataDisks", "multisliceNode", "networkConfigs", "bootDiskConfig", "autocheckpointEnabled", "cidrBlock",
    "shieldedInstanceConfig", "schedulingConfig",
)  # fmt: skip


def parse(body: Json, resource_id: str, zone: str) -> MachineRequest:
    """Parse a request.

    Raises:
        ApiError: For an invalid request, and for features that localcloud does not support.
    """
    _check_served(body)
    specs = body.get("tpu", {}).get("nodeSpec", [])
    if not ID.fullmatch(resource_id):
        raise invalid(f"Invalid queued_resource_id {resource_id!r}.", ("queued_resource_id", ID.pattern))
    if len(specs) != 1 or "multiNodeParams" in specs[0]:
        raise NotServedError("localcloud serves queued resources with one node: give one nodeSpec.")
    spec = specs[0]
    parent, node_id, node = spec.get("parent", ""), spec.get("nodeId", ""), spec.get("node", {})
    if last(parent) != zone:
        text = f"The node's parent {parent!r} is not in the queued resource's zone {zone}."
        raise invalid(text, ("queued_resource.tpu.node_spec[0].parent", f"projects/{PROJECT}/locations/{zone}"))
    if not ID.fullmatch(node_id):
        raise invalid(f"Invalid node_id {node_id!r}.", ("queued_resource.tpu.node_spec[0].node_id", ID.pattern))
    refuse_unserved(node, _UNSERVED_OF_NODE, "a node")
    if node.get("runtimeVersion") not in RUNTIMES:
        text = f"Runtime version {node.get('runtimeVersion', '')!r} was not found in zone {zone}."
        raise invalid(text, ("runtime_version", f"one of {', '.join(RUNTIMES)}"))
    network, model = node.get("networkConfig", {}), _model(body)
    return MachineRequest(
        name=f"projects/{PROJECT}/locations/{zone}/nodes/{node_id}",
        zone=zone,
        goods=_goods(node, zone),
        model=model,
        run_seconds=_run_seconds(body, model),
        valid_seconds=_valid_seconds(body),
        network=full_name(network.get("network", ""), "global/networks"),
        subnetwork=full_name(network.get("subnetwork", ""), f"regions/{zone.rpartition('-')[0]}/subnetworks"),
        external=bool(network.get("enableExternalIps")),
        service_account=node.get("serviceAccount", {}).get("email") or "default",
        metadata=node.get("metadata", {}),
        tags=node.get("tags", []),
    )


def _check_served(body: Json) -> None:
    policy, duration = body.get("queueingPolicy", {}), body.get("runDuration", {})
    unserved_keys = [key for key in _UNSERVED if body.get(key)]
    unserved_keys += [f"queueingPolicy.{key}" for key in sorted(policy.keys() - {"validUntilDuration"})]
    unserved_keys += [f"runDuration.{key}" for key in sorted(duration.keys() - {"maxRunDuration"})]
    if unserved_keys:
        raise unserved_error(", ".join(unserved_keys))


def _goods(node: Json, zone: str) -> Goods:
    kind, config = node.get("acceleratorType", ""), node.get("acceleratorConfig", {})
    slices = {name: slice_ for name, slice_ in goods().items() if slice_.topology}
    if config:
        fitting = (n for n, o in slices.items() if (config.get("type"), config.get("topology")) == ("V6E", o.topology))
        by_shape = next(fitting, "")
        if kind not in {"", by_shape}:
            raise invalid(f"acceleratorType {kind!r} and acceleratorConfig {config} differ.", ("node", "give one"))
        kind = by_shape or f"{config.get('type', '')} {config.get('topology', '')}"
    if kind not in slices:
        raise ApiError("NOT_FOUND", f"Accelerator type {kind!r} not found in zone {zone}.")
    return slices[kind]


def _model(body: Json) -> str:
    model = str(body.get("provisioningModel", "SPOT" if "spot" in body else "STANDARD"))
    if model not in MODELS:
        raise unserved_error(f"the provisioning model {model}", "use FLEX_START, SPOT or STANDARD")
    return model


def _run_seconds(body: Json, model: str) -> float | None:
    text = body.get("runDuration", {}).get("maxRunDuration")
    if not text:
        if model == FLEXIBLE:
            raise invalid("FLEX_START needs a maximum run duration.", ("run_duration.max_run_duration", "is missing"))
        return None
    bounds, seconds = limits(), _duration(text)
    if not bounds["least_run"] <= seconds <= bounds["most_run"]:
        why = "must be between 10 minutes and 7 days"
        raise invalid(f"Invalid max_run_duration {text}: it {why}.", ("run_duration.max_run_duration", why))
    return seconds


def _valid_seconds(body: Json) -> float | None:
    text = body.get("queueingPolicy", {}).get("validUntilDuration")
    if not text:
        return None
    if (seconds := _duration(text)) <= 0:
        why = ("queueing_policy.valid_until_duration", "is not positive")
        raise invalid(f"Invalid valid_until_duration {text}.", why)
    return seconds


def _duration(text: str) -> float:
    try:
        return seconds_of(text, 0)
    except ValueError:  # a negative duration
        return -1.0
