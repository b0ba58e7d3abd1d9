"""make_plan: turn a stack's configuration into its plan, or report all its problems at once.

Owns the parts of a plan that no setting determines: image, mount, names, labels, APIs, gateway, network, expected
speed. Leaves the rules to bezel.planner.assemble.validate. Pure: no clock, no network, no Pulumi.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from bezel.planner.address.failover import detection_seconds, failover_of, readiness_probe
from bezel.planner.address.region_checks import stack_regions
from bezel.planner.address.regional_service import in_region, regional_bucket
from bezel.planner.assemble.fallback_validate import promise_of
from bezel.planner.assemble.lease_validate import validate_lease
from bezel.planner.assemble.plan import (
    AddressPlan,
    FallbackPlan,
    GatewayPlan,
    LeasePlan,
    LeaseTerms,
    NetworkPlan,
    NodePlan,
    Plan,
    RegionPlan,
    ZonePlan,
)
from bezel.planner.assemble.provenance import origins
from bezel.planner.assemble.validate import request_concurrency, validate_service
from bezel.planner.base.deployment import LIVENESS, MOUNT_FLAGS, ImagePlan, ServicePlan, WeightsPlan
from bezel.planner.base.hardware import COMPUTE_API, TPU_API, find_leased_hardware
from bezel.planner.base.names import ACCOUNT_LENGTH, REPOSITORY_LENGTH, SERVICE_LENGTH, resource_name, stack_labels
from bezel.planner.base.settings import ProbeSettings
from bezel.planner.cost.address_cost import address_cost
from bezel.planner.cost.lease_cost import GATEWAY_INSTANCES
from bezel.planner.cost.token_cost import token_cost
from bezel.planner.fallback.caller_checks import Promise, notes
from bezel.planner.fallback.settings_of_service import FALLBACK, name_of_service
from bezel.planner.rules.hours_checks import windows_of
from bezel.planner.rules.image_checks import image_plan
from bezel.planner.rules.memory_checks import kv_element_bytes, max_batch
from bezel.planner.rules.schedule_checks import entries_of
from bezel.planner.rules.storage_checks import bucket_of
from bezel.planner.team.door_plan import door_plan
from bezel.planner.team.metrics_plan import metrics_plan
from bezel.planner.vllm.adapter_modules import adapter_folders
from bezel.planner.vllm.arguments import NODE_PORT, PORT, planned_options, typed_values
from bezel.planner.vllm.engine_args import served_names
from bezel.planner.vllm.model.named_adapters import source_folders
from bezel.planner.vllm.speculation_checks import Speculation
from bezel.planner.vllm.start_notes import unchecked_relations
from bezel_catalog.models import using_models
from bezel_catalog.sizing.kv_cache import KV_ELEMENT_BYTES
from bezel_catalog.sizing.memory import sequences_at_a_time
from bezel_catalog.sizing.roofline import Estimate, Peaks, estimate, gpu_peaks, tpu_peaks
from bezel_catalog.sizing.speculation import speculative_gain

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date

    from bezel.planner.address.failover import Failover
    from bezel.planner.assemble.lease_validate import ValidatedLease
    from bezel.planner.assemble.validate import ValidatedService
    from bezel.planner.base.settings import Settings
    from bezel.planner.cost.token_cost import TokenCost
    from bezel_catalog import Model
    from bezel_catalog.sizing.pooled_speed import PooledEstimate

# The releases of these images follow vLLM's own; the TPU image is assumed to exist for each.
IMAGES = {"tpu": ("docker.io", "vllm/vllm-tpu"), "gpu": ("docker.io", "vllm/vllm-openai")}
# The proxy's series in Debian 12, so that tests run the same one; see components/bezel_components/identity_gateway.py.
GATEWAY_IMAGE = ImagePlan("docker.io", "library/haproxy", "2.6.33")
NETWORK_LENGTH = 39  # leaves room for the names of its regions' subnetworks
CACHE_FOLDER = "compile-cache"
LEASE_LENGTH = 61  # fits a label's value and the names of a node and a machine
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
MONITORING = "monitoring.googleapis.com"  # only where a stack is watched
SCHEDULER = "cloudscheduler.googleapis.com"  # only where its minimum has a schedule, or its leases have hours
CERTIFICATES = "certificatemanager.googleapis.com"  # only where it has an address
DNS = "dns.googleapis.com"  # only where the records of the address are made in a zone
BUDGETS = "billingbudgets.googleapis.com"  # only where it has a budget


def make_plan(
    config: Mapping[str, object],
    *,
    project: str | None,
    stack: str,
    today: date | None = None,
    models: Mapping[str, Model] | None = None,
) -> Plan | LeasePlan:
    """Plan a stack: of a Cloud Run service, or of leased machines where its accelerator is leased hardware.

    Args:
        config: the stack's configuration of namespace `bezel`: keys without the namespace, values JSON-decoded.
        project: id of the Google Cloud project, None where it is not set.
        stack: name of the stack.
        today: latest possible date of the stack file's price rows; None without a clock.
        models: the project's own models by id; None for those that are in use (`using_models`), else none.

    Raises:
        PlanError: the stack cannot work as it is set; holds every problem.
    """
    with using_models(models):
        return _make_plan(config, project=project, stack=stack, today=today)


def _make_plan(
    config: Mapping[str, object], *, project: str | None, stack: str, today: date | None
) -> Plan | LeasePlan:
    if hardware := find_leased_hardware(str(config.get("accelerator", "")).strip()):
        return _lease_plan(validate_lease(config, hardware, project=project, stack=stack, today=today))
    return _service_plan(validate_service(config, project=project, stack=stack, today=today))


def _common_fields(
    stack: ValidatedService | ValidatedLease, peaks: Peaks, batch: int, element_bytes: int, *, tpu: bool = False
) -> dict[str, Any]:
    """The fields that both kinds of plans have."""
    smoke, settings = stack.smoke, stack.settings
    speed: Estimate | PooledEstimate
    if smoke.pooled_at is not None:
        speed, tokens = _pooled_speed(stack, peaks, batch)
    else:
        speed = estimate(
            stack.model,
            peaks,
            prompt_tokens=smoke.prompt_tokens,
            output_tokens=smoke.output_tokens,
            batch=max(1, batch),
            kv_element_bytes=element_bytes,
        )
        tokens = token_cost(stack.cost.hourly, speed)
    gain = None
    if stack.engine.draft_tokens and isinstance(speed, Estimate):
        gain = speculative_gain(
            stack.model,
            peaks,
            speed,
            draft_tokens=stack.engine.draft_tokens,
            draft_bytes=stack.fit.draft_bytes,
            kv_element_bytes=element_bytes,
        )
    return {
        "stack": stack.stack,
        "project": stack.project,
        "environment": settings.environment,
        "model": stack.model.id,
        "weight_bytes": stack.model.weight_bytes,
        "assistant_bytes": stack.model.assistant_bytes,
        "served_model": stack.engine.served_model,
        "settings": settings,
        "smoke": smoke,
        "fit": stack.fit,
        "start": stack.start,
        "estimate": speed,
        "gain": gain,
        "cost": stack.cost,
        "token_cost": tokens,
        "origins": origins(settings, stack.arguments, stack.environment),
        "unchecked": unchecked_relations(stack.arguments, tpu=tpu),
    }


def _pooled_speed(
    stack: ValidatedService | ValidatedLease, peaks: Peaks, batch: int
) -> tuple[PooledEstimate, TokenCost]:
    """Speed and cost of a model that pools."""
    # Late: previews of models that generate need neither.
    from bezel.planner.cost.token_cost import pooled_token_cost
    from bezel_catalog.sizing.pooled_speed import pooled_estimate

    speed = pooled_estimate(
        stack.model,
        peaks,
        prompt_tokens=stack.smoke.prompt_tokens,
        sequences=batch,
        step_tokens=stack.engine.max_num_batched_tokens,
    )
    return speed, pooled_token_cost(stack.cost.hourly, speed)


def _service_plan(stack: ValidatedService) -> Plan:
    tokens = stack.smoke.sequence_tokens
    dtype = stack.engine.kv_cache_dtype
    peaks = gpu_peaks(stack.accelerator, stack.model, offloaded_bytes=stack.fit.offloaded_bytes)
    batch = sequences_at_a_time(stack.fit, stack.model, tokens, kv_cache_dtype=dtype)
    apis = (*APIS, *_watching(stack.settings))
    if stack.settings.scaling.schedule:
        apis = (*apis, SCHEDULER)
    regions = _regions(stack)
    return Plan(
        service=in_region(_service(stack), regions[0].region, regions[0].bucket),
        regions=regions,
        left_out={},
        address=_address(stack.settings, tuple(stack.total.services)),
        metrics=metrics_plan(stack.settings, leased=False),
        door=door_plan(
            stack.settings, stack.total.door, project=stack.project, stack=stack.stack, region=regions[0].region
        ),
        apis=(*apis, *_address_apis(stack.settings)),
        **_common_fields(stack, peaks, batch, KV_ELEMENT_BYTES[dtype]),
    )


def _regions(stack: ValidatedService) -> tuple[RegionPlan, ...]:
    settings = stack.settings
    bucket = bucket_of(settings.weights, stack.project) if stack.loading.in_bucket else None
    return tuple(
        RegionPlan(region, region in settings.optional_regions, regional_bucket(bucket, region, settings), cost)
        for region, cost in stack.total.services.items()
    )


def _address(settings: Settings, regions: tuple[str, ...]) -> AddressPlan | None:
    """The address in front of the services, or of the gateway, of these regions; None without one."""
    chosen = settings.address
    if chosen.domain is None:
        return None
    failover = failover_of(len(regions), settings.scaling)
    return AddressPlan(chosen.domain, chosen.zone or "", failover, detection_seconds(failover), address_cost(regions))


def _address_apis(settings: Settings) -> Iterator[str]:
    """APIs of what is in front of a stack."""
    if settings.address.domain is not None:
        yield from (COMPUTE_API, CERTIFICATES)
        if settings.address.zone is not None:
            yield DNS


def _watching(settings: Settings) -> Iterator[str]:
    """APIs of what watches a stack."""
    watched = settings.observability
    if watched.alerts or watched.dashboard or watched.uptime or watched.metrics:
        yield MONITORING
    if watched.budget is not None:
        yield BUDGETS


def _service(stack: ValidatedService) -> ServicePlan:
    settings, gpu, weights = stack.settings, stack.accelerator, _weights(stack)
    scaling, access, name = settings.scaling, settings.access, stack.stack
    return ServicePlan(
        name=settings.service_name or resource_name(name, length=SERVICE_LENGTH),
        region=settings.region,
        image=image_plan(settings, *IMAGES["gpu"]),
        options=planned_options(stack.arguments, stack.options),
        environment=stack.environment,
        secrets=dict(settings.secrets),
        port=PORT,
        cpu=settings.resources.cpu or gpu.min_cpu,
        memory_gib=stack.memory_gib,
        accelerator=gpu.id,
        accelerator_count=gpu.gpus_per_instance,
        zonal_redundancy=scaling.zonal_redundancy,
        startup_probe=settings.probe,
        liveness_probe=ProbeSettings(**LIVENESS),
        readiness_probe=readiness_probe(_failover(settings)),
        weights=weights,
        min_instances=scaling.min_instances,
        max_instances=scaling.max_instances,
        schedule=entries_of(scaling),
        request_concurrency=request_concurrency(settings, stack.engine),
        restarted_at=settings.restarted_at,
        timeout_seconds=scaling.request_timeout_seconds,
        cpu_boost=settings.resources.cpu_boost,
        ingress=access.ingress,
        vpc=settings.vpc if settings.vpc.network or settings.vpc.subnetwork else None,
        invokers=access.invokers,
        public=access.public,
        deletion_protection=settings.protects_from_deletion,
        labels=stack_labels(settings, stack.model, name),
        service_account_id=resource_name(name, length=ACCOUNT_LENGTH),
        image_repository_id=resource_name(name, suffix="images", length=REPOSITORY_LENGTH),
    )


def _failover(settings: Settings) -> Failover:
    """What finds a dead region of a service: "none" without an address too."""
    return "none" if settings.address.domain is None else failover_of(len(stack_regions(settings)), settings.scaling)


def _weights(stack: ValidatedService) -> WeightsPlan:
    chosen, loading, source = stack.settings.weights, stack.loading, stack.model.repository
    bucket = bucket_of(chosen, stack.project)
    path, prefix = (chosen.path or stack.model.folder or "").strip("/"), loading.folder_prefix(bucket)
    return WeightsPlan(
        loading=loading.id,
        model=f"{prefix}/{path}" if loading.in_bucket else stack.model.hub_id or "",
        bucket=bucket if loading.in_bucket else None,
        path=path if loading.in_bucket else "",
        mount_path=prefix if loading.mounted else None,
        mount_options=tuple(MOUNT_FLAGS) if loading.mounted else (),
        create=chosen.create,
        source=source,
        drafts=_drafts(stack, f"{prefix}/") if loading.in_bucket else {},
        adapters=dict.fromkeys(
            adapter_folders(typed_values(stack.arguments), prefix if loading.mounted else ""),
            stack.engine.adapters.rank,
        ),
        adapter_sources=source_folders(stack.settings.adapters) if loading.mounted else {},
        hidden_size=stack.model.architecture.hidden_size,
        layers=stack.model.architecture.layers,
    )


def _drafts(stack: ValidatedService, prefix: str) -> dict[str, str]:
    """The bucket's folder of the draft model, where the arguments name one."""
    draft = Speculation.of(typed_values(stack.arguments)).draft_model
    if not stack.engine.assistant_loaded or draft is None or not draft.startswith(prefix):
        return {}
    return {draft.removeprefix(prefix).strip("/"): stack.model.assistant or ""}


def _lease_plan(stack: ValidatedLease) -> LeasePlan:
    settings, hardware, name = stack.settings, stack.hardware, stack.stack
    lease, access = settings.lease, settings.access
    if hardware.slice is not None:
        peaks = tpu_peaks(hardware.slice)
    else:
        assert hardware.gpu is not None  # noqa: S101 - leased hardware has one or the other
        offloaded = stack.fit.offloaded_bytes * hardware.chips
        peaks = gpu_peaks(hardware.gpu, stack.model, count=hardware.chips, offloaded_bytes=offloaded)
    tokens = stack.smoke.sequence_tokens
    batch = max_batch(stack.fit, stack.model, hardware, stack.engine, tokens)
    # The first keeps its name when others are added.
    numbers = ["", *(str(number) for number in range(1, lease.count))]
    zones = tuple(ZonePlan(preference.zone, preference.patience or lease.patience) for preference in lease.zones)
    return LeasePlan(
        terms=LeaseTerms(
            names=tuple(resource_name(name, suffix=number, length=LEASE_LENGTH) for number in numbers),
            hours=windows_of(lease),
            hardware=hardware,
            back_end=stack.back_end,
            provisioning=lease.provisioning,
            zones=zones,
            run_seconds=lease.duration,
            renew=lease.renew,
            provisioning_deadline_seconds=lease.provisioning_deadline,
            boot_deadline_seconds=lease.boot_deadline,
        ),
        node=_node(stack),
        network=NetworkPlan(
            resource_name(name, length=NETWORK_LENGTH),
            tuple(dict.fromkeys(zone.region for zone in zones)),
            settings.network.nat,
        ),
        gateway=GatewayPlan(
            name=settings.service_name or resource_name(name, length=SERVICE_LENGTH),
            region=settings.region,
            image=GATEWAY_IMAGE,
            max_instances=GATEWAY_INSTANCES,
            timeout_seconds=settings.scaling.request_timeout_seconds,
            invokers=access.invokers,
            ingress=access.ingress,
            public=access.public,
            deletion_protection=settings.protects_from_deletion,
            service_account_id=resource_name(name, suffix="gw", length=ACCOUNT_LENGTH),
        ),
        apis=(
            *sorted((*APIS, COMPUTE_API)),
            *([TPU_API] if stack.back_end == "queued_resource" else []),
            *([SCHEDULER] if lease.hours else []),
            *_watching(settings),
            *(each for each in _address_apis(settings) if each != COMPUTE_API),
        ),
        address=_address(settings, (settings.region,)),
        metrics=metrics_plan(settings, leased=True),
        door=door_plan(settings, stack.cost.door, project=stack.project, stack=name, region=settings.region),
        fallback=_fallback(stack),
        labels=stack_labels(settings, stack.model, name),
        service_account_id=resource_name(name, length=ACCOUNT_LENGTH),
        image_repository_id=resource_name(name, suffix="images", length=REPOSITORY_LENGTH),
        **_common_fields(stack, peaks, batch, kv_element_bytes(hardware, stack.engine), tpu=hardware.device == "tpu"),
    )


def _fallback(stack: ValidatedLease) -> FallbackPlan | None:
    """The fallback, whose service has names, account and images of its own, and only the gateway as a caller."""
    if stack.fallback is None:
        return None
    plan = _service_plan(stack.fallback)
    service = replace(
        plan.service,
        name=name_of_service(stack.stack),
        service_account_id=resource_name(stack.stack, suffix="fb", length=ACCOUNT_LENGTH),
        image_repository_id=resource_name(stack.stack, suffix=f"images-{FALLBACK}", length=REPOSITORY_LENGTH),
    )
    names = served_names(typed_values(stack.arguments).get("served-model-name"), stack.model)
    lease = Promise(stack.model.id, names, stack.fit.max_model_len, {}, None)
    return FallbackPlan(replace(plan, service=service), tuple(notes(lease, promise_of(stack.fallback))))


def _node(stack: ValidatedLease) -> NodePlan:
    settings, hardware = stack.settings, stack.hardware
    bucket = bucket_of(settings.weights, stack.project) if stack.folder else None
    model = stack.folder or stack.model.hub_id or ""
    # Compiled graphs are code: each service account has a folder, so that no other stack can place any in this one's.
    stack_folder = f"{CACHE_FOLDER}/{stack.project}/{resource_name(stack.stack, length=ACCOUNT_LENGTH)}"
    cache = f"gs://{bucket}/{stack_folder}/{stack.model.id}/{hardware.id}/{stack.options.version}"
    return NodePlan(
        image=image_plan(settings, *IMAGES[hardware.device]),
        options=planned_options(stack.arguments, stack.options),
        environment=stack.environment,
        secrets=dict(settings.secrets),
        port=NODE_PORT,
        weights=WeightsPlan(
            loading="copied" if bucket else "hub",
            model=model,
            bucket=bucket,
            path=(settings.weights.path or stack.model.folder or "").strip("/") if bucket else "",
            mount_path=None,
            mount_options=(),
            create=settings.weights.create,
            source=stack.model.repository,
            drafts={},
            adapters={},
            adapter_sources={},
            hidden_size=stack.model.architecture.hidden_size,
            layers=stack.model.architecture.layers,
        ),
        compile_cache=cache if stack.start.cached_seconds else "",
        packages="docker" if stack.back_end == "flex_start_vm" else "",
    )
