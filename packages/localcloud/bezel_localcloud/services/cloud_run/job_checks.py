"""Validation of a job as Cloud Run does it before anything is created: each violation with its field. Pure.

A task's container is checked by the rules for a service's (checks.py). Sources: the discovery document of run v2, and
Cloud Run's pages on jobs (a timeout of 168 hours and 10 retries at most, 10,000 tasks).
"""

import re
from collections.abc import Iterable, Iterator

from bezel_localcloud.core.json_types import Json, seconds_of
from bezel_localcloud.services.cloud_run.checks import NAME, NAME_RULE, violations
from bezel_localcloud.services.cloud_run.containers.checks import Violation, between

TASK_SECONDS = 600.0
RETRIES = 3
_MOST_TASKS = 10_000
_MOST_RETRIES = 10
_MOST_SECONDS = 168 * 3600
_SET_BY_PLATFORM = re.compile(r"CLOUD_RUN_(JOB|EXECUTION|TASK_(INDEX|COUNT|ATTEMPT))")
# Parts of a service's template that a task's template has as well.
_SHARED = ("containers", "volumes", "nodeSelector", "executionEnvironment")
# Fields that would start executions on their own, or later.
UNSERVED = ("runExecutionToken", "startExecutionToken")


def job_violations(job: Json, job_id: str, location: str) -> Iterator[Violation]:
    """(field, text) of every violation of a job."""
    if not NAME.fullmatch(job_id):
        yield "job_id", NAME_RULE.format(job_id)
    template = job.get("template") or {}
    task = template.get("template") or {}
    shared = {key: task[key] for key in _SHARED if key in task}
    named = {key: job[key] for key in ("labels", "annotations") if key in job}
    if len(task.get("containers") or []) > 1:
        yield "job.template.template.containers", "localcloud runs one container per task: remove the others"
        return
    yield from of_task(violations({"template": shared} | named, "job", location))
    yield from execution_violations(template, "job.template")
    for container in task.get("containers") or []:
        for name in (str(entry.get("name", "")) for entry in container.get("env") or []):
            if _SET_BY_PLATFORM.fullmatch(name):
                yield "job.template.template.containers[0].env", f"{name} is reserved: it is set by the system"


def execution_violations(template: Json, field: str) -> Iterator[Violation]:
    """Violations of the numbers in an execution's template."""
    task, count = template.get("template") or {}, template.get("taskCount", 0)
    if not 0 <= count <= _MOST_TASKS:
        yield f"{field}.task_count", f"{count} is not between 1 and {_MOST_TASKS}"
    parallelism = template.get("parallelism", 0)
    if not 0 <= parallelism <= max(count, 1):
        yield f"{field}.parallelism", f"{parallelism} is not between 0 and task_count {max(count, 1)}"
    yield from between(f"{field}.template.max_retries", task.get("maxRetries", RETRIES), 0, _MOST_RETRIES)
    try:
        timeout = seconds_of(task.get("timeout"), TASK_SECONDS)
    except ValueError as error:
        yield f"{field}.template.timeout", str(error)
        return
    if not 0 < timeout <= _MOST_SECONDS:
        yield f"{field}.template.timeout", f"{timeout:g}s is not between 1s and {_MOST_SECONDS}s"


def of_task(violations: Iterable[Violation]) -> Iterator[Violation]:
    """Violations of a service or its template, with the fields of a job or its task's template."""
    for field, text in violations:
        yield field.replace("service.template", "job.template.template", 1).replace("service", "job", 1), text
