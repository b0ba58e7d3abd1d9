"""Validation of a Cloud Run service: every rule in its order, with all problems at once.

Owns the input and condition of each rule. Leaves those of every stack to bezel.planner.assemble.validation, and the
shape of the plan to bezel.planner.assemble.build.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bezel.planner.address.region_checks import region_key, stack_regions
from bezel.planner.assemble.validation import ValidatedStack, Validation
from bezel.planner.base.problems import setting
from bezel.planner.base.schedule import average_minimum
from bezel.planner.cost.address_cost import address_cost
from bezel.planner.cost.door_cost import door_cost
from bezel.planner.cost.price_rows import has_refused_price
from bezel.planner.cost.service_cost import (
    BILLING,
    SERVICE,
    ServiceCost,
    check_cost,
    check_idle_cost,
    gpu_item,
    service_cost,
)
from bezel.planner.cost.total_cost import TotalCost, check_total
from bezel.planner.rules import platform_checks as platform
from bezel.planner.rules.env_checks import check_environment, planned_variables
from bezel.planner.rules.lease_checks import check_service_only
from bezel.planner.rules.memory_checks import check_memory, gpu_memory
from bezel.planner.rules.network_checks import check_vpc
from bezel.planner.rules.observability_checks import check_observability
from bezel.planner.rules.schedule_checks import check_schedule, entries_of
from bezel.planner.rules.smoke_checks import check_patience
from bezel.planner.rules.startup import check_start, estimate_start
from bezel.planner.rules.storage_checks import bucket_of
from bezel.planner.team.door_checks import check_door_price
from bezel.planner.team.door_plan import door_instances
from bezel.planner.team.metrics_checks import check_metrics
from bezel.planner.team.metrics_plan import metrics_plan
from bezel.planner.vllm.arguments import MOUNT_PATH, default_options, typed_values
from bezel.planner.vllm.loading import LOADINGS, Loading, loading_of, loading_options
from bezel.planner.vllm.loading_checks import check_loading
from bezel.planner.vllm.model.named_adapters import AdapterPlace
from bezel_catalog import (
    Price,
    accelerator,
    price,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import date

    from bezel.planner.base.schedule import Entry
    from bezel.planner.base.settings import Settings
    from bezel.planner.vllm.engine_args import EngineArgs
    from bezel_base.errors import Problem
    from bezel_catalog import Accelerator
    from bezel_catalog.sizing.memory import MemoryFit

MAX_CONCURRENCY = 1000  # Cloud Run's own bound


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedService(ValidatedStack):
    """A Cloud Run service that passes every rule.

    `total` is the cost in all regions and of the address, `cost` that of the service in the first region.
    """

    accelerator: Accelerator
    memory_gib: int
    loading: Loading
    fit: MemoryFit
    total: TotalCost

    @property
    def cost(self) -> ServiceCost:
        """The cost of the service in the first region."""
        return self.total.first


def validate_service(
    config: Mapping[str, object], *, project: str | None, stack: str, today: date | None
) -> ValidatedService:
    """Run every rule whose inputs are known.

    Raises:
        PlanError: with every problem.
    """
    rules = Validation(config, project=project, stack=stack, today=today)
    settings, problems, checkpoint, options = rules.settings, rules.problems, rules.model, rules.options
    nothing = "no region, price or memory is known for it."
    gpu = rules.look_up("accelerator", settings.accelerator, accelerator, nothing)
    planned = planned_variables(gpu, offline=rules.offline)
    environment = planned | settings.variables
    problems += check_environment(settings, planned, options, rules.chosen)
    problems += check_service_only(settings, rules.unread) if gpu else []
    problems += _service_problems(settings, gpu)
    # A value that could not be read counts as not set, so what would follow from it says nothing.
    if not any(str(problem.key).startswith(setting("observability.")) for problem in problems):
        problems += check_observability(settings)
    rules.check_platform(planned)
    memory_gib = max(gpu.min_memory_gib if gpu else 0, settings.resources.memory or 0)
    chosen = settings.weights.loading
    loaded_by = loading_options(chosen, checkpoint, memory_gib, typed_values(rules.chosen)) if checkpoint else {}
    bucket = bucket_of(settings.weights, project or "PROJECT")
    copies_at = LOADINGS[chosen].folder_prefix(bucket) if chosen else MOUNT_PATH
    mount = copies_at if copies_at == MOUNT_PATH else ""
    place = AdapterPlace("mounted" if mount else "streamed" if rules.offline else "hub", mount)
    rules.check_options(default_options(checkpoint, loading=loaded_by) if checkpoint else {}, adapters=place)
    if options and checkpoint:
        problems += check_loading(settings, checkpoint, rules.arguments, bucket)
    problems += check_metrics(settings, rules.values, gpu) if gpu else []
    engine = rules.check_engine(gpu.id if gpu else None, gpu.id if gpu else "", environment, copies_at, mount=mount)
    requests = 0 if engine is None else request_concurrency(settings, engine)
    cost = _total_cost(settings, gpu, memory_gib, requests, problems) if gpu else None
    if gpu is None or checkpoint is None or options is None or engine is None or cost is None:
        raise rules.refusal()
    if not rules.offline:
        engine = replace(engine, load_strategy="download")
    loading = loading_of(chosen, engine)
    fit = gpu_memory(checkpoint, gpu, engine, memory_gib=memory_gib)
    problems += check_memory(fit, engine, checkpoint, gpu)
    start = estimate_start(fit, loading)
    problems += check_start(start, settings.probe)
    instances = settings.scaling.max_instances
    smoke = rules.plan_smoke(
        engine,
        instances=instances,
        concurrency=instances * request_concurrency(settings, engine),
        raised_by="scaling.request_concurrency",
    )
    problems += check_patience(smoke, settings.probe)
    if problems or not project:
        raise rules.refusal()
    return ValidatedService(
        settings=settings,
        stack=stack,
        project=project,
        accelerator=gpu,
        model=checkpoint,
        options=options,
        arguments=rules.arguments,
        environment=environment,
        memory_gib=memory_gib,
        engine=engine,
        loading=loading,
        fit=fit,
        start=start,
        total=cost,
        smoke=smoke,
    )


def _service_problems(settings: Settings, gpu: Accelerator | None) -> Iterator[Problem]:
    yield from platform.check_probe(settings.probe)
    yield from platform.check_scaling(settings.scaling)
    yield from check_schedule(settings.scaling)
    yield from check_vpc(settings.vpc, settings.weights, stack_regions(settings))
    if gpu:
        yield from platform.check_resources(settings.resources, gpu)
        for region in stack_regions(settings):
            yield from platform.check_region(region, gpu, region_key(settings, region))


def _total_cost(
    settings: Settings, gpu: Accelerator, memory_gib: int, requests: int, problems: list[Problem]
) -> TotalCost:
    """The cost of the service in each region, at least one, of address and door; checked against the limits.

    Args:
        settings: of the stack.
        gpu: its accelerator.
        memory_gib: memory of one instance.
        requests: that one instance takes at a time.
        problems: those so far, to which those of the cost are added.
    """
    regions = stack_regions(settings)
    entries = (
        () if any(str(each.key).startswith(setting("scaling.")) for each in problems) else entries_of(settings.scaling)
    )
    services = {region: _cost(settings, gpu, memory_gib, region, entries) for region in regions or ("",)}
    address = address_cost(services) if settings.address.domain is not None else None
    door = None
    if settings.access.keys and regions:
        at_most = len(regions) * settings.scaling.max_instances * requests
        door = door_cost(region=regions[0], max_instances=door_instances(at_most), own_prices=settings.cost.prices)
    cost = TotalCost(services, address, door)
    if not has_refused_price(problems):
        problems += _check_costs(settings, gpu, cost)
    return cost


def _cost(settings: Settings, gpu: Accelerator, memory_gib: int, region: str, entries: Sequence[Entry]) -> ServiceCost:
    """The cost of the service in a region."""
    collector = metrics_plan(settings, leased=False)
    cost = service_cost(
        gpu.id,
        region=region,
        cpu=settings.resources.cpu or gpu.min_cpu,
        memory_gib=memory_gib,
        min_instances=max(settings.scaling.min_instances, *(each.minimum for each in entries), 0),
        max_instances=settings.scaling.max_instances,
        zonal_redundancy=settings.scaling.zonal_redundancy,
        boost_cpu=platform.boost_vcpus(gpu, settings.resources),
        collector_cpu=collector.cpu if collector else 0,
        collector_memory_gib=collector.memory_gib if collector else 0,
        own_prices=settings.cost.prices,
    )
    if entries:
        cost = replace(cost, average_min=average_minimum(entries, settings.scaling.min_instances))
    return replace(cost, alerts=settings.observability.alerts, uptime=settings.observability.uptime)


def _check_costs(settings: Settings, gpu: Accelerator, cost: TotalCost) -> Iterator[Problem]:
    """Refuse what has no price, and a sum above the limits; a region without the accelerator has no price to miss."""
    items = (gpu_item(gpu.id, zonal_redundancy=settings.scaling.zonal_redundancy), "vcpu", "memory")
    priced_regions = [
        region
        for region in gpu.regions
        if all(isinstance(price(SERVICE, item, region, BILLING), Price) for item in items)
    ]
    offered = [region for region in cost.services if region in (*gpu.regions, *gpu.regions_on_invitation)]
    limits, environment = settings.cost, settings.environment
    for region in offered:
        yield from check_cost(
            cost.services[region],
            region=region,
            key=region_key(settings, region),
            limit=limits.max_hourly_usd if cost.is_one_service else None,
            priced_regions=priced_regions,
        )
    if offered:
        yield from check_door_price(cost.door, region=next(iter(cost.services)))
    if cost.is_one_service and offered:
        yield from check_idle_cost(cost.first, environment=environment, limit=limits.max_idle_hourly_usd)
    elif len(offered) == len(cost.services):
        yield from check_total(cost, limits, environment=environment)


def request_concurrency(settings: Settings, engine: EngineArgs) -> int:
    """Concurrent requests of one instance: one batch that runs and one that waits inside vLLM.

    Its batch stays full and its metrics show the queue. Cloud Run adds an instance at about 60 % of this number, which
    is when the batch has just become full.
    """
    return settings.scaling.request_concurrency or min(MAX_CONCURRENCY, 2 * engine.max_num_seqs)
