"""What a benchmark's result says of the server: by a stack's plan, by options where there is no stack, and by itself.

Owns these sources and which one wins: an option, then the plan, then what the server tells. Nothing is guessed: what
none of them knows is null, and the checks say what could not be judged without it.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from bezel.bench import manifest
from bezel.bench.cell import ServerView
from bezel.bench.described import Manifest, Platform, PriceBasis, ServedBy
from bezel.leases.observation import State
from bezel.planner import LeasePlan, Plan, PlanError, make_plan
from bezel.planner.money import Priced, total
from bezel.told import UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from bezel.ops.bench_target import Reached
    from bezel.ops.project import Project
    from bezel.planner.cost import CostLine
    from bezel.planner.money import Amount
    from bezel.planner.plan import ImagePlan


def view(project: Project, options: argparse.Namespace, reached: Reached, *, title: str) -> ServerView:
    """A server beside its load: how it is asked, and its manifest.

    Raises:
        UserError: The stack cannot be planned.
    """
    known, platform, price, checkpoint = ServedBy(), Platform(), PriceBasis(), None
    if options.stack:
        plan = _plan(project, options.stack)
        checkpoint = plan.model
        if isinstance(plan, LeasePlan):
            known, platform, price = _of_lease(plan, reached.outputs)
        else:
            known, platform, price = _of_service(plan, reached.outputs)
    said = {
        name: value
        for name in ("accelerator", "chips", "instances", "concurrency", "region")
        if (value := getattr(options, name)) is not None
    }
    if options.usd_per_hour is not None:
        price = PriceBasis(usd_per_hour=options.usd_per_hour, source="--usd-per-hour")
    served = manifest.told_by_server(reached.ask, reached.target.model, known)
    return ServerView(
        ask=reached.ask,
        manifest=Manifest(
            title=options.title or title,
            url=reached.target.url,
            model=reached.target.model,
            checkpoint=options.checkpoint or checkpoint,
            served_by=served,
            platform=platform.model_copy(update=said),
            price=price,
            client=manifest.this_client(
                workers=getattr(options, "workers", 1), tls=reached.target.url.startswith("https:")
            ),
            started_at=datetime.now(UTC),
            seed=options.seed,
            command=manifest.shown(["bezel", *sys.argv[1:]]),
        ),
        served=served,
        kv_cache_tokens=manifest.kv_cache_tokens(manifest.cache_config(reached.ask)),
    )


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
    # Between the least and the most nobody knows how many instances were paid for.
    fixed = service.max_instances == 1 or service.min_instances == service.max_instances
    price = _price(plan.cost.hourly_at_max, plan.cost.lines) if fixed else PriceBasis()
    return _served(service.image, service.arguments, outputs), platform, price


def _of_lease(plan: LeasePlan, outputs: Mapping[str, Any]) -> tuple[ServedBy, Platform, PriceBasis]:
    hardware, told = plan.terms.hardware, outputs.get("leases")
    # One that ended answers nothing and costs nothing more.
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
        price = _price(total(one.hourly for one in known), [one.line for one in known])
    return _served(plan.node.image, plan.node.arguments, outputs), platform, price


def _served(image: ImagePlan, arguments: Iterable[str], outputs: Mapping[str, object]) -> ServedBy:
    given = list(arguments)
    values = dict(word.removeprefix("--").split("=", 1) for word in given if word.startswith("--") and "=" in word)
    most = values.get("max-num-seqs", "")
    return ServedBy(
        image=f"{image.registry}/{image.repository}:{image.tag}",
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
