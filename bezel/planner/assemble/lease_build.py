"""make_lease_plan: turn the configuration of a stack of leased machines into its plan.

Owns the parts of a plan that no setting determines: names, folders, gateway, network, APIs. Leaves the rules to
bezel.planner.assemble.lease_validate. Pure: no clock, no network, no Pulumi.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.assemble.lease_plan import GatewayPlan, LeasePlan, LeaseTerms, NetworkPlan, NodePlan, ZonePlan
from bezel.planner.assemble.lease_validate import judge_lease, keeps_cache
from bezel.planner.assemble.provenance import origins
from bezel.planner.base.deployment import ImagePlan, WeightsPlan
from bezel.planner.base.durations import parse_duration
from bezel.planner.base.names import ACCOUNT_LENGTH, REPOSITORY_LENGTH, SERVICE_LENGTH, resource_name, stack_labels
from bezel.planner.cost.lease_total import GATEWAY_INSTANCES
from bezel.planner.cost.token_cost import token_cost
from bezel.planner.rules.image_checks import image_plan
from bezel.planner.rules.lease_memory import kv_element_bytes, max_batch
from bezel.planner.rules.storage_checks import bucket_of
from bezel.planner.sizing.memory import MemoryFit
from bezel.planner.sizing.roofline import Estimate, Peaks, estimate, gpu_peaks, tpu_peaks
from bezel.planner.sizing.speculation import Gain, speculative_gain
from bezel.planner.vllm.arguments import NODE_PORT, render

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from bezel.planner.assemble.lease_validate import JudgedLease
    from bezel.planner.base.hardware import Leased

# The releases of both images follow vLLM's own; the TPU image is assumed to exist for each.
IMAGES = {"tpu": ("docker.io", "vllm/vllm-tpu"), "gpu": ("docker.io", "vllm/vllm-openai")}
# The proxy's series in Debian 12, so that tests run the same one; see components/identity_gateway.py.
GATEWAY_IMAGE = ImagePlan("docker.io", "library/haproxy", "2.6.33")
NETWORK_LENGTH = 39  # leaves room for the names of its regions' subnetworks
CACHE_FOLDER = "compile-cache"
LEASE_LENGTH = 61  # fits a label's value and the names of a node and a machine
APIS = (
    "artifactregistry.googleapis.com",
    "cloudquotas.googleapis.com",
    "cloudresourcemanager.googleapis.com",
    "compute.googleapis.com",
    "iam.googleapis.com",
    "iamcredentials.googleapis.com",
    "logging.googleapis.com",
    "run.googleapis.com",
    "secretmanager.googleapis.com",
    "storage.googleapis.com",
)
TPU_API = "tpu.googleapis.com"


def make_lease_plan(
    config: Mapping[str, object], hardware: Leased, *, project: str | None, stack: str, today: date | None = None
) -> LeasePlan:
    """Plan a stack of leased machines.

    Args:
        config: as in make_plan.
        hardware: its accelerator.
        project: id of the Google Cloud project, None where it is not set.
        stack: name of the stack.
        today: as in make_plan.

    Raises:
        PlanError: the stack cannot work as it is set; holds every problem.
    """
    judged = judge_lease(config, hardware, project=project, stack=stack, today=today)
    settings, speed = judged.settings, _estimate(judged)
    return LeasePlan(
        stack=stack,
        project=judged.project,
        environment=settings.environment,
        model=judged.model.id,
        served_model=judged.engine.served_model,
        settings=settings,
        terms=_terms(judged, stack),
        node=_node(judged, stack),
        network=NetworkPlan(
            resource_name(stack, length=NETWORK_LENGTH),
            tuple(dict.fromkeys(wish.zone.rpartition("-")[0] for wish in settings.lease.zones)),
            settings.network.nat,
        ),
        gateway=_gateway(judged, stack),
        smoke=judged.smoke,
        fit=judged.fit,
        start=judged.start,
        estimate=speed,
        gain=_gain(judged, speed),
        cost=judged.cost,
        token_cost=token_cost(judged.cost.hourly, speed),
        apis=(*APIS, TPU_API) if judged.back_end == "queued_resource" else APIS,
        origins=origins(settings, judged.arguments, judged.environment),
        labels=stack_labels(settings, judged.model, stack),
        service_account_id=resource_name(stack, length=ACCOUNT_LENGTH),
        image_repository_id=resource_name(stack, suffix="images", length=REPOSITORY_LENGTH),
    )


def _terms(judged: JudgedLease, stack: str) -> LeaseTerms:
    lease = judged.settings.lease
    # The first keeps its name when others are added.
    numbers = ["", *(str(number) for number in range(1, lease.count))]
    return LeaseTerms(
        names=tuple(resource_name(stack, suffix=number, length=LEASE_LENGTH) for number in numbers),
        hardware=judged.hardware,
        back_end=judged.back_end,
        provisioning=lease.provisioning,
        zones=tuple(ZonePlan(wish.zone, _seconds(wish.patience or lease.patience)) for wish in lease.zones),
        run_seconds=_seconds(lease.duration),
        renew=lease.renew,
        provisioning_deadline_seconds=_seconds(lease.provisioning_deadline),
        boot_deadline_seconds=_seconds(lease.boot_deadline),
    )


def _seconds(duration: str) -> int:
    seconds = parse_duration(duration)
    assert seconds is not None  # noqa: S101 - validated
    return seconds


def _node(judged: JudgedLease, stack: str) -> NodePlan:
    settings, hardware = judged.settings, judged.hardware
    registry, repository = IMAGES[hardware.device]
    bucket = bucket_of(settings.weights, judged.project) if judged.folder else None
    path = (settings.weights.path or judged.model.folder or "").strip("/") if judged.folder else ""
    model = judged.folder or judged.model.hub_id or ""
    kept = keeps_cache(settings, hardware)
    # Compiled graphs are code: each service account has a folder, so that no other stack can place any in this one's.
    own = f"{CACHE_FOLDER}/{judged.project}/{resource_name(stack, length=ACCOUNT_LENGTH)}"
    cache = f"gs://{bucket}/{own}/{judged.model.id}/{hardware.id}/{judged.options.version}" if kept else ""
    return NodePlan(
        image=image_plan(settings, registry, repository),
        arguments=render(model, judged.arguments, judged.options),
        environment=judged.environment,
        secrets=dict(settings.secrets),
        port=NODE_PORT,
        weights=WeightsPlan(
            loading="copied" if bucket else "hub",
            model=model,
            bucket=bucket,
            path=path,
            mount_path=None,
            mount_options=(),
            create=settings.weights.create,
            source=judged.model.hub_id or "",
            drafts={},
        ),
        compile_cache=cache,
        packages="docker" if judged.back_end == "flex_start_vm" else "",
    )


def _gateway(judged: JudgedLease, stack: str) -> GatewayPlan:
    settings = judged.settings
    return GatewayPlan(
        name=resource_name(stack, length=SERVICE_LENGTH),
        region=settings.region,
        image=GATEWAY_IMAGE,
        max_instances=GATEWAY_INSTANCES,
        invokers=settings.access.invokers,
        ingress=settings.access.ingress,
        public=settings.access.public,
        deletion_protection=settings.protects_from_deletion,
        service_account_id=resource_name(stack, suffix="gw", length=ACCOUNT_LENGTH),
    )


def _peaks(judged: JudgedLease) -> Peaks:
    hardware = judged.hardware
    if hardware.slice is not None:
        return tpu_peaks(hardware.slice)
    assert hardware.gpu is not None  # noqa: S101 - leased hardware has one or the other
    offloaded = judged.fit.offloaded_bytes * hardware.chips if isinstance(judged.fit, MemoryFit) else 0
    return gpu_peaks(hardware.gpu, judged.model, count=hardware.chips, offloaded_bytes=offloaded)


def _estimate(judged: JudgedLease) -> Estimate:
    smoke = judged.smoke
    tokens = smoke.prompt_tokens + smoke.output_tokens
    return estimate(
        judged.model,
        _peaks(judged),
        prompt_tokens=smoke.prompt_tokens,
        output_tokens=smoke.output_tokens,
        batch=max(1, max_batch(judged.fit, judged.model, judged.hardware, judged.engine, tokens)),
        kv_element_bytes=kv_element_bytes(judged.hardware, judged.engine),
    )


def _gain(judged: JudgedLease, speed: Estimate) -> Gain | None:
    if not judged.engine.draft_tokens:
        return None
    return speculative_gain(
        judged.model,
        _peaks(judged),
        speed,
        draft_tokens=judged.engine.draft_tokens,
        draft_bytes=judged.fit.draft_bytes if isinstance(judged.fit, MemoryFit) else 0,
        kv_element_bytes=kv_element_bytes(judged.hardware, judged.engine),
    )
