"""Manifest of the measured server: composed of options, a stack's plan, and the server's own report.

Owns their precedence: an option, then the plan (`bezel.cli.bench.measure.stack_manifest`), then the server's report.
Nothing is guessed: a field that none of them knows is null, and the checks name what they could not judge without it.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bezel.bench.cell.plan import ServerView
from bezel.bench.result.records import Manifest, Platform, PriceBasis, ServedBy
from bezel.bench.server import manifest

if TYPE_CHECKING:
    import argparse

    from bezel.cli.bench.measure.target import TargetConnection
    from bezel.pulumi_engine.project import Project


def view(project: Project, options: argparse.Namespace, reached: TargetConnection, *, title: str) -> ServerView:
    """The view of a server that measurements use: how requests reach it, and its manifest.

    Raises:
        UserError: The stack cannot be planned.
    """
    known, platform, price, checkpoint = ServedBy(), Platform(), PriceBasis(), None
    if options.stack:
        # Late import: the planner takes longer to import than all other modules used here.
        from bezel.cli.bench.measure.stack_manifest import planned

        known, platform, price, checkpoint = planned(project, options.stack, reached.outputs)
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
