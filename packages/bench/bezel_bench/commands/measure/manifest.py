"""Manifest of the measured server: composed of options, its deployment, and the server's own report.

Owns their precedence: an option, then the deployment, then the server's report. Nothing is guessed: a field that none
of them knows is null, and the checks name what they could not judge without it.
"""

import argparse
import sys
from datetime import UTC, datetime

from bezel_bench.cell.plan import ServerView
from bezel_bench.commands.measure.settings import kept_options
from bezel_bench.commands.measure.target import TargetConnection
from bezel_bench.commands.table import shared_table
from bezel_bench.commands.targets import Targets
from bezel_bench.result.records import Manifest, PriceBasis
from bezel_bench.server import manifest


def view(targets: Targets, options: argparse.Namespace, reached: TargetConnection, *, title: str) -> ServerView:
    """The view of a server that measurements use: how requests reach it, and its manifest.

    Raises:
        UserError: The deployment of the server is wrong.
    """
    record = targets.record(options, reached.outputs)
    price = record.price
    stated = {
        name: value
        for name in ("accelerator", "chips", "instances", "concurrency", "region")
        if (value := getattr(options, name)) is not None
    }
    if options.usd_per_hour is not None:
        price = PriceBasis(usd_per_hour=options.usd_per_hour, source="--usd-per-hour")
    served = manifest.reported_by_server(reached.ask, reached.target.model, record.served_by)
    return ServerView(
        ask=reached.ask,
        manifest=Manifest(
            title=options.title or title,
            url=reached.target.url,
            model=reached.target.model,
            checkpoint=options.checkpoint or record.checkpoint,
            served_by=served,
            platform=record.platform.model_copy(update=stated),
            price=price,
            client=manifest.this_client(
                workers=getattr(options, "workers", 1), tls=reached.target.url.startswith("https:")
            ),
            started_at=datetime.now(UTC),
            seed=options.seed,
            command=manifest.redact_command([targets.program, *sys.argv[1:]]),
            options=kept_options(
                options, shared_table().defaults_of("run" if options.action == "job" else options.action)
            ),
        ),
        served=served,
        kv_cache_tokens=manifest.kv_cache_tokens(manifest.cache_config(reached.ask)),
    )
