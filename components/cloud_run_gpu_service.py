"""A Cloud Run service with one GPU for each instance, running vLLM on weights from a bucket.

Owns the service and its invokers. Leaves out what it needs (APIs, account, secrets' grants, weights, image): those are
components of their own, and this one waits for those in its options.

Facts: a GPU needs the second-generation environment and a CPU that stays allocated; without zonal redundancy it has the
lower price and a quota of its own; the provider's default timeout (20 minutes) is shorter than a start may take; its
default for `deletion_protection` is true (docs of Cloud Run and of the provider, November 2026). Each update sends the
service's whole traffic, and undeclared traffic as the state last saw it: so it is declared.

With `gated` a new revision gets no traffic, only an address of its own, and `TrafficSwitch` moves the traffic to it.
With `retries_failed` a deploy makes another revision after a failed one: Cloud Run retries none, and replacing the
service would delete the serving revision, and is refused where the service is protected from deletion.

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
from typing import Any

import pulumi
from pulumi_gcp import cloudrunv2
from pydantic import Field, model_validator

from components.arguments import ComponentArgs, Text, child_options
from components.config.revision_traffic import (
    ATTEMPT,
    DIRECT,
    FINGERPRINT,
    TAG,
    Target,
    attempt,
    declared,
    fingerprint_of,
)
from components.invokers import allow, check_public_only_when_said
from components.lookups.cloud_run import look_up_service
from components.vllm_container import VllmContainer

SERVICE_SECONDS = 2400
"""Time limit for a service's operation: the longest probe window, 30 minutes, and the steps before it."""


class VpcEgress(ComponentArgs):
    """Direct VPC egress: a network that a service sends through, without a connector."""

    network: str = ""
    """Its name, or `projects/P/global/networks/N`; "" for the network of the subnetwork."""
    subnetwork: str = ""
    """Subnetwork in the service's region; "" for the one with the network's name."""
    egress: str = "PRIVATE_RANGES_ONLY"
    """Traffic that is sent through it: this, or `ALL_TRAFFIC`."""
    tags: tuple[str, ...] = ()
    """Network tags, for firewall rules."""

    @model_validator(mode="after")
    def _somewhere(self) -> "VpcEgress":
        if not (self.network or self.subnetwork):
            raise ValueError("neither network nor subnetwork is named; name one, or leave the whole out")
        return self

    def cloud_run_access(self) -> cloudrunv2.ServiceTemplateVpcAccessArgs:
        """Render the VPC access of a revision; unnamed fields are left out, for the platform to choose."""
        interface = cloudrunv2.ServiceTemplateVpcAccessNetworkInterfaceArgs(
            network=self.network or None, subnetwork=self.subnetwork or None, tags=list(self.tags) or None
        )
        return cloudrunv2.ServiceTemplateVpcAccessArgs(egress=self.egress, network_interfaces=[interface])


class CloudRunGpuServiceArgs(ComponentArgs):
    """Arguments of `CloudRunGpuService`."""

    project: str
    location: str
    service: str
    """Name of the service: it becomes part of its URL."""
    container: VllmContainer
    image: Text
    """Reference of the image, by digest."""
    accelerator: str
    """Cloud Run's name, e.g. `nvidia-l4`."""
    zonal_redundancy: bool = False
    service_account: str
    """E-mail address of the account that the server runs as."""
    min_instances: int = 0
    max_instances: int
    request_concurrency: int
    """Concurrent requests of one instance; further ones wait in the platform's queue, unseen by vLLM."""
    timeout_seconds: int = 3600
    ingress: str = "INGRESS_TRAFFIC_ALL"
    """Allowed sources of requests; these still need an identity unless `public`."""
    vpc: VpcEgress | None = None
    """The network that it sends through; none by default."""
    invokers: tuple[str, ...] = ()
    """Members that may call it, e.g. `serviceAccount:app@acme.iam.gserviceaccount.com`."""
    public: bool = False
    """Whether anyone may call it without an identity."""
    gated: bool = False
    """Whether the serving revision keeps its traffic when a new one is made. Reads the service from Cloud Run."""
    retries_failed: bool = False
    """Whether a deploy makes another revision in place of a failed one. Reads the service; implied by `gated`."""
    deletion_protection: bool = True
    labels: Mapping[str, str] = Field(default_factory=dict)
    deadline_seconds: float = Field(SERVICE_SECONDS, gt=0)
    """Time limit for a create or an update of the service."""
    hooks: pulumi.ResourceHookBinding | None = None
    """Run around the operations on the service itself, e.g. to explain a failed one."""

    @model_validator(mode="after")
    def _image_by_digest(self) -> "CloudRunGpuServiceArgs":
        if isinstance(self.image, str) and "@sha256:" not in self.image:
            raise ValueError(
                f"image {self.image} names no digest, so what runs could change without a deploy; look its tag up with"
                " ContainerImage and pass its reference"
            )
        return self

    @model_validator(mode="after")
    def _known_when_gated(self) -> "CloudRunGpuServiceArgs":
        if self.gated and not isinstance(self.image, str):
            raise ValueError(
                "gated needs to know the image's reference in previews, to tell whether there will be a new revision;"
                " look its tag up with ContainerImage and pass its reference"
            )
        return self

    @model_validator(mode="after")
    def _public_only_when_said(self) -> "CloudRunGpuServiceArgs":
        check_public_only_when_said(self.invokers, public=self.public)
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
        declared: Those of the service's inputs that the platform returns, for a comparison with the served state.
            Without the traffic in a gated rollout, which moves it later.
    """

    def __init__(self, name: str, args: CloudRunGpuServiceArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:cloudrun:CloudRunGpuService", name, None, opts)
        self.resource_name = f"projects/{args.project}/locations/{args.location}/services/{args.service}"
        wait = f"{args.deadline_seconds:g}s"
        inputs = _inputs(args, self.resource_name)
        service = cloudrunv2.Service(
            f"{name}-service",
            project=args.project,
            location=args.location,
            name=args.service,
            **inputs,
            opts=child_options(
                self,
                opts,
                custom_timeouts=pulumi.CustomTimeouts(create=wait, update=wait),
                # The name is fixed: creating the new service before the old one is deleted fails with 409.
                delete_before_replace=True,
                hooks=args.hooks,
            ),
        )
        names = (name, args.project, args.location, args.service)
        allow(self, opts, service, names=names, invokers=args.invokers, public=args.public)
        own = {"deletion_protection", "annotations", *(["traffics"] if args.gated else [])}
        self.declared = {key: value for key, value in inputs.items() if key not in own}
        self.url = service.uri
        self.newest_url = service.uri
        if args.gated:
            # Without the tag, e.g. after the service was replaced, its first revision is the newest one.
            self.newest_url = service.traffic_statuses.apply(lambda told: _tagged(told) or service.uri)
        self.revision = service.latest_ready_revision
        self.created_revision = service.latest_created_revision
        self.register_outputs(
            {
                "url": self.url,
                "newest_url": self.newest_url,
                "revision": self.revision,
                "created_revision": self.created_revision,
                "resource_name": self.resource_name,
            }
        )


def _inputs(args: CloudRunGpuServiceArgs, name: str) -> dict[str, Any]:
    """The service's inputs except its name. A gated one carries a fingerprint of them, to compare with the cloud."""
    found = look_up_service(name) if args.gated or args.retries_failed else None
    failed = attempt(found)
    inputs = {
        "ingress": args.ingress,
        "deletion_protection": args.deletion_protection,
        "labels": dict(args.labels),
        "template": _template(args, {ATTEMPT: failed} if failed else None),
    }
    targets: tuple[Target, ...] | None = DIRECT
    if args.gated:
        fingerprint = fingerprint_of(inputs)
        targets = declared(found, fingerprint)
        inputs["annotations"] = {FINGERPRINT: fingerprint}
    if targets is not None:
        inputs["traffics"] = [cloudrunv2.ServiceTrafficArgs(**target.as_json()) for target in targets]
    return inputs


def _tagged(statuses: list[cloudrunv2.outputs.ServiceTrafficStatus] | None) -> str:
    """The address of the tag, "" without one."""
    return next((str(one.uri or "") for one in statuses or () if one.tag == TAG), "")


def _template(args: CloudRunGpuServiceArgs, annotations: dict[str, str] | None) -> cloudrunv2.ServiceTemplateArgs:
    return cloudrunv2.ServiceTemplateArgs(
        annotations=annotations,
        execution_environment="EXECUTION_ENVIRONMENT_GEN2",
        service_account=args.service_account,
        node_selector=cloudrunv2.ServiceTemplateNodeSelectorArgs(accelerator=args.accelerator),
        gpu_zonal_redundancy_disabled=not args.zonal_redundancy,
        scaling=cloudrunv2.ServiceTemplateScalingArgs(
            min_instance_count=args.min_instances, max_instance_count=args.max_instances
        ),
        max_instance_request_concurrency=args.request_concurrency,
        timeout=f"{args.timeout_seconds}s",
        containers=[args.container.cloud_run_container(args.image)],
        volumes=[mount.cloud_run_volume() for mount in args.container.mounts],
        vpc_access=args.vpc.cloud_run_access() if args.vpc else None,
    )
