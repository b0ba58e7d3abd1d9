"""Resources of a plan for leased machines: network, machines, a gateway with identity, and the smoke checks.

The code declares resources in order. Requests for machines are in the state before the wait for them begins;
the gateway is made once the machines answer, and the checks go through it as any caller does. A lease that ended is
reported and not bought again, and the gateway then returns an error that no machine is there.
"""

from typing import Any

import pulumi

from bezel.leases.names import labels
from bezel.leases.requests import PROVISIONING_MODELS, ZoneChoice, instance_body, queued_body
from bezel.planner import LeasePlan, plan_output
from bezel.planner.base.money import Priced
from components.config.node_metadata import node_metadata
from components.container_image import ContainerImage, ContainerImageArgs
from components.enabled_apis import EnabledApis, EnabledApisArgs
from components.identity_gateway import IdentityGateway, IdentityGatewayArgs
from components.model_files import ModelFiles, ModelFilesArgs
from components.node_network import NodeNetwork, NodeNetworkArgs
from components.runtime_identity import RuntimeIdentity, RuntimeIdentityArgs
from components.tpu_lease import TpuLease, TpuLeaseArgs
from components.weights_bucket import WeightsBucket, WeightsBucketArgs
from stacks import config, quota
from stacks.smoke_tests import INGRESS, check_and_measure, refuse


def deploy(plan: LeasePlan) -> dict[str, Any]:
    """Declare the stack's resources.

    Returns:
        The stack's outputs: url, leases, image, model, arguments, plan, smoke, simulated.
    """
    simulated = config.simulated()
    refuse(plan, quota.lease_problems(plan))
    apis = EnabledApis("apis", EnabledApisArgs(project=plan.project, services=plan.apis))
    identity = RuntimeIdentity(
        "runtime",
        RuntimeIdentityArgs(
            project=plan.project,
            account_id=plan.service_account_id,
            description=f"Runs {plan.stack}",
            secrets=tuple(plan.node.secrets.values()),
        ),
        opts=_after(apis),
    )
    image, proxy = _images(plan, identity, apis)
    network = NodeNetwork(
        "network",
        NodeNetworkArgs(
            project=plan.project,
            network=plan.network.name,
            regions=plan.network.regions,
            gateway_region=plan.gateway.region,
            port=plan.node.port,
            nat=plan.network.nat,
        ),
        opts=_after(apis),
    )
    before = (identity, image, network, *_weights(plan, identity, apis))
    leases = {name: _lease(plan, name, network, image, identity, before) for name in plan.terms.names}
    gateway = _gateway(plan, network, proxy, leases)
    # A new lease or a new gateway has to be checked again.
    identities = [lease.lease for lease in leases.values()]
    revision = pulumi.Output.all(gateway.created_revision, *identities).apply(" ".join)
    health, benchmark = check_and_measure(
        plan.smoke,
        service=gateway.resource_name,
        planned=gateway.declared,
        url=gateway.url,
        audience=None,
        revision=revision,
        served_model=plan.served_model,
        public=plan.gateway.public,
        simulated=simulated,
        after=gateway,
    )
    return {
        "url": gateway.url,
        "leases": {name: _told(lease) for name, lease in leases.items()},
        "image": image.reference,
        "model": plan.served_model,
        "arguments": list(plan.node.arguments),
        "plan": plan_output(plan),
        "smoke": {"verdict": health.verdict, "figures": benchmark.figures},
        "simulated": simulated,
    }


def _told(lease: TpuLease) -> dict[str, Any]:
    return {"state": lease.state, "zone": lease.zone, "ends_at": lease.ends_at, "cost": lease.cost}


def _images(plan: LeasePlan, identity: RuntimeIdentity, apis: EnabledApis) -> tuple[ContainerImage, ContainerImage]:
    """The server's image, which each machine pulls itself, and the proxy's, which Cloud Run pulls."""

    def image(name: str, region: str, wanted: Any, suffix: str, readers: tuple[str, ...]) -> ContainerImage:
        return ContainerImage(
            name,
            ContainerImageArgs(
                project=plan.project,
                location=region,
                repository_id=f"{plan.image_repository_id}{suffix}",
                registry=wanted.registry,
                image=wanted.repository,
                tag=wanted.tag,
                digest=wanted.digest,
                readers=readers,
                labels=plan.labels,
            ),
            opts=_after(apis, identity),
        )

    region = plan.gateway.region
    return (
        image("image", region, plan.node.image, "", (identity.email,)),
        image("gateway-image", region, plan.gateway.image, "-gateway", ()),
    )


def _weights(plan: LeasePlan, identity: RuntimeIdentity, apis: EnabledApis) -> tuple[pulumi.Resource, ...]:
    """The bucket, with the one folder that these machines write compiled graphs to, and the check of its model."""
    wanted = plan.node.weights
    if wanted.bucket is None:
        return ()
    cache = plan.node.compile_cache.removeprefix(f"gs://{wanted.bucket}/")
    bucket = WeightsBucket(
        "weights",
        WeightsBucketArgs(
            project=plan.project,
            bucket=wanted.bucket,
            location=plan.gateway.region,
            create=wanted.create,
            readers=(identity.email,),
            writers={cache: (identity.email,)} if cache else {},
            force_destroy=plan.environment == "dev",
            labels=plan.labels,
        ),
        opts=_after(identity),
    )
    model = ModelFiles(
        "model",
        ModelFilesArgs(bucket=bucket.bucket, path=wanted.path, source=wanted.source, bucket_url=bucket.url),
        opts=_after(apis),
    )
    return bucket, model


def _lease(
    plan: LeasePlan,
    name: str,
    network: NodeNetwork,
    image: ContainerImage,
    identity: RuntimeIdentity,
    before: tuple[pulumi.Resource, ...],
) -> TpuLease:
    terms, prices = plan.terms, plan.cost.by_zone
    hourly = {zone: cost.hourly for zone, cost in prices.items()}
    number = terms.names.index(name)
    role = f"lease-{number}" if number else "lease"
    return TpuLease(
        role,
        TpuLeaseArgs(
            project=plan.project,
            name=name,
            stack=plan.labels["stack"],
            back_end=terms.back_end,
            zones=tuple(ZoneChoice(each.zone, each.patience_seconds) for each in terms.zones),
            subnetworks=network.subnetworks,
            body=_body(plan, name, network, image, identity),
            renew=terms.renew,
            provisioning_deadline_seconds=terms.provisioning_deadline_seconds,
            boot_deadline_seconds=config.deadline(terms.boot_deadline_seconds),
            hourly_usd={
                zone: float(amount.usd) if isinstance(amount, Priced) else None for zone, amount in hourly.items()
            },
            run_seconds=terms.run_seconds,
            port=plan.node.port,
        ),
        opts=_after(*before),
    )


def _body(
    plan: LeasePlan, name: str, network: NodeNetwork, image: ContainerImage, identity: RuntimeIdentity
) -> dict[str, Any]:
    terms, node = plan.terms, plan.node
    hardware = terms.hardware
    shared: dict[str, Any] = {
        "labels": labels(name, plan.labels["stack"], plan.labels),
        "metadata": node_metadata(
            image=image.reference,
            arguments=node.arguments,
            environment=node.environment,
            secrets=node.secrets,
            weights=node.weights.address,
            model_folder=node.weights.model if node.weights.bucket else "",
            compile_cache=node.compile_cache,
            port=node.port,
            device=hardware.device,
            packages=node.packages,
        ),
        "service_account": identity.email,
        "provisioning_model": PROVISIONING_MODELS[terms.provisioning],
        "run_seconds": terms.run_seconds,
        "tags": (network.tag,),
    }
    if terms.back_end == "flex_start_vm":
        return instance_body(
            machine_type=hardware.machine_type,
            source_image=hardware.machine_image,
            disk_type=hardware.disk_type,
            **shared,
        )
    assert hardware.slice is not None  # noqa: S101 - the plan allows only slices there
    return queued_body(
        name,
        accelerator_type=hardware.slice.id,
        runtime_version=hardware.slice.runtime_version,
        network=network.network,
        **shared,
    )


def _gateway(
    plan: LeasePlan, network: NodeNetwork, proxy: ContainerImage, leases: dict[str, TpuLease]
) -> IdentityGateway:
    wanted = plan.gateway
    return IdentityGateway(
        "gateway",
        IdentityGatewayArgs(
            project=plan.project,
            location=wanted.region,
            service=wanted.name,
            account_id=wanted.service_account_id,
            image=proxy.reference,
            nodes=tuple(lease.address for lease in leases.values()),
            port=plan.node.port,
            network=network.network,
            subnetwork=network.gateway_subnetwork,
            max_instances=wanted.max_instances,
            ingress=INGRESS[wanted.ingress],
            invokers=wanted.invokers,
            public=wanted.public,
            deletion_protection=wanted.deletion_protection,
            labels=plan.labels,
        ),
        opts=_after(proxy, network),
    )


def _after(*earlier: pulumi.Resource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(depends_on=list(earlier))
