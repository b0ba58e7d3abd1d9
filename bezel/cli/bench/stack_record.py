"""Record of a stack's server for results: served model, platform and price, by the stack's plan and outputs.

Nothing is guessed: a field that neither knows is null.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from bezel.engine.project.project import Project
from bezel.leases.state.observation import State
from bezel.planner import LeasePlan, Plan, make_plan
from bezel.planner.assemble.plan import NodePlan
from bezel.planner.base.deployment import ServicePlan
from bezel.planner.base.money import Amount, Priced, total
from bezel.planner.cost.service_cost import CostLine
from bezel_bench.commands.targets import Record
from bezel_bench.result.records import Platform, PriceBasis, ServedBy


def record_of(project: Project, stack: str, outputs: Mapping[str, Any]) -> Record:
    """The served model with its arguments, the platform, its price, and the checkpoint.

    Raises:
        PlanError: The stack cannot be planned.
    """
    plan = make_plan(
        project.configuration(stack), project=project.cloud_project(stack), stack=stack, models=project.models()
    )
    if isinstance(plan, LeasePlan):
        return Record(*_of_lease(plan, outputs), plan.model)
    return Record(*_of_service(plan, outputs), plan.model)


def _of_service(plan: Plan, outputs: Mapping[str, object]) -> tuple[ServedBy, Platform, PriceBasis]:
    service = plan.service
    url, urls = outputs.get("url"), outputs.get("urls")
    by_url = {service_url: region for region, service_url in urls.items()} if isinstance(urls, Mapping) else {}
    # The address leads to every region, and which one answered is not known.
    measured = [each for each in plan.regions if by_url.get(url, each.region) == each.region]
    # An optional region may have been left out of the deploy; without any further one there are no `urls`.
    deployed = by_url.values() or {plan.service.region}
    measured = [each for each in measured if each.region in deployed]
    if plan.address is None or url != plan.address.url:
        measured = measured[:1]
    platform = Platform(
        accelerator=service.accelerator,
        chips=service.accelerator_count,
        revision=str(outputs.get("revision") or "").rpartition("/")[2] or None,
        instances=service.max_instances * len(measured),
        concurrency=service.request_concurrency,
        region=", ".join(each.region for each in measured),
    )
    # Between minimum and maximum the number of billed instances is unknown.
    fixed = service.max_instances == 1 or service.min_instances == service.max_instances
    costs = [each.cost for each in measured]
    lines = [line for cost in costs for line in cost.lines]
    price = _price(total(cost.hourly_at_max for cost in costs), lines) if fixed else PriceBasis()
    return _serving_facts(service, outputs), platform, price


def _of_lease(plan: LeasePlan, outputs: Mapping[str, Any]) -> tuple[ServedBy, Platform, PriceBasis]:
    hardware, leases = plan.terms.hardware, outputs.get("leases") or {}
    # A lease that has ended serves no requests and costs no more.
    zones = {name: str(lease["zone"]) for name, lease in leases.items() if lease.get("state") == State.ACTIVE}
    costs = [plan.cost.by_zone.get(zone) for zone in zones.values()]
    known_costs = [cost for cost in costs if cost]
    platform = Platform(
        accelerator=hardware.gpu.id if hardware.gpu else hardware.id,
        chips=hardware.chips,
        lease=", ".join(zones) or None,
        instances=len(zones) or None,
        region=", ".join(dict.fromkeys(zones.values())) or None,
    )
    price = PriceBasis()
    if known_costs and len(known_costs) == len(costs):
        price = _price(total(cost.hourly for cost in known_costs), known_costs)
    return _serving_facts(plan.node, outputs), platform, price


def _serving_facts(server: ServicePlan | NodePlan, outputs: Mapping[str, object]) -> ServedBy:
    return ServedBy(
        image=server.image.name,
        digest=str(outputs.get("image") or "").partition("@")[2] or None,
        arguments=list(server.arguments),
        max_num_seqs=server.values.get("max-num-seqs"),
        kv_cache_dtype=server.values.get("kv-cache-dtype"),
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
