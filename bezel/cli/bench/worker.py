"""`bezel bench worker PLACE`: one task of a load sent by many machines. Only `bezel bench job` starts it.

Cloud Run passes it the number of its task. Leaves out how a share is sent: see `bezel.bench.distributed.worker`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from bezel.errors import UserError

if TYPE_CHECKING:
    import argparse

    from bezel.pulumi_engine.project import Project

_INDEX = "CLOUD_RUN_TASK_INDEX"
_SECONDS = 24 * 3600.0  # the platform ends a task by its own timeout


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("place", metavar="gs://BUCKET/PREFIX", help="where the plan lies, and the part goes")


def run(_: Project, options: argparse.Namespace) -> int:
    """Send this task's share; return exit code 1 where it could not be sent."""
    return run_worker(options.place)


def run_worker(address: str) -> int:
    """Do what `run` does, on a machine without a project."""
    from bezel.bench.distributed.worker import run_task
    from bezel.bench_jobs.gcs_exchange import BucketPlace
    from bezel.cli.bench.measure.target import headers_of
    from bezel.rest import RestError

    index = os.environ.get(_INDEX, "")
    if not index.isdecimal():
        raise UserError(f"{_INDEX} is {index!r}: this is what a task of a Cloud Run job runs. Use `bezel bench job`.")
    try:
        with BucketPlace(address, _SECONDS) as place:
            run_task(place, int(index), headers_of, _say)
    except RestError as error:
        raise UserError(str(error)) from None
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
