"""Validation of a Cloud Run stack: every rule in its order, with all problems at once.

Owns the input of each rule and the condition to run it. Leaves the rules to the modules beside it and the shape of the
plan to bezel.planner.assemble.build.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bezel.catalog import (
    NotInCatalogueError,
    Price,
    accelerator,
    model,
    price,
    unservable_form,
    vllm_options,
)
from bezel.errors import NOT_SET, Problem, shown
from bezel.planner.base.deployment import SmokePlan
from bezel.planner.base.hardware import leased_hardware
from bezel.planner.base.names import is_project_id, stack_labels
from bezel.planner.base.parse import read_settings
from bezel.planner.base.problems import PlanError, one_of, setting
from bezel.planner.cost.price_rows import check_own_prices, mispriced
from bezel.planner.cost.service_cost import BILLING, SERVICE, Cost, check_cost, check_idle_cost, gpu_item, service_cost
from bezel.planner.rules import platform_checks as platform
from bezel.planner.rules.env_checks import check_environment
from bezel.planner.rules.env_names import planned_variables
from bezel.planner.rules.image_checks import check_image, recording_of, unrecorded
from bezel.planner.rules.lease_checks import check_service_only
from bezel.planner.rules.memory_checks import check_memory
from bezel.planner.rules.network_checks import check_vpc, check_way_in
from bezel.planner.rules.platform_limits import check_label_count
from bezel.planner.rules.smoke_checks import check_patience, check_smoke
from bezel.planner.rules.startup import StartEstimate, check_start, estimate_start
from bezel.planner.rules.storage_checks import bucket_of, check_own_copy, check_weights
from bezel.planner.sizing.memory import MemoryFit, memory_fit
from bezel.planner.vllm.argument_conflicts import check_served, check_traps
from bezel.planner.vllm.arguments import MOUNT_PATH, default_options, merge
from bezel.planner.vllm.engine_args import EngineArgs, read_engine
from bezel.planner.vllm.loading import HUB, LOADINGS, Loading, loading_of, loading_options
from bezel.planner.vllm.loading_checks import check_loading
from bezel.planner.vllm.option_checks import check_fields, check_options, check_spellings
from bezel.planner.vllm.risk_checks import check_risks
from bezel.planner.vllm.serving_checks import check_serving

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from bezel.catalog import Accelerator, Model, VllmOptions
    from bezel.planner.base.settings import Settings
    from bezel.planner.vllm.arguments import Argument


MOST_CONCURRENCY = 1000  # Cloud Run's own bound
SMOKE_CONCURRENCY = 64  # a short benchmark, not a load test


@dataclass(frozen=True, slots=True)
class ValidatedStack:
    """Settings that pass every rule, with the results of the rules."""

    settings: Settings
    project: str
    accelerator: Accelerator
    model: Model
    options: VllmOptions
    arguments: Mapping[str, Argument]
    environment: Mapping[str, str]
    memory_gib: int
    engine: EngineArgs
    loading: Loading
    fit: MemoryFit
    start: StartEstimate
    cost: Cost
    smoke: SmokePlan


def judge(config: Mapping[str, object], *, project: str | None, stack: str, today: date | None) -> ValidatedStack:
    """Run every rule whose inputs are known.

    Raises:
        PlanError: with every problem.
    """
    settings, problems = read_settings(config)
    problems += check_own_prices(settings.cost.prices, today=today)
    problems += check_project(project)
    gpu, checkpoint, options = _look_up(settings, problems)
    chosen = settings.weights.loading
    planned = planned_variables(gpu, offline=chosen != HUB.id)
    environment = planned | settings.variables
    problems += check_environment(settings, planned, options)
    problems += check_service_only(settings) if gpu else []
    problems += _platform_problems(settings, gpu, planned)
    problems += check_own_copy(settings.weights, checkpoint) if checkpoint and chosen != HUB.id else []
    memory_gib = _memory_gib(settings, gpu)
    arguments: dict[str, Argument] = {}
    engine = None
    if options:
        arguments = merge(_defaults(checkpoint, memory_gib, chosen), settings.vllm, options)
        problems += check_spellings(settings.vllm, options)
        problems += check_options(arguments, options)
        problems += check_risks(settings, arguments, options)
        problems += check_serving({name: argument.value for name, argument in arguments.items()}, settings)
    if checkpoint:
        problems += check_label_count(settings.labels, stack_labels(settings, checkpoint, stack))
    if options and checkpoint:
        bucket = bucket_of(settings.weights, project or "PROJECT")
        copies_at = LOADINGS[chosen].place(bucket) if chosen else MOUNT_PATH
        problems += check_loading(settings, checkpoint, arguments, bucket)
        problems += check_traps(
            arguments,
            checkpoint,
            gpu.id if gpu else None,
            environment=environment,
            options=options,
            copies_at=copies_at,
        )
        problems += check_fields(arguments, options)
        problems += check_served(checkpoint, gpu.id, gpu.id) if gpu else []
        engine, found = read_engine(arguments, checkpoint)
        if engine and chosen == HUB.id:
            engine = replace(engine, load_strategy="download")
        problems += found
    cost = _cost(settings, gpu, memory_gib, problems)
    if gpu is None or checkpoint is None or options is None or engine is None or cost is None:
        raise refusal(problems, stack)
    loading = loading_of(chosen, engine)
    fit = _fit(checkpoint, gpu, engine, memory_gib)
    instances = settings.scaling.max_instances
    taken = instances * request_concurrency(settings, engine)
    smoke = plan_smoke(settings, engine, instances=instances, taken=taken)
    problems += check_memory(fit, engine, checkpoint, gpu)
    start = estimate_start(fit, loading)
    problems += check_start(start, settings.probe)
    problems += check_smoke(smoke, engine, taken_at_a_time=taken, raised_by="scaling.request_concurrency")
    problems += check_patience(smoke, settings.probe)
    if problems or not project:
        raise refusal(problems, stack)
    return ValidatedStack(
        settings=settings,
        project=project,
        accelerator=gpu,
        model=checkpoint,
        options=options,
        arguments=arguments,
        environment=environment,
        memory_gib=memory_gib,
        engine=engine,
        loading=loading,
        fit=fit,
        start=start,
        cost=cost,
        smoke=smoke,
    )


def _look_up(
    settings: Settings, problems: list[Problem]
) -> tuple[Accelerator | None, Model | None, VllmOptions | None]:
    gpu = None
    if settings.accelerator:
        try:
            gpu = accelerator(settings.accelerator)
        except NotInCatalogueError as error:
            known = NotInCatalogueError(error.kind, error.name, (*error.known, *leased_hardware()))
            problems.append(_unknown("accelerator", known, "no region, price or memory is known for it."))
    return gpu, *look_up(settings, problems)


def look_up(settings: Settings, problems: list[Problem]) -> tuple[Model | None, VllmOptions | None]:
    """Checkpoint and option list; None for one that the catalogue does not have, with a problem each."""
    problems += check_image(settings)
    checkpoint = options = None
    if settings.model:
        try:
            checkpoint = model(settings.model)
        except NotInCatalogueError as error:
            reason = unservable_form(settings.model) or "its architecture is not known, so nothing about it is."
            problems.append(_unknown("model", error, reason))
    try:
        key, recorded = recording_of(settings)
        options = vllm_options(recorded)
    except NotInCatalogueError as error:
        problems.append(unrecorded(key, error.name, error.known, error.closest))
    return checkpoint, options


def _unknown(key: str, error: NotInCatalogueError, consequence: str) -> Problem:
    return Problem(
        setting(key),
        shown(error.name),
        f"it is not in the catalogue: {consequence}",
        one_of(error.known, error.closest),
    )


def check_project(project: str | None) -> list[Problem]:
    """Check that the project is set and its id valid: all names depend on it."""
    if project and is_project_id(project):
        return []
    if project:
        return [
            Problem(
                "gcp:project",
                shown(project),
                "no project has such an ID: buckets, accounts and addresses that bear it could not be made.",
                "write the project's ID (`gcloud projects list`), not its name or number: 6 to 30 lower case letters, "
                "digits and hyphens, a letter first.",
            )
        ]
    return [
        Problem(
            "gcp:project",
            NOT_SET,
            "buckets, accounts and addresses are named by the project: nothing can be planned without it.",
            "`pulumi config set gcp:project PROJECT_ID`, or set GOOGLE_CLOUD_PROJECT.",
        )
    ]


def refusal(problems: list[Problem], stack: str) -> PlanError:
    """The first problem of each value: later problems of the same value follow from it."""
    first = {(problem.key, problem.value): problem for problem in reversed(problems)}
    return PlanError.of([problem for problem in problems if first[problem.key, problem.value] is problem], stack)


def _platform_problems(settings: Settings, gpu: Accelerator | None, environment: dict[str, str]) -> list[Problem]:
    problems = [
        *platform.check_probe(settings.probe),
        *platform.check_scaling(settings.scaling),
        *platform.check_access(settings.access),
        *check_way_in(settings.access, settings.smoke),
        *check_vpc(settings.vpc, settings.weights),
        *platform.check_secrets(settings.secrets, environment),
        *platform.check_labels(settings.labels),
        *check_weights(settings.weights),
    ]
    if gpu:
        problems += platform.check_resources(settings.resources, gpu)
        problems += platform.check_boost(settings.resources, gpu)
        problems += platform.check_region(settings.region, gpu) if settings.region else []
    return problems


def _memory_gib(settings: Settings, gpu: Accelerator | None) -> int:
    """The host's memory; the accelerator's minimum replaces a value that is missing, invalid or below it."""
    least = gpu.min_memory_gib if gpu else 0
    written = settings.resources.memory
    return max(least, (platform.parse_memory(written) if written else None) or 0)


def _defaults(checkpoint: Model | None, memory_gib: int, chosen: str | None) -> dict[str, object]:
    if checkpoint is None:
        return {}
    return default_options(checkpoint, loading=loading_options(chosen, checkpoint, memory_gib))


def _cost(settings: Settings, gpu: Accelerator | None, memory_gib: int, problems: list[Problem]) -> Cost | None:
    if gpu is None:
        return None
    cost = service_cost(
        gpu.id,
        region=settings.region,
        cpu=settings.resources.cpu or gpu.min_cpu,
        memory_gib=memory_gib,
        min_instances=settings.scaling.min_instances,
        max_instances=settings.scaling.max_instances,
        zonal_redundancy=settings.scaling.zonal_redundancy,
        boost_cpu=platform.boosted(gpu, settings.resources),
        own_prices=settings.cost.prices,
    )
    if settings.region in (*gpu.regions, *gpu.regions_on_invitation) and not mispriced(problems):
        problems += check_cost(
            cost,
            region=settings.region,
            limit=settings.cost.max_hourly_usd,
            priced_regions=_priced(gpu, zonal_redundancy=settings.scaling.zonal_redundancy),
        )
        problems += check_idle_cost(cost, environment=settings.environment, limit=settings.cost.max_idle_hourly_usd)
    return cost


def _fit(checkpoint: Model, gpu: Accelerator, engine: EngineArgs, memory_gib: int) -> MemoryFit:
    return memory_fit(
        checkpoint,
        gpu,
        utilization=engine.utilization,
        max_model_len=engine.max_model_len,
        max_num_seqs=engine.max_num_seqs,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        kv_cache_dtype=engine.kv_cache_dtype,
        memory_gib=memory_gib,
        load_strategy=engine.load_strategy,
        load_buffer_bytes=engine.load_buffer_bytes,
        speculative=engine.assistant_loaded,
        enforce_eager=engine.enforce_eager,
        async_scheduling=engine.async_scheduling,
        cpu_offload_gib=engine.cpu_offload_gib,
        adapters=engine.adapters,
    )


def _priced(gpu: Accelerator, *, zonal_redundancy: bool) -> tuple[str, ...]:
    items = (gpu_item(gpu.id, zonal_redundancy=zonal_redundancy), "vcpu", "memory")
    return tuple(
        region
        for region in gpu.regions
        if all(isinstance(price(SERVICE, item, region, BILLING), Price) for item in items)
    )


def request_concurrency(settings: Settings, engine: EngineArgs) -> int:
    """Requests that one instance takes at a time: one batch that runs and one that waits inside vLLM.

    Its batch stays full and its metrics show the queue. Cloud Run adds an instance at about 60 % of this number, which
    is when the batch has just become full.
    """
    return settings.scaling.request_concurrency or min(MOST_CONCURRENCY, 2 * engine.max_num_seqs)


def plan_smoke(settings: Settings, engine: EngineArgs, *, instances: int, taken: int) -> SmokePlan:
    """The check and the short benchmark.

    Args:
        settings: of the stack.
        engine: figures of the arguments.
        instances: servers at most.
        taken: requests that they take at a time.
    """
    chosen = settings.smoke
    concurrency = chosen.concurrency or min(taken, instances * engine.max_num_seqs, SMOKE_CONCURRENCY)
    return SmokePlan(
        deadline_seconds=chosen.deadline_seconds,
        speculative=engine.speculative,
        min_draft_acceptance=chosen.min_draft_acceptance,
        random_weights=chosen.random_weights,
        # Fewer than three rounds reach no steady state.
        requests=chosen.requests or 3 * concurrency,
        concurrency=concurrency,
        prompt_tokens=chosen.prompt_tokens,
        output_tokens=chosen.output_tokens,
        impersonate=chosen.impersonate,
    )
