"""Manifest fields of the measured server that come from its stack's plan and outputs.

Apart from `bezel.cli.bench.measure.manifest` so that a server without a stack is measured without the planner's import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.bench.result.records import Platform, PriceBasis, ServedBy
from bezel.errors import UserError
from bezel.leases.observation import State
from bezel.planner import LeasePlan, Plan, PlanError, make_plan
from bezel.planner.base.money import Priced, total

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bezel.planner.base.deployment import ImagePlan
    from bezel.planner.base.money import Amount
    from bezel.planner.cost.service_cost import CostLine
    from bezel.pulumi_engine.project import Project


def planned(
    project: Project, stack: str, outputs: Mapping[str, Any]
) -> tuple[ServedBy, Platform, PriceBasis, str | None]:
    """The served model with its arguments, the platform, its price, and the checkpoint.

    Raises:
        UserError: The stack cannot be planned.
    """
    plan = _plan(project, stack)
    if isinstance(plan, LeasePlan):
        return *_of_lease(plan, outputs), plan.model
    return *_of_service(plan, outputs), plan.model


def _plan(project: Project, stack: str) -> Plan | LeasePlan:
    try:
        return make_plan(project.configuration(stack), project=project.cloud_project(stack), stack=stack)
    except PlanError as error:
        raise UserError(str(error)) from None


def _of_service(plan: Plan, outputs: Mapping[str, object]) -> tuple[ServedBy, Platform, PriceBasis]:
    service = plan.service
    platform = Platform(
        accelerator=service.accelerator,
        chips=service.accelerator_count,
        revision=str(outputs.get("revision") or "").rpartition("/")[2] or None,
        instances=service.max_instances,
        concurrency=service.request_concurrency,
        region=service.region,
    )
    # Between minimum and maximum the number of billed instances is unknown.
    fixed = service.max_instances == 1 or service.min_instances == service.max_instances
    price = _price(plan.cost.hourly_at_max, plan.cost.lines) if fixed else PriceBasis()
    return _served(service.image, service.arguments, outputs), platform, price


def _of_lease(plan: LeasePlan, outputs: Mapping[str, Any]) -> tuple[ServedBy, Platform, PriceBasis]:
    hardware, told = plan.terms.hardware, outputs.get("leases")
    # A lease that has ended serves no requests and costs no more.
    held = {name: str(one["zone"]) for name, one in told.items() if one.get("state") == State.ACTIVE} if told else {}
    bought = [plan.cost.by_zone.get(zone) for zone in held.values()]
    known = [one for one in bought if one]
    platform = Platform(
        accelerator=hardware.gpu.id if hardware.gpu else hardware.id,
        chips=hardware.chips,
        lease=", ".join(held) or None,
        instances=len(held) or None,
        region=", ".join(dict.fromkeys(held.values())) or None,
    )
    price = PriceBasis()
    if known and len(known) == len(bought):
        price = _price(total(one.hourly for one in known), known)
    return _served(plan.node.image, plan.node.arguments, outputs), platform, price


def _served(image: ImagePlan, arguments: Iterable[str], outputs: Mapping[str, object]) -> ServedBy:
    given = list(arguments)
    values = dict(word.removeprefix("--").split("=", 1) for word in given if word.startswith("--") and "=" in word)
    most = values.get("max-num-seqs", "")
    return ServedBy(
        image=image.name,
        digest=str(outputs.get("image") or "").partition("@")[2] or None,
        arguments=given,
        max_num_seqs=int(most) if most.isdecimal() else None,
        kv_cache_dtype=values.get("kv-cache-dtype"),
    )


def _price(hourly: Amount, lines: Iterable[CostLine]) -> PriceBasis:
    if not isinstance(hourly, Priced):
        return PriceBasis()
    rows = [line.as_output() for line in lines]
    return PriceBasis(
        usd_per_hour=float(hourly.usd),
        as_of=min(str(row["as_of"]) for row in rows),
        source="; ".join(dict.fromkeys(str(row["source"]) for row in rows)),
    )
