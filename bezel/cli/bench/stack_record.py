"""Manifest of the measured server: composed of options, a stack's plan, and the server's own report.

Owns their precedence: an option, then the stack's plan and outputs, then the server's report. Nothing is guessed: a
field that none of them knows is null, and the checks name what they could not judge without it.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from bezel.cli.bench.measure.target import TargetConnection
from bezel.engine.project.project import Project
from bezel.leases.observation import State
from bezel.planner import LeasePlan, Plan, make_plan
from bezel.planner.base.deployment import ImagePlan
from bezel.planner.base.money import Amount, Priced, total
from bezel.planner.cost.service_cost import CostLine
from bezel_bench.cell.plan import ServerView
from bezel_bench.result.records import Manifest, Platform, PriceBasis, ServedBy
from bezel_bench.server import manifest


def view(project: Project, options: argparse.Namespace, reached: TargetConnection, *, title: str) -> ServerView:
    """The view of a server that measurements use: how requests reach it, and its manifest.

    Raises:
        UserError: The stack cannot be planned.
    """
    known, platform, price, checkpoint = ServedBy(), Platform(), PriceBasis(), None
    if options.stack:
        known, platform, price, checkpoint = _from_plan(project, options.stack, reached.outputs)
    given = {
        name: value
        for name in ("accelerator", "chips", "instances", "concurrency", "region")
        if (value := getattr(options, name)) is not None
    }
    if options.usd_per_hour is not None:
        price = PriceBasis(usd_per_hour=options.usd_per_hour, source="--usd-per-hour")
    served = manifest.reported_by_server(reached.ask, reached.target.model, known)
    return ServerView(
        ask=reached.ask,
        manifest=Manifest(
            title=options.title or title,
            url=reached.target.url,
            model=reached.target.model,
            checkpoint=options.checkpoint or checkpoint,
            served_by=served,
            platform=platform.model_copy(update=given),
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


def _from_plan(
    project: Project, stack: str, outputs: Mapping[str, Any]
) -> tuple[ServedBy, Platform, PriceBasis, str | None]:
    """The served model with its arguments, the platform, its price, and the checkpoint.

    Raises:
        PlanError: The stack cannot be planned.
    """
    plan = make_plan(project.configuration(stack), project=project.cloud_project(stack), stack=stack)
    if isinstance(plan, LeasePlan):
        return *_of_lease(plan, outputs), plan.model
    return *_of_service(plan, outputs), plan.model


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
    hardware, leases = plan.terms.hardware, outputs.get("leases") or {}
    # A lease that has ended serves no requests and costs no more.
    held = {name: str(lease["zone"]) for name, lease in leases.items() if lease.get("state") == State.ACTIVE}
    costs = [plan.cost.by_zone.get(zone) for zone in held.values()]
    known = [cost for cost in costs if cost]
    platform = Platform(
        accelerator=hardware.gpu.id if hardware.gpu else hardware.id,
        chips=hardware.chips,
        lease=", ".join(held) or None,
        instances=len(held) or None,
        region=", ".join(dict.fromkeys(held.values())) or None,
    )
    price = PriceBasis()
    if known and len(known) == len(costs):
        price = _price(total(cost.hourly for cost in known), known)
    return _served(plan.node.image, plan.node.arguments, outputs), platform, price


def _served(image: ImagePlan, arguments: Iterable[str], outputs: Mapping[str, object]) -> ServedBy:
    given = list(arguments)
    values = dict(word.removeprefix("--").split("=", 1) for word in given if word.startswith("--") and "=" in word)
    sequences = values.get("max-num-seqs", "")
    return ServedBy(
        image=image.name,
        digest=str(outputs.get("image") or "").partition("@")[2] or None,
        arguments=given,
        max_num_seqs=int(sequences) if sequences.isdecimal() else None,
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
