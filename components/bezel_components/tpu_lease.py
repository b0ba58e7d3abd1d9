"""Lease of a machine with accelerators, from the request to a healthy server, with the same behaviour on two back ends.

Two resources: `TpuRequest` is in the state before the wait begins, `TpuNode` waits, moves on to the next zone and
reports the end of the lease. Leaves out network, account and image: they come in the body, which `bezel.leases` makes.
Leaves waiting, deciding and deleting to `bezel.leases` too.

Example:
    ```python
    from bezel.leases.requests import queued_body
    from bezel.leases.names import labels
    from bezel_components.config.node_metadata import node_metadata
    from bezel_components.container_image import ContainerImage, ContainerImageArgs

    server = ContainerImage("server", ContainerImageArgs(
        project="acme-llm", location="us-east5", repository_id="tpu-hub", image="vllm/vllm-tpu", tag="v0.32.0",
        readers=(identity.email,),  # a machine pulls its image itself
    ), opts=pulumi.ResourceOptions(depends_on=[identity]))
    metadata = node_metadata(
        image=server.reference,
        arguments=("/dev/shm/models/gemma-4-12b-it", "--max-model-len=8192"), environment={}, secrets={},
        weights="gs://acme-llm-models/gemma-4-12b-it", model_folder="/dev/shm/models/gemma-4-12b-it",
        compile_cache="", port=8000, device="tpu", packages="",
    )
    body = queued_body("bezel-v6e4", accelerator_type="v6e-4", runtime_version="v2-alpha-tpuv6e",
                       labels=labels("bezel-v6e4", "v6e4"), metadata=metadata, service_account=identity.email,
                       network=network.network, tags=(network.tag,), run_seconds=14400)
    lease = TpuLease("lease", TpuLeaseArgs(
        project="acme-llm", name="bezel-v6e4", stack="v6e4", back_end="queued_resource",
        zones=(ZoneChoice("us-east5-a", 7200), ZoneChoice("europe-west4-a", 7200)),
        subnetworks=network.subnetworks,
        body=body, hourly_usd={"us-east5-a": 5.4, "europe-west4-a": None}, run_seconds=14400,
    ), opts=pulumi.ResourceOptions(depends_on=[network, identity, weights, server]))
    pulumi.export("lease_ends_at", lease.ends_at)
    ```
"""

from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi.dynamic import Resource

from bezel.leases.requests import BackEndName, ZoneChoice
from bezel.planner.base.hours import Window
from bezel_components.base.arguments import ComponentArgs, Text, child_options
from bezel_components.base.dynamic import own_urn
from bezel_components.providers.tpu_node import TpuNodeProvider
from bezel_components.providers.tpu_request import TpuRequestProvider

REQUEST_TOKEN = "pulumi-python:dynamic/components:TpuRequest"  # noqa: S105 - a type's name
NODE_TOKEN = "pulumi-python:dynamic/components:TpuNode"  # noqa: S105 - a type's name


class TpuLeaseArgs(ComponentArgs):
    """Arguments of `TpuLease`."""

    project: str
    name: str
    """Name of the lease in every zone: the queued resource's id and its node's, or the machine's name."""
    stack: str
    back_end: BackEndName
    zones: tuple[ZoneChoice, ...]
    """Allowed zones, best first, each with the time to wait there (Google itself ends the wait)."""
    subnetworks: Mapping[str, Text]
    """Region -> subnetwork, for the region of every zone."""
    body: Mapping[str, Any]
    """The request without a zone, from `bezel.leases.requests`."""
    renew: bool = False
    """Whether a lease that ended is bought again by the next deploy."""
    provisioning_deadline_seconds: float = 1800.0
    boot_deadline_seconds: float = 5400.0
    hourly_usd: Mapping[str, float | None]
    """Zone -> price of an hour of its accelerators; None where no price row has one."""
    run_seconds: int | None = None
    """The longest run duration, the same as in the body; None without an end. `LeasedVllmService` writes its
    `lease.duration`, 4 hours by default."""
    port: int = 8000
    hours: tuple[Window, ...] = ()
    """Hours in which `LeaseHours` leases it; a deploy then takes it as it is, there or not. Empty without hours."""
    optional: bool = False
    """Whether a deploy continues where no zone grants it, as a fallback serves: the next one requests it again."""
    checked: Text = ""
    """With hours: another text when the server is to be checked, for which a lease is requested at any time."""


class TpuRequest(Resource, module="components", name="TpuRequest"):
    """The request for a lease, stored by Google.

    Attributes:
        asked: Identity of this request; another one after a replacement.
        state: `asked`, or `expired` or `gone` once a refresh saw that. With hours always `asked`.
        former_zones: Zones beside the listed ones that may hold the lease.
    """

    asked: pulumi.Output[str]
    state: pulumi.Output[str]
    former_zones: pulumi.Output[list[str]]

    def __init__(self, name: str, props: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = {"asked": None, "state": None, "former_zones": None}
        properties = {**props, "request_urn": own_urn(name, REQUEST_TOKEN, opts), **outputs}
        super().__init__(TpuRequestProvider(), name, properties, opts)


class TpuNode(Resource, module="components", name="TpuNode"):
    """The node of a lease, once its server answers.

    Attributes:
        lease: Identity of the lease; another one when it was bought again. With hours that of the request.
        zone: Zone that granted it.
        state: `active`, or `expired` or `gone` once a refresh saw that. With hours `scheduled`, as of then no output
            depends on the time.
        address: Its internal address.
        ends_at: The end of its run duration, RFC 3339; None without an end.
        cost: usd_per_hour, so_far_usd, at_end_usd, as_of; "unknown" where no price is known.
        granted: Of an optional lease alone: whether it serves.
    """

    lease: pulumi.Output[str]
    zone: pulumi.Output[str]
    state: pulumi.Output[str]
    address: pulumi.Output[str]
    active_at: pulumi.Output[str | None]
    ends_at: pulumi.Output[str | None]
    cost: pulumi.Output[dict[str, Any]]
    granted: pulumi.Output[bool]

    def __init__(self, name: str, props: Mapping[str, Any], opts: pulumi.ResourceOptions | None = None) -> None:
        outputs = dict.fromkeys(("lease", "zone", "state", "address", "active_at", "ends_at", "cost"))
        if props.get("optional"):
            outputs["granted"] = None
        properties = {**props, "urn": own_urn(name, NODE_TOKEN, opts), **outputs}
        super().__init__(TpuNodeProvider(), name, properties, opts)


class TpuLease(pulumi.ComponentResource):
    """A leased machine that serves.

    Attributes:
        request: Identity of its request.
        lease: Identity of this lease; its smoke checks take it as the revision.
        zone: Zone that granted it.
        state: `active`, `expired` or `gone`; `scheduled` with hours.
        address: Internal address of its node.
        ends_at: Its end.
        cost: Its cost so far and at its end.
        granted: Whether it serves; False only for an optional one.
    """

    def __init__(self, name: str, args: TpuLeaseArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:lease:TpuLease", name, None, opts)
        shared = {
            "project": args.project,
            "name": args.name,
            "stack": args.stack,
            "back_end": args.back_end,
            "zones": [{"zone": choice.zone, "patience_seconds": choice.patience_seconds} for choice in args.zones],
            "subnetworks": dict(args.subnetworks),
            "body": dict(args.body),
            "run_seconds": args.run_seconds,
            "provisioning_deadline_seconds": args.provisioning_deadline_seconds,
            "boot_deadline_seconds": args.boot_deadline_seconds,
            **({"optional": True} if args.optional else {}),
            **({"hours": [list(window) for window in args.hours]} if args.hours else {}),
        }
        request = TpuRequest(f"{name}-request", shared, child_options(self, opts))
        node_properties = {
            "request": request.asked,
            "former_zones": request.former_zones,
            "renew": args.renew,
            "hourly_usd": {zone: price for zone, price in args.hourly_usd.items() if price is not None},
            "port": args.port,
            **({"checked": args.checked} if args.hours else {}),
        }
        node = TpuNode(f"{name}-node", {**shared, **node_properties}, child_options(self, opts))
        self.request = request.asked
        self.lease = node.lease
        self.zone = node.zone
        self.state = node.state
        self.address = node.address
        self.ends_at = node.ends_at
        self.cost = node.cost
        self.granted = node.granted if args.optional else pulumi.Output.from_input(True)
        self.register_outputs(
            {key: getattr(self, key) for key in ("lease", "zone", "state", "address", "ends_at", "cost")}
        )
