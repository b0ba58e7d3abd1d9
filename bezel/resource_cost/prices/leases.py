"""Leased machines, read from the inputs of each resource type that can hold them, and priced by the planner's rules.

A queued resource of the REST API is recognized by its body, `{tpu: {nodeSpec: [...]}}`, in whatever resource; the body
of a machine by its machine type. A lease that several zones may grant (`zones: [{zone: ...}]` beside the body) has the
price of the most expensive one. Its run duration is read from the input that ends it: `runDuration` of a queued
resource, `maxRunDuration` of an instance's scheduling. The provider's types for the TPU API have no such input (docs of
pulumi-gcp 10).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import prod
from typing import NamedTuple, TypeGuard

from bezel.planner.base.hardware import find_leased_hardware
from bezel.planner.base.hours import Window, share_of_time
from bezel.planner.base.money import Amount, Unpriced, most_expensive, times, total
from bezel.planner.cost.lease_cost import Provisioning, lease_cost
from bezel.planner.cost.service_cost import HOURS_PER_MONTH
from bezel.resource_cost.inputs import Inputs, camel, plainly
from bezel_base.cron import CronError

MACHINE = re.compile(r"(?:.*/)?(?:ct6e-standard-(?P<chips>\d+)t|(?P<gpus>g2-standard-96))")
MODELS: dict[str, Provisioning] = {
    "": "on-demand", "STANDARD": "on-demand", "FLEX_START": "flex-start", "SPOT": "spot"
}  # fmt: skip
_DURATION = re.compile(r"(\d{1,9})s")
_TOPOLOGY = re.compile(r"\d{1,4}x\d{1,4}(x\d{1,4})?")
_PRICED = "its price depends on it."
_SPECS = frozenset({"nodeSpec", "nodeSpecs"})
# Of v2 and of v2alpha1.
_MANY = ("multisliceParams", "multiNodeParams")
_BODIES = ("body", "tpu")
"""Inputs that hold the body of a queued resource, or its nodes."""


@dataclass(frozen=True, slots=True)
class Node:
    """A leased node or virtual machine: its inputs, its hardware, its possible zones, its number."""

    inputs: Inputs
    slice_id: str
    slice_key: str
    zones: tuple[str, ...]
    count: int = 1

    @property
    def is_instance(self) -> bool:
        """Whether it is a machine of Compute Engine, and no node of the TPU API."""
        return self.slice_key == self.inputs.key("machineType")

    def hourly(self, model: str) -> Amount:
        """USD per hour of all nodes, under one of Google's provisioning models, in the most expensive zone."""
        if model not in MODELS:
            return Unpriced(f"leases under the provisioning model {plainly(model)}")
        hardware = find_leased_hardware(self.slice_id)
        if hardware is None:
            return Unpriced(f"the hardware {plainly(self.slice_id)}")
        prices = [lease_cost(hardware, zone=zone, provisioning=MODELS[model]).hourly for zone in self.zones]
        return times(most_expensive(prices), self.count)


class Beside(NamedTuple):
    """An accelerator that a resource requests beside one that has a price: the input, and which."""

    key: str
    accelerator: str

    @property
    def hourly(self) -> Unpriced:
        """Unknown: it has no price here."""
        return Unpriced(f"the accelerator {plainly(self.accelerator)} at {self.key}")


@dataclass(frozen=True, slots=True)
class Lease:
    """Lease of one resource: nodes that are bought together and end together.

    `name` is the lease's name where several resources share one lease: those that request it, and the one that waits.
    `monthly_hours` are the hours of a month where it is leased again and again; None where it ends for good.
    `beside` is another accelerator that the same resource requests, which has no price here.
    """

    nodes: tuple[Node, ...]
    model: str
    model_key: str
    run_key: str
    run_seconds: int | None
    name: str | None = None
    monthly_hours: Decimal | None = None
    beside: Beside | None = None

    @property
    def priced_paths(self) -> frozenset[tuple[str, ...]]:
        """Paths of the inputs that request its machines."""
        return frozenset(
            (*node.inputs.where, name)
            for node in self.nodes
            for name in (("machineType",) if node.is_instance else ("acceleratorType", "acceleratorConfig"))
        )

    @property
    def holders(self) -> frozenset[tuple[str, ...]]:
        """Paths of the mappings that hold its machines, whose own names request nothing."""
        places = {node.inputs.where for node in self.nodes}
        return frozenset(places | {place[:-3] for place in places if place[-1:] == ("node",)})

    @property
    def labels(self) -> Inputs:
        """Labels of the first node; all nodes are one purchase."""
        return self.nodes[0].inputs.at("labels")

    @property
    def accelerator(self) -> str:
        """The slice's name in the catalogue; several kinds are joined, which no list contains."""
        names = list(dict.fromkeys(node.slice_id for node in self.nodes))
        return " and ".join([*names, self.beside.accelerator] if self.beside else names)

    @property
    def accelerator_key(self) -> str:
        """Input of the accelerator."""
        return self.beside.key if self.beside else self.nodes[0].slice_key

    @property
    def max_instances(self) -> int:
        """Number of nodes."""
        return sum(node.count for node in self.nodes)

    @property
    def max_key(self) -> str:
        """Input of the first node."""
        return self.nodes[0].slice_key

    @property
    def hourly(self) -> Amount:
        """Cost of all nodes, per hour; unknown with another accelerator beside them."""
        nodes = [node.hourly(self.model) for node in self.nodes]
        return total([*nodes, self.beside.hourly] if self.beside else nodes)

    def until_its_end(self) -> Amount:
        """Cost of all nodes until the lease ends; unknown without an end."""
        if self.run_seconds is None:
            return Unpriced("when it ends")
        return times(self.hourly, Decimal(self.run_seconds) / 3600)


def lease_of_instance(inputs: Inputs, zones: tuple[str, ...] = ()) -> Lease | None:
    """The accelerators of a Compute Engine instance; None where its machine type has none known here.

    Args:
        inputs: of the instance, or the body of its request.
        zones: possible zones, if the inputs name none.
    """
    machine = MACHINE.fullmatch(inputs.text("machineType") or "")
    if machine is None:
        return None
    places = zones or (inputs.required_text(_PRICED, "set the zone.", "zone"),)
    run = inputs.count("scheduling", "maxRunDuration", "seconds")
    model = inputs.text("scheduling", "provisioningModel") or ""
    if not model and inputs.switch("scheduling", "preemptible"):
        model = "SPOT"
    hardware = f"v6e-{machine['chips']}" if machine["chips"] else machine["gpus"]
    return Lease(
        (Node(inputs, hardware, inputs.key("machineType"), places),),
        model,
        inputs.key("scheduling", "provisioningModel"),
        inputs.key("scheduling", "maxRunDuration", "seconds"),
        run or None,
    )


def lease_of_vm(inputs: Inputs) -> Lease:
    """A node of the TPU API, which has no end."""
    scheduling = inputs.at("schedulingConfig")
    model = "SPOT" if scheduling.switch("spot") or scheduling.switch("preemptible") else ""
    model = "reserved" if scheduling.switch("reserved") else model
    node = _node(inputs, (inputs.required_text(_PRICED, "set the zone.", "zone"),))
    return Lease((node,), model, inputs.key("schedulingConfig"), inputs.key("maxRunDuration"), None)


def lease_of_queue(body: Inputs, zones: tuple[str, ...] = ()) -> Lease:
    """A queued resource: `body` holds `tpu`, its node specifications in either API's spelling.

    Args:
        body: of the request.
        zones: possible zones, if the body names none.
    """
    spelling = "nodeSpec" if body.get("tpu", "nodeSpec") is not None else "nodeSpecs"
    nodes = []
    for spec in body.each("tpu", spelling):
        zone = (spec.text("parent") or "").rpartition("/locations/")[2] or body.text("zone")
        places = (zone,) if zone else zones
        if not places:
            raise spec.refusal(None, _PRICED, "write projects/P/locations/ZONE.", "parent")
        nodes.append(_node(spec.at("node"), places, max(1, *(spec.count(name, "nodeCount") for name in _MANY))))
    if not nodes:
        raise body.refusal(None, _PRICED, "describe the nodes.", "tpu", spelling)
    model = body.text("provisioningModel") or ""
    if not model and body.get("spot") is not None:
        model = "SPOT"
    if not model and body.switch("guaranteed", "reserved"):
        model = "reserved"
    return Lease(
        tuple(nodes),
        model,
        body.key("provisioningModel"),
        body.key("runDuration", "maxRunDuration"),
        _seconds(body, "runDuration", "maxRunDuration"),
    )


def lease_of_request(inputs: Inputs) -> Lease | None:
    """The lease that a dynamic resource requests or waits for, by the request body in it; None without one."""
    if queue := queue_body(inputs):
        lease: Lease | None = lease_of_queue(queue, zones_of(inputs))
    elif instance := instance_body(inputs):
        lease = lease_of_instance(instance, zones_of(inputs))
    else:
        return None
    name = inputs.values.get("name") if isinstance(inputs.values, Mapping) else None
    if lease is None or not isinstance(name, str):
        return lease
    return replace(lease, name=name, monthly_hours=_monthly_hours(inputs))


def _monthly_hours(inputs: Inputs) -> Decimal | None:
    """Hours of a month in the hours of a lease; all of them where they cannot be read, None without hours."""
    windows = [Window(*map(str, entry.values)) for entry in inputs.each("hours") if _is_window(entry.values)]
    try:
        return share_of_time(windows) * HOURS_PER_MONTH if windows else None
    except CronError:
        return Decimal(HOURS_PER_MONTH)


def _is_window(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str) and len(value) == len(Window._fields)


def zones_of(inputs: Inputs) -> tuple[str, ...]:
    """Possible zones of a lease, by the resource's list of zones."""
    return tuple(entry.required_text(_PRICED, "name the zone.", "zone") for entry in inputs.each("zones"))


def instance_body(inputs: Inputs) -> Inputs | None:
    """The body of a request for a machine, directly below the inputs."""
    body = inputs.at("body") if isinstance(inputs.values, Mapping) and "body" in inputs.values else None
    if body is None or not isinstance(body.values, Mapping):
        return None
    return body if MACHINE.fullmatch(body.text("machineType") or "") else None


def queue_body(inputs: Inputs) -> Inputs | None:
    """The inputs, or a mapping directly below them, if they are the body of a queued resource."""
    if not isinstance(inputs.values, Mapping):
        return None
    for name in _BODIES:
        inputs.get(name)  # an unknown value there may hold anything
    for place in (inputs, *(_written_out(inputs, key) for key in inputs.values)):
        if not isinstance(place.values, Mapping):
            continue
        nodes = place.get("tpu")
        if isinstance(nodes, Mapping) and not _SPECS.isdisjoint(map(camel, map(str, nodes))):
            return place
    return None


def _written_out(inputs: Inputs, key: str) -> Inputs:
    """The inputs under a key; a body in JSON text is parsed."""
    value, where = inputs.values.get(key) if isinstance(inputs.values, Mapping) else None, (*inputs.where, key)
    if not isinstance(value, str) or not any(word in value for word in ('"nodeSpec', '"node_spec')):
        return Inputs(value, where)
    try:
        return Inputs(json.loads(value), where)
    except (ValueError, RecursionError):
        raise inputs.refusal("(text)", "expected JSON.", "write the body as JSON.", key) from None


def _node(inputs: Inputs, zones: tuple[str, ...], count: int = 1) -> Node:
    kind = inputs.text("acceleratorType")
    topology = inputs.text("acceleratorConfig", "topology") or ""
    family = inputs.text("acceleratorConfig", "type")
    by_topology = None
    if family is not None and _TOPOLOGY.fullmatch(topology):
        by_topology = f"{family.lower()}-{prod(int(side) for side in topology.split('x'))}"
    if kind and (topology or family) and kind != by_topology:
        raise inputs.refusal(kind, "acceleratorConfig is of another slice.", "write one of both.", "acceleratorType")
    if kind:
        return Node(inputs, kind, inputs.key("acceleratorType"), zones, count)
    if by_topology is None:
        raise inputs.refusal(None, _PRICED, "write e.g. v6e-4.", "acceleratorType")
    return Node(inputs, by_topology, inputs.key("acceleratorConfig"), zones, count)


def _seconds(inputs: Inputs, *path: str) -> int | None:
    written = inputs.text(*path)
    if written is None:
        return None
    duration = _DURATION.fullmatch(written)
    if duration is None:
        raise inputs.refusal(written, "expected a duration.", "write seconds, e.g. 14400s.", *path)
    return int(duration[1]) or None
