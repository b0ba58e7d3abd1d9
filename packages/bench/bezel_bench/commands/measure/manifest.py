"""Manifest of the measured server: composed of options, its deployment, and the server's own report.

Owns their precedence: an option, then the deployment, then the server's report. Nothing is guessed: a field that none
of them knows is null, and the checks name what they could not judge without it.
"""

import argparse
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bezel_bench.cell.plan import ServerView
from bezel_bench.commands.measure.settings import kept_options
from bezel_bench.commands.measure.target import TargetConnection
from bezel_bench.commands.table import shared_table
from bezel_bench.commands.targets import Targets
from bezel_bench.server import manifest

if TYPE_CHECKING:
    from bezel_bench.result.records import Manifest


def view(targets: Targets, options: argparse.Namespace, reached: TargetConnection, *, title: str) -> ServerView:
    """The view of a server that measurements use: how requests reach it, and its manifest.

    Raises:
        UserError: The deployment of the server is wrong.
    """
    record = targets.record(options, reached.outputs)
    target = reached.target
    report = manifest.ask_server(reached.ask, target.model)
    started_at = datetime.now(UTC)
    command = [targets.program, *sys.argv[1:]]
    kept = kept_options(options, shared_table().defaults_of("run" if options.action == "job" else options.action))

    def describe() -> "Manifest":
        from bezel_bench.result.records import Manifest, Platform, PriceBasis, ServedBy

        stated = {
            name: value
            for name in ("accelerator", "chips", "instances", "concurrency", "region")
            if (value := getattr(options, name)) is not None
        }
        price = record.price or PriceBasis()
        if options.usd_per_hour is not None:
            price = PriceBasis(usd_per_hour=options.usd_per_hour, source="--usd-per-hour")
        return Manifest(
            title=options.title or title,
            url=target.url,
            model=target.model,
            checkpoint=options.checkpoint or record.checkpoint,
            served_by=manifest.served_by(report, record.served_by or ServedBy()),
            platform=(record.platform or Platform()).model_copy(update=stated),
            price=price,
            client=manifest.this_client(workers=getattr(options, "workers", 1), tls=target.url.startswith("https:")),
            started_at=started_at,
            seed=options.seed,
            command=manifest.redact_command(command),
            options=kept,
        )

    longest = record.served_by.max_model_len if record.served_by else None
    return ServerView(
        ask=reached.ask,
        describe=describe,
        max_model_len=report.max_model_len if longest is None else longest,
        kv_cache_tokens=report.kv_cache_tokens,
    )
