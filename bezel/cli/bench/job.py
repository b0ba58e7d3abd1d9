"""`bezel bench job`: `bezel bench run` with the load sent by the tasks of a Cloud Run job instead of this machine.

Owns the options, the job's cost, and the result's record of its client. Leaves out the job's life cycle
(`bezel.bench_jobs.job_runner`).

A task is billed as an instance of a service with instance-based billing: Cloud Run's price page has one row for both.
"""

import argparse
from collections.abc import Callable
from typing import Literal

from bezel.bench_jobs.job_runner import CPU, MEMORY_GIB, Fleet, send_by_tasks
from bezel.cli.bench.stack_targets import StackTargets
from bezel.engine.project.project import Project, checked_cloud_project
from bezel_base.console import note
from bezel_base.errors import Problem, UserError
from bezel_base.text.counting import format_count
from bezel_bench.commands.main import choose_endpoint
from bezel_bench.commands.measure.usage import as_usage
from bezel_bench.commands.run import plan_of, warm_up_of
from bezel_bench.commands.run import run as run_load
from bezel_bench.load.patterns import user_windows
from bezel_bench.load.plan import Bodies, Load, Replay, Staged, TokenSource, is_closed
from bezel_bench.result.document import Result
from bezel_bench.result.records import Client
from bezel_bench.result.sample import Measured
from bezel_catalog import Price, price
from bezel_catalog.models import using_models


def run(project: Project, options: argparse.Namespace) -> Literal[0, 1, 130]:
    """Measure with tasks, write, print; see `bezel_bench.commands.run.run`.

    Raises:
        UserError: Nothing could be measured, or something could not be deleted; the text says what.
    """
    with as_usage():
        fleet = _fleet(options)
    sender = _ByTasks(fleet)
    targets = StackTargets(project)
    choose_endpoint(targets, options)
    load, _ = plan_of(options)
    with as_usage():
        warm = warm_up_of(load, options.warmup, options.warmup_seconds)
        for planned in (load, *([warm] if warm else [])):
            sender.check(planned)
    note(f"  {_cost(fleet)}")
    with using_models(project.models()):
        return run_load(targets, options, sender)


class _ByTasks:
    """Load sender that runs one job of the fleet's tasks for each repeat of the load."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._notes: dict[str, None] = {}
        self._by: dict[str, object] = {}

    def send(self, load: Load, bodies: Bodies, headers: TokenSource, show: Callable[[str], None]) -> Measured:
        """Do what `bezel_bench.client.load_engine.run_load` does; the tasks make bodies and headers themselves."""
        del bodies, headers
        self.check(load)
        merged = send_by_tasks(load, self._fleet, show)
        self._notes |= dict.fromkeys(merged.notes)
        self._by = merged.by
        return merged.measured

    def check(self, load: Load) -> None:
        """Refuse a load that the tasks cannot share, or that may last longer than their job.

        Raises:
            UserError: It is one.
        """
        if is_closed(load.pattern) and (users := len(user_windows(load))) < self._fleet.tasks:
            consequence = f"with {format_count(users, 'users')} some tasks would send nothing."
            raise UserError(
                Problem("--tasks", self._fleet.tasks, consequence, f"give {format_count(users, 'tasks')} or fewer.")
            )
        needed = self._fleet.ready_seconds + _longest(load) + load.deadline_seconds
        if self._fleet.seconds < needed:
            consequence = (
                f"the job may end before the load: tasks may need {self._fleet.ready_seconds:g} s to start, and the "
                f"load {_longest(load):g} s and the deadline of one request."
            )
            repair = f"give {needed:g} or more, or lower --ready-seconds or --deadline."
            raise UserError(Problem("--job-seconds", f"{self._fleet.seconds:g}", consequence, repair))

    def describe(self, result: Result) -> Result:
        """Return the result with the tasks as its client."""
        notes = [*result.notes, *self._notes, f"The load was sent from {self._fleet.region}. {_cost(self._fleet)}"]
        client = Client.model_validate({**self._by, "workers": self._fleet.tasks})
        manifest = result.manifest.model_copy(update={"client": client})
        return result.model_copy(update={"manifest": manifest, "notes": notes})


def _fleet(options: argparse.Namespace) -> Fleet:
    """The fleet that the options describe.

    Raises:
        UserError: It cannot be made; the text lists every problem.
    """
    problems: list[Problem | str] = []
    if options.tasks < 1:
        problems.append(Problem("--tasks", options.tasks, "nothing would be sent.", "give 1 or more."))
    if options.workers != 1:
        problems.append(Problem("--workers", options.workers, "a task is one process.", "raise --tasks instead."))
    for option in ("input_lengths", "output_lengths"):
        if getattr(options, option).startswith("file:"):
            name = f"--{option.replace('_', '-')}"
            consequence = "the file is on this machine, not on those of the tasks."
            problems.append(Problem(name, getattr(options, option), consequence, "use normal or lognormal."))
    if options.ca_file:
        consequence = "the file is on this machine, not on those of the tasks."
        problems.append(Problem("--ca-file", options.ca_file, consequence, "use a server with a public certificate."))
    try:
        project = checked_cloud_project(options.project)
    except UserError as error:
        problems += error.problems
    if problems:
        raise UserError(*problems, title="This load cannot be sent by tasks")
    return Fleet(
        project=project,
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
    match load.pattern:
        case Staged(_, stages):
            stage_seconds = sum(stage.seconds for stage in stages)
        case Replay(instants):
            stage_seconds = instants[-1]
        case _:
            stage_seconds = 0.0
    return stage_seconds if load.stop.seconds is None else min(stage_seconds or load.stop.seconds, load.stop.seconds)


def _cost(fleet: Fleet) -> str:
    """The tasks' highest cost by list prices; unknown where the catalogue has no price."""
    rows = [price("cloud-run", item, fleet.region, "instance-based") for item in ("vcpu", "memory")]
    size = f"{format_count(fleet.tasks, 'tasks')} of {CPU} vCPU and {MEMORY_GIB} GiB"
    prices = [row for row in rows if isinstance(row, Price)]
    if len(prices) < len(rows):
        missing = "; ".join(str(row) for row in rows if not isinstance(row, Price))
        return f"{size}: their cost is unknown, as the catalogue has no price of {missing}."
    second = fleet.tasks * sum(float(row.usd_per_unit) * n for row, n in zip(prices, (CPU, MEMORY_GIB), strict=True))
    return (
        f"{size} cost about ${second * 60:.4f} a minute, at most ${second * fleet.seconds:.2f} in the "
        f"{fleet.seconds:g} s of each job (estimated, list prices as of {min(row.as_of for row in prices)})."
    )
