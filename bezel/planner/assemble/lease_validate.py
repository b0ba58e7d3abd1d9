"""Validation of a stack of leased machines: every rule in its order, with all problems at once.

Owns the input of each rule and the condition to run it. Leaves the rules to the modules beside it, Cloud Run's to
bezel.planner.assemble.validate and the shape of the plan to bezel.planner.assemble.lease_build.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bezel.planner.assemble.validate import check_project, look_up, plan_smoke, refusal
from bezel.planner.base.durations import parse_duration
from bezel.planner.base.money import Priced
from bezel.planner.base.names import stack_labels
from bezel.planner.base.parse import read_settings
from bezel.planner.base.problems import setting
from bezel.planner.cost.lease_cost import lease_cost
from bezel.planner.cost.lease_total import check_lease_total, lease_total
from bezel.planner.cost.price_rows import check_own_prices, mispriced
from bezel.planner.rules import platform_checks as platform
from bezel.planner.rules.env_checks import check_environment
from bezel.planner.rules.lease_checks import (
    check_boot_deadline,
    check_egress,
    check_lease,
    check_lease_loading,
    check_lease_only,
    check_tpu_arguments,
)
from bezel.planner.rules.lease_memory import check_leased_memory, leased_fit
from bezel.planner.rules.lease_startup import lease_start
from bezel.planner.rules.network_checks import check_way_in
from bezel.planner.rules.platform_limits import check_label_count
from bezel.planner.rules.smoke_checks import check_smoke
from bezel.planner.rules.storage_checks import check_own_copy, check_weights
from bezel.planner.vllm.argument_conflicts import check_served, check_traps
from bezel.planner.vllm.arguments import leased_options, merge
from bezel.planner.vllm.engine_args import read_engine
from bezel.planner.vllm.loading import HUB
from bezel.planner.vllm.option_checks import check_fields, check_options, check_spellings
from bezel.planner.vllm.risk_checks import check_risks
from bezel.planner.vllm.serving_checks import check_serving

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from bezel.catalog import Model, VllmOptions
    from bezel.errors import Problem
    from bezel.planner.base.deployment import SmokePlan
    from bezel.planner.base.hardware import BackEnd, Leased
    from bezel.planner.base.settings import Settings
    from bezel.planner.cost.lease_total import LeaseTotal
    from bezel.planner.rules.lease_memory import LeasedFit
    from bezel.planner.rules.lease_startup import LeaseStart
    from bezel.planner.vllm.arguments import Argument
    from bezel.planner.vllm.engine_args import EngineArgs

TPU_MODELS = "/dev/shm/models"  # noqa: S108 - on the machine, in its memory: its disks are slow
GPU_MODELS = "/var/lib/bezel/models"


@dataclass(frozen=True, slots=True)
class JudgedLease:
    """Settings that pass every rule, with the results of the rules. `folder` is "" with the hub."""

    settings: Settings
    project: str
    hardware: Leased
    back_end: BackEnd
    model: Model
    options: VllmOptions
    arguments: Mapping[str, Argument]
    environment: Mapping[str, str]
    folder: str
    engine: EngineArgs
    fit: LeasedFit
    start: LeaseStart
    cost: LeaseTotal
    smoke: SmokePlan


def judge_lease(
    config: Mapping[str, object], hardware: Leased, *, project: str | None, stack: str, today: date | None
) -> JudgedLease:
    """Run every rule whose inputs are known.

    Raises:
        PlanError: with every problem.
    """
    settings, problems = read_settings(config)
    problems += check_own_prices(settings.cost.prices, today=today)
    problems += check_project(project)
    checkpoint, options = look_up(settings, problems)
    back_end = settings.lease.back_end or hardware.back_ends[0]
    offline = settings.weights.loading != HUB.id
    planned = {"VLLM_NO_USAGE_STATS": "1"} | ({"HF_HUB_OFFLINE": "1"} if offline else {})
    environment = planned | settings.variables
    problems += _platform_problems(settings, hardware, back_end, planned)
    tpu = hardware.device == "tpu"
    set_by_us = planned | _of_machine(tpu=tpu, offline=offline)
    problems += check_environment(settings, set_by_us, options, tpu=tpu, leased=True)
    problems += check_own_copy(settings.weights, checkpoint) if checkpoint and offline else []
    if checkpoint:
        problems += check_label_count(settings.labels, stack_labels(settings, checkpoint, stack))
    arguments: dict[str, Argument] = {}
    engine = None
    place = (TPU_MODELS if hardware.device == "tpu" else GPU_MODELS) if offline else ""
    if options and checkpoint:
        defaults = leased_options(checkpoint, devices=hardware.chips, tpu=hardware.device == "tpu")
        arguments = merge(defaults, settings.vllm, options)
        problems += check_spellings(settings.vllm, options)
        problems += check_options(arguments, options)
        problems += check_risks(settings, arguments, options)
        problems += check_serving({name: one.value for name, one in arguments.items()}, settings, leased=True)
        problems += check_traps(
            arguments,
            checkpoint,
            hardware.id,
            devices=hardware.chips,
            environment=environment,
            options=options,
            copies_at=place,
        )
        problems += check_fields(arguments, options)
        problems += check_served(checkpoint, hardware.id, hardware.refused_as)
        engine, found = read_engine(arguments, checkpoint)
        problems += found
    cost = _cost(settings, hardware, problems)
    if checkpoint is None or options is None or engine is None:
        raise refusal(problems, stack)
    values = {name: argument.value for name, argument in arguments.items()}
    problems += check_tpu_arguments(values, hardware, assistant=engine.assistant_loaded)
    # Weights are on the machine before the server starts: it reads them file by file.
    engine = replace(engine, load_strategy="lazy" if offline else "download")
    fit = leased_fit(checkpoint, hardware, engine)
    problems += check_leased_memory(fit, engine, checkpoint, hardware)
    start = lease_start(checkpoint, hardware, keeps_cache=keeps_cache(settings, hardware))
    problems += check_boot_deadline(settings.lease, start)
    taken = settings.lease.count * 2 * engine.max_num_seqs
    smoke = plan_smoke(settings, engine, instances=settings.lease.count, taken=taken)
    problems += check_smoke(smoke, engine, taken_at_a_time=taken, raised_by="vllm.max-num-seqs")
    if problems or not project or cost is None:
        raise refusal(problems, stack)
    path = (settings.weights.path or checkpoint.folder or "").strip("/")
    return JudgedLease(
        settings=settings,
        project=project,
        hardware=hardware,
        back_end=back_end,
        model=checkpoint,
        options=options,
        arguments=arguments,
        environment=environment,
        folder=f"{place}/{path}" if offline else "",
        engine=engine,
        fit=fit,
        start=start,
        cost=cost,
        smoke=smoke,
    )


def _of_machine(*, tpu: bool, offline: bool) -> dict[str, str]:
    """Variables that the machine's own program sets, after those of the stack file; see components/node."""
    names = ["VLLM_XLA_CACHE_PATH" if tpu else "VLLM_CACHE_ROOT", *([] if offline else ["HF_HOME"])]
    return dict.fromkeys(names, "")


def _cost(settings: Settings, hardware: Leased, problems: list[Problem]) -> LeaseTotal | None:
    """The cost, checked against the spending limits; None where zones or duration are not valid."""
    run_seconds = parse_duration(settings.lease.duration)
    zones = [wish.zone for wish in settings.lease.zones]
    if not zones or run_seconds is None:
        return None
    own = settings.cost.prices
    cost = lease_total(
        hardware,
        zones=zones,
        provisioning=settings.lease.provisioning,
        count=settings.lease.count,
        run_seconds=run_seconds,
        gateway_region=settings.region,
        own_prices=own,
    )
    nowhere = any(problem.key.startswith(setting("lease.zones")) for problem in problems) or not settings.region
    if nowhere or mispriced(problems):
        return cost  # a missing price of an invalid place is no problem of its own
    priced = [
        zone
        for zone in hardware.zones
        if isinstance(
            lease_cost(hardware, zone=zone, provisioning=settings.lease.provisioning, own_prices=own).hourly, Priced
        )
    ]
    problems += check_lease_total(cost, settings.cost, priced=priced)
    return cost


def keeps_cache(settings: Settings, hardware: Leased) -> bool:
    """Whether compiled graphs are stored: on TPUs, in the bucket of the weights."""
    return settings.lease.compile_cache and hardware.device == "tpu" and settings.weights.loading != HUB.id


def _platform_problems(
    settings: Settings, hardware: Leased, back_end: BackEnd, planned: Mapping[str, str]
) -> list[Problem]:
    return [
        *check_lease_only(settings),
        *check_lease(settings.lease, hardware, back_end),
        *check_egress(settings, hardware, back_end),
        *check_lease_loading(settings),
        *platform.check_access(settings.access),
        *check_way_in(settings.access, settings.smoke),
        *platform.check_secrets(settings.secrets, planned),
        *platform.check_labels(settings.labels),
        *check_weights(settings.weights),
    ]
