"""`bezel bench job`: `bezel bench run` with the load sent by the tasks of a Cloud Run job instead of this machine.

Owns the options, the job's cost, and the result's record of its client. Leaves out the job's life cycle
(`bezel.bench_jobs.job_runner`).

A task is billed as an instance of a service with instance-based billing: Cloud Run's price page has one row for both.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from bezel.cli.bench import run as bench_run
from bezel.errors import UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from bezel.bench.load.plan import Bodies, Load, TokenSource
    from bezel.bench.result.document import Result
    from bezel.bench.result.sample import Measured
    from bezel.bench_jobs.job_runner import Fleet
    from bezel.pulumi_engine.project import Project

_READY_SECONDS = 300.0
_JOB_SECONDS = 3600.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bezel bench job`: those of `run`, and those of the tasks."""
    bench_run.arguments(parser)
    fleet = parser.add_argument_group("the tasks, which send in this machine's stead: one process each")
    fleet.add_argument("--tasks", type=int, required=True, metavar="N", help="each sends every N-th request or user")
    fleet.add_argument(
        "--image",
        required=True,
        metavar="REFERENCE",
        help="what you built from bezel/bench/Dockerfile (docs/bench-jobs.md)",
    )
    fleet.add_argument("--bucket", required=True, metavar="NAME", help="where plan and samples are exchanged")
    fleet.add_argument(
        "--service-account",
        required=True,
        metavar="EMAIL",
        help="whom tasks run as: may invoke the server (roles/run.invoker) and write the bucket "
        "(roles/storage.objectUser)",
    )
    fleet.add_argument("--job-region", required=True, metavar="REGION", help="of Cloud Run, where the tasks run")
    fleet.add_argument("--project", help="Google Cloud project (default: that of the environment)")
    fleet.add_argument(
        "--ready-seconds",
        type=float,
        default=_READY_SECONDS,
        metavar="S",
        help=f"for all tasks to come up (default: {_READY_SECONDS:g})",
    )
    fleet.add_argument(
        "--job-seconds",
        type=float,
        default=_JOB_SECONDS,
        metavar="S",
        help=f"for the whole job, which the platform ends then (default: {_JOB_SECONDS:g})",
    )


def run(project: Project, options: argparse.Namespace) -> int:
    """Measure with tasks, write, print; see `bezel.cli.bench.run.run`.

    Raises:
        UserError: Nothing could be measured, or something could not be deleted; the text says what.
    """
    fleet = _fleet(options)
    sys.stderr.write(f"  {_cost(fleet)}\n")
    return bench_run.run_by(project, options, _ByTasks(fleet))


class _ByTasks:
    """Load sender that runs one job of the fleet's tasks for each repeat of the load."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._notes: dict[str, None] = {}
        self._by: dict[str, object] = {}

    def send(self, load: Load, bodies: Bodies, headers: TokenSource, show: Callable[[str], None]) -> Measured:
        """Do what `bezel.bench.client.load_engine.run_load` does; the tasks make bodies and headers themselves."""
        from bezel.bench.load.patterns import user_windows
        from bezel.bench.load.plan import is_closed
        from bezel.bench_jobs.job_runner import send_by_tasks

        del bodies, headers
        if is_closed(load.pattern) and (users := len(user_windows(load))) < self._fleet.tasks:
            raise UserError(
                f"--tasks {self._fleet.tasks} for {users} users: some would send nothing. Give {users} tasks or fewer."
            )
        least = self._fleet.ready_seconds + _longest(load) + load.deadline_seconds
        if self._fleet.seconds < least:
            raise UserError(
                f"--job-seconds {self._fleet.seconds:g} may end the job before the load has ended: tasks may need "
                f"{self._fleet.ready_seconds:g} s to come up, and the load {_longest(load):g} s and one request's "
                f"deadline. Give {least:g} or more, or lower --ready-seconds or --deadline."
            )
        merged = send_by_tasks(load, self._fleet, show)
        self._notes |= dict.fromkeys(merged.notes)
        self._by = merged.by
        return merged.measured

    def told(self, result: Result) -> Result:
        """Return the result with the tasks as its client."""
        from bezel.bench.result.records import Client

        notes = [*result.notes, *self._notes, f"The load was sent from {self._fleet.region}. {_cost(self._fleet)}"]
        client = Client.model_validate({**self._by, "workers": self._fleet.tasks})
        manifest = result.manifest.model_copy(update={"client": client})
        return result.model_copy(update={"manifest": manifest, "notes": notes})


def _fleet(options: argparse.Namespace) -> Fleet:
    """The fleet that the options describe.

    Raises:
        UserError: It cannot be made; the text lists every problem.
    """
    from bezel.bench_jobs.job_runner import Fleet
    from bezel.planner.base.names import is_project_id
    from bezel.pulumi_engine.project import cloud_project_of

    project = options.project or cloud_project_of(os.environ)
    wrong = []
    if options.tasks < 1:
        wrong.append(f"--tasks {options.tasks} sends nothing. Give 1 or more.")
    if not project:
        wrong.append(
            "no project is named, so there is no place for a job. Give --project, or set GOOGLE_CLOUD_PROJECT."
        )
    elif not is_project_id(str(project)):
        wrong.append(f"{str(project)!r} is no project's ID, so no job can be made there: see `gcloud projects list`.")
    if options.workers != 1:
        wrong.append(f"--workers {options.workers}: a task is one process. Give --tasks as many instead.")
    if options.ca_file:
        wrong.append("--ca-file lies on this machine, not on the tasks'. Give a server with a public certificate.")
    if wrong:
        raise UserError("\n   ".join(["this load cannot be sent by tasks:", *wrong]))
    return Fleet(
        project=str(project),
        region=options.job_region,
        tasks=options.tasks,
        image=options.image,
        service_account=options.service_account,
        bucket=options.bucket,
        ready_seconds=options.ready_seconds,
        seconds=options.job_seconds,
    )


def _longest(load: Load) -> float:
    """Seconds during which a load begins requests; 0 where only their number ends it."""
    from bezel.bench.load.plan import Replay, Staged

    match load.pattern:
        case Staged(_, stages):
            own = sum(stage.seconds for stage in stages)
        case Replay(instants):
            own = instants[-1]
        case _:
            own = 0.0
    return own if load.stop.seconds is None else min(own or load.stop.seconds, load.stop.seconds)


def _cost(fleet: Fleet) -> str:
    """The tasks' highest cost by list prices; unknown where the catalogue has no price."""
    from bezel.bench_jobs.job_runner import CPU, MEMORY_GIB
    from bezel.catalog import Unpriced, price

    rows = [price("cloud-run", item, fleet.region, "instance-based") for item in ("vcpu", "memory")]
    size = f"{fleet.tasks} tasks of {CPU} vCPU and {MEMORY_GIB} GiB"
    if missing := [str(row) for row in rows if isinstance(row, Unpriced)]:
        return f"{size}: their cost is unknown, as the catalogue has no price of {'; '.join(missing)}."
    priced = [row for row in rows if not isinstance(row, Unpriced)]
    each = sum(float(row.usd_per_unit) * count for row, count in zip(priced, (CPU, MEMORY_GIB), strict=True))
    minute, most = each * fleet.tasks * 60, each * fleet.tasks * fleet.seconds
    return (
        f"{size} cost about ${minute:.4f} a minute, at most ${most:.2f} in the {fleet.seconds:g} s that each job may "
        f"take (estimated, list prices as of {min(row.as_of for row in priced)})."
    )
