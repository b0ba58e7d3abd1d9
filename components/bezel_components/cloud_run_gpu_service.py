"""A Cloud Run service with one GPU for each instance, running vLLM on weights from a bucket.

Owns the service and its invokers. Leaves out what it needs (APIs, account, secrets' grants, weights, image): those are
components of their own, and this one waits for those in its options.

Facts: a GPU needs the second-generation environment and a CPU that stays allocated; without zonal redundancy it has the
lower price and a quota of its own; the provider's default timeout (20 minutes) is shorter than a start may take; its
default for `deletion_protection` is true (docs of Cloud Run and of the provider, November 2026). Each update sends the
service's whole traffic, and undeclared traffic as the state last saw it: so it is declared.

With `gated` a new revision gets no traffic, only an address of its own, and `TrafficSwitch` moves the traffic to it.
A rollback (`bezel.outside_changes.rollback`) is ended by the next deploy: the program reads it from the service, keeps
the traffic where it is in the update, and `TrafficSwitch` moves it after that.
With `retries_failed`, the default, a deploy makes another revision after a failed one: Cloud Run retries none, and
replacing the service would delete the serving revision, and is refused where the service is protected from deletion.

Example:
    ```python
    service = CloudRunGpuService(
        "service",
        CloudRunGpuServiceArgs(project="acme-llm", location="us-east4", service="chat", container=container,
                               image=image.reference, accelerator="nvidia-l4", service_account=identity.email,
                               max_instances=1, request_concurrency=16, invokers=("group:chat@acme.example",)),
        opts=pulumi.ResourceOptions(depends_on=[identity, weights, image]),
    )
    pulumi.export("url", service.url)
    ```
"""

from collections.abc import Mapping
from typing import Any, Self

import pulumi
from pulumi_gcp import cloudrunv2
from pydantic import Field, model_validator

from bezel.diagnosis.revision_traffic import (
    ATTEMPT,
    FINGERPRINT,
    RESTARTED,
    TAG,
    Target,
    attempt,
    declared_targets,
    fingerprint_of,
)
from bezel.outside_changes.rollback import ANNOTATION as ROLLBACK_ANNOTATION
from bezel.outside_changes.rollback import in_force, kept_text
from bezel.planner.base.schedule import ANNOTATION as SCHEDULE_ANNOTATION
from bezel_base.run_facts import tell_fact
from bezel_components.base.arguments import ComponentArgs, Text
from bezel_components.base.check_resource import camel_case
from bezel_components.base.cloud_run_service import CloudRunServiceArgs, declare_service
from bezel_components.base.failure_explanation import service_failure_hook
from bezel_components.config.rollback_end import rollback_end
from bezel_components.lookups.cloud_run import look_up_service
from bezel_components.metrics.sidecar import MetricsSidecar
from bezel_components.vllm_container import CONTAINER, VllmContainer

SERVICE_SECONDS = 2400
"""Time limit for a service's operation: the longest probe window, 30 minutes, and the steps before it."""


class VpcEgress(ComponentArgs):
    """Direct VPC egress: a network that a service sends through, without a connector."""

    network: Text = ""
    """Its name, or `projects/P/global/networks/N`; "" for the network of the subnetwork."""
    subnetwork: Text = ""
    """Subnetwork in the service's region; "" for the one with the network's name."""
    egress: str = "PRIVATE_RANGES_ONLY"
    """Traffic that is sent through it: this, or `ALL_TRAFFIC`."""
    tags: tuple[str, ...] = ()
    """Network tags, for firewall rules."""

    @model_validator(mode="after")
    def _not_empty(self) -> Self:
        if not (self.network or self.subnetwork):
            raise ValueError("network and subnetwork are both empty; set one of them, or omit vpc")
        return self

    def cloud_run_access(self) -> cloudrunv2.ServiceTemplateVpcAccessArgs:
        """Render the VPC access of a revision; unnamed fields are left out, for the platform to choose."""
        interface = cloudrunv2.ServiceTemplateVpcAccessNetworkInterfaceArgs(
            network=self.network or None, subnetwork=self.subnetwork or None, tags=list(self.tags) or None
        )
        return cloudrunv2.ServiceTemplateVpcAccessArgs(egress=self.egress, network_interfaces=[interface])


class CloudRunGpuServiceArgs(CloudRunServiceArgs):
    """Arguments of `CloudRunGpuService`."""

    container: VllmContainer
    sidecar: MetricsSidecar | None = None
    """The collector that writes the server's series to Cloud Monitoring; None for none."""
    accelerator: str
    """Cloud Run's name, e.g. `nvidia-l4`."""
    zonal_redundancy: bool = False
    service_account: str
    """E-mail address of the account that the server runs as."""
    min_instances: int = 0
    max_instances: int
    request_concurrency: int
    """Concurrent requests of one instance; further ones wait in the platform's queue, unseen by vLLM."""
    scheduled_minimum: int = 0
    """Highest minimum that a schedule sets on the service (`ScalingSchedule`); shown to policies as an annotation."""
    restarted_at: str = ""
    """Any text: another one makes a new revision, as nothing else has to change for."""
    timeout_seconds: int = 3600
    """Time limit of a request with its whole response, at most 3600."""
    vpc: VpcEgress | None = None
    """The network that it sends through; none by default."""
    gated: bool = False
    """Whether the serving revision keeps its traffic when a new one is made. Reads the service from Cloud Run."""
    retries_failed: bool = True
    """Whether a deploy makes another revision in place of a failed one; without it the next one is green, and the
    failed revision stays. Reads the service; implied by `gated`."""
    deadline_seconds: float = Field(SERVICE_SECONDS, gt=0)
    """Time limit for a create or an update of the service."""
    hooks: pulumi.ResourceHookBinding | None = None
    """Run around the operations on the service itself; without any a failed operation is explained. An empty
    binding runs none."""

    @model_validator(mode="after")
    def _known_if_gated(self) -> Self:
        if self.gated and not isinstance(self.image, str):
            raise ValueError(
                "gated requires an image reference that is known in previews, to find out whether there will be a new"
                " revision; look up its tag with ContainerImage and pass its reference"
            )
        vpc = (self.vpc.network, self.vpc.subnetwork) if self.vpc else ()
        if self.gated and not all(isinstance(each, str) for each in (*vpc, *(m.bucket for m in self.container.mounts))):
            raise ValueError(
                "gated requires names of buckets and networks that are known in previews, to find out whether there"
                " will be a new revision; pass the name itself, and the resource in depends_on"
            )
        return self


class CloudRunGpuService(pulumi.ComponentResource):
    """vLLM as a Cloud Run service.

    Attributes:
        url: Address of the service.
        newest_url: Address of its newest ready revision, with or without traffic: differs from `url` in a gated
            rollout. The audience of identity tokens is `url` in both cases.
        revision: Name of the latest revision that became ready.
        created_revision: Name of the latest one that was made, ready or not. A resource that must run again after each
            deploy takes this one as input: after a failed update the ready one is still the old one.
        resource_name: `projects/P/locations/L/services/S`, computed.
        fingerprint: Changes with anything that the service declares.
        declared: Those of the service's inputs that the platform returns, by the engine's names, for a comparison with
            the served state.
            Without the traffic in a gated rollout, and after a rollback, which move it later.
        unpins: Whether a rollback was recorded, without a gate: make a `TrafficSwitch` to the newest revision then,
            before the checks.
    """

    def __init__(self, name: str, args: CloudRunGpuServiceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:cloudrun:CloudRunGpuService", name, None, opts)
        self.resource_name = args.resource_name
        inputs = _inputs(args) | args.accepted_audiences
        hooks = args.hooks
        if hooks is None:
            hooks = pulumi.ResourceHookBinding(on_error=[service_failure_hook(f"{name}-explain-failure")])
        service = declare_service(self, name, args, opts, inputs=inputs, seconds=args.deadline_seconds, hooks=hooks)
        self.fingerprint = fingerprint_of({**inputs, "deletion_protection": args.deletion_protection})
        self.unpins = not args.gated and ROLLBACK_ANNOTATION in inputs.get("annotations", {})
        undeclared = {"annotations", *(["traffics"] if args.gated or self.unpins else [])}
        self.declared = {camel_case(key): value for key, value in inputs.items() if key not in undeclared}
        self.url = service.uri
        self.newest_url = service.uri
        if args.gated:
            # Without the tag, e.g. after the service was replaced, its first revision is the newest one.
            self.newest_url = service.traffic_statuses.apply(lambda statuses: _tag_address(statuses) or service.uri)
        self.revision = service.latest_ready_revision
        self.created_revision = service.latest_created_revision
        outputs = ("url", "newest_url", "revision", "created_revision", "resource_name")
        self.register_outputs({key: getattr(self, key) for key in outputs})


def _inputs(args: CloudRunGpuServiceArgs) -> dict[str, Any]:
    """Inputs that differ by revision. A gated service has a fingerprint of all of them, to compare with the cloud."""
    service = look_up_service(args.resource_name) if args.gated or args.retries_failed else None
    failed = attempt(service)
    inputs = {
        "ingress": args.ingress,
        "labels": dict(args.labels),
        "template": _template(args, {ATTEMPT: failed, RESTARTED: args.restarted_at}),
    }
    targets: tuple[Target, ...] | None
    annotations = {SCHEDULE_ANNOTATION: str(args.scheduled_minimum)} if args.scheduled_minimum else {}
    _tell_rollback(args, service)
    # All that updates the service: an update without declared traffic sends that of the state, of before the move.
    counted = {**inputs, "deletion_protection": args.deletion_protection, **args.accepted_audiences, **annotations}
    # A difference to the state, so that a deploy of the same revision updates the service and ends the rollback too.
    if args.gated:
        rollback = kept_text(service)
        fingerprint = fingerprint_of(counted | {"rollback": rollback} if rollback else counted)
        targets = declared_targets(service, fingerprint)
        annotations[FINGERPRINT] = fingerprint
    else:
        end = rollback_end(service, fingerprint_of(counted))
        rollback, targets = end.annotation, end.targets
    if rollback:
        annotations[ROLLBACK_ANNOTATION] = rollback
    if annotations:
        inputs["annotations"] = annotations
    if targets is not None:
        inputs["traffics"] = [cloudrunv2.ServiceTrafficArgs(**target.as_json()) for target in targets]
    return inputs


def _tell_rollback(args: CloudRunGpuServiceArgs, service: Mapping[str, Any] | None) -> None:
    """Say in a preview that the traffic is where a rollback has moved it, and what this deploy does to it."""
    rollback = None if service is None else in_force(service)
    if rollback is None or not pulumi.runtime.is_dry_run():
        return
    newest = str((service or {}).get("latestReadyRevision") or "").rpartition("/")[2]
    until = "has passed its checks" if args.gated else "is ready"
    text = (
        f"rolled back: the traffic of {args.service} is {rollback.sentence()}. This deploy moves it to the newest "
        f"revision, now {newest}; {rollback.revision} has it until a new revision {until}."
    )
    pulumi.log.warn(text)
    tell_fact("rollback", text)


def _tag_address(statuses: list[cloudrunv2.outputs.ServiceTrafficStatus] | None) -> str:
    """The address of the tag, "" without one."""
    return next((str(status.uri or "") for status in statuses or () if status.tag == TAG), "")


def _template(args: CloudRunGpuServiceArgs, annotations: dict[str, str]) -> cloudrunv2.ServiceTemplateArgs:
    sidecars = [] if args.sidecar is None else [args.sidecar]
    return cloudrunv2.ServiceTemplateArgs(
        annotations={name: value for name, value in annotations.items() if value} or None,
        execution_environment="EXECUTION_ENVIRONMENT_GEN2",
        service_account=args.service_account,
        node_selector=cloudrunv2.ServiceTemplateNodeSelectorArgs(accelerator=args.accelerator),
        gpu_zonal_redundancy_disabled=not args.zonal_redundancy,
        scaling=cloudrunv2.ServiceTemplateScalingArgs(
            min_instance_count=args.min_instances, max_instance_count=args.max_instances
        ),
        max_instance_request_concurrency=args.request_concurrency,
        timeout=f"{args.timeout_seconds}s",
        containers=[
            args.container.cloud_run_container(args.image),
            *(each.cloud_run_container(CONTAINER) for each in sidecars),
        ],
        volumes=[
            *(mount.cloud_run_volume() for mount in args.container.mounts),
            *(each.cloud_run_volume() for each in sidecars),
        ],
        vpc_access=args.vpc.cloud_run_access() if args.vpc else None,
    )
