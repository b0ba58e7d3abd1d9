"""make_plan: turn a stack's configuration into its Plan, or report all its problems at once.

Owns the parts of a plan that no setting determines: image, mount, probes, names, labels, APIs. Leaves the rules to
bezel.planner.assemble.validate. Pure: no clock, no network, no Pulumi.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.assemble.lease_build import make_lease_plan
from bezel.planner.assemble.plan import Plan
from bezel.planner.assemble.provenance import origins
from bezel.planner.assemble.validate import judge, request_concurrency
from bezel.planner.base.deployment import ProbePlan, ServicePlan, VpcPlan, WeightsPlan
from bezel.planner.base.hardware import leased
from bezel.planner.base.names import ACCOUNT_LENGTH, REPOSITORY_LENGTH, SERVICE_LENGTH, resource_name, stack_labels
from bezel.planner.cost.token_cost import token_cost
from bezel.planner.rules.image_checks import image_plan
from bezel.planner.rules.storage_checks import bucket_of
from bezel.planner.sizing.kv_cache import KV_ELEMENT_BYTES
from bezel.planner.sizing.memory import sequences_at_a_time
from bezel.planner.sizing.roofline import Estimate, Peaks, estimate, gpu_peaks
from bezel.planner.sizing.speculation import Gain, speculative_gain
from bezel.planner.vllm.arguments import PORT, render
from bezel.planner.vllm.loading import MOUNT_FLAGS
from bezel.planner.vllm.speculation_checks import drafting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from bezel.planner.assemble.lease_plan import LeasePlan
    from bezel.planner.assemble.validate import ValidatedStack
    from bezel.planner.base.settings import Settings

REQUEST_TIMEOUT_SECONDS = 3600
HEALTH = "/health"
IMAGE_REGISTRY, IMAGE_REPOSITORY = "docker.io", "vllm/vllm-openai"
APIS = (
    "artifactregistry.googleapis.com",
    "cloudquotas.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "run.googleapis.com",
    "secretmanager.googleapis.com",
    "storage.googleapis.com",
)


def make_plan(
    config: Mapping[str, object], *, project: str | None, stack: str, today: date | None = None
) -> Plan | LeasePlan:
    """Plan a stack: of a Cloud Run service, or of leased machines where its accelerator is leased hardware.

    Args:
        config: the stack's configuration of namespace `bezel`: keys without the namespace, values JSON-decoded.
        project: id of the Google Cloud project, None where it is not set.
        stack: name of the stack.
        today: latest possible date of the stack file's price rows; None without a clock.

    Raises:
        PlanError: the stack cannot work as it is set; holds every problem.
    """
    if hardware := leased(str(config.get("accelerator", "")).strip()):
        return make_lease_plan(config, hardware, project=project, stack=stack, today=today)
    return make_service_plan(config, project=project, stack=stack, today=today)


def make_service_plan(
    config: Mapping[str, object], *, project: str | None, stack: str, today: date | None = None
) -> Plan:
    """Plan a stack of a Cloud Run service; arguments and errors as in make_plan."""
    judged = judge(config, project=project, stack=stack, today=today)
    speed = _estimate(judged)
    return Plan(
        stack=stack,
        project=judged.project,
        environment=judged.settings.environment,
        model=judged.model.id,
        served_model=judged.engine.served_model,
        settings=judged.settings,
        service=_service(judged, stack),
        smoke=judged.smoke,
        fit=judged.fit,
        start=judged.start,
        estimate=speed,
        gain=_gain(judged, speed),
        cost=judged.cost,
        token_cost=token_cost(judged.cost.hourly, speed),
        apis=APIS,
        origins=origins(judged.settings, judged.arguments, judged.environment),
    )


def _service(judged: ValidatedStack, stack: str) -> ServicePlan:
    settings, gpu, weights = judged.settings, judged.accelerator, _weights(judged)
    return ServicePlan(
        name=resource_name(stack, length=SERVICE_LENGTH),
        region=settings.region,
        image=image_plan(settings, IMAGE_REGISTRY, IMAGE_REPOSITORY),
        arguments=render(weights.model, judged.arguments, judged.options),
        environment=judged.environment,
        secrets=dict(settings.secrets),
        port=PORT,
        cpu=settings.resources.cpu or gpu.min_cpu,
        memory_gib=judged.memory_gib,
        accelerator=gpu.id,
        accelerator_count=gpu.gpus_per_instance,
        zonal_redundancy=settings.scaling.zonal_redundancy,
        startup_probe=_startup_probe(judged),
        # A hung engine leaves the port open; a server without a response for three minutes is dead, not busy.
        liveness_probe=ProbePlan(HEALTH, 0, 60, 30, 3),
        weights=weights,
        min_instances=settings.scaling.min_instances,
        max_instances=settings.scaling.max_instances,
        request_concurrency=request_concurrency(settings, judged.engine),
        timeout_seconds=REQUEST_TIMEOUT_SECONDS,
        cpu_boost=settings.resources.cpu_boost,
        ingress=settings.access.ingress,
        vpc=_vpc(settings),
        invokers=settings.access.invokers,
        public=settings.access.public,
        deletion_protection=settings.protects_from_deletion,
        labels=stack_labels(settings, judged.model, stack),
        service_account_id=resource_name(stack, length=ACCOUNT_LENGTH),
        image_repository_id=resource_name(stack, suffix="images", length=REPOSITORY_LENGTH),
    )


def _vpc(settings: Settings) -> VpcPlan | None:
    chosen = settings.vpc
    if chosen.network is None and chosen.subnetwork is None:
        return None
    return VpcPlan(chosen.network or "", chosen.subnetwork or "", chosen.egress, chosen.tags)


def _weights(judged: ValidatedStack) -> WeightsPlan:
    chosen, loading, source = judged.settings.weights, judged.loading, judged.model.hub_id or ""
    bucket = bucket_of(chosen, judged.project)
    path, place = (chosen.path or judged.model.folder or "").strip("/"), loading.place(bucket)
    return WeightsPlan(
        loading=loading.id,
        model=f"{place}/{path}" if loading.in_bucket else source,
        bucket=bucket if loading.in_bucket else None,
        path=path if loading.in_bucket else "",
        mount_path=place if loading.mounted else None,
        mount_options=tuple(MOUNT_FLAGS) if loading.mounted else (),
        create=chosen.create,
        source=source,
        drafts=_drafts(judged, f"{place}/") if loading.in_bucket else {},
    )


def _drafts(judged: ValidatedStack, place: str) -> dict[str, str]:
    """The bucket's folder of the draft model, where the arguments name one."""
    _, draft, _ = drafting({name: argument.value for name, argument in judged.arguments.items()})
    if not judged.engine.assistant_loaded or not isinstance(draft, str) or not draft.startswith(place):
        return {}
    return {draft.removeprefix(place).strip("/"): judged.model.assistant or ""}


def _startup_probe(judged: ValidatedStack) -> ProbePlan:
    probe = judged.settings.probe
    return ProbePlan(
        HEALTH,
        probe.initial_delay_seconds,
        probe.period_seconds,
        probe.timeout_seconds,
        probe.failure_threshold,
    )


def _peaks(judged: ValidatedStack) -> Peaks:
    return gpu_peaks(judged.accelerator, judged.model, offloaded_bytes=judged.fit.offloaded_bytes)


def _estimate(judged: ValidatedStack) -> Estimate:
    engine, smoke = judged.engine, judged.smoke
    together = sequences_at_a_time(
        judged.fit, judged.model, smoke.prompt_tokens + smoke.output_tokens, kv_cache_dtype=engine.kv_cache_dtype
    )
    return estimate(
        judged.model,
        _peaks(judged),
        prompt_tokens=smoke.prompt_tokens,
        output_tokens=smoke.output_tokens,
        batch=max(1, together),
        kv_element_bytes=KV_ELEMENT_BYTES[engine.kv_cache_dtype],
    )


def _gain(judged: ValidatedStack, speed: Estimate) -> Gain | None:
    engine = judged.engine
    if not engine.draft_tokens:
        return None
    return speculative_gain(
        judged.model,
        _peaks(judged),
        speed,
        draft_tokens=engine.draft_tokens,
        draft_bytes=judged.fit.draft_bytes,
        kv_element_bytes=KV_ELEMENT_BYTES[engine.kv_cache_dtype],
    )
