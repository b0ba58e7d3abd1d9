"""Resources of a Cloud Run plan: the service's prerequisites, the service, and its smoke checks.

The code declares resources in order. The prerequisites are made before the service (and deleted after it),
the model's files are checked before the service is made, and the smoke checks depend on the newest created revision. In
a gated rollout they send requests to that revision's own address, and the traffic moves after them.
"""

from dataclasses import asdict
from typing import Any

import pulumi

from bezel.planner import Plan, plan_output
from components.cloud_run_gpu_service import SERVICE_SECONDS, CloudRunGpuService, CloudRunGpuServiceArgs, VpcEgress
from components.container_image import ContainerImage, ContainerImageArgs
from components.enabled_apis import EnabledApis, EnabledApisArgs
from components.model_files import ModelFiles, ModelFilesArgs
from components.runtime_identity import RuntimeIdentity, RuntimeIdentityArgs
from components.vllm_container import BucketMount, Probe, VllmContainer
from components.weights_bucket import WeightsBucket, WeightsBucketArgs
from smoke.hooks import service_failure_hook
from stacks import config, network, quota, rollout
from stacks.smoke_tests import INGRESS, check_and_measure, refuse


def deploy(plan: Plan) -> dict[str, Any]:
    """Declare the stack's resources.

    Returns:
        The stack's outputs: url, revision, image, model, arguments, plan, smoke, simulated.
    """
    simulated = config.simulated()
    gated = rollout.is_gated(plan)
    refuse(plan, [*network.subnetwork_problems(plan), *quota.service_problems(plan, gated=gated)])
    service, image = _service(plan)
    health, benchmark = check_and_measure(
        plan.smoke,
        service=service.resource_name,
        planned=service.declared,
        url=service.newest_url,
        # Without a gate there is one address, and the state of older stacks holds no other.
        audience=service.url if rollout.is_gated(plan) else None,
        revision=service.created_revision,
        served_model=plan.served_model,
        public=plan.service.public,
        simulated=simulated,
        after=service,
    )
    return {
        "url": service.url,
        "revision": rollout.serving(plan, service, benchmark),
        "image": image,
        "model": plan.served_model,
        "arguments": list(plan.service.arguments),
        "plan": plan_output(plan),
        "smoke": {"verdict": health.verdict, "figures": benchmark.figures},
        "simulated": simulated,
    }


def _service(plan: Plan) -> tuple[CloudRunGpuService, str]:
    """The service with its prerequisites, and its image by digest."""
    project, wanted = plan.project, plan.service
    apis = EnabledApis("apis", EnabledApisArgs(project=project, services=plan.apis))
    identity = RuntimeIdentity(
        "runtime",
        RuntimeIdentityArgs(
            project=project,
            account_id=wanted.service_account_id,
            description=f"Runs {wanted.name}",
            secrets=tuple(wanted.secrets.values()),
        ),
        opts=_after(apis),
    )
    weights = _weights(plan, identity, apis)
    image = ContainerImage(
        "image",
        ContainerImageArgs(
            project=project,
            location=wanted.region,
            repository_id=wanted.image_repository_id,
            registry=wanted.image.registry,
            image=wanted.image.repository,
            tag=wanted.image.tag,
            digest=wanted.image.digest,
            labels=wanted.labels,
        ),
        opts=_after(apis),
    )
    service = CloudRunGpuService(
        "service",
        CloudRunGpuServiceArgs(
            project=project,
            location=wanted.region,
            service=wanted.name,
            container=_container(plan),
            image=image.reference,
            accelerator=wanted.accelerator,
            zonal_redundancy=wanted.zonal_redundancy,
            service_account=identity.email,
            min_instances=wanted.min_instances,
            max_instances=wanted.max_instances,
            request_concurrency=wanted.request_concurrency,
            timeout_seconds=wanted.timeout_seconds,
            ingress=INGRESS[wanted.ingress],
            vpc=_vpc(plan),
            invokers=wanted.invokers,
            public=wanted.public,
            gated=rollout.is_gated(plan),
            retries_failed=True,
            deletion_protection=wanted.deletion_protection,
            labels=wanted.labels,
            deadline_seconds=config.deadline(SERVICE_SECONDS),
            hooks=pulumi.ResourceHookBinding(on_error=[service_failure_hook()]),
        ),
        opts=_after(identity, *weights, image),
    )
    return service, image.reference


def _weights(plan: Plan, identity: RuntimeIdentity, apis: EnabledApis) -> tuple[pulumi.Resource, ...]:
    """The bucket and the check of the model in it; nothing where the model comes from elsewhere."""
    wanted = plan.service.weights
    if wanted.bucket is None:
        return ()
    bucket = WeightsBucket(
        "weights",
        WeightsBucketArgs(
            project=plan.project,
            bucket=wanted.bucket,
            location=plan.service.region,
            create=wanted.create,
            readers=(identity.email,),
            force_destroy=plan.environment == "dev",
            labels=plan.service.labels,
        ),
        opts=_after(identity),
    )
    model = ModelFiles(
        "model",
        ModelFilesArgs(bucket=bucket.bucket, path=wanted.path, source=wanted.source, bucket_url=bucket.url),
        opts=_after(apis),
    )
    drafts = [
        ModelFiles(
            f"draft-{number}",
            ModelFilesArgs(bucket=bucket.bucket, path=path, source=source, draft=True, bucket_url=bucket.url),
            opts=_after(apis),
        )
        for number, (path, source) in enumerate(wanted.drafts.items())
    ]
    return bucket, model, *drafts


def _container(plan: Plan) -> VllmContainer:
    wanted = plan.service
    return VllmContainer(
        arguments=wanted.arguments,
        environment=wanted.environment,
        secrets=wanted.secrets,
        port=wanted.port,
        cpu=wanted.cpu,
        memory_gib=wanted.memory_gib,
        accelerators=wanted.accelerator_count,
        cpu_boost=wanted.cpu_boost,
        startup_probe=Probe(**asdict(wanted.startup_probe)),
        liveness_probe=None if wanted.liveness_probe is None else Probe(**asdict(wanted.liveness_probe)),
        mounts=_mounts(plan),
    )


def _vpc(plan: Plan) -> VpcEgress | None:
    wanted = plan.service.vpc
    if wanted is None:
        return None
    egress = wanted.egress.replace("-", "_").upper()
    return VpcEgress(network=wanted.network, subnetwork=wanted.subnetwork, egress=egress, tags=wanted.tags)


def _mounts(plan: Plan) -> tuple[BucketMount, ...]:
    weights = plan.service.weights
    if weights.bucket is None or weights.mount_path is None:
        return ()
    return (BucketMount(bucket=weights.bucket, path=weights.mount_path, options=weights.mount_options),)


def _after(*earlier: pulumi.Resource) -> pulumi.ResourceOptions:
    return pulumi.ResourceOptions(depends_on=list(earlier))
