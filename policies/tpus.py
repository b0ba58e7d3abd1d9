"""TPUs, read from the inputs of each resource type that can hold them, and priced by the planner's rules.

A queued resource of the REST API is known by its body, `{tpu: {nodeSpec: [...]}}`, whatever resource carries it. How
long a TPU may run is read where the platform ends it: `runDuration` of a queued resource, `maxRunDuration` of an
instance's scheduling. The types of the provider for the TPU API have no such input (docs of pulumi-gcp 10).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import prod
from typing import TYPE_CHECKING

from bezel.planner.lease_cost import Provisioning, lease_cost
from bezel.planner.leased import leased
from bezel.planner.money import Unpriced, times, total
from policies.inputs import Inputs, plainly

if TYPE_CHECKING:
    from bezel.planner.money import Amount

MACHINE = re.compile(r"(?:.*/)?ct6e-standard-(\d+)t")
_MODELS: dict[str, Provisioning] = {
    "": "on-demand", "STANDARD": "on-demand", "FLEX_START": "flex-start", "SPOT": "spot"
}  # fmt: skip
_DURATION = re.compile(r"(\d{1,9})s")
_TOPOLOGY = re.compile(r"\d{1,4}x\d{1,4}(x\d{1,4})?")
_PRICED = "its price depends on it."
_BODIES = ("body", "tpu")
"""Inputs that hold the body of a queued resource, or its nodes."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node, or a virtual machine, with TPU chips: where it is described, what it is bought as, and how often."""

    inputs: Inputs
    slice_id: str
    slice_key: str
    zone: str
    count: int = 1

    def hourly(self, model: str) -> Amount:
        """USD per hour while all of it runs, bought under a model of Google's."""
        if model not in _MODELS:
            return Unpriced(f"TPUs under the provisioning model {plainly(model)}")
        hardware = leased(self.slice_id)
        if hardware is None:
            return Unpriced(f"the TPU slice {plainly(self.slice_id)}")
        one = lease_cost(hardware, zone=self.zone, provisioning=_MODELS[model]).hourly
        return times(one, self.count)


@dataclass(frozen=True, slots=True)
class Tpu:
    """What one resource asks for: nodes that are bought together and end together."""

    nodes: tuple[Node, ...]
    model: str
    run_key: str
    run_seconds: int | None

    @property
    def labels(self) -> Inputs:
        """The first node's; all of them are one purchase."""
        return self.nodes[0].inputs.at("labels")

    @property
    def accelerator(self) -> str:
        """The slice, as the catalogue calls it; of several kinds all of them, which is on no list."""
        return " and ".join(dict.fromkeys(node.slice_id for node in self.nodes))

    @property
    def accelerator_key(self) -> str:
        """Where that stands."""
        return self.nodes[0].slice_key

    @property
    def most_instances(self) -> int:
        """Nodes."""
        return sum(node.count for node in self.nodes)

    @property
    def most_key(self) -> str:
        """Where the first stands."""
        return self.accelerator_key

    @property
    def hourly(self) -> Amount:
        """All nodes, per hour."""
        return total(node.hourly(self.model) for node in self.nodes)

    def monthly(self, hourly: Decimal, hours_per_month: int) -> Decimal:
        """The lease until its end, or all month; a lease is bought again only when somebody asks for it."""
        hours = Decimal(hours_per_month)
        return hourly * (hours if self.run_seconds is None else min(hours, Decimal(self.run_seconds) / 3600))


def tpu_of_instance(inputs: Inputs) -> Tpu | None:
    """The TPU of a Compute Engine instance; None where its machine has none."""
    machine = MACHINE.fullmatch(inputs.text("machineType") or "")
    if machine is None:
        return None
    zone = inputs.needed(_PRICED, "set the zone.", "zone")
    run = inputs.count("scheduling", "maxRunDuration", "seconds")
    model = inputs.text("scheduling", "provisioningModel") or ""
    if not model and inputs.get("scheduling", "preemptible") is True:
        model = "SPOT"
    node = Node(inputs, f"v6e-{machine[1]}", inputs.key("machineType"), zone)
    return Tpu((node,), model, inputs.key("scheduling", "maxRunDuration", "seconds"), run or None)


def tpu_of_vm(inputs: Inputs) -> Tpu:
    """A node of the TPU API, which nothing ends."""
    scheduling = inputs.at("schedulingConfig")
    model = "SPOT" if scheduling.get("spot") is True or scheduling.get("preemptible") is True else ""
    model = "reserved" if scheduling.get("reserved") is True else model
    node = _node(inputs, inputs.needed(_PRICED, "set the zone.", "zone"))
    return Tpu((node,), model, inputs.key("maxRunDuration"), None)


def tpu_of_queue(body: Inputs) -> Tpu:
    """A queued resource: `body` holds `tpu`, its node specifications in either API's spelling."""
    spelling = "nodeSpec" if body.get("tpu", "nodeSpec") is not None else "nodeSpecs"
    nodes = []
    for spec in body.each("tpu", spelling):
        zone = (spec.text("parent") or "").rpartition("/locations/")[2] or body.text("zone")
        if not zone:
            raise spec.refusal(None, _PRICED, "write projects/P/locations/ZONE.", "parent")
        nodes.append(_node(spec.at("node"), zone, max(1, spec.count("multisliceParams", "nodeCount"))))
    if not nodes:
        raise body.refusal(None, _PRICED, "describe the nodes.", "tpu", spelling)
    model = body.text("provisioningModel") or ""
    if not model and body.get("spot") is not None:
        model = "SPOT"
    if not model and body.get("guaranteed", "reserved") is True:
        model = "reserved"
    return Tpu(
        tuple(nodes),
        model,
        body.key("runDuration", "maxRunDuration"),
        _seconds(body, "runDuration", "maxRunDuration"),
    )


def queue_body(inputs: Inputs) -> Inputs | None:
    """The inputs, or a mapping directly below them, that look like the body of a queued resource."""
    if not isinstance(inputs.values, Mapping):
        return None
    for name in _BODIES:
        inputs.get(name)  # what is unknown there may hold anything
    for place in (inputs, *(_written_out(inputs, key) for key in inputs.values)):
        if not isinstance(place.values, Mapping):
            continue
        nodes = place.get("tpu")
        if isinstance(nodes, Mapping) and ("nodeSpec" in nodes or "nodeSpecs" in nodes):
            return place
    return None


def _written_out(inputs: Inputs, key: str) -> Inputs:
    """What stands under a key, a body that is handed over as JSON as its values."""
    held, where = inputs.values.get(key) if isinstance(inputs.values, Mapping) else None, (*inputs.where, key)
    if not isinstance(held, str) or '"nodeSpec' not in held:
        return Inputs(held, where)
    try:
        return Inputs(json.loads(held), where)
    except ValueError:
        raise inputs.refusal("(text)", "it is no JSON that could be judged.", "write the body as JSON.", key) from None


def _node(inputs: Inputs, zone: str, count: int = 1) -> Node:
    kind = inputs.text("acceleratorType")
    if kind:
        return Node(inputs, kind, inputs.key("acceleratorType"), zone, count)
    topology = inputs.text("acceleratorConfig", "topology") or ""
    family = inputs.text("acceleratorConfig", "type")
    if family is None or not _TOPOLOGY.fullmatch(topology):
        raise inputs.refusal(None, _PRICED, "write e.g. v6e-4.", "acceleratorType")
    chips = prod(int(side) for side in topology.split("x"))
    return Node(inputs, f"{family.lower()}-{chips}", inputs.key("acceleratorConfig"), zone, count)


def _seconds(inputs: Inputs, *path: str) -> int | None:
    written = inputs.text(*path)
    if written is None:
        return None
    found = _DURATION.fullmatch(written)
    if found is None:
        raise inputs.refusal(written, "it is no duration of the API.", "write seconds, e.g. 14400s.", *path)
    return int(found[1]) or None
