"""Validation of a stack of leased machines: every rule in its order, with all problems at once.

Owns the input and condition of each rule of a lease. Leaves what every stack has in common and Cloud Run's rules to
bezel.planner.assemble.validate and the shape of the plan to bezel.planner.assemble.build.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bezel.planner.assemble.fallback_validate import check_promise, validate_fallback
from bezel.planner.assemble.validation import ValidatedStack, Validation
from bezel.planner.base.hours import share_of_time
from bezel.planner.base.money import Priced
from bezel.planner.base.problems import setting
from bezel.planner.cost.door_cost import door_cost
from bezel.planner.cost.lease_cost import check_lease_total, lease_cost, lease_total
from bezel.planner.cost.price_rows import has_refused_price
from bezel.planner.rules.env_checks import check_environment, planned_variables
from bezel.planner.rules.hours_checks import check_hours, windows_of
from bezel.planner.rules.lease_checks import (
    check_boot_deadline,
    check_egress,
    check_lease,
    check_lease_loading,
    check_lease_only,
    check_leased_draft,
    check_tpu_arguments,
)
from bezel.planner.rules.memory_checks import check_leased_memory, leased_memory
from bezel.planner.rules.observability_checks import check_observability
from bezel.planner.rules.startup import lease_start
from bezel.planner.team.door_plan import door_instances
from bezel.planner.team.metrics_checks import check_metrics
from bezel.planner.vllm.arguments import leased_options
from bezel.planner.vllm.model.named_adapters import AdapterPlace
from bezel_base.cron import CronError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date
    from decimal import Decimal

    from bezel.planner.assemble.validate import ValidatedService
    from bezel.planner.base.hardware import BackEnd, LeasedHardware
    from bezel.planner.base.settings import LeaseSettings, Settings
    from bezel.planner.cost.door_cost import DoorCost
    from bezel.planner.cost.lease_cost import LeaseTotal
    from bezel.planner.rules.memory_checks import LeasedFit
    from bezel.planner.rules.startup import LeaseStart

TPU_MODELS = "/dev/shm/models"  # noqa: S108 - on the machine, in its memory: its disks are slow
GPU_MODELS = "/var/lib/bezel/models"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedLease(ValidatedStack):
    """Leased machines that pass every rule.

    `folder` is that of the model on the machine, "" with the hub; `fallback` what serves while no lease does.
    """

    hardware: LeasedHardware
    back_end: BackEnd
    folder: str
    fit: LeasedFit
    start: LeaseStart
    cost: LeaseTotal
    fallback: ValidatedService | None


def validate_lease(
    config: Mapping[str, object], hardware: LeasedHardware, *, project: str | None, stack: str, today: date | None
) -> ValidatedLease:
    """Run every rule whose inputs are known.

    Raises:
        PlanError: with every problem.
    """
    rules = Validation(config, project=project, stack=stack, today=today)
    settings, problems, checkpoint, options = rules.settings, rules.problems, rules.model, rules.options
    lease, tpu, offline = settings.lease, hardware.device == "tpu", rules.offline
    back_end = lease.back_end or hardware.back_ends[0]
    planned = planned_variables(None, offline=offline)
    environment = planned | settings.variables
    # As with services: a value that could not be read counts as not set.
    if not any(str(problem.key).startswith(setting("observability.")) for problem in problems):
        problems += check_observability(settings, leased=True)
    problems += check_lease_only(settings, rules.unread)
    problems += check_lease(lease, hardware, back_end, rules.unread)
    # A value that could not be read counts as not set, so what would follow from it says nothing.
    if not any(str(problem.key).startswith(setting("lease.")) for problem in problems):
        problems += check_hours(lease)
    problems += check_egress(settings, hardware, back_end)
    problems += check_lease_loading(settings)
    rules.check_platform(planned)
    reserved = planned | _machine_variables(tpu=tpu, offline=offline)
    problems += check_environment(settings, reserved, options, rules.chosen, tpu=tpu, leased=True)
    defaults = leased_options(checkpoint, devices=hardware.chips, tpu=tpu) if checkpoint else {}
    if checkpoint and checkpoint.commit and not offline:
        defaults |= {"revision": checkpoint.commit}
    place = AdapterPlace("tpu" if tpu else "machine" if offline else "hub")
    rules.check_options(defaults, adapters=place, leased=True)
    problems += check_metrics(settings, rules.values)
    copies_at = (TPU_MODELS if tpu else GPU_MODELS) if offline else ""
    engine = rules.check_engine(hardware.id, hardware.refused_as, environment, copies_at, devices=hardware.chips)
    fallback = validate_fallback(rules, checkpoint, today=today) if checkpoint else None
    if checkpoint is None or options is None or engine is None:
        _check_cost(_cost(settings, hardware), hardware, rules)
        raise rules.refusal()
    problems += check_tpu_arguments(rules.values, hardware, assistant=engine.assistant_loaded)
    if offline and engine.assistant_loaded:
        problems += check_leased_draft(rules.values, hardware, checkpoint)
    # Weights are on the machine before the server starts: it reads them file by file.
    engine = replace(engine, load_strategy="lazy" if offline else "download")
    fit = leased_memory(checkpoint, hardware, engine)
    problems += check_leased_memory(fit, engine, checkpoint, hardware)
    start = lease_start(checkpoint, hardware, keeps_cache=lease.compile_cache and tpu and offline)
    problems += check_boot_deadline(lease, start)
    smoke = rules.plan_smoke(
        engine,
        instances=lease.count,
        concurrency=lease.count * 2 * engine.max_num_seqs,
        raised_by="vllm.max-num-seqs",
    )
    if fallback:
        check_promise(rules, checkpoint, fallback, max_model_len=fit.max_model_len, pooled_at=smoke.pooled_at)
    cost = replace(
        _cost(settings, hardware),
        fallback=fallback.cost if fallback else None,
        door=_door(settings, requests=lease.count * 2 * engine.max_num_seqs),
    )
    _check_cost(cost, hardware, rules)
    if problems or not project:
        raise rules.refusal()
    path = (settings.weights.path or checkpoint.folder or "").strip("/")
    return ValidatedLease(
        settings=settings,
        stack=stack,
        project=project,
        hardware=hardware,
        back_end=back_end,
        model=checkpoint,
        options=options,
        arguments=rules.arguments,
        environment=environment,
        folder=f"{copies_at}/{path}" if offline else "",
        engine=engine,
        fit=fit,
        start=start,
        cost=cost,
        fallback=fallback,
        smoke=smoke,
    )


def _share(lease: LeaseSettings) -> Decimal | None:
    """Share of time in the hours; None without hours, and where they cannot be read."""
    with suppress(CronError):
        return share_of_time(windows_of(lease)) if lease.hours else None
    return None


def _machine_variables(*, tpu: bool, offline: bool) -> dict[str, str]:
    """Variables that the machine's own program (startup.sh) sets, after those of the stack file."""
    names = ["VLLM_XLA_CACHE_PATH" if tpu else "VLLM_CACHE_ROOT", *([] if offline else ["HF_HOME"])]
    return dict.fromkeys(names, "")


def _cost(settings: Settings, hardware: LeasedHardware) -> LeaseTotal:
    lease = settings.lease
    return lease_total(
        hardware,
        zones=[preference.zone for preference in lease.zones],
        provisioning=lease.provisioning,
        count=lease.count,
        run_seconds=lease.duration,
        gateway_region=settings.region,
        share=_share(lease),
        own_prices=settings.cost.prices,
        alerts=settings.observability.alerts,
        has_address=settings.address.domain is not None,
    )


def _door(settings: Settings, *, requests: int) -> DoorCost | None:
    """The cost of the door in front of a gateway that passes so many requests at a time; None without one."""
    if not settings.access.keys:
        return None
    return door_cost(region=settings.region, max_instances=door_instances(requests), own_prices=settings.cost.prices)


def _check_cost(cost: LeaseTotal, hardware: LeasedHardware, rules: Validation) -> None:
    """Check the cost against the spending limits."""
    settings, lease, limits = rules.settings, rules.settings.lease, rules.settings.cost
    zones, patience = setting("lease.zones"), ".patience"
    invalid_zone = any(
        problem.key.startswith(zones) and not problem.key.endswith(patience) for problem in rules.problems
    )
    if invalid_zone or not lease.zones or not settings.region or has_refused_price(rules.problems):
        return  # a missing price is no problem of its own
    if setting("lease.duration") in rules.unread:
        limits = limits.model_copy(update={"max_lease_usd": None})  # that of the default is not the stack's
    priced = [
        zone
        for zone in hardware.zones
        if isinstance(
            lease_cost(hardware, zone=zone, provisioning=lease.provisioning, own_prices=limits.prices).hourly, Priced
        )
    ]
    rules.problems += check_lease_total(cost, limits, priced=priced)
